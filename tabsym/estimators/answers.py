"""What Newton's method answers: parameters and their certainty, from units of training to the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.estimators.pieces import source_of
from tabsym.wide.certainty import Certainty
from tabsym.wide.model import WideModel
from tabsym.wide.newton.joint import Whole
from tabsym.wide.sources import Rarity
from tabsym.wide.target_units import TargetUnits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """In units of training: parameters (entries, K) with their certainty, mean loss, and sweeps.

    `whole`: covariances of all coefficients of a formula, dispersion 1.
    `together`: entries (f,) that nothing holds back, and their covariances (f, f, K), where these are known.
    """

    phi: Floats
    certainty: Certainty
    loss: float
    n_sweeps: int
    converged: bool
    together: tuple[NDArray[np.int64], Floats] | None = None
    whole: Whole | None = None


def in_users_target(answer: Answer, units: TargetUnits) -> Answer:
    """The dispersion and the loss in units of the target; parameters and their certainty have none."""
    certainty, by = answer.certainty, units.of_loss
    scaled: dict[str, Any] = {"dispersion": by * certainty.dispersion, "working": by * certainty.working}
    return replace(answer, certainty=replace(certainty, **scaled), loss=units.users_loss(answer.loss))


def in_users_units(model: WideModel, answer: Answer) -> Certainty:
    """From units of training; what takes up the centring of slopes is as uncertain as that makes it."""
    layout, units, certainty = model.layout, model.units, answer.certainty
    sd, draws = certainty.sd * units.sizes_of_entries(layout), certainty.draws
    if draws is not None:
        draws = units.to_user(layout, draws) - units.to_user(layout, np.zeros_like(draws))
        moved = {home.factors[0].block for home in layout.homes.values()}
        for own in (layout.entries(block) for block in moved):
            sd[own] = np.sqrt(np.square(draws[own]).mean(axis=1, keepdims=True))
    elif layout.homes:
        variances = np.square(sd)
        for place, home in layout.homes.items():
            term = layout.learned[place]
            share = term.constant * units.means[term.numeric] / home.constant
            own = layout.entries(home.factors[0].block)
            if share != 0.0:
                variances[own] += np.square(share * sd[layout.entries(term.factors[0].block)])
        if answer.together is not None:
            _put_homes_together(model, *answer.together, variances)
        sd = np.sqrt(variances)
    variances = certainty.variances * np.square(units.sizes)
    return replace(certainty, variances=variances, sd=sd, draws=draws, **_dispersions(model, certainty))


def _put_homes_together(model: WideModel, entries: NDArray[np.int64], covariances: Floats, variances: Floats) -> None:
    """Set the variances (entries, K) of homes that take up the centring of what nothing holds back, and of it alone."""
    layout, units = model.layout, model.units
    homes: dict[int, set[int]] = {}
    for place, home in layout.homes.items():
        slopes = {layout.entries(factor.block).start for factor in layout.learned[place].factors}
        homes.setdefault(layout.entries(home.factors[0].block).start, set()).update(slopes)
    known = set(entries.tolist())
    alone = [home for home, slopes in homes.items() if home in known and slopes <= known]
    if not alone:
        return
    for k in range(covariances.shape[2]):
        lengths, axes = np.linalg.eigh(covariances[:, :, k])
        spread = np.zeros((layout.n_entries, len(entries)))
        spread[entries] = axes * np.sqrt(np.maximum(lengths, 0.0))
        moved = units.to_user(layout, spread) - units.to_user(layout, np.zeros_like(spread))
        variances[alone, k] = np.square(moved[alone]).sum(axis=1)


def _dispersions(model: WideModel, certainty: Certainty) -> dict[str, Any]:
    by = model.units.scale**2
    return {"dispersion": certainty.dispersion * by, "working": certainty.working * by}


def without_idle(model: WideModel) -> WideModel:
    """Without the rarity that said nothing."""
    layout, certainty = model.layout, model.certainty
    assert certainty is not None
    idle = [
        place
        for place in range(len(layout.blocks))
        if isinstance(source_of(layout, place), Rarity) and certainty.variances[place] == 0.0
    ]
    if not idle:
        return model
    kept = np.setdiff1d(np.arange(len(layout.blocks)), idle)
    lean = layout.without(idle)

    def of_kept(values: NDArray[Any]) -> NDArray[Any]:
        """What stands for each entry, K rows of it or one."""
        wide = len(values) // layout.n_entries
        own = (layout.entries(place) for place in kept)
        return np.concatenate([values[one.start * wide : one.stop * wide] for one in own])

    learned = [term.factors[0].block not in idle for term in layout.learned]
    units = replace(model.units, sizes=model.units.sizes[kept], constants=model.units.constants[learned])
    certainty = replace(
        certainty,
        variances=certainty.variances[kept],
        effective=certainty.effective[kept],
        sd=of_kept(certainty.sd),
        draws=None if certainty.draws is None else of_kept(certainty.draws),
        covariances=tuple(certainty.covariances[place] for place in kept) if certainty.covariances else (),
    )
    return replace(
        model,
        layout=lean,
        units=units,
        theta=of_kept(model.theta),
        counts=of_kept(model.counts),
        weights=of_kept(model.weights),
        state=of_kept(model.state),
        certainty=certainty,
    )
