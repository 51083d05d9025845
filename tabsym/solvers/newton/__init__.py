"""Wide models by Newton's method: deterministic, without a rate, shrunken by evidence.

`terms` (what the solver sees of a layout) -> `solver` (blocks take their exact steps by block coordinate descent) ->
`variances` (one per block, by evidence) and `heldout` (of blocks with few rows a category, on rows held out) -> `fit`
(all of it). Formulas with products go through `formulas`. `posterior` is what stays uncertain.
"""
