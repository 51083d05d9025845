"""Fits to tables larger than memory.

`parts` (one pass over the rows, and their codes and numbers in memory maps) -> `fit` (the design from a sample, the
optimum by sums over all parts, the fitted attributes); `cache` keeps parts for the next fit. The solver's side is
in `tabsym.solvers.newton.partitioned`.
"""
