"""What a predictor answers: the model's own answers and averages over donors, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from tabsym.jitter.asking import Ask, Asked, Draws, first_frame, found_link, name_of, score_of
from tabsym.jitter.averaging import Spread
from tabsym.jitter.batch import Batch


@dataclass(frozen=True)
class Call:
    """How answers are asked for."""

    average: str
    max_donors: int | None
    return_std: bool
    n_draws: int | None
    random: np.random.Generator

    def checked(self) -> Call:
        """Itself, or a `ValueError`."""
        n = self.n_draws
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
            raise ValueError(f"n_draws={n!r} is not possible; use a count of 1 or more, or None.")
        return self


@dataclass(frozen=True)
class Answers:
    """A fitted model, a batch and the call."""

    model: Any
    batch: Batch
    call: Call

    def values(self) -> Any:
        """Of `predict`."""
        if not is_classifier(self.model):
            return self._given(self.model.predict, linked=True)
        own = self._own(self.model.predict)
        if not len(self.batch.rows):
            return self._out(own, np.zeros(self.batch.n_rows))
        place, std = self._classes()
        labels = np.asarray(self.model.classes_)[place]
        return self._out(self.batch.joined(own, labels), self._joined_std(std))

    def probabilities(self) -> Any:
        """Of `predict_proba`."""
        return self._given(self.model.predict_proba, linked=True)

    def scores(self) -> Any:
        """Of `decision_function`."""
        return self._given(self.model.decision_function, linked=False)

    def _classes(self) -> tuple[Any, Any]:
        """Of rows with unknown values: the class, by its place, and the spread of what speaks for it."""
        if hasattr(self.model, "predict_proba"):
            mixed = self._mixed(self.model.predict_proba, linked=True)
        elif self.call.average == "raw":
            mixed = self._mixed(score_of(self.model), linked=False)
            if mixed.mean.ndim == 1:
                return (mixed.mean > 0).astype(np.int64), mixed.std
        else:
            raise ValueError(
                f"average='probability' needs predict_proba, which {name_of(self.model)} lacks; use average='raw'."
            )
        place = mixed.mean.argmax(axis=1)
        return place, mixed.std[np.arange(len(place)), place]

    # -- pieces -------------------------------------------------------------------------------

    def _given(self, ask: Ask, *, linked: bool) -> Any:
        own = self._own(ask)
        if not len(self.batch.rows):
            return self._out(own, np.zeros(np.shape(own)))
        mixed = self._mixed(ask, linked=linked)
        return self._out(self.batch.joined(own, mixed.mean), self._joined_std(mixed.std))

    def _own(self, ask: Ask) -> Any:
        """The model's own answers, None where every row has unknown values."""
        try:
            own = self.batch.own(ask)
        except ValueError:
            if self.batch.n_rows:
                raise
            return self._of_no_rows(ask)
        return None if own is None else np.asarray(own)

    def _of_no_rows(self, ask: Ask) -> Any:
        """Where a model refuses a table of no rows."""
        if not is_classifier(self.model):
            return np.empty(0)
        classes = np.asarray(self.model.classes_)
        if ask == self.model.predict:
            return classes[:0]
        binary = ask != getattr(self.model, "predict_proba", None) and len(classes) == 2
        return np.empty(0 if binary else (0, len(classes)))

    def _mixed(self, ask: Ask, *, linked: bool) -> Spread:
        """Averages for rows with unknown values; `linked`: whether what is asked comes after a link."""
        call, asked = self.call, Asked(ask)
        if linked and call.average == "raw":
            score, some = score_of(self.model), first_frame(self.batch)
            asked = Asked(ask, score, found_link(score(some), ask(some)))

        draws = Draws(call.n_draws, call.random)
        parts = [asked.spread(part, call.max_donors, draws, with_std=call.return_std) for part in self.batch.parts()]
        return Spread(np.concatenate([one.mean for one in parts]), np.concatenate([one.std for one in parts]))

    def _joined_std(self, std: Any) -> Any:
        own = np.zeros((self.batch.n_rows - len(self.batch.rows), *std.shape[1:]))
        return self.batch.joined(own, std)

    def _out(self, values: Any, std: Any) -> Any:
        return (values, std) if self.call.return_std else values
