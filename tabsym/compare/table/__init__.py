"""The user's table, read and made ready for the contenders.

`files` (cells as text, of all rows or a sample) -> `number_format` and `retyping` (numbers, dates and
booleans that are written as text) -> `features` (the columns as contenders get them) -> `prepare` (target, weights,
notes).
"""
