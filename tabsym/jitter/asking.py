"""What is asked of a model, and what becomes of the answers: averaged as they are, or as scores before the link."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.averaging import Spread
from tabsym.jitter.batch import Batch
from tabsym.jitter.mixture import Tile
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


@dataclass(frozen=True)
class Asked:
    """What is averaged: answers, or scores before a link (then `score` and `link` are there)."""

    answer: Ask
    score: Ask | None = None
    link: Callable[[Floats], Floats] | None = None

    def mean(self, batch: Batch, tiles: Iterable[Tile]) -> Spread:
        """Over donors; of scores what the link makes of their mean, and the spread of donors' answers."""
        score, link = self.score, self.link
        if score is None or link is None:
            return batch.mean(self.answer, tiles)
        shape: tuple[int, ...] = ()

        def both(frame: Any) -> Floats:
            nonlocal shape
            scores = np.asarray(score(frame), dtype=np.float64)
            shape, made = scores.shape[1:], link(scores)
            return np.concatenate([scores.reshape(len(scores), -1), made.reshape(len(scores), -1)], axis=1)

        spread = batch.mean(both, tiles)
        width = int(np.prod(shape, dtype=int))
        mean = link(spread.mean[:, :width].reshape(-1, *shape))
        return Spread(mean, spread.std[:, width:].reshape(mean.shape))

    def spread(self, batch: Batch, most: int | None, draws: Draws, *, with_std: bool) -> Spread:
        """Over all donors of a batch, or drawn ones; where donors are too many to be combined, their spread by draws.

        Draws are of all donors that `most` allows, combinations of the heaviest.
        """
        if draws.n is not None:
            return self.mean(batch, batch.mixture(most, combined=False).draws(draws.n, draws.random))
        mixture = batch.mixture(most)
        out = self.mean(batch, mixture.tiles())
        cut = np.flatnonzero(mixture.cut)
        if with_std and len(cut):
            some = batch.some(cut)
            out.std[cut] = self.mean(some, some.mixture(most, combined=False).draws(DRAWS, draws.random)).std
        return out


def found_link(scores: Any, answers: Any) -> Callable[[Floats], Floats]:
    """The link between a model's scores and answers, or a `ValueError`."""
    link = link_of(scores, answers)
    if link is None:
        raise ValueError(
            "average='raw' needs a model whose predictions follow from its scores by a "
            "logistic, softmax, exponential or no link, unlike this one; use average='probability'."
        )
    return link


def score_of(model: Any) -> Ask:
    """What gives a model's raw scores, or a `ValueError`."""
    score = raw_scores(model)
    if score is None:
        raise ValueError(
            f"average='raw' needs a model with raw scores, and {name_of(model)} has none; use average='probability'."
        )
    return score


def first_frame(batch: Batch) -> Any:
    """A few of the rows with unknown values, each with a donor."""
    rows = np.arange(min(len(batch.rows), _LOOKED_AT))
    return batch.frame(rows, [np.where(one.document[rows] < 0, -1, 0) for one in batch.found])


def name_of(model: Any) -> str:
    """What a model is called; of a pipeline its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__
