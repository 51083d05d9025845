"""Random tables, targets, options: every public estimator must fit or refuse in a sentence, and keep its promises.

    python benchmarks/fuzz.py [--seeds 1000] [--from 0] [--only WideClassifier] [--refusals]

Each seed draws a small table, a target, an estimator and options that look valid, fits, and checks what the
documentation promises: finite answers, probabilities that sum to 1, no more training loss than a constant has, the
same from a clone, a pickle, a saved file, polars, permuted columns or rows, weights in another unit, repeated rows, one
row at a time; answers for new symbols and missing values; tables of the user left as they are. A refusal (ValueError
or TypeError) is counted; one that is no sentence, and any other exception, is a failure. Checks that fit again are
drawn, three for each seed. One seed is one case: ``--from 17 --seeds 1`` repeats it.
"""

import argparse
import copy
import pickle
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from fuzzing.case import Case, columns_of, gap
from fuzzing.kinds import KINDS
from fuzzing.tables import CLASSES, new_rows
from sklearn.preprocessing import TargetEncoder

import tabsym

SENTENCE = 20  # characters at least
FEW_VALUES = 20  # of a target, which may be taken for classes


def check_answers(case: Case, model: Any, said: dict[str, Any], rows: Any) -> Iterator[str]:
    """Finite, of the right width, probabilities, and better than a constant."""
    numbers = [column for column in said.values() if column.dtype != object]
    if not case.gaps and not all(np.isfinite(column).all() for column in numbers):
        yield "answers are not finite"
    if hasattr(model, "predict_proba") and abs(sum(numbers) - 1).max() > 1e-9:
        yield "probabilities do not sum to 1"
    if hasattr(model, "predict_proba") and not set(model.predict(case.X.iloc[rows])) <= set(model.classes_):
        yield "predicts what is no class"
    if isinstance(model, tabsym.JitterPredictor) and gap(said, case.ask(model.model_, case.X.iloc[rows])) > 1e-12:
        yield "rows of seen symbols are not answered as by the model"
    if hasattr(model, "transform") and list(said) != [str(name) for name in model.get_feature_names_out()]:
        yield f"get_feature_names_out gives {len(model.get_feature_names_out())} names, transform {len(said)}"
    if case.beats and not case.warned and (excess := over_constant(case, model, said, rows)) > 1e-6:
        yield f"worse than a constant on the training rows, by {excess:.2g} of its loss"


def over_constant(case: Case, model: Any, said: dict[str, Any], rows: Any) -> float:
    """How far the training loss lies above the best constant's, as a share of that."""
    y, weight = case.y[rows], np.ones(len(rows)) if case.weight is None else case.weight[rows]
    loss = getattr(case.estimator, "loss", None) or getattr(getattr(case.estimator, "wide", None), "loss", "auto")
    if case.task in CLASSES:
        places = np.searchsorted(model.classes_, y)
        shares = np.bincount(places, weight) / weight.sum()
        if loss == "hinge":
            own, best = np.maximum(0, 1 - np.where(places == 1, 1, -1) * said["0"]), 2 * shares.min()
        else:
            own = -np.log(np.maximum(np.column_stack(list(said.values()))[np.arange(len(y)), places], 1e-300))
            best = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
    elif loss in ("poisson", "gamma", "tweedie"):
        if case.estimator.__class__ not in (tabsym.WideRegressor, tabsym.WideSGDRegressor):
            return 0.0
        return -model.score(case.X, case.y, case.weight)  # the share of the deviance, less a constant's
    elif loss in ("auto", "squared_error"):
        own, best = (y - said["0"]) ** 2, np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    else:
        return 0.0
    return float(np.average(own, weights=weight) / max(best, 1e-300) - 1) if best > 1e-9 * np.mean(y != 0) else 0.0


def over(what: str, far: float, most: float | None) -> Iterator[str]:
    if most is not None and far > most:
        yield f"{what}: something else ({far:.2g})"


def check_copies(case: Case, model: Any, new: pd.DataFrame, told: dict[str, Any]) -> Iterator[str]:
    """A pickle and a saved file, and one row at a time."""
    yield from over("a pickle", gap(case.ask(pickle.loads(pickle.dumps(model)), new), told), 0)  # noqa: S301
    with tempfile.TemporaryDirectory() as folder:
        path = tabsym.save(model, Path(folder) / "model.skops")
        yield from over("a saved file", gap(case.ask(tabsym.load(path, trusted=[TargetEncoder]), new), told), 0)
    if case.alone:
        each = [case.ask(model, new.iloc[[i]], [i]) for i in range(len(new))]
        yield from over(
            "one row at a time", gap({k: np.concatenate([one[k] for one in each]) for k in told}, told), 1e-9
        )


def in_polars(frame: pd.DataFrame) -> pl.DataFrame:
    """Categories in their order, which polars has in enums."""
    kinds = {name: column.cat.categories for name, column in frame.items() if hasattr(column, "cat")}
    enums = [pl.col(name).cast(pl.Enum(list(kind))) for name, kind in kinds.items() if kind.dtype != int]
    return pl.from_pandas(frame).with_columns(enums)


