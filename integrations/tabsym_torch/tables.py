"""Finding categorical parameters in modules, and hooking their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tabsym_torch.counting import (
    CountedParameter,
    ForwardHook,
    Pairs,
    bag_pairs,
    embedding_pairs,
    linear_pairs,
    one_hot_pairs,
)
from tabsym_torch.layers import OneHotLinear

PAIRS_OF: dict[type[nn.Module], Callable[..., Pairs | Tensor]] = {
    nn.Embedding: embedding_pairs,
    nn.EmbeddingBag: bag_pairs,
    OneHotLinear: one_hot_pairs,
}
Columns = Mapping[nn.Linear, Sequence[int] | Tensor]


def named(modules: nn.Module | Iterable[nn.Module]) -> dict[str, nn.Module]:
    """Every module to be looked at, by a name that a user can find."""
    if isinstance(modules, nn.Module):
        return {name or type(module).__name__: module for name, module in modules.named_modules()}
    found: dict[str, nn.Module] = {}
    for i, module in enumerate(modules):
        if not isinstance(module, nn.Module):
            given = type(module).__name__
            raise TypeError(f"modules must be a torch module (the model) or a list of them, and holds a {given}.")
        found |= {f"modules[{i}]" + (f".{name}" if name else ""): part for name, part in module.named_modules()}
    return found


class Watched:
    """The modules that were named, of which those with a parameter in the optimizer are tables.

    Raises
    ------
    TypeError, ValueError
        What is named cannot be treated.
    """

    def __init__(self, modules: nn.Module | Iterable[nn.Module], one_hot_columns: Columns | None) -> None:
        self.by_name = named(modules)
        self.columns = _checked(one_hot_columns or {})

    def find(self, optimized: Iterable[nn.Parameter]) -> list[CountedParameter]:
        """The tables among some parameters, their modules hooked; nothing is hooked where one is refused."""
        optimized = set(optimized)
        tables: dict[nn.Parameter, CountedParameter] = {}
        hooks = []
        for name, module, pairs_of in _parts(self.by_name, self.columns):
            weight: Any = module.weight
            if weight not in optimized:
                continue
            _refuse(name, module, self.by_name)
            table = tables.setdefault(weight, _table(name, module, self.columns))
            if table.padding != _table(name, module, self.columns).padding:
                raise ValueError(f"{table.name} and {name} share a weight, and must have the same padding_idx.")
            hooks.append((module, ForwardHook(table, pairs_of)))
        for module, hook in hooks:
            module.register_forward_hook(hook, with_kwargs=True)
        return list(tables.values())


def _parts(
    by_name: dict[str, nn.Module], columns: dict[nn.Linear, Tensor]
) -> Iterator[tuple[str, nn.Module, Callable[..., Pairs | Tensor]]]:
    """Each module with categories once, with what tells which categories a call selects."""
    seen = set()
    for name, module in by_name.items():
        kind = next((kind for kind in PAIRS_OF if isinstance(module, kind)), None)
        if kind is not None and module not in seen:
            seen.add(module)
            yield name, module, PAIRS_OF[kind]
    names = {module: name for name, module in by_name.items()}
    for linear, positions in columns.items():
        yield names.get(linear, "nn.Linear"), linear, partial(linear_pairs, positions.to(linear.weight.device))


def _table(name: str, module: Any, columns: dict[nn.Linear, Tensor]) -> CountedParameter:
    weight: Any = module.weight
    if isinstance(module, nn.Linear):
        device = module.weight.device
        numeric = torch.ones(module.in_features, dtype=torch.bool)
        numeric[columns[module]] = False
        return CountedParameter(name, weight, dim=1, numeric=numeric.nonzero().squeeze(1).to(device))
    return CountedParameter(name, weight, padding=0 if isinstance(module, OneHotLinear) else module.padding_idx)


def _checked(one_hot_columns: Columns) -> dict[nn.Linear, Tensor]:
    columns = {}
    for linear, positions in one_hot_columns.items():
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"one_hot_columns names columns of nn.Linear modules, and {linear!r} is none.")
        numbers = torch.as_tensor(positions if isinstance(positions, Tensor) else list(positions))
        if numbers.dtype is torch.bool:
            raise ValueError(
                f"one_hot_columns of {linear} must be column numbers, not a mask; use mask.nonzero()[:, 0]."
            )
        numbers = numbers.long()
        if not len(numbers) or numbers.min() < 0 or numbers.max() >= linear.in_features:
            raise ValueError(f"one_hot_columns of {linear} must be column numbers from 0 to {linear.in_features - 1}.")
        columns[linear] = numbers.unique()
    return columns


def _refuse(name: str, module: nn.Module, by_name: dict[str, nn.Module]) -> None:
    kind: Any = next(kind for kind in (*PAIRS_OF, nn.Linear) if isinstance(module, kind))
    own: Any = type(module)
    if kind is not OneHotLinear and own.forward is not kind.forward:  # OneHotLinear says itself what it selects
        raise ValueError(
            f"{name} is a {own.__name__} whose forward is not that of {kind.__name__}, so that GSE cannot know which "
            f"entries a row selects; use {kind.__name__} itself, or leave it out of modules."
        )
    if getattr(module, "scale_grad_by_freq", False):
        raise ValueError(f"{name} has scale_grad_by_freq=True, and GSE divides by counts itself; set it to False.")
    for other, candidate in by_name.items():
        if candidate is module or isinstance(candidate, tuple(PAIRS_OF)):
            continue
        if any(parameter is module.weight for parameter in candidate.parameters(recurse=False)):
            raise ValueError(
                f"The weight of {name} is also the weight of {other}, whose gradient reaches every category in every "
                "batch; give the two weights of their own, or leave the embedding out of modules."
            )
