"""Conversion between a model and the Newton solver: its terms for the solver, and results on the original scale."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.design.content import keys_of_source
from tabsym.design.model_spec import ModelSpec
from tabsym.design.model_spec import Rows as LaidRows
from tabsym.design.plan import RARITY
from tabsym.design.sources import Bins, CountEffect, Crossing, Flag, Symbols
from tabsym.design.units import TargetUnits
from tabsym.models.model import WideModel, source_of
from tabsym.models.monotonic import order_of
from tabsym.models.start import Coded
from tabsym.solvers.newton import Newton
from tabsym.solvers.newton.certainty import Certainty
from tabsym.solvers.newton.fit import SolverResult
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.threads import by_rows
from tabsym.warn import warn_user

Floats = NDArray[np.float64]

_EMPTY = np.empty(0)
_NO_CHAIN = np.empty(0, dtype=np.intp)


def solver_terms(model: WideModel, coded: Coded, rows: LaidRows) -> list[SolverTerm]:
    """The terms for the solver, unpenalized first, then by size, then by the names of their columns, not their order.

    Where variances of two terms explain the same, their order decides which of them does.
    """
    spec, numerics = model.spec, model.program.numerics
    terms = []
    for constant, term in zip(model.units.constants, spec.fitted_terms, strict=True):
        factor = term.factors[0]
        x = _EMPTY
        if term.numeric is not None:
            x = constant * rows.x[:, numerics.index(term.numeric)]
        elif constant != 1.0:
            x = np.full(len(rows.y), constant)
        source = source_of(spec, factor.block)
        if source is None:
            codes = np.zeros(len(rows.y), dtype=np.int32)
        else:
            codes = by_rows(lambda own: np.ascontiguousarray(own, dtype=np.int32), coded.codes[factor.read]).view()
        codes.flags.writeable = False  # as those of frames are: kernels are compiled once for all terms
        prior, apart = prior_of(spec, factor.block)
        direction = spec.blocks[factor.block].monotone
        chain = order_of(source)[::direction] if direction and isinstance(source, (Bins, Symbols)) else _NO_CHAIN
        sign = direction if source is None else 0
        terms.append(SolverTerm(factor.block, codes, x, spec.sizes[factor.block], prior, apart, chain=chain, sign=sign))
    numbers = {
        term.factors[0].block: spec.numerics[term.numeric].label
        for term in spec.fitted_terms
        if term.numeric is not None
    }

    def rank_of(term: SolverTerm) -> tuple[bool, int, list[str], str, str]:
        if term.prior is Prior.FLAT:  # these take joint steps, in any order
            return False, term.size, [], "", ""
        block = spec.blocks[term.block]
        return True, term.size, sorted(block.columns), numbers.get(term.block, ""), block.name

    terms.sort(key=rank_of)
    sources = {term.block: spec.blocks[term.block].source for term in terms}
    made_of = {
        block: frozenset() if source is None else _made_of(spec, source, spec.blocks[block].columns)
        for block, source in sources.items()
    }
    whole = {term.block for term in terms if not len(term.x) and term.codes.min(initial=0) >= 0}
    return [replace(term, within=_within(spec, term, terms, made_of, whole)) for term in terms]


def with_keys(spec: ModelSpec, terms: list[SolverTerm]) -> list[SolverTerm]:
    """The terms, with what their coefficients mean in any order of rows, where codes follow that."""
    found = []
    for term in terms:
        block, keys = spec.blocks[term.block], None
        if block.source is not None and isinstance(source_of(spec, term.block), (Symbols, Crossing)):
            keys = partial(keys_of_source, spec.sources, block.source, block.columns)
        name = block.name.replace(":".join(block.columns), ":".join(sorted(block.columns)))
        found.append(replace(term, name=name, keys=keys))
    return found


def _within(
    spec: ModelSpec,
    term: SolverTerm,
    terms: list[SolverTerm],
    made_of: dict[int, frozenset[tuple[int, str]]],
    whole: set[int],
) -> dict[int, NDArray[np.int32]]:
    """The parents of each coefficient of an interaction, by block: of main effects and lower-order interactions.

    For slopes by category, the slopes of the same column by a coarser category. `whole`: the blocks with a coefficient
    for every row and no numeric factor.
    """
    if len(term.x) and term.prior is Prior.RIDGE:
        return _coarser_slopes(term, terms)
    if not isinstance(source_of(spec, term.block), Crossing) or term.block not in whole:
        return {}
    found: dict[int, NDArray[np.int32]] = {}
    a_row = np.zeros(term.size, dtype=np.intp)  # one row per coefficient
    a_row[term.codes] = np.arange(len(term.codes))
    for other in terms:
        if other.block not in whole or not made_of[other.block] < made_of[term.block]:
            continue
        if other.prior is Prior.RIDGE and not isinstance(source_of(spec, other.block), CountEffect):
            found[other.block] = other.codes[a_row]
    return found


def _coarser_slopes(term: SolverTerm, terms: list[SolverTerm]) -> dict[int, NDArray[np.int32]]:
    """Slopes of the same column by a categorical column that is a function of the term's, as regions are of cities."""
    found: dict[int, NDArray[np.int32]] = {}
    if term.codes.min(initial=0) < 0:
        return found
    for other in terms:
        if other.prior is not Prior.RIDGE or other.size >= term.size or not np.array_equal(other.x, term.x):
            continue
        above = np.zeros(term.size, dtype=np.int32)
        above[term.codes] = other.codes
        if other.codes.min(initial=0) >= 0 and np.array_equal(above[term.codes], other.codes):
            found[other.block] = above
    return found


