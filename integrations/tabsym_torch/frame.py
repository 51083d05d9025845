"""pytorch-frame: what a wide model learned as the start of its categorical embedding.

Any model of pytorch-frame trains under `GSE`, as its own `EmbeddingEncoder`
holds one nn.Embedding for all categorical columns. `WideStypeEncoder` starts
that embedding from a fitted wide model, so that the network begins where the
wide model ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

try:
    from torch_frame import stype
    from torch_frame.data.stats import StatType
    from torch_frame.nn.encoder.stype_encoder import StypeEncoder
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tabsym_torch.frame needs {error.name!r}: pip install pytorch-frame") from error

from tabsym.design.sources import CategoricalSource
from tabsym.messages import plural
from tabsym.models.base import WideBase


class WideStypeEncoder(StypeEncoder):
    """A categorical encoder of pytorch-frame whose first channels are a wide model's parameters.

    Parameters
    ----------
    out_channels, stats_list, stype, post_module, na_strategy
        As for every encoder of pytorch-frame, which sets what is left out.
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Fitted on a table with the same columns.
    columns : sequence of str
        The categorical columns in the order of the tensor frame:
        ``tensor_frame.col_names_dict[stype.categorical]``.

    Notes
    -----
    The first channels (one for each linear predictor of the model) hold the
    coefficient of each category; the other channels start at random, as
    nn.Embedding's do, times a tenth. A column that is no term of the model,
    and an unknown category, starts at 0 there. Missing
    values are row 0, zero.

    Raises
    ------
    ValueError
        Fewer channels than the model has linear predictors, another number of columns
        than the tensor frame's, no column that is a term, one that is a number in the
        model, or one of whose categories the model knows none.

    Examples
    --------
    See examples/pytorch_frame_gse.py.
    """

    supported_stypes = {stype.categorical}

    def __init__(  # the first five in pytorch-frame's order, which it reads off this signature
        self,
        out_channels: int | None = None,
        stats_list: list[dict[StatType, Any]] | None = None,
        stype: Any = None,
        post_module: nn.Module | None = None,
        na_strategy: Any = None,
        *,
        model: WideBase,
        columns: Sequence[str],
    ) -> None:
        width = model.model_.n_outputs
        known = {block.name: block.source for block in model.model_.spec.blocks if block.name in columns}
        if not known:
            raise ValueError(
                f"None of the columns {', '.join(map(repr, columns))} is the name of a term of the model, so that it "
                "would start nothing; name the coefficients of a formula as their columns, such as shop[shop]."
            )
        for name, source in known.items():
            if source is None or not isinstance(model.model_.spec.sources[source], CategoricalSource):
                raise ValueError(
                    f"Column {name!r} is a number in the model, which has no coefficient for each of its values; fit "
                    "the model with it in categorical_features."
                )
        self.parameters_of = {name: model.coefs_[name].iloc[:, :width] for name in known}
        self.columns = list(columns)
        super().__init__(out_channels, stats_list, stype, post_module, na_strategy)

    def init_modules(self) -> None:
        """Lay out one embedding for all columns; called by pytorch-frame once the statistics are known."""
        super().init_modules()
        if len(self.columns) != len(self.stats_list):
            raise ValueError(
                f"columns names {plural(len(self.columns), 'column')}, and the tensor frame has "
                f"{len(self.stats_list)} categorical ones; pass tensor_frame.col_names_dict[stype.categorical]."
            )
        sizes = [len(stats[StatType.COUNT][0]) for stats in self.stats_list]
        self.emb = nn.Embedding(1 + sum(sizes), self.out_channels, padding_idx=0)
        self.register_buffer("offset", torch.tensor([1, *sizes[:-1]]).cumsum(0))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start from the wide model again."""
        super().reset_parameters()
        self.emb.reset_parameters()
        with torch.no_grad():
            self.emb.weight.mul_(0.1)
            for name, start, stats in zip(self.columns, self.offset.tolist(), self.stats_list):
                learned = _learned(name, self.parameters_of.get(name), stats[StatType.COUNT][0], self.out_channels)
                if learned is not None:
                    self.emb.weight[start : start + len(learned), : learned.shape[1]] = learned

    def encode_forward(self, feat: Tensor, col_names: list[str] | None = None) -> Tensor:
        """Codes (rows, columns), -1 for missing, as (rows, columns, channels)."""
        if col_names is not None and list(col_names) != self.columns:
            raise ValueError(
                f"columns={self.columns} are in another order than the tensor frame's, {list(col_names)}; pass "
                "tensor_frame.col_names_dict[stype.categorical]."
            )
        return self.emb(torch.where(feat < 0, 0, feat + self.offset))


def _learned(name: str, values: Any, categories: Sequence[Any], channels: int) -> Tensor | None:
    """A block's parameters (categories, scores) in the order of the categories; None where there is no block."""
    if values is None:
        return None
    if values.shape[1] > channels:
        raise ValueError(
            f"The model has {plural(values.shape[1], 'score')}, and out_channels={channels} must hold them all."
        )
    if len(categories) and not values.index.isin(list(categories)).any():
        raise ValueError(
            f"Column {name!r} has categories such as {categories[0]!r}, and the model such as {values.index[0]!r}: "
            "none is known to both; give them one type."
        )
    return torch.tensor(values.reindex(list(categories)).fillna(0.0).to_numpy(), dtype=torch.get_default_dtype())
