"""Pieces of docstring that classes share, so that an option is described once."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

Documented = TypeVar("Documented", bound=type)

WIDE_PARAMETERS = """\
cols : list of str (or positions, for arrays), default None
    Columns to treat as symbols; None: text, object, category and boolean columns.
    All others are numbers; dates are days.
loss : str, default "auto"
    Regressor: "squared", (y - p)**2 / 2. Classifier: "logistic" for two classes,
    "multinomial" for any number. "auto" picks by the target.
interactions : int, default 1
    Highest order of crosses of symbolic columns: 2 adds a number for every observed
    pair of symbols of any two columns, 3 for every triple too.
optimizer : {"adagrad", "sgd", "adam"} or an object of `tabsym.wide`, default "adagrad"
    Objects carry the optimizer's own options: ``Adam(betas=(0.9, 0.99))``.
learning_rate : float or "auto", default "auto"
    Starting rate; "auto" is 3 / (terms in a row's score), at most 0.5.
gradient : {"gse", "mean"}, default "gse"
    "gse": a symbol moves only with the rows that have it, by their mean gradient, and
    keeps its optimizer state while absent. "mean": the ordinary mean over the batch,
    for every symbol, absent ones with a zero gradient.
batch_size : int or "full", default 1
    Rows per update.
epochs : int or "auto", default "auto"
    Passes over the rows; "auto" shows 125,000 rows in all, in 2 to 50 passes.
l2 : float, default 0.0
    Ridge penalty, added to a number's gradient whenever it is updated; not on the intercept.
shuffle : bool, default True
    Whether rows are shuffled in every epoch. Tables too large for the processor's cache
    are shuffled once in full, then by runs of 256 rows.
standardize : bool, default True
    Whether numeric columns, and the target of a regression, are centred and scaled inside;
    `params_` is in original units either way.
early_stopping : bool, default False
    Hold out `validation_fraction` of the rows, stop when their loss has not fallen by `tol`
    in `n_iter_no_change` epochs, and keep the best epoch.
validation_fraction : float, default 0.1
n_iter_no_change : int, default 2
tol : float or None, default None
    Without early stopping, a number stops training when the training loss falls by less.
unseen : {"neutral", "error"}, default "neutral"
    A symbol that fit has not seen adds nothing to the score, or is a `ValueError`.
    Missing is a symbol of its own where fit saw it, else unseen.
random_state : int, RandomState or None, default None
n_jobs : int or None, default None
    Threads for coding columns; the result is the same for any number.
verbose : int, default 0
    1 writes a line per epoch to standard error."""

WIDE_ATTRIBUTES = """\
params_ : dict of str -> pandas.DataFrame
    What was learned, by column, by cross ("a:b") and for the "(intercept)": indexed by
    symbol, one column `value` (one per class for the multinomial loss), and `count`,
    the training rows.
model_ : tabsym.wide.model.WideModel
    The fitted state: arrays and alphabets.
loss_curve_ : list of float
    Mean training loss of each epoch, each row's before its own update.
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
