"""Wide models: one number per symbol, summed behind a link, trained by stochastic gradient.

The data's way: `formula` (text -> the tree of `syntax`) -> `polynomial` (a sum of
products) -> `plan` (blocks and terms) -> `layout` (table -> codes and numbers, by
`coding` from its `sources`) -> `units` (the user's numbers <-> those of training)
-> `rows` and `program` (what kernels read) -> `training` (when to stop, by `course`
and `convergence`, at rates of `rates`) over `descent` (passes) over `kernels` ->
`model` (parameters, margins) -> `tables`. `losses`, `optimizers` and `schedules`
are small tables of facts that the kernels know by integer code; `slopes` holds
the formulas of the losses, `rules` the update of one parameter. `newton` is the other way to train: over all
rows, to the optimum, with variances by evidence, which `certainty` keeps; `contributions` take a score apart.
"""

from tabsym.wide.crosses import AutoInteractions
from tabsym.wide.losses import LOSSES, Loss

__all__ = ["LOSSES", "AutoInteractions", "Loss"]
