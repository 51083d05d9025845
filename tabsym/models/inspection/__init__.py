"""What a fitted wide model shows of itself.

`methods` has those of the estimators. Behind them: `coef_table` (`coef_table`, `contrast`, `with_coefs`),
`explain` (contributions, `summary`), `significance` (tests) and `page` (plots, HTML); the frames of
`coefs_` are in `models.model`.
"""
