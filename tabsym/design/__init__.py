"""From columns or a formula to terms: which there are, their bins and scales, and the compiled form that kernels read.

`formula` (text to a syntax tree), `polynomial` (a sum of products), `plan` (terms), `layout` (terms and their
coefficients), `sources` (columns as codes), `units` (scales), `program` and `rows` (what kernels read).
"""
