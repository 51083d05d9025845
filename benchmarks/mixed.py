"""Mixed models next to statsmodels' MixedLM and GPBoost: random intercepts, intercepts and slopes, and crossed groups.

    OMP_NUM_THREADS=1 python benchmarks/mixed.py    # two minutes, one thread; --largest: the last case alone

GPBoost is compared where it is installed, in an environment of its own: ``pip install -e . statsmodels gpboost``.

Processor seconds of a fit, and the standard deviations that were estimated; the truth is .8 for intercepts, .4 for
slopes and for the second of two crossed groups, 1 for the noise. MixedLM is left out of the largest case, where it
asks for 112 GiB (a square matrix of all groups). The results stand in docs/guide/mixed_models.md.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd

CASES = [  # rows, groups, of the second of two crossed groupings
    ("intercepts", 2_000, 200, 0),
    ("intercepts", 20_000, 2_000, 0),
    ("intercepts", 20_000, 5_000, 0),
    ("intercepts and slopes", 2_000, 200, 0),
    ("intercepts and slopes", 20_000, 2_000, 0),
    ("crossed intercepts", 2_000, 100, 20),
    ("crossed intercepts", 500_000, 125_000, 2_000),
]
FORMULAS = {
    "intercepts": "y ~ w[g] + s[1]*x + c[1]",
    "intercepts and slopes": "y ~ w[g] + v[g]*x + s[1]*x + c[1]",
    "crossed intercepts": "y ~ w[g] + v[h] + s[1]*x + c[1]",
}


def make_table(kind: str, rows: int, groups: int, others: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    g, x = rng.integers(0, groups, rows), rng.normal(size=rows)
    table = pd.DataFrame({"g": pd.Series(g.astype(str), dtype="category"), "x": x})
    y = 1.0 + 0.5 * x + rng.normal(0, 0.8, groups)[g] + rng.normal(size=rows)
    if kind == "intercepts and slopes":
        y += rng.normal(0, 0.4, groups)[g] * x
    if others:
        h = rng.integers(0, others, rows)
        table["h"] = pd.Series(h.astype(str), dtype="category")
        y += rng.normal(0, 0.4, others)[h]
    return table.assign(y=y)


def tabsym(kind: str, table: pd.DataFrame) -> list[float]:
    from tabsym import WideRegressor

    model = WideRegressor(FORMULAS[kind], loss="squared_error", count_effect=False).fit(table)
    variances = model.variances_["sd"]
    return [*(variances[name] for name in ("w", "v") if name in variances), model.dispersion_**0.5]


def statsmodels(kind: str, table: pd.DataFrame) -> list[float]:
    import statsmodels.formula.api as smf

    if kind == "crossed intercepts":
        parts = {"g": "0 + C(g)", "h": "0 + C(h)"}
        fit = smf.mixedlm("y ~ x", table, groups=np.ones(len(table)), vc_formula=parts).fit()
        return [*np.sqrt(fit.vcomp), fit.scale**0.5]
    parts = {"v": "0 + x"} if kind == "intercepts and slopes" else None
    fit = smf.mixedlm("y ~ x", table, groups="g", re_formula="1", vc_formula=parts).fit()
    return [fit.cov_re.iloc[0, 0] ** 0.5, *np.sqrt(fit.vcomp), fit.scale**0.5]


def gpboost(kind: str, table: pd.DataFrame) -> list[float]:
    import gpboost as gpb

    options = {}
    if kind == "intercepts and slopes":
        options = {"group_rand_coef_data": table["x"].to_numpy(), "ind_effect_group_rand_coef": [1]}
    groups = table[["g", "h"] if kind == "crossed intercepts" else ["g"]].astype(str).to_numpy()
    model = gpb.GPModel(group_data=groups, likelihood="gaussian", num_parallel_threads=1, **options)
    model.fit(y=table["y"].to_numpy(), X=np.column_stack([np.ones(len(table)), table["x"]]))
    noise, *effects = np.sqrt(np.asarray(model.get_cov_pars(format_pandas=False)).ravel())
    return [*effects, noise]


PEERS = {"MixedLM": (statsmodels, 100_000), "GPBoost": (gpboost, np.inf)}
"""With the number of groups from which each is left out."""


def main() -> None:
    warnings.simplefilter("ignore")
    cases = CASES[-1:] if "--largest" in sys.argv else CASES
    peers = {name: peer for name, peer in PEERS.items() if find_spec(peer[0].__name__) is not None}
    heads = ["model", "rows", "groups", "tabsym s", "sd", *(head for name in peers for head in (f"{name} s", "sd"))]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    for kind, rows, groups, others in cases:
        table = make_table(kind, rows, groups, others)
        tabsym(kind, table[:2_000])  # compiles
        cells = [kind, f"{rows:,}", f"{groups:,}" + (f" x {others:,}" if others else "")]
        for fit, most in [(tabsym, np.inf), *peers.values()]:
            if groups > most:
                cells += ["", "not run"]
                continue
            begin = time.process_time()
            deviations = fit(kind, table)
            cells += [f"{time.process_time() - begin:.2f}", ", ".join(f"{sd:.3f}" for sd in deviations)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
