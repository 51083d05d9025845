"""Wide models: one number per symbol, summed behind a link, trained by stochastic gradient.

The data's way: `layout` (table -> codes and numbers) -> `training` over
`kernels` -> `model` (parameters, margins). `losses` and `optimizers` are
small tables of facts that the kernels know by integer code.
"""

from tabsym.wide.losses import LOSSES, Loss
from tabsym.wide.optimizers import SGD, Adagrad, Adam

__all__ = ["LOSSES", "SGD", "Adagrad", "Adam", "Loss"]
