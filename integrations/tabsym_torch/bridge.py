"""A trained wide model as a torch module: the same score, from one embedding that can be trained on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tabsym.frame.frames import as_rows
from tabsym.models.base import WideBase
from tabsym.models.model import WideModel


class WideInput(NamedTuple):
    """A table as `WideModule` reads it, without its dataframe."""

    entries: Tensor  # (n, n_entries_a_row) int64: rows of the embedding
    numbers: Tensor  # (n, n_numbers): what some entries are multiplied by
    fixed: Tensor  # (n,): the part of the score in which no parameter has a share, as the offset


class WideModule(nn.Module):
    """The score of a wide model, as `to_torch` makes it.

    Attributes
    ----------
    embedding : nn.Embedding
        Row 0 is zero; then the model's entries; then, for each place of a
        product, what stands there for an unknown category.
    """

    def __init__(self, estimator: WideBase, dtype: torch.dtype) -> None:
        super().__init__()
        self._estimator = estimator
        model: WideModel = estimator.model_
        self._program, neutral = model.predicting
        table = np.concatenate([np.zeros((1, model.n_outputs)), model.theta.reshape(-1, model.n_outputs), neutral])
        self._first_neutral = 1 + len(model.theta)
        self.embedding = nn.Embedding.from_pretrained(torch.as_tensor(table, dtype=dtype), freeze=False, padding_idx=0)

    def inputs(self, X: Any) -> WideInput:
        """Code a table with the model's own alphabets.

        Parameters
        ----------
        X : dataframe or array
            As for the model's `predict`, with the column of its offset or exposure where it has one.

        Returns
        -------
        WideInput
        """
        program = self._program
        table, own = self._estimator._read_to_predict(as_rows(X))
        offset = self._estimator._offset_to_add(own, None)  # warns where only training had one
        if self._estimator.handle_unknown == "error":
            self._estimator._refuse_unseen(table)
        rows, fixed = self._estimator.model_.rows(table, self._estimator.n_jobs)
        plain = rows.codes[:, : program.n_plain].astype(np.int64) + 1
        always = np.concatenate([program.slopes, program.scalars]) + 1
        fixed = fixed if offset is None else fixed + offset
        slots = [self._slot(s, rows.codes) for s in range(len(program.columns))]
        entries = np.column_stack([plain, np.tile(always, (len(table), 1)), *slots]).astype(np.int64)
        like = self.embedding.weight
        return WideInput(
            torch.as_tensor(entries, device=like.device),
            torch.as_tensor(rows.x, dtype=like.dtype, device=like.device),
            torch.as_tensor(fixed, dtype=like.dtype, device=like.device),
        )

    def _slot(self, slot: int, codes: Any) -> Any:
        """The row of the embedding for a factor of a product, for every row of a table."""
        column, entry = self._program.columns[slot], self._program.coefs[slot]
        if column < 0:
            return np.full(len(codes), entry + 1)
        selected = codes[:, column].astype(np.int64)
        return np.where(selected < 0, self._first_neutral + slot, selected + entry + 1)

    def forward(self, entries: Tensor, numbers: Tensor, fixed: Tensor) -> Tensor:
        """Scores before the inverse link; the arguments are those of `WideInput`.

        Parameters
        ----------
        entries : Tensor
        numbers : Tensor
        fixed : Tensor

        Returns
        -------
        Tensor of shape (n_rows, K)
        """
        program = self._program
        values = self.embedding(entries)
        first_slope, n_slopes = program.n_plain, len(program.slopes)
        first_slot = first_slope + n_slopes + len(program.scalars)
        score = values[:, :first_slope].sum(1) + values[:, first_slope + n_slopes : first_slot].sum(1)
        score = score + (values[:, first_slope : first_slope + n_slopes] * numbers[:, :n_slopes, None]).sum(1)
        for t, constant in enumerate(program.constants):
            first, last = first_slot + program.starts[t], first_slot + program.starts[t + 1]
            term = values[:, first:last].prod(1) * float(constant)
            position = int(program.numeric[t])
            score = score + (term if position < 0 else term * numbers[:, position, None])
        return score + fixed[:, None]


def to_torch(estimator: WideBase, *, dtype: torch.dtype = torch.float32) -> WideModule:
    """A fitted wide model as a torch module with the same linear predictor.

    Its one embedding can be trained on (with `GSE`, say), alone or as a part
    of a network, or frozen.

    Parameters
    ----------
    estimator : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Fitted. With ``handle_unknown="similar"``, unknown categories get the neutral
        value here all the same.
    dtype : torch.dtype, default=torch.float32

    Returns
    -------
    WideModule
        ``module(*module.inputs(X))`` is the linear predictor, before the inverse link,
        (n, K).

    Raises
    ------
    sklearn.exceptions.NotFittedError

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym_torch import to_torch
    >>> X = pd.DataFrame({"shop": ["a", "b", "c"] * 20})
    >>> model = WideRegressor().fit(X, [1.0, 2.0, 3.0] * 20)
    >>> module = to_torch(model)
    >>> bool((module(*module.inputs(X)).detach().numpy()[:, 0] - model.predict(X)).max() < 1e-6)
    True
    """
    if not isinstance(estimator, WideBase):
        raise TypeError(f"to_torch takes a wide model, such as WideClassifier, and not {type(estimator).__name__}.")
    check_is_fitted(estimator, "model_")
    return WideModule(estimator, dtype)
