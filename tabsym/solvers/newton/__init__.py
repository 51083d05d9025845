"""Wide models by Newton's method: deterministic, without a learning rate, shrunk by variance components.

`terms` (the solver's view of a spec) -> `block_descent` (Newton steps of one term after the other; of `small_terms` in
one call) -> `variances` (one per term, by REML) and `heldout` (of terms with few rows per category, by held-out loss)
-> `joint` (joint Newton steps at the end) -> `fit` (the whole). Formulas with products are fitted by `formulas`.
`posteriors` and `certainty` give covariances.
"""
