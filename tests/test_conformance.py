"""scikit-learn's own checks over every estimator; what cannot pass is named, with the reason."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tabsym import OneHotEncoder, WideClassifier, WideEncoder, WideRegressor
from tabsym.encoders import NativeCategories

ONLINE = (
    "stochastic: a row of weight 2 is one update of double length, a repeated row is two updates in other places; "
    "with batch_size='full' both are equal (tests/test_kernels.py)"
)
AT_ONCE = "chooses crosses in fit, from all rows at once; partial_fit before a fit says so (tests/test_crosses.py)"
NOT_IN_PIECES = {"check_n_features_in_after_fitting": AT_ONCE, "check_estimators_partial_fit_n_features": AT_ONCE}
EXPECTED = {
    "WideClassifier": {"check_sample_weight_equivalence_on_dense_data": ONLINE},
    "WideRegressor": {"check_sample_weight_equivalence_on_dense_data": ONLINE},
}


@parametrize_with_checks(
    [
        WideClassifier(),
        WideRegressor(),
        WideClassifier(interactions=2, batch_size=8),
        WideClassifier(interactions="auto"),
        WideRegressor(interactions="auto"),
        OneHotEncoder(),
        NativeCategories(),
        WideEncoder(),
    ],
    expected_failed_checks=lambda estimator: (
        EXPECTED.get(type(estimator).__name__, {})
        | (NOT_IN_PIECES if getattr(estimator, "interactions", 1) == "auto" else {})
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
