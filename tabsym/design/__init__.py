"""Design building: the terms of columns or of a formula, their bins and scales, and the compiled form for the kernels.

`formula` (text to a syntax tree), `polynomial` (a sum of products), `plan` (the terms), `spec` (terms and their
coefficients), `sources` (columns as codes), `units` (scales), `program` and `rows` (the kernels' input).
"""
