"""Fits to tables larger than memory.

`coded_batches` (one pass over the rows) -> `parts` (their codes and numbers, in memory maps) -> `fit` (the design from
a sample, the optimum by sums over all parts) -> `estimator` (the fitted attributes); `kept_rows` keeps parts for the
next fit. The solver's side is in `tabsym.solvers.newton.partitioned`.
"""
