"""Pieces of docstring that both stacks share."""

STACK_PARAMETERS = """\
wide : WideClassifier or WideRegressor (or online), default None
    Unfitted; None: one with its defaults.
booster : estimator, default None
    Of LightGBM, XGBoost, CatBoost or of an adapter of your own; HistGradientBoosting; or any of scikit-learn.
    None: a gentle LightGBM, or HistGradientBoosting where that is not installed.
mode : {"auto", "margin", "feature"}, default "auto"
    "margin": the booster starts from the wide model's scores (`init_score`, `base_margin`, `baseline`; residuals
    where a scikit-learn regressor has none of these and the link is the identity); "feature": they are columns beside
    the others; "auto": "margin" ("feature" where there can be no margins) shares the answer with the booster alone over
    native categories, in the shares that lose least on rows held out. What is more than the wide model must gain
    more than one standard error there.
cv : int or splitter, default 5
    The folds of the margins out of fold; ints are shuffled, and stratified for classes. Splitters get `groups`. Rows
    that no fold holds out, as the first of TimeSeriesSplit, have no margin, and a booster that starts from margins is
    trained without them (a UserWarning says how many they are).
codes : {"ordinal", "native", "group"} or transformer, default "ordinal"
    What the booster sees of symbols: their rank by frequency, categories, categories of MODL's groups, or what an
    encoder of yours makes of them.
booster_cols : list of str (or positions, for arrays), one of them or None, default None
    The columns that the booster sees; None: all.
early_stopping : "folds", float or False, default "folds"
    What chooses the number of rounds, 0 among them, which is the wide model alone. "folds": the rows out of fold of
    `cv`, on which the booster is trained and judged fold by fold (no more folds than hold 7,000 rows); a share: so many
    rows are held out before the folds are made (with `groups`, whole groups), and only the wide model sees them in the
    end; False: all the rounds that the booster asks for, whether it helps or not.
random_state : int, RandomState or None, default None
    Of the folds, and of a wide model and a booster that have none of their own.
n_jobs : int or None, default None
    Threads, of a wide model and a booster that are not given."""

STACK_ATTRIBUTES = """\
wide_ : WideClassifier or WideRegressor
    Fitted on all rows.
shares_ : dict of str -> float
    The share in the answer of "wide" (the wide model alone), "margin", "feature" and "alone"; those without one are
    left out. Scores are averaged, before the link.
boosters_ : dict of str -> estimator
    Fitted boosters, by mode; empty where rows held out were better off without. Classes are 0, 1, ... to them.
n_rounds_ : dict of str -> int
    Of the boosters; 0 for "wide".
evidence_ : pandas.DataFrame or None
    What was compared: `mode` ("both": the two that share the answer), `rounds`, `share` of the booster alone,
    `loss`, the mean over rows held out, `gain` over the wide model (of "both": over its partner alone) with its
    standard `error` over the rows, and on how many `folds` (1: the first promised nothing); None with
    ``early_stopping=False``.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Column names, where the table has them."""

STACK_NOTES = """\
The loss that held-out rows are judged by is the wide model's own; with ``loss="auto"`` the squared error (the
absolute one with ``scoring="neg_mean_absolute_error"``)."""
