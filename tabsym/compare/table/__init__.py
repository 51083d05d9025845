"""The user's table, read and made ready for the contenders.

`files` and `text_files` (cells as text) -> `cell_types`, `number_format` and `retyping` (numbers, dates and booleans
that are written as text) -> `features` (the columns as contenders get them) -> `prepare` (target, weights, notes);
`sampling` where the table is larger than asked for or than memory.
"""
