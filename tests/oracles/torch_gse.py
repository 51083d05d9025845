"""The gradient estimator for symbols, slow and obvious: an optimizer per symbol, a backward pass per row.

For an entry k of a table, S_k are the rows of the batch that select k and c_k is their number. Entry k moves only if
c_k > 0, with the gradient (1 / c_k) * sum over S_k of dl_i / dtheta_k, and what its optimizer remembers (moments, the
number of steps) is its own. Here this is said literally: every symbol is a leaf tensor with a real `torch.optim`
optimizer of its own, which steps only when the symbol is there. Nothing is shared with the implementation under test,
the forward passes of the modules included: those below take one row at a time and add vectors.
"""

import torch


def leaf(tensor):
    """A parameter of its own: what happens to it cannot touch the tensor that it was copied from."""
    return tensor.detach().cpu().clone().requires_grad_()


class NaiveGSE:
    """Tables of symbols and dense parameters, each symbol with an optimizer of its own.

    Parameters
    ----------
    optimizer : class of `torch.optim`
    tables : {name: {symbol: tensor}}
    dense : {name: tensor}
    options : keywords of the optimizer, for all
    overrides : {name: keywords} for the tables and tensors named, as parameter groups have them
    reduction : "mean" where the loss of a batch is the mean over its rows, "sum" where it is their sum
    """

    def __init__(self, optimizer, tables, dense, options=None, overrides=None, reduction="mean"):
        self.optimizer, self.options, self.overrides = optimizer, options or {}, overrides or {}
        self.reduction = reduction
        self.frozen = set()  # names of tables and tensors that no optimizer moves (for now)
        self.tables = {name: {k: leaf(row) for k, row in rows.items()} for name, rows in tables.items()}
        self.dense = {name: leaf(tensor) for name, tensor in dense.items()}
        self.optimizers = {
            (name, k): self._optimizer(name, row) for name, rows in self.tables.items() for k, row in rows.items()
        }
        self.optimizers |= {(name, None): self._optimizer(name, tensor) for name, tensor in self.dense.items()}

    def _optimizer(self, name, tensor):
        """One optimizer for one tensor: all that are tested work element by element, so dense ones may be apart too."""
        return self.optimizer([tensor], **(self.options | self.overrides.get(name, {})))

    def set_lr(self, rates):
        """The rates from now on, by name of table or tensor, as a schedule sets them for all symbols alike."""
        for (name, _), optimizer in self.optimizers.items():
            optimizer.param_groups[0]["lr"] = rates[name]

    def step(self, losses, selections, clip=None):
        """One update by the losses of the rows and by what each row selects ({table: set of symbols}).

        `clip` is the largest norm of the raw gradient (that of the batch's loss, before the counts come in).
        """
        totals = self._totals(losses)
        if clip is not None:
            self._clip(totals, clip, len(losses))
        for name, rows in self.tables.items():
            for k in rows if name not in self.frozen else ():
                count = sum(k in selected.get(name, ()) for selected in selections)
                if count > 0:
                    self._move(name, k, rows[k], totals.get((name, k), torch.zeros_like(rows[k])) / count)
                elif (name, k) in totals:
                    raise AssertionError(f"Symbol {k} of {name} has a gradient, but no row selects it.")
        for name, tensor in self.dense.items():
            if (name, None) in totals and name not in self.frozen:
                self._move(name, None, tensor, totals[name, None] / self._divisor(len(losses)))

    def _divisor(self, n_rows):
        return n_rows if self.reduction == "mean" else 1

    def _leaves(self):
        categories = {(name, k): row for name, rows in self.tables.items() for k, row in rows.items()}
        return categories | {(name, None): tensor for name, tensor in self.dense.items()}

    def _totals(self, losses):
        """The sum over the rows of each row's own gradient; a key is missing where no row has one."""
        leaves, totals = self._leaves(), {}
        for loss in losses:
            for tensor in leaves.values():
                tensor.grad = None
            loss.backward()
            for key, tensor in leaves.items():
                if tensor.grad is not None:
                    totals[key] = totals.get(key, 0) + tensor.grad
        return totals

    def _clip(self, totals, largest, n_rows):
        """What `clip_grad_norm_` does to the gradient of the batch's loss, all parameters together."""
        squares = sum(float(((total / self._divisor(n_rows)) ** 2).sum()) for total in totals.values())
        factor = min(1.0, largest / (squares**0.5 + 1e-6))
        for key in totals:
            totals[key] = totals[key] * factor

    def _move(self, name, k, tensor, gradient):
        tensor.grad = gradient.detach()
        self.optimizers[name, k].step()
        tensor.grad = None

    def state(self, name, k=None):
        """What the optimizer of one symbol or dense tensor remembers; empty before its first update."""
        return dict(next(iter(self.optimizers[name, k].state.values()), {}))


def embedding_row(rows, codes, padding_idx=None):
    """`nn.Embedding` on one row: the vectors, and the symbols that the row selects (padding is none)."""
    vectors = [rows[k].detach() if k == padding_idx else rows[k] for k in codes]
    return vectors, {k for k in codes if k != padding_idx}


def bag_row(rows, codes, mode, padding_idx=None, weights=None):
    """`nn.EmbeddingBag` on one bag: padding neither adds nor counts in the mean, an empty bag is zero."""
    width = len(next(iter(rows.values())))
    weights = [1.0] * len(codes) if weights is None else weights
    kept = [(k, weight) for k, weight in zip(codes, weights) if k != padding_idx]
    total = torch.zeros(width, dtype=next(iter(rows.values())).dtype)
    for k, weight in kept:
        total = total + rows[k] * weight
    if mode == "mean" and kept:
        total = total / len(kept)
    return total, {k for k, _ in kept}


def one_hot_linear_row(rows, sizes, codes, bias=None):
    """`OneHotLinear` on one row: symbol s of column j is row 1 + sizes before j + s; a negative code is nothing."""
    total = torch.zeros_like(next(iter(rows.values()))) if bias is None else bias
    selected = set()
    for column, code in enumerate(codes):
        if code >= 0:
            k = 1 + sum(sizes[:column]) + code
            total = total + rows[k]
            selected.add(k)
    return total, selected


def linear_row(columns, numbers, values, bias=None):
    """`nn.Linear` on one row: `columns` are the symbols' columns of the weight, `numbers` those of numeric inputs."""
    total = 0 if bias is None else bias
    selected = {j for j in columns if values[j] != 0}
    for j, value in enumerate(values):
        if j in selected:
            total = total + columns[j] * value
        elif j not in columns:
            total = total + numbers[j] * value
    return total, selected
