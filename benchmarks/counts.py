"""Which loss ``loss="auto"`` takes for counts with an exposure: ``python benchmarks/counts.py``; see counts.md.

Ten generated tables of each kind: Poisson, overdispersed (negative binomial, shape 2) and zero-inflated (30 % of rows
cannot have a claim). A row of output is a table: the loss chosen, the loss of the best score (what was taken before),
and what the models lose on 20,000 new rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tabsym import WideRegressor

KINDS = ("poisson", "overdispersed", "zero-inflated")
N_TRAIN, N_TEST, N_TABLES = 4_000, 20_000, 10


def table_of(kind: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns with an exposure, counts (n,) and their true means (n,)."""
    rng = np.random.default_rng(seed)
    n = N_TRAIN + N_TEST
    effects = {"region": rng.normal(0, 0.4, 25), "model": rng.normal(0, 0.3, 60), "use": rng.normal(0, 0.3, 4)}
    codes = {name: rng.integers(0, len(effect), n) for name, effect in effects.items()}
    age = rng.uniform(18, 80, n)
    exposure = rng.uniform(0.1, 1.0, n).round(2)
    score = sum(effect[codes[name]] for name, effect in effects.items()) + 0.6 * np.exp(-(age - 18) / 8)
    mean = np.exp(score - 1.2) * exposure
    if kind == "poisson":
        y = rng.poisson(mean)
    elif kind == "overdispersed":
        y = rng.poisson(mean * rng.gamma(2.0, 0.5, n))
    else:
        y = rng.poisson(mean / 0.7) * (rng.random(n) < 0.7)
    X = pd.DataFrame({name: np.char.add(name[0], code.astype(str)) for name, code in codes.items()})
    return X.assign(age=age, exposure=exposure), y.astype(float), mean


def deviance(y: np.ndarray, predicted: np.ndarray) -> float:
    """Mean Poisson deviance."""
    logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / predicted), 0.0)
    return float(2.0 * np.mean(logs - y + predicted))


def main() -> None:
    lines = []
    for kind in KINDS:
        for seed in range(N_TABLES):
            X, y, mean = table_of(kind, seed)
            train, test = X.iloc[:N_TRAIN], X.iloc[N_TRAIN:]
            chosen = WideRegressor(exposure_column="exposure").fit(train, y[:N_TRAIN])
            line = {"kind": kind, "table": seed, "chosen": chosen.loss_, "best score": chosen.losses_["loss"].iloc[0]}
            for loss in ("poisson", "tweedie"):
                model = WideRegressor(loss=loss, exposure_column="exposure").fit(train, y[:N_TRAIN])
                predicted = model.predict(test)
                line |= {
                    f"deviance {loss}": deviance(y[N_TRAIN:], predicted),
                    f"rmse {loss}": float(np.sqrt(np.mean((predicted - mean[N_TRAIN:]) ** 2))),
                }
            lines.append(line)
            print(
                " ".join(f"{value:.5f}" if isinstance(value, float) else str(value) for value in line.values()),
                flush=True,
            )
    frame = pd.DataFrame(lines)
    print(frame.groupby("kind", sort=False)["chosen"].value_counts().to_string())
    print(frame.groupby("kind", sort=False)["best score"].value_counts().to_string())
    print(
        frame.groupby("kind", sort=False)[[name for name in frame if name.startswith(("dev", "rmse"))]].mean().round(5)
    )


if __name__ == "__main__":
    main()
