"""Fit and predict of tables larger than memory: rows are coded once, into memory maps, over which the solver goes.

Anonymous memory holds one batch, a sample of the rows, and the coefficients; the files take 4 bytes a row for each
term, 8 for each number, and 16 for the target and the linear predictor.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from tabsym.design.plan import used_columns
from tabsym.frame import check_classes, check_named, read_table
from tabsym.frame.read import Batches
from tabsym.frame.weights import weights_of_classes
from tabsym.models.checks import check_target_of_loss, columns_of
from tabsym.models.config import Config
from tabsym.models.data import offset_column_of
from tabsym.models.out_of_core.coded_batches import SAMPLE_ROWS, Reader, ReadTable, RowSample, Wanted
from tabsym.models.out_of_core.fit import TableInParts, fit_parts, refuse_options
from tabsym.models.out_of_core.kept_rows import KeptRows, check_has_fingerprint, fingerprint_of, folder_of_fit
from tabsym.models.out_of_core.parts import InFiles, Part
from tabsym.models.stream import target_name
from tabsym.solvers.newton.partitioned import Engine, OneAfterTheOther
from tabsym.threads import threads_for_rows
from tabsym.warn import show_progress

Floats = NDArray[np.float64]


def wanted_of(estimator: Any, config: Config, names: list[str], first: Any, y: Any, sample_weight: Any) -> Wanted:
    """What a fit reads of a table with these columns, of which `first` are some rows."""
    target = target_name(y, estimator.formula)
    check_named(target, names, "to predict")
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            "sample_weight of a table that is read in batches is the name of one of its columns, "
            f"sample_weight='weight', and not an array ({type(sample_weight).__name__})."
        )
    if sample_weight is not None:
        check_named(sample_weight, names, "for sample_weight")
    features = [name for name in names if name not in (target, sample_weight)]
    table = read_table(first.select(features), caller=config.caller)
    column = offset_column_of(estimator, table, None)
    coded: set[str] = set()
    if config.formula is not None:
        beside = [] if column is None else [column.name]
        features = list(dict.fromkeys([*used_columns(config.formula, table), *beside]))
        coded = {name for term in config.free_terms for ref in term.blocks for name in ref.columns}
    named = None
    if not is_classifier(estimator) and not estimator._names_no_loss():
        named = estimator._named_loss()
    own = [name for name in features if column is None or name != column.name]
    categorical = columns_of(config.cols, features)
    if isinstance(categorical, list):
        categorical = [name for name in categorical if name in own]
    if config.formula is not None:
        categorical = None
    return Wanted(
        target, sample_weight, features, column, categorical, coded, is_classifier(estimator), config.caller,
        lambda values: None if named is None else check_target_of_loss(values, named),
    )  # fmt: skip


def fit_out_of_core(
    estimator: Any, batches: Batches, y: Any, sample_weight: Any, cache_dir: Any = None
) -> KeyboardInterrupt | None:
    """Fit an estimator to a table in batches; the interrupt, if any, to be raised once it is fitted."""
    config = estimator._config()
    refuse_options(config, estimator)
    if cache_dir is not None:
        check_has_fingerprint(batches.source)
    with folder_of_fit(cache_dir) as (folder, kept):
        read, parts = _read(estimator, config, batches, y, sample_weight, folder, kept)
        return fit_read(estimator, config, read, OneAfterTheOther(parts))


def _read(
    estimator: Any, config: Config, batches: Batches, y: Any, sample_weight: Any, folder: Path, kept: KeptRows | None
) -> tuple[ReadTable, list[Part]]:
    """The rows, coded into files now or before."""
    rows = iter(batches)
    first = next(rows, None)
    if first is None:
        raise ValueError(_no_rows(config))
    wanted = wanted_of(estimator, config, first.column_names, first.slice(0, 1_000), y, sample_weight)
    if kept is None:
        return _coded(estimator, config, chain([first], rows), wanted, InFiles(folder))
    fingerprint = fingerprint_of(batches.source, wanted, SAMPLE_ROWS, _seed_of(estimator))
    found = kept.find(fingerprint, wanted, store := InFiles(folder))
    if found is not None:
        show_progress(config.verbose, f"{sum(map(len, found[1])):,} coded rows of an earlier fit taken from cache_dir")
    else:
        coded = _coded(estimator, config, chain([first], rows), wanted, InFiles(kept.rows))
        found = kept.keep(fingerprint, *coded, store)
    for part in found[1]:  # of an earlier fit with another loss
        wanted.check(part.y)
    return found


def _coded(
    estimator: Any, config: Config, batches: Iterable[Any], wanted: Wanted, store: InFiles
) -> tuple[ReadTable, list[Part]]:
    """Code the rows into files."""
    reader, parts = Reader(wanted, RowSample(SAMPLE_ROWS, sampling_of(estimator, 0)), store), []
    for batch in batches:
        part = reader.read(batch)
        if part is not None:
            parts.append(part)
            show_progress(config.verbose, f"{sum(map(len, parts)):,} rows coded")
    part = reader.rest()
    if part is not None:
        parts.append(part)
    if not parts:
        raise ValueError(_no_rows(config))
    return reader.result(), parts


def _no_rows(config: Config) -> str:
    return (
        f"The table has no rows of positive weight: found array with 0 sample(s) while a minimum of 1 is required "
        f"by {config.caller}."
    )


def sampling_of(estimator: Any, part: int) -> np.random.RandomState:
    """The random numbers that choose the sample: others than those of the fit."""
    return np.random.RandomState([_seed_of(estimator), part])


def _seed_of(estimator: Any) -> int:
    state = estimator.random_state
    return int(state) if isinstance(state, (int, np.integer)) else 0


def fit_read(estimator: Any, config: Config, read: ReadTable, engine: Engine) -> KeyboardInterrupt | None:
    """Fit an estimator to coded rows; its attributes are set at the end."""
    wanted, sample, rng = read.wanted, read.sample, check_random_state(estimator.random_state)
    weight = None if wanted.weight is None else np.asarray(sample[wanted.weight].to_numpy(), dtype=np.float64)
    rows = estimator._read_rows(config, sample.select(wanted.columns), sample[wanted.target], weight, None)
    of_class, classes = None, None
    if wanted.is_classifier:
        classes, sizes, of_class = _number_classes(estimator, read, engine)
        loss, n_outputs = estimator._loss_of_classes(len(classes))
        codes = check_classes(rows.y, len(rows.table), classes=classes, caller=config.caller).codes
        rows = estimator._with_class_weight(rows, classes, codes, sizes)
        training, precomputed = rows.training(codes.astype(np.float64), n_outputs), None
    else:
        n_outputs = 1
        loss, training, precomputed, losses = estimator._loss_and_training(config, rows)
    unit = _scale_weights(engine, of_class)
    totals = engine.total("target_sums")
    parts = TableInParts(engine, read.alphabets, int(totals[0]), unit)
    with threads_for_rows(config.n_jobs):
        fitted = fit_parts(config, training, parts, loss, n_outputs, rng, precomputed)
    interrupted = estimator._adopt_fit(config, fitted, training, int(totals[0]), sums_of(totals, unit))
    if classes is not None:
        estimator.classes_ = classes
    else:
        estimator._losses = losses
    return interrupted


def _number_classes(
    estimator: Any, read: ReadTable, engine: Engine
) -> tuple[NDArray[Any], Floats | None, Floats | None]:
    """The classes, sorted, by which the parts' targets are numbered from now on; with `class_weight` their totals and
    the weight of each.
    """
    import pyarrow as pa

    kind = getattr(read.class_type, "value_type", read.class_type)
    classes = pa.chunked_array([pa.array(read.classes.symbols.tolist(), type=kind)])
    target = check_classes(classes, len(classes), caller=read.wanted.caller)
    engine.every("renumber_classes", target.codes.astype(np.float64))
    if estimator.class_weight is None:
        return target.classes, None, None
    (totals,) = engine.total("totals_of_classes", len(target.classes))
    of_class = weights_of_classes(estimator.class_weight, target.classes, totals)
    if not of_class.all():  # whose rows the parts have read, and count
        absent = target.classes[of_class == 0.0].tolist()[0]
        raise ValueError(
            f"class_weight gives class {absent!r} the weight 0, which is for tables in memory; leave its rows out of "
            "the table."
        )
    return target.classes, totals, of_class


def _scale_weights(engine: Engine, of_class: Floats | None) -> float:
    """Scale the weights of all parts to mean 1, and drop them where they are equal; the mean weight."""
    found = engine.every("weight_range", of_class)
    total, n_rows = sum(one[0] for one in found), engine.total("target_sums")[0]
    low, high = min(one[1] for one in found), max(one[2] for one in found)
    engine.every("weigh", of_class, total / n_rows, low == high)
    return float(total / n_rows)


def sums_of(totals: tuple[float, ...], unit: float) -> dict[str, float]:
    """As `Training.sums`; `unit`: the sample weight that counts 1 in `totals`."""
    names = ("targets", "squared targets", "offsets", "squared offsets", "offsets times targets")
    return {"sample weights": unit} | {name: unit * float(one) for name, one in zip(names, totals[2:], strict=True)}
