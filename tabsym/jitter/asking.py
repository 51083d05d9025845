"""What is asked of a model, and what becomes of the answers: averaged as they are, or as scores before the link."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.averaging import Spread
from tabsym.jitter.batch import Batch
from tabsym.jitter.mixture import MOST_COMBINATIONS, Mixture, Tile
from tabsym.jitter.scores import link_of, raw_scores

Ask = Callable[[Any], Any]
Floats = NDArray[np.float64]

DRAWS = 256
"""For the spread of rows whose donors are too many to be combined."""
_LOOKED_AT = 64  # rows by which a link is found


@dataclass(frozen=True)
class Draws:
    """Whether donors are drawn, how often, and by which seed."""

    n: int | None
    random: np.random.Generator

    def tiles(self, mixture: Mixture) -> Iterable[Tile]:
        return mixture.tiles() if self.n is None else mixture.draws(self.n, self.random)


def asked(batch: Batch, answer: Ask, score: Ask | None, tiles: Iterable[Tile]) -> Spread:
    """Answers averaged over donors; with a `score` those of averaged scores, and the spread of donors' answers."""
    if score is None:
        return batch.mean(answer, tiles)
    looked = first_frame(batch)
    found = np.asarray(score(looked))
    link, shape = found_link(found, answer(looked)), found.shape

    def both(frame: Any) -> Floats:
        scores = np.asarray(score(frame), dtype=np.float64)
        made = link(scores)
        return np.concatenate([scores.reshape(len(scores), -1), made.reshape(len(scores), -1)], axis=1)

    spread = batch.mean(both, tiles)
    width = int(np.prod(shape[1:], dtype=int))
    mean = link(spread.mean[:, :width].reshape(-1, *shape[1:]))
    return Spread(mean, spread.std[:, width:].reshape(mean.shape))


def found_link(scores: Any, answers: Any) -> Callable[[Floats], Floats]:
    """The link between a model's scores and answers, or a `ValueError`."""
    link = link_of(scores, answers)
    if link is None:
        raise ValueError(
            "average='raw' and other routes than 'mixture' need a model whose answers follow from its scores by a "
            "logistic, softmax, exponential or no link, and this one's do not; use average='probability'."
        )
    return link


def score_of(model: Any) -> Ask:
    """What gives a model's raw scores, or a `ValueError`."""
    score = raw_scores(model)
    if score is None:
        raise ValueError(
            f"average='raw' and other routes than 'mixture' need a model with raw scores, and {name_of(model)} has "
            "none; use average='probability'."
        )
    return score


def spread_by_draws(batch: Batch, max_donors: int | None, ask: Callable[[Batch, Any], Spread], draws: Draws) -> Any:
    """Rows whose combinations are too many for an exact spread, and their spread by draws of all donors."""
    if max_donors is not None or draws.n is not None or len(batch.columns) < 2:
        return np.empty(0, dtype=np.int64), None
    whole = batch.mixture(1 << 40)
    many = np.flatnonzero(whole.sizes.astype(np.float64) > MOST_COMBINATIONS)
    if not len(many):
        return many, None
    some = batch.some(many)
    return many, ask(some, some.mixture(1 << 40).draws(DRAWS, draws.random)).std


def first_frame(batch: Batch) -> Any:
    """A few of the rows with unseen values, each with a donor."""
    rows = np.arange(min(len(batch.rows), _LOOKED_AT))
    return batch.frame(rows, [np.where(one.document[rows] < 0, -1, 0) for one in batch.donors])


def name_of(model: Any) -> str:
    """What a model is called; of a pipeline its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__
