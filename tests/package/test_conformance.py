"""scikit-learn's own checks over every estimator; what cannot pass is named, with the reason."""

import inspect
import re

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import (
    check_class_weight_classifiers,
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

from tabsym import (
    AugmentedModel,
    CrossFit,
    JitterPredictor,
    JitterTreeClassifier,
    JitterTreeRegressor,
    MODLEncoder,
    OneHotEncoder,
    SelectiveNaiveBayesClassifier,
    TIWSEncoder,
    WideBoostClassifier,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.encoders import NativeCategories

ONLINE = (
    "stochastic: a row of weight 2 is one update of double length, a repeated row is two updates in other places; "
    "with batch_size='full' both are equal (tests/solvers/test_kernels.py)"
)
CROSS_FIT = "fit_transform encodes each row by parts of the other folds, so that it does not leak (cv=None: equal)"
EVIDENCE = "weights count relative to their mean, and how much there is to learn from is the number of rows"
FOLDS = "copies of a row fall into other folds than the row itself, a row of weight 2 into one"
ALL_EPOCHS = "gives n_iter_no_change, which is refused where all max_iter epochs are made (with tol it passes)"
PLAIN = {"cv": 2, "early_stopping": False}
EXPECTED = {
    "MODLEncoder": {"check_transformer_general": CROSS_FIT, "check_transformer_data_not_an_array": CROSS_FIT},
    "SelectiveNaiveBayesClassifier": {"check_sample_weight_equivalence_on_dense_data": EVIDENCE},
    "WideBoostClassifier": {"check_sample_weight_equivalence_on_dense_data": FOLDS},
    "WideBoostRegressor": {"check_sample_weight_equivalence_on_dense_data": FOLDS},
    "WideSGDClassifier": {
        "check_sample_weight_equivalence_on_dense_data": ONLINE,
        "check_class_weight_classifiers": ALL_EPOCHS,
    },
    "WideSGDRegressor": {"check_sample_weight_equivalence_on_dense_data": ONLINE},
}


def expected_failures(estimator):
    """The checks that an estimator cannot pass, with the reason."""
    if isinstance(estimator, MODLEncoder) and estimator.output != "logodds":
        return {}
    if isinstance(estimator, JitterTreeRegressor) and estimator.cols == "all":  # else numbers, which nothing shrinks
        return {"check_sample_weight_equivalence_on_dense_data": EVIDENCE}
    if isinstance(estimator, (WideClassifier, WideRegressor)):  # no partial_fit
        return {"check_sample_weight_equivalence_on_dense_data": EVIDENCE}
    return EXPECTED.get(type(estimator).__name__, {})


@parametrize_with_checks(
    [
        WideSGDClassifier(),
        WideSGDRegressor(),
        WideClassifier(),
        WideRegressor(),
        WideBoostClassifier(WideSGDClassifier(), HistGradientBoostingClassifier(max_iter=3), cv=3),
        WideBoostRegressor(WideSGDRegressor(), HistGradientBoostingRegressor(max_iter=3), mode="margin", **PLAIN),
        OneHotEncoder(),
        NativeCategories(),
        WideEncoder(),
        TIWSEncoder(),
        TIWSEncoder(cols="all", context="row", numeric="passthrough", target_type="continuous"),
        AugmentedModel(HistGradientBoostingRegressor(max_iter=40)),
        AugmentedModel(HistGradientBoostingClassifier(max_iter=10)),
        JitterPredictor(HistGradientBoostingRegressor(max_iter=40), TIWSEncoder()),
        JitterPredictor(HistGradientBoostingClassifier(max_iter=10), TIWSEncoder()),
        MODLEncoder(),
        MODLEncoder(output="logodds"),
        SelectiveNaiveBayesClassifier(),
        JitterTreeClassifier(),
        JitterTreeRegressor(),
        JitterTreeRegressor(cols="all", context="row"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_class_weights_of_online_models_where_epochs_end_by_the_tolerance():
    check_class_weight_classifiers("WideSGDClassifier", WideSGDClassifier(tol=1e-3))


def test_rows_of_weight_2_are_two_rows_where_penalties_are_given():
    model = WideRegressor(loss="squared_error", alpha=0.1, interactions="pairwise", count_effect=False)
    check_sample_weight_equivalence_on_dense_data("WideRegressor", model)


@pytest.mark.parametrize(
    "estimator",
    [
        OneHotEncoder(), NativeCategories(), WideEncoder(), TIWSEncoder(), MODLEncoder(), CrossFit(TIWSEncoder()),
        WideSGDClassifier(), WideSGDRegressor(), WideClassifier(), WideRegressor(), WideBoostClassifier(),
        WideBoostRegressor(), JitterTreeClassifier(), JitterTreeRegressor(), AugmentedModel(WideRegressor()),
        SelectiveNaiveBayesClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)  # fmt: skip
def test_results_before_a_fit_say_that_there_was_none(estimator):
    """As scikit-learn's do: also those that some options alone give, and are told of after a fit."""
    kinds = {name: inspect.getattr_static(type(estimator), name) for name in dir(type(estimator))}
    results = [name for name, kind in kinds.items() if re.fullmatch(r"[a-z]\w*_", name) and isinstance(kind, property)]
    for name in results:
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(estimator, name)
    assert results or not isinstance(estimator, (WideRegressor, WideClassifier, WideBoostRegressor))
