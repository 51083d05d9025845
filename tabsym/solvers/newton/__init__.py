"""Wide models by Newton's method: deterministic, without a rate, shrunken by evidence.

`pieces` (what the solver sees of a layout) -> `turns` (blocks take their exact steps by turns) -> `variances` (one
per block, by evidence) and `heldout` (of blocks with few rows a symbol, on rows held out) -> `fit` (all of it).
Formulas with products go through `formulas`. `posterior` is what stays uncertain.
"""
