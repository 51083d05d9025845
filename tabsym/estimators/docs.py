"""Pieces of docstring that classes share, so that an option is described once."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

Documented = TypeVar("Documented", bound=type)

WIDE_PARAMETERS = """\
formula : str, default None
    A sum of products, such as ``"price ~ gamma[maker] * mu[region] * year + b[1]"``:
    subscripted names are learned, one number per symbol; bare names are numeric columns.
    ``w[a, b]`` learns a number for every observed pair, ``b[1]`` a single one,
    ``w[home] - w[away]`` reads one block by two columns, ``dot(u[user], v[item], rank=8)``
    learns vectors. ``+ - * / **``, log, log1p, log2, log10, sqrt, exp and abs work on columns; names
    with other signs go in backquotes. Without a formula every symbolic column has a
    number per symbol, every numeric column a slope.
cols : list of str (or positions, for arrays), one of them, "all" or None, default None
    Columns to treat as symbols; None: text, object, category and boolean columns; "all": every column
    (a column of that name alone is ``["all"]``). All others are numbers; dates are days.
loss : str, default "auto"
    Regressor: "squared" (auto), "absolute", "huber", "quantile"; with a log link "poisson",
    "gamma", "tweedie"; "choose" compares "squared" with these (of 5,000 rows and more not with all) on rows held
    out, by `scoring`, where the targets allow them (see `losses_`; for `fit` on a table). Classifier: "logistic" for
    two classes (auto), "hinge" for two, "multinomial" for any number (auto). Formulas in `tabsym.wide.LOSSES`.
delta : float, default 1.35
    Where "huber" turns from squared to absolute, in units of the target's spread: the interquartile
    mean of its absolute deviations, scaled to be 1 for a standard normal target (of the first call's
    rows in `partial_fit`).
quantile : float, default 0.5
    What "quantile" estimates.
power : float, default 1.5
    Of "tweedie", between 1 and 2.
scoring : str or callable, default "neg_root_mean_squared_error"
    What ``loss="choose"`` chooses by: a scorer of scikit-learn. Not for classifiers.
interactions : int, "auto", list of tuples or `tabsym.wide.AutoCrosses`, default 1
    Highest order of crosses of symbolic columns: 2 adds a number for every observed
    pair of symbols of any two columns, 3 for every triple too. "auto" takes the pairs, and
    triples of chosen pairs, that lower the loss of rows held out; ``AutoCrosses(max_order=2)``
    carries its options. With ``l2="evidence"`` and two classes "auto" lets in what gains 1.5 standard errors, as it
    is shrunk, where at most some 5 % of what is let in is chance; else what gains 3. Chosen in `fit`, not in streams.
    A list names them: ``[("a", "b"), ("a", "b", "c")]`` (numbers by their intervals, where `numeric` makes some).
numeric : {"linear", "modl", "quantile", "smooth"}, default "linear"
    What becomes of numeric columns: a slope; or a number for each interval, cut by MODL where that tells the
    target apart best (a column that says nothing on its own keeps its slope), or at 32 quantiles. Intervals
    are symbols, so they take part in `interactions`. "smooth": 64 quantiles, and MODL's cuts for classes, whose
    neighbours are held together, so that fine intervals cost little and a jump stays where the data show one; crosses
    take the coarser intervals (with ``optimizer="newton"``).
rarity : bool, default False
    Whether symbols and crosses of few rows get a smooth function of how many training rows they have (in training a
    row counts the others only, so unseen is the count 0), in classes of at least 30 rows; kept where it says
    something; "rarity of a" in `coefs_`.
    With ``optimizer="newton"``.
offset_column, exposure_column : str (or position, for arrays), default None
    A column of X that is no feature: added to the linear predictor as it is, or by its logarithm (for losses with a log
    link). Every tool that passes tables on passes it on, and a table to predict must have it. Beside an `offset` array
    they are refused.
optimizer : {"adagrad", "sgd", "rmsprop", "adam", "newton"} or of `tabsym.wide`, default "adagrad"
    Objects carry the optimizer's own options: ``SGD(momentum=0.9)``, ``Adam(betas=(0.9, 0.99))``. "newton" goes over
    all rows, block by block, to the optimum: deterministic, without a rate or batches, for losses with a curvature
    (not "absolute", "quantile", "hinge") and `fit` on a table; formulas that multiply go by L-BFGS. See
    `tabsym.wide.Newton`.