def check_refits(case: Case, new: pd.DataFrame, told: dict[str, Any], rng: Any, n_checks: int = 3) -> Iterator[str]:
    """Fits again that must come to the same, some of them."""
    weight = np.ones(len(case.X), dtype=int) if case.weight is None else case.weight
    names, order = list(rng.permutation(case.X.columns)), rng.permutation(len(case.X))
    classes = len(set(case.y)) > FEW_VALUES or set(case.y) == set(case.y[weight > 0])  # one of weight 0 alone is kept
    by_polars = "ordered" not in case.X and not isinstance(getattr(case.estimator, "encoder", None), TargetEncoder)

    def repeated() -> dict[str, Any]:
        rows = np.repeat(np.arange(len(weight)), weight)
        one = replace(case, weight=None)
        return case.ask(one.fit(case.X.iloc[rows].reset_index(drop=True), rows), new)

    alike = new if case.settled or case.refuses else case.X.iloc[: len(new)]  # rows for other orders of columns
    usual = {"tol": 1e-3} if (case.estimator.get_params().get("tol") or 0.0) > 1e-3 else {}
    checks: list[tuple[str, float | None, Callable[[], dict[str, Any]]]] = [
        ("a second fit", 0, lambda: case.ask(case.fit(), new)),
        ("polars", case.digits if by_polars else None,
         lambda: case.ask(case.fit(in_polars(case.X)), in_polars(new))),
        ("another order of columns", None if case.warned else case.columns,
         lambda: case.ask(case.fit(case.X[names], **usual), alike[names])),
        ("another order of rows", None if case.warned else case.rows, lambda: case.ask(case.fit(rows=order), new)),
        ("weights times 7", case.relative, lambda: case.ask(case.fit(weight=7.0 * weight), new)),
        ("rows repeated for weights", 1e-6 if case.repeats and classes else None, repeated),
    ]  # fmt: skip
    checks = [one for one in checks if one[1] is not None]
    for place in rng.permutation(len(checks))[:n_checks]:
        what, most, answers = checks[place]
        if what == "another order of columns":  # a looser tolerance than `usual` ends before the order is no matter
            before = told if not usual and alike is new else case.ask(case.fit(**usual), alike)
            yield from over(what, gap(answers(), before, case.size), most)
        else:
            yield from over(what, gap(answers(), told), most)


def check_at_once(case: Case, rows: Any) -> Iterator[str]:
    """`fit_transform` without folds is fit and transform; with folds it makes the same columns."""
    options = {"cv": None} if "cv" in case.estimator.get_params() else {}
    model = case.fit(rows=rows, **options)
    once, twice = case.fit(rows=rows, method="fit_transform", **options), case.ask(model, case.X.iloc[rows])
    yield from over("fit_transform without folds", gap(columns_of(once, model), twice), 0)
    try:
        if options and set(columns_of(case.fit(rows=rows, method="fit_transform"), model)) != set(twice):
            yield "fit_transform by folds makes other columns"
    except ValueError as error:  # a symbol is missing from a fold, which CrossFit or its encoder refuses
        if not (case.refuses or "use fewer folds" in str(error)):
            raise


# -- seeds ----------------------------------------------------------------------------------------


class Refused(Exception):
    """To fit, in a sentence."""


def run(case: Case, rng: Any) -> Iterator[str]:
    """The failures of a case; a refusal to fit is raised."""
    kept = case.X.copy(), copy.copy(case.y), copy.copy(case.weight)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            model = case.fit()
        except (ValueError, TypeError) as error:
            raise Refused(str(error)) from error
    case.warned = any(issubclass(one.category, UserWarning) for one in heard)
    yield from {f"numpy warns: {one.message}" for one in heard if issubclass(one.category, RuntimeWarning)}
    counted = np.arange(len(case.X)) if case.weight is None else np.flatnonzero(case.weight)
    yield from check_answers(case, model, case.ask(model, case.X.iloc[counted], counted), counted)
    new = new_rows(case, rng)
    if case.refuses:
        try:
            case.ask(model, new)
        except ValueError as error:
            if len(str(error)) < SENTENCE:
                yield f"refuses new rows without a sentence: {error!r}"
        new = case.X.iloc[counted[:14]]
    told = case.ask(model, new)
    if not case.gaps and not all(np.isfinite(column).all() for column in told.values()):
        yield "answers for new rows are not finite"
    yield from check_copies(case, model, new, told)
    yield from check_refits(case, new, told, rng)
    if hasattr(model, "transform"):
        yield from check_at_once(case, counted)
    try:
        pd.testing.assert_frame_equal(case.X, kept[0])
        np.testing.assert_array_equal(case.y, kept[1])
        np.testing.assert_array_equal(case.weight, kept[2])
    except AssertionError:
        yield "the user's table, target or weights were changed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--only", choices=list(KINDS))
    parser.add_argument("--refusals", action="store_true", help="print them too")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name, (share, _) in KINDS.items() for _ in range(share)]
    totals: dict[str, Counter[str]] = {name: Counter() for name in KINDS}
    for seed in range(asked.first, asked.first + asked.seeds):
        rng = np.random.default_rng(seed)
        drawn = names[rng.integers(len(names))]
        name = asked.only or drawn
        case = KINDS[name][1](rng)
        problems, outcome = [], "ok"
        try:
            problems = list(run(case, rng))
        except Refused as error:
            outcome = "refused"
            problems = [f"refused without a sentence: {error}"] if len(str(error)) < SENTENCE else []
            if asked.refusals:
                print(f"refused {seed} {name}: {error}")
        except Exception as error:
            problems = [f"crash: {type(error).__name__}: {error}"]
        totals[name]["failures" if problems else outcome] += 1
        shape = f"{case.task} {list(case.X)} x {len(case.X)}{'' if case.weight is None else ' weighted'}"
        for problem in problems:
            print(f"FAILURE {seed} {' '.join(str(case.estimator).split())} | {shape} | {problem}", flush=True)
    table = pd.DataFrame(totals).T.reindex(columns=["ok", "refused", "failures"]).fillna(0).astype(int)
    print(pd.concat([table, table.sum().to_frame("all").T]).to_string())


if __name__ == "__main__":
    main()