def _made_of(spec: ModelSpec, index: int, columns: tuple[str, ...]) -> frozenset[tuple[int, str]]:
    """The sources and columns that determine the code of a source."""
    source = spec.sources[index]
    if isinstance(source, Crossing):
        return _made_of(spec, source.left, columns[:-1]) | _made_of(spec, source.right, columns[-1:])
    return frozenset({(index, columns[0])})


def prior_of(spec: ModelSpec, index: int) -> tuple[Prior, int]:
    """The prior of a block's coefficients, and how many first ones are apart from a random walk."""
    source = source_of(spec, index)
    if source is None or isinstance(source, Flag):
        return Prior.FLAT, 0
    apart = int(isinstance(source, Bins) and source.missing)
    if spec.blocks[index].ordered and len(source) - apart > 1:
        return Prior.WALK, apart
    return Prior.RIDGE, 0


def given_precisions(
    spec: ModelSpec, terms: list[SolverTerm], newton: Newton, total: float, units: TargetUnits, *, may_lack: bool
) -> dict[int, float] | None:
    """The precisions by index of their term that ``alpha`` by term gives; `total`: the weight of all rows.

    `may_lack`: see `Config`; of an interaction that was not chosen a warning tells.
    """
    if newton.penalties is None:
        return None
    found = {}
    for name, alpha in newton.penalties.items():
        index = _term_named(name, spec, terms, may_lack=may_lack)
        if index is None:
            if newton.posterior:
                warn_user(f"alpha names {name!r}, which the model does not have; it has no effect.")
            continue
        if terms[index].prior is Prior.FLAT:
            raise ValueError(
                f"alpha names {name!r}, which has no penalty (intercept and slopes have none); leave it out."
            )
        if index in found:
            raise ValueError(f"alpha names {name!r} twice, as its columns come in any order; name it once.")
        found[index] = alpha * total / units.of_loss
    return found


def _term_named(name: str, spec: ModelSpec, terms: list[SolverTerm], *, may_lack: bool) -> int | None:
    """The index of a term by its name, in which the columns of an interaction come in any order; None for one that may
    be absent.
    """
    indices = {spec.blocks[term.block].name: index for index, term in enumerate(terms)}
    alike = {_parts_of(one): index for one, index in indices.items()}
    found = indices.get(name, alike.get(_parts_of(name)))
    if found is not None:
        return found
    columns = {column for block in spec.blocks for column in block.columns}
    counted, (_, parts) = name.startswith(RARITY), _parts_of(name)
    known = all(any(re.fullmatch(f"{re.escape(one)}( .*|=.*)?", part) for one in columns) for part in parts)  # or bins
    known &= len(set(parts)) == len(parts)  # no interaction has a column twice
    if known and (counted or (may_lack and len(parts) > 1)):  # a count effect may have been left out
        return None
    given = [spec.numerics[term.numeric].label for term in spec.terms if not term.factors and term.numeric is not None]
    if name in given:
        raise ValueError(
            f"alpha names {name!r}, which has no coefficient in the formula, and no penalty; leave it out."
        )
    raise ValueError(f"alpha names {name!r}, and there is no such term; there is {sorted(indices)}.")


def _parts_of(name: str) -> tuple[str, tuple[str, ...]]:
    """What stands before the columns of a term's name, as in ``1 | a:b`` or ``count of a:b``, and these in order."""
    start = RARITY if name.startswith(RARITY) else ""
    *before, columns = name.removeprefix(start).split(" | ")
    return start + " | ".join(before), tuple(sorted(columns.split(":")))


