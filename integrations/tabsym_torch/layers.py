"""Layers over categories."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tabsym.messages import plural


class OneHotLinear(nn.Module):
    """`nn.Linear` on one-hot input that is never built: a row selects entries, it does not multiply by zeros.

    All columns share one table, so that an optimizer step handles one
    parameter however many columns there are.

    Parameters
    ----------
    alphabet_sizes : sequence of int
        Number of categories of each column.
    out_features : int
    bias : bool, default=True
    sparse : bool, default=False
        Gradients as sparse tensors: the cost of a batch then depends on its
        categories, not on the size of the table. Takes `GSE`, SGD, Adagrad or
        SparseAdam; clipping by norm does not take sparse gradients.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    weight : Parameter of shape (1 + sum of the sizes, out_features)
        Row 0 is "no category": always zero. Category s of column j is row
        ``offsets[j] + s``. Initialised as in nn.Linear.
    bias : Parameter of shape (out_features,) or None
    offsets : Tensor of shape (n_columns,), int64

    Raises
    ------
    ValueError
        No columns, or a column without categories; codes of another shape or
        beyond a column's number of categories.

    Examples
    --------
    >>> import torch
    >>> from tabsym_torch import OneHotLinear
    >>> layer = OneHotLinear([3, 2], 4)
    >>> codes = torch.tensor([[0, 1], [2, -1]])  # the second row has no category in its second column
    >>> layer(codes).shape
    torch.Size([2, 4])
    """

    offsets: Tensor
    sizes: Tensor
    selected: Tensor | None  # rows of `weight` that a call reads, for the hook of GSE

    def __init__(
        self,
        alphabet_sizes: Sequence[int],
        out_features: int,
        bias: bool = True,
        sparse: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.alphabet_sizes = [int(size) for size in alphabet_sizes]
        if not self.alphabet_sizes or min(self.alphabet_sizes) < 1:
            raise ValueError(f"alphabet_sizes={list(alphabet_sizes)} must name at least one category for every column.")
        self.out_features, self.sparse = out_features, sparse
        starts = torch.tensor([1, *self.alphabet_sizes[:-1]], device=device).cumsum(0)
        self.register_buffer("offsets", starts, persistent=False)
        self.register_buffer("sizes", torch.tensor(self.alphabet_sizes, device=device), persistent=False)
        self.selected = None
        rows = 1 + sum(self.alphabet_sizes)
        self.weight = nn.Parameter(torch.empty(rows, out_features, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the entries as nn.Linear with as many inputs would."""
        bound = sum(self.alphabet_sizes) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        with torch.no_grad():
            self.weight[0].zero_()
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def rows_of(self, codes: Tensor) -> Tensor:
        """The row of `weight` for each code; codes below 0 select row 0, which is zero.

        Parameters
        ----------
        codes : Tensor of shape (n_rows, n_columns)

        Returns
        -------
        Tensor of shape (n_rows, n_columns)

        Examples
        --------
        >>> import torch
        >>> from tabsym_torch import OneHotLinear
        >>> OneHotLinear([10, 3], 1).rows_of(torch.tensor([[0, 2], [-1, 0]])).tolist()
        [[1, 13], [0, 11]]
        """
        return torch.where(codes < 0, 0, codes + self.offsets)

    def forward(self, codes: Tensor) -> Tensor:
        """The sum of the selected entries of each row.

        Parameters
        ----------
        codes : int64 Tensor of shape (n_rows, n_columns)

        Returns
        -------
        Tensor of shape (n_rows, out_features)
        """
        self._check(codes)
        rows = self.rows_of(codes)
        if self._forward_hooks:
            object.__setattr__(
                self, "selected", rows
            )  # not a parameter or a buffer, as a module would look whether it is
        entries = nn.functional.embedding(rows, self.weight, padding_idx=0, sparse=self.sparse)
        total = entries.sum(1)
        return total if self.bias is None else total + self.bias

    def _check(self, codes: Tensor) -> None:
        """Codes that would silently select another column's entries; their values on the CPU only, as a GPU waits."""
        if codes.dim() != 2 or codes.shape[1] != len(self.alphabet_sizes):
            shape = tuple(codes.shape)
            raise ValueError(f"codes must have the shape (n_rows, {len(self.alphabet_sizes)}), and have {shape}.")
        if codes.is_cpu and not torch.compiler.is_compiling() and bool((codes >= self.sizes).any()):
            column = int((codes >= self.sizes).any(0).nonzero()[0])
            size, code = self.alphabet_sizes[column], int(codes[:, column].max())
            raise ValueError(
                f"Column {column} of the codes has {plural(size, 'category', 'categories')}, and a code of {code}; "
                "give unknown categories the code -1."
            )

    def extra_repr(self) -> str:
        """What print shows.

        Returns
        -------
        str
        """
        columns = plural(len(self.alphabet_sizes), "column")
        return f"{columns}, {plural(sum(self.alphabet_sizes), 'category', 'categories')}, {self.out_features}"
