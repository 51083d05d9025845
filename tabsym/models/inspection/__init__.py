"""What a fitted wide model shows of itself.

`readable` has the methods of the estimators. Behind them: `coef_table` (`coef_table`, `contrast`, `with_coefs`),
`explain` (contributions, `summary`), `significance` (tests), `pictures` (plots) and `page` (HTML); the frames of
`coefs_` are in `models.model`.
"""
