"""A fitted wide model, fitted again to some of its rows: crosses, intervals and variances are held.

These are what a fit at its best is dear for, and they are few: what they know of a row that is left out is little
beside what the numbers of its own symbols know (benchmarks/stacking says what it comes to). Cross-fitting that
takes them as they are costs a few sweeps a fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.estimators.beginning import Coded
from tabsym.estimators.config import Config
from tabsym.estimators.solving import goes_by_turns, pieces_of
from tabsym.estimators.training_data import Training, lay_training, training_loss
from tabsym.wide.coding import Coder
from tabsym.wide.losses import Loss
from tabsym.wide.model import WideModel
from tabsym.wide.newton.pieces import Piece
from tabsym.wide.newton.turns import Turns
from tabsym.wide.optimizers import Newton
from tabsym.wide.sources import Rarity

Floats = NDArray[np.float64]
Places = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Refit:
    """All rows of a fitted model, coded once.

    Attributes
    ----------
    pieces : list of Piece
        The blocks, of all rows.
    precisions : list of float
        What holds each of them back; infinite for those that say nothing.
    rarities : mapping of place among the pieces -> (Rarity, codes (n,) of the source that it counts)
    y, weight : (n,)
        In units of training; weight empty for none.
    loss : Loss
        In units of training.
    """

    model: WideModel
    newton: Newton
    pieces: Sequence[Piece]
    precisions: Sequence[float]
    rarities: Mapping[int, tuple[Rarity, NDArray[np.signedinteger[Any]]]]
    y: Floats
    weight: Floats
    loss: Loss

    def scores(self, seen: Places, wanted: Places) -> Floats:
        """Scores (m, K) of the rows at `wanted`, in the user's units, by a model of the rows at `seen`."""
        pieces = self._pieces_of(seen)
        weight = self.weight[seen] if len(self.weight) else self.weight
        start = np.zeros((len(seen), self.model.n_outputs))
        turns = Turns([piece.of_rows(seen) for piece in pieces], self.y[seen], weight, start, self.loss)
        turns.precision = list(self.precisions)
        turns.silent = [precision == np.inf for precision in self.precisions]
        turns.put([self._start(piece) for piece in pieces])
        turns.settle(self.newton.tol, self.newton.max_passes)
        found = np.zeros((len(wanted), self.model.n_outputs))
        for piece, theta in zip(pieces, turns.theta, strict=True):
            own = np.vstack([theta, np.zeros_like(theta[:1])])[piece.codes[wanted]]  # -1, no entry: the last
            found += own * piece.x[wanted, None] if len(piece.x) else own
        return self.model.units.centre + self.model.units.scale * found

    def _start(self, piece: Piece) -> Floats:
        """Where numbers start: the intercept where all rows had it, which is one number of theirs; others at 0."""
        theta = self.model.state[:, 0].reshape(-1, self.model.n_outputs)[self.model.layout.entries(piece.block)]
        return theta if piece.is_constant else np.zeros_like(theta)

    def _pieces_of(self, seen: Places) -> list[Piece]:
        """The pieces, where rarity is counted among the rows seen."""
        pieces = list(self.pieces)
        for place, (source, codes) in self.rarities.items():
            pieces[place] = replace(pieces[place], codes=source.among(codes, seen))
        return pieces


def refit_of(fitted: Any, X: Any, target: Floats, weight: Floats | None) -> Refit | None:
    """What fits a model again to some of its rows; None where nothing dear was chosen, or numbers multiply.

    That is: for models with variances by evidence that are sums of blocks, unseen symbols being neutral.

    Parameters
    ----------
    fitted : WideClassifier or WideRegressor
    X : table of n rows
    target : (n,)
        Numbers, or codes of the model's classes.
    weight : (n,) or None
        All positive.
    """
    config, model = Config.of(fitted), fitted.model_
    by_evidence = isinstance(config.optimizer, Newton) and config.by_evidence and config.init is None
    if not by_evidence or model.layout.fixed or not goes_by_turns(model.layout) or fitted.unseen != "neutral":
        return None
    table = fitted._table_to_predict(X)
    numbers = model.layout.numbers(table)
    coder = Coder.of_table(model.layout.sources, table, numbers, config.n_jobs)
    coded = Coded(model.layout.code(coder), numbers, Training(table, target, weight, None))
    rows = lay_training(model, None, numbers, coded.training, None, config.n_jobs)
    certainty, units, sizes = model.certainty, model.units, model.units.sizes
    assert isinstance(config.optimizer, Newton)
    assert certainty is not None
    pieces = pieces_of(model, coded, rows)
    scale = certainty.dispersion / units.scale**2
    variances = [certainty.variances[piece.block] / sizes[piece.block] ** 2 for piece in pieces]
    precisions = [float(scale / variance) if variance > 0.0 else np.inf for variance in variances]
    rarities = {}
    for place, piece in enumerate(pieces):
        number = model.layout.blocks[piece.block].source
        source = None if number is None else model.layout.sources[number]
        if isinstance(source, Rarity):
            rarities[place] = source, coder.read(source.of, source.columns)
    return Refit(model, config.optimizer, pieces, precisions, rarities, rows.y, rows.weight, training_loss(model))