def in_users_target(answer: SolverResult, units: TargetUnits) -> SolverResult:
    """Convert dispersion and loss to the units of the target; coefficients and posterior do not depend on them."""
    certainty, by = answer.certainty, units.of_loss
    certainty = replace(certainty, dispersion=by * certainty.dispersion, working=by * certainty.working)
    return replace(answer, certainty=certainty, loss=by * answer.loss + units.added)


def in_users_units(model: WideModel, answer: SolverResult) -> Certainty:
    """Convert the posterior to the original scale, with the uncertainty of terms that compensate for centring."""
    spec, units, certainty = model.spec, model.units, answer.certainty
    sd, samples = certainty.sd * units.sizes_of_coefs(spec), certainty.samples
    if samples is not None:
        samples = units.to_user(spec, samples) - units.to_user(spec, np.zeros_like(samples))
        moved = spec.centering_blocks
        for own in (spec.coefs(block) for block in moved):
            sd[own] = np.sqrt(np.square(samples[own]).mean(axis=1, keepdims=True))
    elif spec.centering_terms:
        variances = np.square(sd)
        for index, home in spec.centering_terms.items():
            term = spec.fitted_terms[index]
            share = term.constant * units.means[term.numeric] / home.constant
            own = spec.coefs(home.factors[0].block)
            if share != 0.0:
                variances[own] += np.square(share * sd[spec.coefs(term.factors[0].block)])
        if answer.together is not None:
            _put_homes_together(model, *answer.together, variances)
        sd = np.sqrt(variances)
    by = units.scale**2
    return replace(
        certainty,
        variances=certainty.variances * np.square(units.sizes),
        sd=sd,
        samples=samples,
        dispersion=certainty.dispersion * by,
        working=certainty.working * by,
    )


def _put_homes_together(model: WideModel, coefs: NDArray[np.int64], covariances: Floats, variances: Floats) -> None:
    """Set the variances (coefficients, K) of scalars that compensate for centring unpenalized coefficients only."""
    spec, units = model.spec, model.units
    homes: dict[int, set[int]] = {}
    for index, home in spec.centering_terms.items():
        slopes = {spec.coefs(factor.block).start for factor in spec.fitted_terms[index].factors}
        homes.setdefault(spec.coefs(home.factors[0].block).start, set()).update(slopes)
    known = set(coefs.tolist())
    alone = [home for home, slopes in homes.items() if home in known and slopes <= known]
    if not alone:
        return
    for k in range(covariances.shape[2]):
        lengths, axes = np.linalg.eigh(covariances[:, :, k])
        spread = np.zeros((spec.n_coefs, len(coefs)))
        spread[coefs] = axes * np.sqrt(np.maximum(lengths, 0.0))
        moved = units.to_user(spec, spread) - units.to_user(spec, np.zeros_like(spread))
        variances[alone, k] = np.square(moved[alone]).sum(axis=1)


def without_idle(model: WideModel) -> WideModel:
    """Remove the dropped count effects."""
    spec, certainty = model.spec, model.certainty
    assert certainty is not None
    idle = [
        index
        for index in range(len(spec.blocks))
        if isinstance(source_of(spec, index), CountEffect) and certainty.variances[index] == 0.0
    ]
    if not idle:
        return model
    kept = np.setdiff1d(np.arange(len(spec.blocks)), idle)
    lean = spec.without(idle)

    def of_kept(values: NDArray[Any]) -> NDArray[Any]:
        """The values of the remaining coefficients, K rows each or one."""
        wide = len(values) // spec.n_coefs
        own = (spec.coefs(index) for index in kept)
        return np.concatenate([values[one.start * wide : one.stop * wide] for one in own])

    learned = [term.factors[0].block not in idle for term in spec.fitted_terms]
    units = replace(model.units, sizes=model.units.sizes[kept], constants=model.units.constants[learned])
    certainty = replace(
        certainty,
        variances=certainty.variances[kept],
        edf=certainty.edf[kept],
        sd=of_kept(certainty.sd),
        samples=None if certainty.samples is None else of_kept(certainty.samples),
        covariances=tuple(certainty.covariances[index] for index in kept) if certainty.covariances else (),
        joint_index=of_kept(certainty.joint_index) if len(certainty.joint_index) else certainty.joint_index,
        total_sd=of_kept(certainty.total_sd) if len(certainty.total_sd) else certainty.total_sd,
        unknown=None if certainty.unknown is None else np.array([of_kept(one) for one in certainty.unknown]),
    )
    return replace(
        model,
        spec=lean,
        units=units,
        theta=of_kept(model.theta),
        counts=of_kept(model.counts),
        weights=of_kept(model.weights),
        state=of_kept(model.state),
        certainty=certainty,
    )
