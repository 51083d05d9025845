"""Products as they are shown: factors with mean 1, and one common scale.

A product's factors are told up to what one hands to another. Shown are factors over their mean, so that 1.2 is 20 %
above the average row, and the product of the means as the scale of the term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tabsym.wide.layout import Layout, Term
from tabsym.wide.model import WideModel

LEAST_MEAN = 0.1
"""Over the root mean square: factors whose mean is nearer to 0, as of both signs, are shown as they are."""


@dataclass(frozen=True)
class Product:
    """One term of several factors.

    Attributes
    ----------
    name : str
        Of its scale.
    scale : float
        The product of the means, and of the coefficients that no category selects.
    means : mapping of block -> float
        What the factors of each block are divided by; of a single coefficient, itself.
    """

    name: str
    scale: float
    means: Mapping[int, float]


def products_of(model: WideModel) -> list[Product]:
    """The terms whose factors are shown about 1: each factor is of a block that is read once, of one score."""
    found: list[Product] = []
    layout = model.layout
    names = scale_names(layout) if model.n_outputs == 1 else {}
    for term in layout.learned if names else ():
        if term.factors[0].block not in names or len(term.factors) < 2:
            continue
        means = {factor.block: _mean(model, factor.block) for factor in term.factors}
        if all(mean is not None for mean in means.values()):
            known = {block: float(mean) for block, mean in means.items() if mean is not None}
            found.append(Product(names[next(iter(known))], float(np.prod(list(known.values()))), known))
    return found


def scale_names(layout: Layout) -> dict[int, str]:
    """The names of the scales of products, by the block of their first factor."""
    terms = [term for term in layout.learned if _is_told_apart(layout, term)]
    named = {term: "*".join(layout.blocks[factor.block].name for factor in term.factors) for term in terms}
    return {term.factors[0].block: f"scale of {name}" for term, name in named.items()}


def _is_told_apart(layout: Layout, term: Term) -> bool:
    blocks = [factor.block for factor in term.factors]
    once = all(sum(layout.uses[block].values()) == 1 and layout.blocks[block].rank == 1 for block in blocks)
    return len(blocks) > 1 and once


def _mean(model: WideModel, block: int) -> float | None:
    """Over training rows; None where it is next to nothing beside the factors."""
    own = model.layout.entries(block)
    values, weights = model.theta[own, 0], model.weights[own]
    if model.layout.blocks[block].source is None or not weights.sum() > 0.0:
        return float(values[0]) if len(values) == 1 and values[0] != 0.0 else None
    mean = float(np.average(values, weights=weights))
    size = float(np.sqrt(np.average(np.square(values), weights=weights)))
    return mean if abs(mean) > LEAST_MEAN * size else None
