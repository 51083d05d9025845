"""Terms of docstring that classes share, so that an option is described once."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

Documented = TypeVar("Documented", bound=type)

_TEXTS = """\
formula : str, default None
    A sum of products, such as ``"price ~ gamma[maker] * mu[region] * year + b[1]"``:
    subscripted names are coefficients, one per category; bare names are numeric columns,
    which alone in a term have the coefficient 1.
    ``w[a, b]`` has a coefficient for every observed pair, ``b[1]`` a single one,
    ``w[home] - w[away]`` reads one term by two columns, ``dot(u[user], v[item], rank=8)``
    has vectors. ``+ - * / **``, log, log1p, log2, log10, sqrt, exp and abs work on columns; names
    with other signs go in backquotes. ``s(x)`` is a smooth effect of a number, ``te(x, z)`` a surface of two, and
    ``s(x, by=g)`` a curve for each category; ``(1 | g)``, ``(x || g)`` are lme4's random intercepts and slopes,
    independent of each other. A column can be both: ``f[age] + s[1]*age + b[1]``.
    Without a formula every column has a term.
categorical_features : {"from_dtype", "all"}, list or None, default "from_dtype"
    Columns whose values are categories: text, object, category and boolean columns; all; those of a list of names or
    positions, or of a mask; none. All others are numbers; dates are days since 1970 (their weekdays, months and so on
    are columns that `DateParts` before the model makes). Refused with a formula.
