"""The table of coefficients, contrasts of two categories, and models with coefficients given by the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from tabsym.design.sources import Bins, Crossing, Flag, Source
from tabsym.messages import check_option, plural, warn_user
from tabsym.models.checks import by_class, numbers_by_class
from tabsym.models.inspection.explain import interactions_of_levels, switched_off
from tabsym.models.model import (
    CoefficientFrames,
    Split,
    WideModel,
    covariance_of_factor,
    index_of,
    mean_of_factor,
    source_of,
    split_frame,
)
from tabsym.models.start import by_value, with_init, with_state
from tabsym.solvers.newton.uncertainty import ORTHOGONAL

Floats = NDArray[np.float64]


def table_of(
    model: WideModel, frames: CoefficientFrames, outputs: list[str], *, scale: str, base: Any, level: float
) -> pd.DataFrame:
    """One row per coefficient: see `WideRegressor.coef_table`."""
    _check_scale_and_level(scale, level)
    bases = bases_taken_up(base, model, frames, len(outputs))
    shifts = shifts_of_scalars(model, frames, bases)
    parts = [_part(model, name, frame, outputs, bases.get(name), level, shifts) for name, frame in frames.items()]
    table = pd.concat(parts, ignore_index=True)
    if len(outputs) == 1:
        table = table.drop(columns="class")
    if scale == "response" and has_ratios(model):
        for column in ("value", "lower", "upper"):
            table[column] = np.exp(table[column])
        table["sd"] = table["sd"] * table["value"]  # delta method
    return table


def table_of_term(
    model: WideModel, frames: CoefficientFrames, outputs: list[str], term: str, *, scale: str, base: Any, level: float
) -> pd.DataFrame:
    """The rows of one term on the link scale, with `class`; `scale` is only checked."""
    _check_scale_and_level(scale, level)
    frame = frame_of(frames, term)
    if base is not None:
        base = bases_of({term: base}, model, frames, len(outputs))[term]
    return _part(model, term, frame, outputs, base, level, {})


def base_of_term(base: Any, model: WideModel, frames: CoefficientFrames, term: str, n_outputs: int) -> Any:
    """The base category of one term: of "largest" that with most rows, or None where the term has no base.

    A category that is called so is meant where there is one.
    """
    frame = frame_of(frames, term)
    if not (isinstance(base, str) and base == "largest") or base in frame.index:
        return base
    return bases_of(base, model, {term: frame}, n_outputs).get(term)


def _check_scale_and_level(scale: str, level: float) -> None:
    check_option("scale", scale, ("link", "response"))
    if not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} is not possible; use a number between 0 and 1, such as 0.95.")


def has_ratios(model: WideModel) -> bool:
    """Whether exp of a coefficient is a ratio: of means with a log link, of odds in classification."""
    return model.loss.log_link or model.loss.for_classes


@dataclass(frozen=True)
class Shift:
    """What the base categories of terms add to a scalar: values (K,), and the standard deviations (K,) of the sum."""

    value: Floats
    sd: Floats


def shifts_of_scalars(model: WideModel, frames: CoefficientFrames, bases: Mapping[str, Any]) -> dict[str, Shift]:
    """The intercept, and other scalars that the means of terms are in, from the means to the base categories."""
    added: dict[int, dict[int, float]] = {}
    for mean in model.spec.means:
        name = model.spec.blocks[mean.block].name
        if mean.moved_to is not None and name in bases:
            frame = frames[name]
            at = position_of(frame, bases[name], name, split_frame(frame, model.n_outputs))
            coef = model.spec.coefs(mean.block).start + at
            added.setdefault(mean.moved_to, {})[coef] = mean.times
    shifts = {}
    for scalar, multiples in added.items():
        scalar_coef = model.spec.coefs(scalar).start
        value = np.sum([times * model.theta[coef] for coef, times in multiples.items()], axis=0)
        shifts[model.spec.blocks[scalar].name] = Shift(
            value, _deviation_of_sum(model, {scalar_coef: 1.0} | multiples, scalar_coef)
        )
    return shifts


def _deviation_of_sum(model: WideModel, multiples: Mapping[int, float], scalar: int) -> Floats:
    """Posterior standard deviation (K,) of a weighted sum of coefficients, one of which is a scalar.

    In models that are too large for a joint covariance, and without samples, terms count as uncorrelated.
    """
    uncertainty, coefs, weights = model.uncertainty, np.array(list(multiples)), np.array(list(multiples.values()))
    if uncertainty is None:
        return np.full(model.n_outputs, np.nan)
    is_fixed = np.repeat([block.fixed for block in model.spec.blocks], model.spec.sizes)
    known = ~is_fixed[coefs] & ~np.isnan(uncertainty.sd[coefs, 0])  # dropped terms are 0
    coefs, weights = coefs[known], weights[known]
    if np.isinf(uncertainty.sd[coefs]).any() and uncertainty.unknown is None:
        return np.full(model.n_outputs, np.inf)
    if uncertainty.joint.size:
        at = uncertainty.joint_index[coefs]
        deviations = np.asarray(np.sqrt(np.maximum(weights @ uncertainty.joint[:, at][:, :, at] @ weights, 0.0)))
        if uncertainty.unknown is not None:
            alone = np.isinf(uncertainty.sd[coefs]) & ~uncertainty.unknown[:, coefs].any(axis=2).T
            change = np.abs(weights @ uncertainty.unknown[:, coefs]).max(axis=1)
            largest = np.abs(uncertainty.unknown[:, coefs]).max(axis=(1, 2))
            deviations[(change > ORTHOGONAL * largest) | alone.any(axis=0)] = np.inf
        return deviations
    if uncertainty.samples is not None:
        return np.sqrt(np.square(weights @ uncertainty.samples[coefs]).mean(keepdims=True))
    sd = uncertainty.sd[coefs]
    if uncertainty.total_sd.size:
        total = uncertainty.total_sd[coefs]
        sd = np.where((coefs == scalar)[:, None] & ~np.isnan(total), total, sd)
    return np.asarray(np.sqrt(np.square(weights) @ np.square(sd)))


def _part(
    model: WideModel,
    name: str,
    frame: pd.DataFrame,
    outputs: list[str],
    base: Any,
    level: float,
    shifts: Mapping[str, Shift],
) -> pd.DataFrame:
    """The rows of one term."""
    index = index_of(model.spec, name)
    rank = 1 if index is None else model.spec.blocks[index].rank
    split = split_frame(frame, rank * len(outputs))
    is_scalar = source_of(model.spec, index) is None
    categories = [None if is_scalar else key for key in frame.index]
    is_factor = index is not None and mean_of_factor(model, index) is not None
    frames = []
    for number, column in enumerate(split.values.columns):
        value = split.values[column].to_numpy(dtype=np.float64)
        sd = np.full(len(value), np.nan) if split.sd is None else split.sd.iloc[:, number].to_numpy(dtype=np.float64)
        if base is not None:
            at = position_of(frame, base, name, split)
            sd = deviations_of_differences(model, name, range(len(value)), [at] * len(value))[:, number]
            value = value - value[at]
        elif name in shifts:
            value, sd = value + shifts[name].value[number], shifts[name].sd[[number]]
        lower, upper, p = interval_and_p(value, sd, level, none=1.0 if is_factor and base is None else 0.0)
        with np.errstate(over="ignore"):  # of separated coefficients, which are on their way to infinity
            relativity = np.exp(value) if has_ratios(model) else np.nan
        frames.append(
            pd.DataFrame(
                {
                    "term": name,
                    "category": pd.Series(categories, dtype=object),
                    "class": column,
                    "low": np.nan if split.low is None else split.low.to_numpy(),
                    "high": np.nan if split.high is None else split.high.to_numpy(),
                    "value": value,
                    "sd": sd,
                    "lower": lower,
                    "upper": upper,
                    "p": p,
                    "relativity": relativity,
                    "rows": np.nan if split.rows is None else split.rows.to_numpy(),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def check_base(base: Any) -> None:
    """A `ValueError` where the option `base` has another type than it may have."""
    if not (base is None or isinstance(base, Mapping) or (isinstance(base, str) and base == "largest")):
        raise ValueError(f"base={base!r} is not possible; use {{term: category}}, 'largest' or None.")


def bases_of(base: Any, model: WideModel, frames: Mapping[str, pd.DataFrame], n_outputs: int) -> dict[str, Any]:
    """The base category of each term."""
    if base is None:
        return {}
    if isinstance(base, str) and base == "largest":
        bases = {}
        for name, frame in frames.items():
            rows = split_frame(frame, n_outputs).rows
            if rows is not None and len(frame) > 1 and not _is_within(model, name):
                key = frame.index[int(np.argmax(rows.to_numpy()))]
                bases[name] = key_of(model, name, np.nan) if key is None else key  # None is no base
        return bases
    check_base(base)
    for name in base:
        frame_of(frames, name)
        if isinstance(source_of(model.spec, index_of(model.spec, name)), (Flag, NoneType)):
            raise ValueError(f"base names {name!r}, which has one coefficient and no categories; leave it out.")
        if _is_within(model, name):
            raise ValueError(
                f"base names {name!r}, which only the rows of one category have, so that no intercept can take up that "
                "of a base category; leave it out, and compare its categories by contrast."
            )
    return {name: key_of(model, name, np.nan if category is None else category) for name, category in base.items()}


def bases_taken_up(base: Any, model: WideModel, frames: CoefficientFrames, n_outputs: int) -> dict[str, Any]:
    """The base category of each term whose mean a scalar can take up, or that cancels; "largest" leaves out others."""
    bases, moved = bases_of(base, model, frames, n_outputs), {mean.block for mean in model.spec.means}
    for name in [name for name in bases if index_of(model.spec, name) not in moved]:
        if isinstance(base, Mapping):
            raise ValueError(
                f"base names {name!r}, whose coefficients are factors of a product or have no intercept (slopes: no "
                "common slope) next to them that can take up that of a base category; leave it out, and compare its "
                "categories by contrast."
            )
        del bases[name]
    return bases


def _is_within(model: WideModel, name: str) -> bool:
    """Whether a term is an interaction within one category."""
    index = index_of(model.spec, name)
    return index is not None and model.spec.within(index) is not None


def interval_and_p(value: Floats, sd: Floats, level: float, none: float = 0.0) -> tuple[Floats, Floats, Floats]:
    """Normal limits, and the two-sided p of a test of the value `none`; p is NaN where `sd` is NaN, 0 or infinite."""
    half_width = norm.ppf(0.5 + level / 2) * sd
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where((sd > 0.0) & (sd < np.inf), 2.0 * norm.sf(np.abs((value - none) / sd)), np.nan)
    return value - half_width, value + half_width, p


def differences(
    model: WideModel, frames: CoefficientFrames, term: str, a: Any, b: Any, outputs: list[str], level: float
) -> Any:
    """The contrasts of categories of a term: see `WideRegressor.contrast`."""
    _check_scale_and_level("link", level)
    frame = frame_of(frames, term)
    split = split_frame(frame, len(outputs))
    is_single = not isinstance(a, COLLECTIONS)
    pairs = _pairs(a, b)
    firsts, seconds = ([key_of(model, term, key) for key in keys] for keys in pairs)
    if len(resolutions := _resolutions(model, frames, term)) > 1:
        values, deviations = _summed(model, frames, resolutions, pairs, len(outputs))
    else:
        indices = [[position_of(frame, key, term, split) for key in keys] for keys in (firsts, seconds)]
        coefs = split.values.to_numpy(dtype=np.float64)
        values, deviations = coefs[indices[0]] - coefs[indices[1]], deviations_of_differences(model, term, *indices)
        if term in switched_off(model):
            _warn_of_dropped(term)
    parts = []
    for value, sd in zip(values, deviations, strict=True):
        lower, upper, p = interval_and_p(value, sd, level)
        columns = {"value": value, "sd": sd, "lower": lower, "upper": upper, "p": p}
        parts.append(pd.DataFrame(columns, index=pd.Index(outputs, name=None if is_single else "class")))
    if is_single:
        return parts[0].iloc[0].rename(f"{term}: {a} - {b}") if len(outputs) == 1 else parts[0]
    names = [f"{first} - {second}" for first, second in zip(firsts, seconds, strict=True)]
    contrasts = pd.concat(parts, keys=names, names=[term])
    return contrasts.droplevel("class") if len(outputs) == 1 else contrasts


COLLECTIONS = (list, np.ndarray, pd.Index, pd.Series)
"""What holds several categories; a tuple is one combination of an interaction."""


def _pairs(a: Any, b: Any) -> tuple[list[Any], list[Any]]:
    """The categories to compare: one with one, several with a common base, or pair by pair."""
    if not isinstance(a, COLLECTIONS):
        if isinstance(b, COLLECTIONS):
            raise ValueError(
                f"b={b!r} is several categories, and a={a!r} is one; give a list for a, and its base for b."
            )
        return [a], [b]
    if not len(a):
        raise ValueError("a holds no category; give at least one.")
    if not isinstance(b, COLLECTIONS):
        return list(a), [b] * len(a)
    if len(a) != len(b):
        raise ValueError(
            f"a holds {plural(len(a), 'category', 'categories')} and b {len(b)}; give as many, pair by pair, or one "
            "base for b."
        )
    return list(a), list(b)


def _resolutions(model: WideModel, frames: CoefficientFrames, term: str) -> list[str]:
    """A term, and its parts with coarser bins, which add up to a surface or to curves by category."""
    parts = [part for part, name in interactions_of_levels(model.spec).items() if name == term and part in frames]
    return [term, *parts]


def _summed(
    model: WideModel, frames: CoefficientFrames, terms: list[str], pairs: tuple[list[Any], list[Any]], n_outputs: int
) -> tuple[Floats, Floats]:
    """Differences (m, K) of sums of terms, and their standard deviations by samples from the posterior, else NaN.

    Covariances are kept within terms only, so that samples are not needed where one term is left. A combination that no
    row of a term had adds nothing to it; one that no row of the terms that are left had has no deviation.
    """
    dropped = set(switched_off(model))
    left = [name for name in terms if name not in dropped]
    values, alone = np.zeros((len(pairs[0]), n_outputs)), np.full((len(pairs[0]), n_outputs), np.nan)
    samples = None if model.uncertainty is None else model.uncertainty.samples
    moves = None if samples is None else np.zeros((len(values), samples.shape[1]))
    has_none, lacks = (np.ones((2, len(values)), dtype=np.bool_) for _ in range(2))
    for name in terms:
        frame, index = frame_of(frames, name), index_of(model.spec, name)
        assert index is not None
        split = split_frame(frame, n_outputs)
        coefs = split.values.to_numpy(dtype=np.float64)
        by_side = [[_position(frame, key_of(model, name, key), split) for key in keys] for keys in pairs]
        for side, positions in enumerate(by_side):
            for row, position in enumerate(positions):
                if position is None:
                    continue
                has_none[side, row] = False
                if name in dropped:
                    continue
                lacks[side, row] = False
                sign = -1.0 if side else 1.0
                values[row] += sign * coefs[position]
                if moves is not None and samples is not None:
                    moves[row] += sign * samples[model.spec.coefs(index)][position]
        both = [(row, a, b) for row, (a, b) in enumerate(zip(*by_side, strict=True)) if a is not None and b is not None]
        if left == [name] and both:
            rows, firsts, seconds = map(list, zip(*both, strict=True))
            alone[rows] = deviations_of_differences(model, name, firsts, seconds)
    for side, row in np.argwhere(has_none)[:1]:
        frame = frame_of(frames, terms[0])
        position_of(frame, pairs[side][row], terms[0], split_frame(frame, n_outputs))  # raises
    if not left:
        _warn_of_dropped(terms[0])
    if len(left) <= 1:
        deviations = alone
    elif moves is not None:
        deviations = np.sqrt(np.square(moves).mean(axis=1, keepdims=True))
    else:
        warn_user(
            f"The contrast of {terms[0]!r} adds up {len(left)} terms ({', '.join(left)}), of whose sum the standard "
            "deviation is known after a fit with n_posterior_samples=32 only (one linear predictor)."
        )
        return values, alone
    unknown = lacks.any(axis=0)
    if left and unknown.any():
        side, row = np.argwhere(lacks)[0]
        warn_user(
            f"No training row of {', '.join(map(repr, left))} had {pairs[side][row]!r}, which adds nothing there; the "
            "standard deviation of its contrast is not known."
        )
    deviations[unknown] = np.nan
    return values, deviations


def _warn_of_dropped(term: str) -> None:
    warn_user(
        f"The contrast of {term!r} is 0 without a standard deviation: the term is dropped, as its variance is "
        "estimated as 0."
    )


def deviations_of_differences(model: WideModel, term: str, firsts: Sequence[int], seconds: Sequence[int]) -> Floats:
    """Posterior standard deviations (m, K) of differences of coefficients of a term; NaN where unknown."""
    index, uncertainty = index_of(model.spec, term), model.uncertainty
    covariance = None
    if index is not None and uncertainty is not None and uncertainty.covariances:
        mean = mean_of_factor(model, index)
        covariance = uncertainty.covariances[index] if mean is None else covariance_of_factor(model, index, mean)
    if covariance is None:
        same = np.equal(firsts, seconds)[:, None]
        return np.where(same, 0.0, np.full((len(firsts), model.n_outputs), np.nan))
    return np.sqrt([covariance.of_difference(a, b) for a, b in zip(firsts, seconds, strict=True)])


def position_of(frame: pd.DataFrame, key: Any, term: str, split: Split) -> int:
    """Row of a category, of a combination given as a tuple, or of the bin of a number."""
    position = _position(frame, key, split)
    if position is None:
        listed = ", ".join(map(repr, frame.index[:5]))
        more = ", ..." if len(frame) > 5 else ""
        raise ValueError(f"Term {term!r} has no category {key!r}; it has {listed}{more}.")
    return position


def _position(frame: pd.DataFrame, key: Any, split: Split) -> int | None:
    low, high = split.low, split.high
    is_number = isinstance(key, (int, float, np.number)) and not isinstance(key, bool)
    if low is not None and high is not None and is_number:
        inside = (low < key) & (key <= high)
        indices = np.flatnonzero(low.isna() if np.isnan(key) else inside)
    else:
        indices = np.array([index for index, category in enumerate(frame.index) if _is_same(category, key)], dtype=int)
    return int(indices[0]) if len(indices) else None


def key_of(model: WideModel, term: str, key: Any) -> Any:
    """A category of a term, with the labels of bins for the numbers in a combination of an interaction."""
    index = index_of(model.spec, term)
    source = source_of(model.spec, index)
    if source is None or not isinstance(key, tuple):
        return key
    parts: list[Source] = []
    while isinstance(source, Crossing):
        parts.insert(0, model.spec.sources[source.right])
        source = model.spec.sources[source.left]
    parts.insert(0, source)
    if len(parts) != len(key):
        return key
    return tuple(_label_of(part, part_key) for part, part_key in zip(parts, key, strict=True))


def _label_of(source: Source, key: Any) -> Any:
    """The label of the bin that holds a number; what is no number, or of no bins, as it is."""
    is_number = isinstance(key, (int, float, np.number)) and not isinstance(key, bool)
    if not isinstance(source, Bins) or not is_number or (np.isnan(key) and not source.missing):
        return key
    return source.labels[0 if np.isnan(key) else int(np.searchsorted(source.bounds, key)) + source.missing]


def _is_same(category: Any, key: Any) -> bool:
    if isinstance(category, tuple) or isinstance(key, tuple):
        together = isinstance(category, tuple) and isinstance(key, tuple) and len(category) == len(key)
        return together and all(map(_is_same, category, key))
    if not (pd.api.types.is_scalar(category) and pd.api.types.is_scalar(key)):
        return False
    if pd.isna(category) or pd.isna(key):
        return bool(pd.isna(category)) and bool(pd.isna(key))
    return str(category) == key if isinstance(category, pd.Interval) and isinstance(key, str) else bool(category == key)


def model_by(model: WideModel, frames: CoefficientFrames, coefs: Mapping[str, Any]) -> WideModel:
    """The model with some coefficients replaced; a `ValueError` names an unknown term."""
    if not isinstance(coefs, Mapping):
        raise ValueError(f"coefs is {type(coefs).__name__}; give a mapping of terms, such as coefs_ is.")
    given = dict(frames)
    for name, value in coefs.items():
        frame_of(frames, name)
        given[name] = _merged(given[name], value, name, model)
    phi = with_init(model, model.state[:, 0].reshape(-1, model.n_outputs), given)
    changed = with_state(model, model.columns.blank(phi.ravel()), model.n_steps)
    return replace(changed, uncertainty=None)


def frame_of(frames: Mapping[str, pd.DataFrame], term: str) -> pd.DataFrame:
    """The coefficients of a term; a `ValueError` for an unknown term lists the known ones."""
    try:
        return frames[term]
    except KeyError as error:
        raise ValueError(error.args[0]) from None


def _merged(frame: pd.DataFrame, value: Any, name: str, model: WideModel) -> pd.DataFrame:
    """The frame of a term with values replaced by category."""
    index = index_of(model.spec, name)
    width = model.n_outputs * (1 if index is None else model.spec.blocks[index].rank)
    replaced = frame.iloc[:, :width].copy()
    if index is None and isinstance(value, (pd.Series, Mapping)) and len(value) > 1:  # the scale of a product by class
        value = {frame.index[0]: numbers_by_class(value, replaced.columns, f"coefs[{name!r}]")}
    if isinstance(value, (int, float, np.number)):
        if len(frame) > 1:
            raise ValueError(f"coefs[{name!r}] is one number, and the term has {len(frame)} categories; name them.")
        items: Iterable[tuple[Any, Any]] = [(frame.index[0], value)]
    elif isinstance(value, pd.DataFrame):
        value = by_class(value, replaced.columns.tolist(), f"coefs[{name!r}]", allow_extra=True).iloc[:, :width]
        items = zip(value.index, value.to_numpy(), strict=True)
    elif isinstance(value, (pd.Series, Mapping)):
        items = value.items()
    else:
        raise ValueError(f"coefs[{name!r}] is {type(value).__name__}; give a number, {{category: number}} or a frame.")
    indices = {by_value(key): at for at, key in enumerate(frame.index)}
    numbers = replaced.to_numpy(dtype=np.float64, copy=True)
    for key, number in items:
        at = indices.get(by_value(key))
        if at is None:
            at = position_of(frame, key_of(model, name, key), name, split_frame(frame, width))
        given_numbers = numbers_by_class(number, replaced.columns if width > 1 else None, f"coefs[{name!r}][{key!r}]")
        numbers[at] = _finite(given_numbers, name, key, width)
    return pd.DataFrame(numbers, index=frame.index, columns=replaced.columns)


def _finite(number: Any, name: str, key: Any, width: int) -> Floats:
    """A given coefficient, or those of all classes and components, validated."""
    try:
        numbers = np.asarray(number, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise ValueError(f"coefs[{name!r}] holds no finite number for {key!r}; give one, or leave it out.")
    if numbers.size not in (1, width):
        raise ValueError(f"coefs[{name!r}] holds {numbers.size} numbers for {key!r}; give {width}, or one for all.")
    return numbers.ravel() if numbers.size > 1 else numbers