learning_rate : float or "auto", default "auto"
    Starting rate. "auto": for the default optimizer on sums 3 / (terms in a row's score), at most 0.5,
    otherwise the best of a few short trainings on a sample, by their training loss (with `early_stopping` by that of
    the held-out rows); it is made smaller where training diverges, and falls to zero over the last epochs. In
    `partial_fit` and streams a rule of thumb, at one rate.
schedule : {"constant", "optimal", "invscaling", "adaptive"}, default "constant"
    scikit-learn's: ``1 / (l2 (t0 + t))``, ``learning_rate / t**power_t``, or a fifth whenever
    the loss stalls (`tol`, `n_iter_no_change`). Under gse t counts the symbol's own updates.
    "optimal" is for sgd.
power_t : float, default 0.5
gradient : {"gse", "mean"}, default "gse"
    "gse": a symbol moves only with the rows that have it, by their mean gradient, and
    keeps its optimizer state while absent. "mean": the ordinary mean over the batch,
    for every symbol, absent ones with a zero gradient.
batch_size : int or "full", default 1
    Rows per update.
epochs : int or "auto", default "auto"
    Passes over the rows. "auto": for the default optimizer on sums as many as show 125,000 rows, 2 to 50
    (at most 5 where ``interactions="auto"`` chose crosses); otherwise passes until the training loss has
    converged (see `tol`), 1,000 at most. A ``ConvergenceWarning`` says where they ended before that.
    Where the rate or the passes are automatic, the intercept is settled at the end: predictions add up
    to the targets (squared, logistic, poisson and multinomial losses; not in `partial_fit`, nor where held-out rows
    would lose by it).
l1 : float, default 0.0
    Lasso penalty, on the scale of mean gradients: a number rests where its gradient is l1. Under gse that
    is the mean gradient of the symbol's own rows.
l2 : float or "evidence", default 0.0
    "evidence", with ``optimizer="newton"``: one variance per block, estimated from the table (see `variances_`), so
    that rare symbols are shrunk as far as their own block says.
    Penalty added to a number's gradient whenever it is updated. Under "mean" that is ridge regression,
    which shrinks rare symbols most; under gse it is on the symbol's own mean loss, so that it shrinks
    rare and frequent symbols alike. In units of training (see `standardize`), so that the unit of the target does not
    matter; neither is on scalars. With ``optimizer="newton"`` as under "mean": the mean loss, and half of `l2` times
    the squares of all symbols' numbers; behind a log link in your unit of the target.
average : bool, default False
    Predict with the mean of each number over its updates.
init : float or mapping of block -> float, Series or DataFrame, default None
    Where blocks start, in your units; ``init=other.coefs_`` starts where another fit ended. Default:
    1 in units of training for factors of products, the loss's best constant for a scalar that stands
    alone, else 0; latent vectors at random.
shuffle : bool, default True
    Whether rows are shuffled in every epoch. Tables too large for the processor's cache
    are shuffled once in full, then by runs of 256 rows.
standardize : bool, default True
    Whether numeric columns, and the target of a regression less its offset, are scaled inside to size
    one (and centred where the intercept can take that up), in `partial_fit` by all rows so far; behind a log link the
    target is divided by its mean, if there is an intercept. The model is the formula's, and `coefs_` are in your units,
    either way.
early_stopping : bool, default False
    Hold out `validation_fraction` of the rows, stop when their loss has not improved by `tol`
    in `n_iter_no_change` epochs, and keep the best epoch; where none is better than the start (the best constant),
    that is kept, with a ``ConvergenceWarning``.
validation_fraction : float, default 0.1
n_iter_no_change : int, default 10
tol : float or None, default None
    Training ends when the loss has not improved by `tol`, as a share of what training has lowered it by so far, over
    `n_iter_no_change` epochs (of the training loss also over a quarter of all epochs and 100 updates), with a
    ``ConvergenceWarning`` where the epochs end before that, or where the gradient is still large then. None: 1e-3
    where `epochs` are automatic; else all `epochs` are made, with early stopping until no epoch is better.
unseen : {"neutral", "similar", "error"}, default "neutral"
    A symbol that fit has not seen adds nothing to the score (inside a product: stands for
    the mean of the block over the training rows); adds what the symbols add that occur in rows like its own in the
    same call, as far as that has told anything of seen symbols (see TIWSEncoder; for `fit` on a table, without a
    formula); or is a `ValueError`.
    Missing is a symbol of its own where fit saw it, else unseen.
random_state : int, RandomState or None, default None
    (None is 0 for ``optimizer="newton"``, which is the same each time.)
n_jobs : int or None, default None
    Threads for coding columns; the result is the same for any number.
verbose : int, default 0
    1 writes a line per epoch to standard error."""

WIDE_ATTRIBUTES = """\
coefs_ : mapping of str -> pandas.DataFrame
    What was learned, by column, by cross ("a:b") and for the "(intercept)": indexed by
    symbol, one column `value` (one per class for the multinomial loss), and `count`,
    the training rows (`count of rows` where a class is called "count"); after ``optimizer="newton"`` also `sd`, their
    standard deviations. In units of the target (of the
    score, behind a log or logistic link): the formula, read with these numbers, is the prediction.
interactions_ : pandas.DataFrame
    With ``interactions="auto"`` only: the crosses chosen, in the order they were taken, with
    `cross` (the block's name), `order`, `gain` (a row held out, in units of the training loss,
    beyond what was taken before), its standard `error`, `round` and `entries`, the observed
    combinations (in the sample, for tables larger than `AutoCrosses.max_rows`).
variances_ : pandas.DataFrame
    With ``optimizer="newton"`` only: for every block the variance of its numbers, its root, and as how many free
    numbers they count, the widest first: which columns matter.
dispersion_ : float
    With ``optimizer="newton"`` only.
losses_ : pandas.DataFrame
    With ``loss="choose"`` only: the losses compared, and their score on rows held out.
model_ : tabsym.wide.model.WideModel
    The fitted state: arrays and alphabets.
loss_curve_ : list of float
    Mean training loss of each epoch in units of training (see `standardize`), each row's before its own update; by
    Newton's method that of the end, for every sweep.
validation_curve_ : list of float
    Loss of the held-out rows after each epoch; with early stopping only.
n_iter_ : int
    Epochs run.
n_rows_seen_ : int
    Rows shown in training, repeats counted.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Column names, where the table has them."""


def fill_in(**pieces: str) -> Callable[[Documented], Documented]:
    """Fill ``{name}`` in a class docstring with a shared piece."""

    def decorate(cls: Documented) -> Documented:
        if cls.__doc__:  # absent under python -OO
            cls.__doc__ = cls.__doc__.format(**{name: indent(text, "    ").lstrip() for name, text in pieces.items()})
        return cls

    return decorate
