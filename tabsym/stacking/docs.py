"""Pieces of docstring that both stacks share."""

STACK_PARAMETERS = """\
wide : WideClassifier or WideRegressor (or online), default None
    The wide model, unfitted; None: one with its defaults.
booster : estimator, default None
    Of LightGBM, XGBoost, CatBoost or of an adapter of your own; HistGradientBoosting; or any estimator of scikit-learn.
    None: a small LightGBM with a low learning rate, or HistGradientBoosting if LightGBM is not installed.
mode : {"auto", "margin", "feature"}, default "auto"
    "margin": the booster starts from the wide model's scores (`init_score`, `base_margin`, `baseline`; residuals
    where a scikit-learn regressor has none of these and the link is the identity); "feature": they are additional
    columns; "auto": "margin" ("feature" where margins are not possible) is blended with the booster alone over native
    categories, with the weights that minimize the loss on held-out rows. A component beyond the wide model is kept if
    its gain there exceeds one standard error.
cv : int or splitter, default 5
    The folds of the out-of-fold margins; with an int they are shuffled, and stratified in classification. Splitters get
    `groups`. Rows that no fold holds out, such as the first of TimeSeriesSplit, have no margin, and a booster that
    starts from margins is trained without them (with a UserWarning).
codes : {"ordinal", "native", "group"} or transformer, default "ordinal"
    How categories are coded for the booster: by their rank in frequency, as the library's own categories, as MODL's
    groups, or by your own encoder.
booster_cols : list of str (or positions, for arrays), one of them or None, default None
    The columns that the booster sees; None: all.
early_stopping : "folds", float or False, default "folds"
    How the number of rounds is chosen (0 is the wide model alone). "folds": by the held-out rows of the folds of `cv`
    (no more folds than are needed for 7,000 rows); a fraction: by this fraction of the rows, which are held out before
    the folds are made (with `groups`, whole groups) and used by the final wide model only; False: all rounds of the
    booster, without validation.
random_state : int, RandomState or None, default None
    Seed of the folds, and of a wide model and a booster without a `random_state`.
n_jobs : int or None, default None
    Threads of the default wide model and booster."""

STACK_ATTRIBUTES = """\
wide_ : WideClassifier or WideRegressor
    Fitted on all rows.
shares_ : dict of str -> float
    The weights of the components "wide" (the wide model alone), "margin", "feature" and "alone"; components of weight 0
    are left out. Scores are averaged before the link.
boosters_ : dict of str -> estimator
    Fitted boosters, by mode; empty if no booster helps on held-out rows. They see classes as 0, 1, ...
n_rounds_ : dict of str -> int
    Rounds of the boosters; 0 for "wide".
evidence_ : pandas.DataFrame or None
    The validation scores of the candidates: `mode` ("both": the blend of two), `rounds`, `share` (weight) of the
    booster alone, `loss`, the mean over held-out rows, `gain` over the wide model ("both": over the other component
    alone) with its standard `error` over rows, and the number of `folds` (1: dropped after the first fold); None with
    ``early_stopping=False``.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Column names, where the table has them."""

STACK_NOTES = """\
The validation loss is that of the wide model; with ``loss="auto"`` the squared error (the
absolute one with ``scoring="neg_mean_absolute_error"``)."""