numeric : {"smooth", "linear", "modl", "quantile"} or mapping of column -> one of these or cut points, default "smooth"
    What becomes of numeric columns. "smooth": a coefficient for each of up to 1.5 sqrt(rows) bins of equal frequency
    (64 to 1,024; for classes 64 and MODL's), with a first-order random walk prior over neighbours, so that fine bins
    cost little and a jump remains where the data show one. "linear": a slope. "modl": bins by MODL, a column that is
    not informative on its own keeps its slope. "quantile": 32 bins of equal frequency. ``{"age": [25, 40, 65]}``: your
    own bins, up to 25, above 25 up to 40, and so on. Columns that a mapping does not name are smooth. Bins are
    categories for `interactions`: of smooth columns coarser ones, and with ``alpha="auto"`` at most 4 and 16 bins in
    addition, in terms such as ``"age:hours (4 bins)"`` that add up; `explain` and `plot` show their sum. Missing
    values have a bin of their own.
    In a formula this applies to subscripted columns with fractions, or that a mapping names; other subscripted whole
    numbers are categories. Refused where there is no such column.
interactions : {"auto", "pairwise"}, list of tuples, `tabsym.interactions.AutoInteractions` or None, default "auto"
    Terms with a coefficient for every observed combination of categories. "auto": the pairs, triples of chosen pairs,
    and pairs within one category, of its rows only, that lower the loss of held-out rows (`interactions_`), in tables
    with 3 rows and more for each coefficient of main effects; "pairwise": all pairs; a list names them: ``[("a", "b"),
    ("a", "b", "c"), ({"a": "x"}, "b", "c")]``, the last within the category "x" of a (None for missing), the term
    ``"a=x:b:c"`` (``"a is missing:b:c"``). None: no interactions.
    Refused with a formula.
loss : {"auto", "squared_error", "huber", "poisson", "gamma", "tweedie"} or of `tabsym.losses`, default "auto"
    "auto" takes "squared_error" or one of the three with a log link, by `scoring` on held-out rows, where the targets
    allow them (`losses_`; with `exposure_column` among those with a log link). Objects carry a number:
    ``Huber(1.35)``, ``Tweedie(1.5)``.
scoring : str or callable, default "neg_root_mean_squared_error"
    What ``loss="auto"`` is selected by: a scorer of scikit-learn. Refused with another loss.
alpha : "auto", float or mapping of term -> float, default "auto"
    Ridge penalty of the coefficients of each term: the objective is the mean loss plus ``alpha / 2`` times the sum of
    their squares (smooth terms: of the differences of neighbours), with the target in your units behind a log link
    and divided by its spread otherwise: scikit-learn's ``Ridge(alpha=a)`` is ``alpha=a / n_rows``. In a formula
    the penalty is of what is added: ``2*w[a]`` has that of ``2 w``, and slopes by category that of their change over a
    standard deviation of their number (centred, if there is ``w[a]``).
    "auto": each term has its own, estimated (a variance component, by REML, with a prior if there are few events or
    rows; of terms with infrequent categories by the loss of held-out rows; see `variances_`). Terms that
    a mapping does not name have an estimated one. 0: no penalty, as in a GLM. The intercept and slopes have none. A
    mapping is refused for formulas that multiply or share terms, and with names of no term.
count_effect : bool, default True
    Whether terms with fewer than 50 rows per category get a smooth effect of how many training rows a category has (the
    count of a training row leaves out the row itself, so that an unknown category has the count 0), in bins of at least
    30 rows and 5 categories; dropped where its variance is estimated as 0. "count of a" in `coefs_`. Where the target
    depends on how frequent a category is, this effect takes what its coefficient would otherwise have: `coefs_`,
    `contrast`, `term_table` and `summary` show both apart, `explain` and `feature_importances_` together, as the
    column's. For formulas that are sums of terms; for others False is refused. There is none with ``alpha=0``, where
    the coefficients of the categories determine it. `predict` treats training rows like new ones: with many categories
    of a single row, totals over the training rows differ from those observed.
monotonic_cst : mapping of column -> {-1, 0, 1}, array-like of these for each column, or None, default None
    Columns with which the linear predictor must not decrease (1) or not increase (-1), the others held; for two classes
    that of the second. Numbers by the coefficients of their bins or the sign of their slope, categories along their
    order (booleans, ordered Categoricals of pandas, Enums of polars); missing values and unknown categories are free.
    The fit is the optimum within the constraint, at the variances that are estimated without it. Degrees of freedom and
    deviations do not count on it either: they are those of bins without the constraint, and so on the large side. A
    constrained column is in no interaction, and has no count effect. Refused in formulas that multiply, for more than
    two classes, and for categories without an order.
fixed : mapping of term -> {category: number}, Series, frame or number, default None
    Terms with given coefficients, on the scale of `coefs_`, which the fit does not change and to which the other terms
    adapt: a named offset. By column (in a formula by the name of its term): values by category or frames as
    in `coefs_` (with `low` and `high` for bins), a number for a slope. Categories without a value add nothing. `sd` is
    0, and the column is in no interaction. Refused with ``loss="auto"``.
class_weight : mapping of class -> float, "balanced" or None, default None
    Multiplies the sample weights. "balanced": inversely to the total weight of a class's rows, as
    scikit-learn's linear models have it (refused in `partial_fit` and streams). A class of weight 0 is absent, from
    `classes_` too (refused of tables larger than memory). Variances of coefficients are multiplied by Kish's design
    effect of these weights, as a weight does not add rows of a rare class.
offset_column : str (or position, for arrays), default None
    A column of X that is no feature: added to the linear predictor as it is. Every tool that passes tables on passes it
    on, and a table to predict must have it. Refused with an `offset` array, and with ``loss="auto"``.
exposure_column : str (or position, for arrays), default None
    As `offset_column`, but its logarithm is added: for losses with a log link, otherwise refused, as with `offset` and
    `offset_column`.
handle_unknown : {"neutral", "error", "similar"}, default "neutral"
    What an unknown category (not in the training data) adds to the linear predictor. "neutral": nothing (in a model
    with `count_effect` the effect of the count 0); inside a product it has the mean of the term over the training
    rows. "error": a `ValueError`. "similar": what the categories add that occur in rows like its own in the same call,
    as far as that has predicted anything of known categories (see TIWSEncoder); for `fit` on a table without a formula,
    else refused.
    Missing is a category of its own where fit saw it, else unknown.
n_posterior_samples : int, default 0
    Samples of all coefficients together from their posterior, which ``return_std=True`` needs: 32 are enough for
    deviations, 64 for limits. For sums of terms and one linear predictor; refused for others.
n_init : int, default 3
    Number of starting points of a formula with products; the best result is kept. Refused for sums, whose optimum is
    unique.
max_iter : int, default 200
    Maximum number of iterations over all terms, which joint steps of all terms may follow; a ``ConvergenceWarning``
    reports if the fit did not converge. Formulas with products are fitted by L-BFGS, with up to a quarter as many
    iterations.
tol : float, default 1e-3
    Tolerance: the distance of coefficients to the optimum, in their standard errors, given the variances; for several
    classes if `alpha` is given. Estimated variances end within some percent, near 0 within a factor of two or three,
    which moves coefficients by some tenths of a standard error; ``tol=1e-8`` has them to all digits, but of several
    classes.
random_state : int, RandomState or None, default 0
    Seed of the halves and folds of rows that are held out.
n_jobs : int or None, default None
    Threads for coding columns, and from a million rows on for the solver; the result is the same for any number.
verbose : int, default 0
    1 writes progress to standard error: the selected loss and interactions, terms and coefficients, variances,
    iterations. Ctrl-C ends a fit with the coefficients of the last iteration.
numeric_online : {"linear", "modl", "quantile"} or mapping of column -> one of these or cut points, default "linear"
    What becomes of numeric columns. "linear": a slope. "modl": a coefficient for each bin by MODL, where that separates
    the target best; a column that is not informative on its own keeps its slope. "quantile": 32 bins of equal
    frequency. ``{"age": [25, 40, 65]}``: your own bins. Bins are categories for `interactions`. Bins are refused in
    `partial_fit` and streams, and with a formula without a column of fractions in brackets.
interactions_online : {"auto", "pairwise"}, list of tuples, `tabsym.interactions.AutoInteractions` or None, default None
    Terms with a coefficient for every observed combination of categories. "auto": the pairs, and triples of chosen
    pairs, that lower the loss of held-out rows (`interactions_`; refused in streams and `partial_fit`); "pairwise": all
    pairs; a list names them: ``[("a", "b"), ("a", "b", "c"), ({"a": "x"}, "b", "c")]``, the last in the rows where a is
    "x" only. Refused with a formula.
loss_classes : {"log_loss", "hinge"}, default "log_loss"
    "hinge" is for two classes, and has no probabilities.
loss_online : str or of `tabsym.losses`, default "squared_error"
    "squared_error", "absolute_error", "huber", "quantile"; with a log link "poisson", "gamma", "tweedie". Objects carry
    a number: ``Huber(1.35)``, ``Quantile(0.9)``, ``Tweedie(1.5)``.
optimizer : {"adagrad", "sgd", "rmsprop", "adam"} or of `tabsym.optimizers`, default "adagrad"
    Objects carry the optimizer's own options: ``SGD(momentum=0.9)``, ``Adam(betas=(0.9, 0.99))``.
learning_rate : float or "auto", default "auto"
    Starting rate. "auto": for the default optimizer on sums 3 / (terms in a row's linear predictor), at most 0.5,
    otherwise the best of a few short trainings on a sample, by their training loss (with `early_stopping` by that of
    the held-out rows); it is made smaller where training diverges, and falls to zero over the last epochs. In
    `partial_fit` and streams a rule of thumb, at one rate.
schedule : {"constant", "optimal", "invscaling", "adaptive"}, default "constant"
    scikit-learn's: ``1 / (alpha (t0 + t))``, ``learning_rate / t**power_t``, or a fifth whenever
    the loss stalls (`tol`, `n_iter_no_change`). Under gse t counts the category's own updates.
    "optimal" is for sgd with a penalty, else refused; unlike scikit-learn's it starts at the automatic rate at most,
    and falls to zero over the last epochs, as that does.
power_t : float, default 0.5
    Of "invscaling"; refused for other schedules.
gradient : {"gse", "mean"}, default "gse"
    "gse": a category moves only with the rows that have it, by their mean gradient, and
    keeps its optimizer state while absent. "mean": the ordinary mean over the batch,
    for every category, absent ones with a zero gradient.
batch_size : int or "full", default 1
    Rows per update.
alpha_online : float, default 0.0
    Penalty, on the scale of mean gradients: ``alpha * l1_ratio`` times the absolute value and ``alpha * (1 - l1_ratio)
    / 2`` times the square of each coefficient. Under "mean" that is the elastic net; under gse it is on the mean loss
    of a category's own rows, so that infrequent and frequent categories are shrunk alike. In units of training (see
    `standardize`), so that the unit of the target does not matter; scalars have none.
l1_ratio : float, default 0.0
    The share of `alpha` that is lasso's. Refused without `alpha`.
max_iter_online : int or "auto", default "auto"
    Epochs. "auto": for the default optimizer on sums as many as show 125,000 rows, 2 to 50
    (at most 5 where ``interactions="auto"`` chose interactions); otherwise epochs until the training loss has
    converged (see `tol`), 1,000 at most. A ``ConvergenceWarning`` reports if they ended before that.
    Where the rate or the epochs are automatic, the intercept is corrected at the end: predictions add up
    to the targets (squared_error, poisson and log_loss; not in `partial_fit`, nor where held-out rows
    would lose by it). More than one is refused for iterators, which can be read once.
tol_online : float or None, default None
    Training ends when the loss has not improved by `tol`, as a share of what training has lowered it by so far, over
    `n_iter_no_change` epochs (of the training loss also over a quarter of all epochs and 100 updates), with a
    ``ConvergenceWarning`` where the epochs end before that, or where the gradient is still large then. None: 1e-3
    where `max_iter` is automatic; else all epochs are made, with early stopping until no epoch is better.
early_stopping : bool, default False
    Hold out `validation_fraction` of the rows, stop when their loss has not improved by `tol`
    in `n_iter_no_change` epochs, and keep the best epoch; where none is better than the start (the best constant),
    that is kept, with a ``ConvergenceWarning``. Refused in streams.
validation_fraction : float, default 0.1
    Of the rows, held out for early stopping; refused without it.
n_iter_no_change : int, default 10
    Epochs without improvement that end training; refused where neither `tol` nor `early_stopping` asks for them.
average : bool, default False
    Predict with the mean of each coefficient over its updates.
shuffle : bool, default True
    Whether rows are shuffled in every epoch. Tables too large for the processor's cache
    are shuffled once in full, then by runs of 256 rows.
standardize : bool, default True
    Whether numeric columns, and the target of a regression less its offset, are scaled inside to size
    one (and centred where the intercept can take that up), in `partial_fit` by all rows so far; behind a log link the
    target is divided by its mean, if there is an intercept. The model is the formula's, and `coefs_` are in your units,
    either way. False suits numbers of about size one: gradient steps do not reach the slope of a much larger or smaller
    one, and a ``ConvergenceWarning`` reports it.
coef_init : float or mapping of term -> float, Series or DataFrame, default None
    Where terms start, in your units; ``coef_init=other.coefs_`` starts where another fit ended. Default:
    1 in units of training for factors of products, the loss's best constant for a scalar that stands
    alone, else 0; latent vectors at random. Names of no term are refused.
random_state_online : int, RandomState or None, default None
    Of the order of rows and of where vectors start.
verbose_online : int, default 0
    1 writes a line per epoch to standard error. Ctrl-C ends a fit with the coefficients that were reached."""

_KINDS = ("_online", "_solved", "_classes")


def _options() -> dict[str, str]:
    """The description of each option, by the name that `described` knows it by."""
    options: dict[str, str] = {}
    name = ""
    for line in _TEXTS.splitlines():
        if not line.startswith(" "):
            name, _, type_text = line.partition(" :")
            heading = name
            for kind in _KINDS:
                heading = heading.removesuffix(kind)
            options[name] = f"{heading} :{type_text}"
        else:
            options[name] += f"\n{line}"
    options["loss_solved"] = options.pop("loss")
    return options


def described(names: str) -> str:
    """The descriptions of options, in this order."""
    options = _options()
    return "\n".join(options[name] for name in names.split())


_ATTRIBUTES = """\
coefs_ : mapping of str -> pandas.DataFrame
    By term (a column, an interaction "a:b", the "(intercept)"): a frame indexed by category, with `value` (one column
    per class, for more than two), {deviations}and `rows`, its training rows; of bins also `low` and `high`. In units
    of the target (behind a link of the linear predictor). The mean of every term is in the intercept.
feature_importances_ : ndarray of shape (n_columns,)
    The share of each column in the variance of the linear predictor over the training rows, as if terms were
    uncorrelated; interactions are shared equally by their columns, and a number counts as distributed alike in all
    categories that have slopes of it. For sums of terms. With the names of the columns:
    ``pd.Series(model.feature_importances_, model.feature_names_in_)``; of terms: {shares}.
interactions_ : pandas.DataFrame
    With ``interactions="auto"`` only: the interactions chosen, in the order they were taken, with
    `interaction` (the term's name), `order`, `gain` (a row held out, in units of the training loss,
    beyond what was taken before), its standard `error`, `round` and `coefficients`, the observed
    combinations (in the sample, for tables larger than `AutoInteractions.max_rows`).
loss_ : str
    The loss that was fitted.
{more}model_ : tabsym.models.model.WideModel
    The fitted state: arrays and categories.
loss_curve_ : list of float
    {curve}
n_iter_ : int
    {iterations}
n_rows_seen_ : int
    Rows shown in training, repeats counted.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_columns,)
    Column names, where the table has them."""

SOLVED_ATTRIBUTES = _ATTRIBUTES.format(
    deviations="`sd`, its posterior standard deviation, ",
    more="""\
variances_ : pandas.DataFrame
    For every term the variance of its coefficients, its root, and their effective degrees of freedom, the widest first:
    which columns matter.
dispersion_, deviance_, aic_, bic_ : float
    Pearson's dispersion, the deviance of the training rows, Akaike's and Schwarz's criteria.
""",
    shares="the column `share` of `term_table`",
    curve="Mean training loss after each iteration.",
    iterations="Number of iterations.",
)

ONLINE_ATTRIBUTES = _ATTRIBUTES.format(
    deviations="",
    more="",
    shares="the last line of `summary`",
    curve="""\
Mean training loss of each epoch in units of training (see `standardize`), each row's before its own update.
validation_curve_ : list of float
    Loss of the held-out rows after each epoch; with early stopping only.""",
    iterations="Epochs run.",
)


def fill_in(**terms: str) -> Callable[[Documented], Documented]:
    """Fill ``{name}`` in a class docstring with a shared term; other braces stay as they are."""

    def decorate(cls: Documented) -> Documented:
        if cls.__doc__:  # absent under python -OO
            for name, text in terms.items():
                cls.__doc__ = cls.__doc__.replace(f"{{{name}}}", indent(text, "    ").lstrip())
        return cls

    return decorate
