"""The gradient estimator for symbolical features, around any elementwise optimizer of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import nn, optim

from tabsym_torch.compiled import Kernels, has_plain_state, is_plain
from tabsym_torch.counting import CountedParameter
from tabsym_torch.distributed import Group, join, workers
from tabsym_torch.each import Proxy, proxies
from tabsym_torch.operations import Move, estimate, move_rows, put_gradient
from tabsym_torch.rules import RULES
from tabsym_torch.state import adopt, check_shapes
from tabsym_torch.tables import Columns, Watched

NOT_ELEMENTWISE = {
    "LBFGS": "it needs the whole gradient of every parameter; use Adam or SGD",
    "SparseAdam": "it is made for sparse gradients only; use Adam, which GSE lets take them",
    "Adafactor": "its state is not one number per entry; use Adam",
    "Muon": "it mixes the entries of a matrix; use it for the other parameters, and Adam under GSE for the categories",
}


class GSE(optim.Optimizer):
    """Train categories with the gradient estimator for symbolical features, under any elementwise optimizer.

    In a batch, the embedding of a category is updated by the mean of the
    gradients of *its own* rows, with its own number of updates; a category
    that no row has keeps its values and its optimizer state. All
    other parameters are left to the optimizer.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        It keeps the parameter groups, the learning rate and the state. SGD,
        Adagrad, RMSprop, Adam, AdamW, NAdam, RAdam and Adamax update all
        categories of a table at once; any other elementwise optimizer
        works too, but slowly where categories have had different numbers
        of updates.
    modules : torch.nn.Module or list of them
        Searched for nn.Embedding, nn.EmbeddingBag and `OneHotLinear`. The
        first dimension of their input is the batch.
    one_hot_columns : dict of nn.Linear to list of int, optional
        The one-hot inputs of linear layers. A row selects those that are
        not zero; the other inputs are numeric, and get the ordinary
        gradient.
    reduction : {"mean", "sum"}, default="mean"
        How the loss aggregates the rows of the batch.
    process_group : torch.distributed.ProcessGroup, optional
        Over which counts are summed (default: all processes, where
        torch.distributed is initialised); `False`: none. Gradients are
        reduced by DistributedDataParallel.

    Raises
    ------
    TypeError, ValueError
        The optimizer is not elementwise; no categorical parameter is found; or
        a table cannot be treated (`scale_grad_by_freq`, tied weights).

    Notes
    -----
    Make it after the model has been moved to its device and before the first
    forward pass. Gradients of tables may be dense or sparse; with a large
    table, ``nn.Embedding(..., sparse=True)`` spares the dense gradient.
    Counts live as long as gradients do: micro-batches add up, `zero_grad`
    clears. Clipping acts on the ordinary gradients, unless `rescale` is
    called before it. See docs/torch.md for what combines.

    References
    ----------
    Peseux, Berar, Paquet, Nicollet, "Stochastic Gradient Descent with
    gradient estimator for symbolical features", Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> from tabsym_torch import GSE, OneHotLinear
    >>> model = torch.nn.Sequential(OneHotLinear([100, 20], 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    >>> optimizer = GSE(torch.optim.Adam(model.parameters(), lr=0.01), model)
    >>> codes, y = torch.randint(0, 20, (64, 2)), torch.randn(64, 1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     loss = torch.nn.functional.mse_loss(model(codes), y)
    ...     loss.backward()
    ...     optimizer.step()
    """

    def __init__(
        self,
        optimizer: optim.Optimizer,
        modules: nn.Module | Iterable[nn.Module],
        *,
        one_hot_columns: Columns | None = None,
        reduction: str = "mean",
        process_group: Group = None,
    ) -> None:
        _check(optimizer, reduction)
        self._watched = Watched(modules, one_hot_columns)
        self.tables = self._watched.find(parameter for group in optimizer.param_groups for parameter in group["params"])
        if not self.tables:
            raise ValueError(
                "There is no categorical parameter (nn.Embedding, nn.EmbeddingBag, OneHotLinear, one_hot_columns of an "
                "nn.Linear) that is both in modules and in the optimizer's parameters; pass the model that holds them."
            )
        self.optimizer, self.reduction, self.process_group = optimizer, reduction, process_group
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self._kernels = Kernels(optimizer) if type(optimizer) in RULES else None
        for hooks in ("state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"):
            name = f"_optimizer_{hooks}_hooks"
            setattr(self, name, getattr(optimizer, name))  # the optimizer saves and loads
        self._share()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("GSE is tied to its modules and is not copied; save state_dict() and make GSE anew.")

    def _keep_up(self) -> None:
        """Take notice of what was done to the wrapped optimizer itself: groups added, a state loaded."""
        if self.param_groups is not self.optimizer.param_groups or self.state is not self.optimizer.state:
            self._share()
        if [len(group["params"]) for group in self.param_groups] != self._n_parameters:
            self._share()
        for table in self.tables:
            table.keep_up()

    def _share(self) -> None:
        """One set of groups and states for both, whichever of the two is asked."""
        self.param_groups, self.state = self.optimizer.param_groups, self.optimizer.state
        known = {table.parameter for table in self.tables}
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        self.tables += self._watched.find(parameter for parameter in parameters if parameter not in known)
        self._n_parameters = [len(group["params"]) for group in self.param_groups]
        for group in self.param_groups:
            for table in self.tables:
                if any(table.parameter is parameter for parameter in group["params"]):
                    table.options = group
                    adopt(
                        self.state[table.parameter], table.parameter, table.dim, by_rule=type(self.optimizer) in RULES
                    )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to the optimizer; those of categories in `modules` are treated as such from now on.

        Parameters
        ----------
        param_group : dict
            As of the optimizer.
        """
        _check_options(param_group, type(self.optimizer).__name__)
        super().add_param_group(param_group)
        if not hasattr(self, "_kernels"):  # torch's constructor adds the optimizer's own groups
            return
        self._share()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients, and the counts with them.

        Parameters
        ----------
        set_to_none : bool, default True
        """
        self.optimizer.zero_grad(set_to_none)
        for table in self.tables:
            table.forget()

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, with a row of state for every category.

        Returns
        -------
        dict
        """
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken; one of the plain optimizer is taken as the state of every category.

        Parameters
        ----------
        state_dict : dict
        """
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for table in self.tables:
            position = next(i for i, parameter in enumerate(parameters) if parameter is table.parameter)
            check_shapes(table.name, state_dict["state"].get(position, {}), table.parameter, table.dim)
        self.optimizer.load_state_dict(state_dict)
        self._share()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the present categories and all other parameters.

        Parameters
        ----------
        closure : callable, optional
            Clears the gradients, computes the loss, calls backward and
            returns the loss; called once.

        Returns
        -------
        The loss that `closure` returns, or None.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        enabled = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)  # what torch.no_grad() does, at a tenth of its time
        try:
            self._step()
        finally:
            torch._C._set_grad_enabled(enabled)
        return loss

    def _step(self) -> None:
        """Count and check all; then move."""
        self._keep_up()
        quick, others = self._quick_and_others()
        counted = self._kernels.count(quick, self.reduction == "mean") if self._kernels and quick else None
        if counted:
            for table, n_rows in zip(quick, counted.n_rows):
                if not n_rows:
                    _check_uncounted(table)
        moves = self._moves(others)
        if self._kernels is None:
            self._step_each(moves)
            return
        self._step_others()
        if counted:
            self._kernels.move(counted)
        for move in moves:
            move_rows(move, RULES[type(self.optimizer)], self.state[move.table.parameter])

    def _quick_and_others(self) -> tuple[list[CountedParameter], list[CountedParameter]]:
        """Tables that the compiled kernels can count and move; the others go through torch's operations."""
        if self._kernels is None or workers(self.process_group) > 1:
            return [], self.tables
        quick: list[CountedParameter] = []
        others: list[CountedParameter] = []
        for table in self.tables:
            if table.rescaled is None and is_plain(table) and has_plain_state(self.state[table.parameter], table):
                quick.append(table)
            else:
                others.append(table)
        return quick, others

    def rescale(self) -> None:
        """Turn the gradients of the tables into the estimator's now, so that what follows (clipping) sees them.

        To be called after the last backward pass and before `step`.

        Examples
        --------
        >>> import torch
        >>> from tabsym_torch import GSE, OneHotLinear
        >>> model = OneHotLinear([10], 1)
        >>> optimizer = GSE(torch.optim.SGD(model.parameters(), lr=0.1), model)
        >>> model(torch.tensor([[3], [3], [4]])).mean().backward()
        >>> optimizer.rescale()
        >>> model.weight.grad[[4, 5], 0].tolist()  # means over a category's own rows, not over all
        [1.0, 1.0]
        """
        with torch.no_grad():
            self._keep_up()
            for move in self._moves(self.tables):
                if move.table.rescaled is None:
                    put_gradient(move)
                    move.table.note_version()  # another tensor may be the gradient now
                move.table.rescaled = (move.entries, len(move.table.batches))

    def _moves(self, tables: list[CountedParameter]) -> list[Move]:
        """What is to be done to each table that has a gradient; nothing is changed yet."""
        if not tables:
            return []
        present = [table.present() for table in tables]
        size = workers(self.process_group)
        if size > 1:
            present = join(present, tables, self.process_group)
        moves = []
        for table, found in zip(tables, present, strict=True):
            if table.parameter.grad is not None:
                if not found.n_rows:
                    _check_uncounted(table)
                moves.append(estimate(table, found, found.n_rows if self.reduction == "mean" else size))
        return moves

    def _step_others(self) -> None:
        """The optimizer's own step, on all parameters but the tables."""
        hidden = [(table.parameter, table.parameter.grad) for table in self.tables]
        try:
            for parameter, _ in hidden:
                parameter.grad = None
            _own_step(self.optimizer)()
        finally:
            for parameter, gradient in hidden:
                parameter.grad = gradient

    def _step_each(self, moves: list[Move]) -> None:
        """The optimizer's own step, the categories of each history as one parameter among the others."""
        kept = [(group, group["params"]) for group in self.param_groups]
        made: list[Proxy] = []
        try:
            for group, parameters in kept:
                group["params"] = list(parameters)
            for move in moves:
                if len(move.entries):
                    new = list(proxies(move.table, move.entries.symbols, move.grads, self.state[move.table.parameter]))
                    move.table.options["params"] += [proxy.parameter for proxy in new]
                    made += new
            for proxy in made:
                self.state[proxy.parameter] = proxy.load(self.state[proxy.table.parameter])
            self._step_others()
            for proxy in made:
                proxy.store(self.state[proxy.table.parameter], self.state[proxy.parameter])
        finally:
            for group, parameters in kept:
                group["params"] = parameters
            for proxy in made:
                self.state.pop(proxy.parameter, None)


def _own_step(optimizer: optim.Optimizer) -> Callable[[], Any]:
    """The optimizer's step; without torch's wrapper, if there is nothing in it that `GSE.step` has not around it."""
    step: Any = type(optimizer).step
    hooked = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    if hooked or "step" in vars(optimizer) or not hasattr(step, "hooked"):
        return optimizer.step
    return partial(step.__wrapped__, optimizer)


def _check(optimizer: optim.Optimizer, reduction: str) -> None:
    name = optimizer.__name__ if isinstance(optimizer, type) else type(optimizer).__name__
    if not isinstance(optimizer, optim.Optimizer) or isinstance(optimizer, GSE):
        raise TypeError(f"GSE wraps an optimizer of torch.optim, such as torch.optim.Adam(...), and not {name}.")
    for kind in type(optimizer).__mro__:
        if kind.__name__ in NOT_ELEMENTWISE:
            raise TypeError(f"GSE does not wrap {name}: {NOT_ELEMENTWISE[kind.__name__]}.")
    for options in (optimizer.defaults, *optimizer.param_groups):
        _check_options(options, name)
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r} must be 'mean' or 'sum': how the loss joins the rows of the batch.")


def _check_options(options: dict[str, Any], name: str) -> None:
    if options.get("differentiable"):
        raise ValueError(f"GSE does not wrap {name}(differentiable=True): its updates are made in place; leave it out.")


def _check_uncounted(table: CountedParameter) -> None:
    gradient = table.parameter.grad
    if table.numeric is not None or gradient is None:
        return
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    if bool(values.any()):
        raise RuntimeError(
            f"{table.name} has a gradient, but no call of it was counted; call the module itself rather than use its "
            "weight, and make GSE before the forward pass."
        )
