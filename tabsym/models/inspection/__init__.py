"""What a fitted wide model shows of itself.

`readable` has the methods of the estimators. Behind them: `coef_frames` (`coefs_`), `coef_table` (`coef_table`,
`contrast`, `with_coefs`), `explain` (contributions, `summary`), `term_tests` and `nested_fits` (tests), `pictures`
(plots), `page` and `page_rows` (HTML).
"""
