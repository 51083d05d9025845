"""Design building: the terms of columns or of a formula, their bins and scales, and the compiled form for the kernels.

`formula` (text to a syntax tree, and a sum of products), `plan` (the terms), `model_spec` (terms, their
coefficients, and the kernels' input), `sources` (columns as codes), `units` (scales, and rows in them), `content` (a
number for each row, the same for rows that hold the same).
"""
