"""Degrees of freedom, information criteria and tests of fits without penalties, beside statsmodels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import chi2, f

from tabsym import WideClassifier, WideRegressor
from tabsym.losses import Tweedie

N = 600
FAMILIES = {
    "poisson": sm.families.Poisson(),
    "logistic": sm.families.Binomial(),
    "squared_error": sm.families.Gaussian(),
}


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(0)
    made = pd.DataFrame({"a": draw.choice(list("pqrst"), N), "b": draw.choice(list("xyz"), N)})
    made["e"] = draw.uniform(0.2, 2.0, N)
    made["zone"] = made["a"].map(dict(zip("pqrst", "uuvvw", strict=True)))
    made["poisson"] = draw.poisson(made["e"] * np.exp(0.5 * ((made["a"] == "p") & (made["b"] == "x"))))
    made["logistic"] = (draw.random(N) < 0.4).astype(int)
    made["squared_error"] = draw.normal(size=N)
    made["rate"] = made["poisson"] / made["e"]
    made["three"] = draw.choice(["k", "l", "m"], N)
    return made


def fit(table, formula, loss="poisson", **options):
    y = formula.partition("~")[0].strip()
    maker = WideClassifier if loss in ("logistic", "three") else WideRegressor
    named = {} if maker is WideClassifier else {"loss": loss}
    return maker(formula, alpha=0.0, **named, **options).fit(table[["a", "b", "e", "zone", y]])


@pytest.mark.parametrize("loss", FAMILIES)
def test_an_interaction_is_tested_by_the_coefficients_that_are_identified(table, loss):
    with pytest.warns(UserWarning, match="coefficients of 'v', 'u', 'w' are not unique, as terms determine each other"):
        larger = fit(table, f"{loss} ~ u[a] + v[b] + w[a, b] + c[1]", loss)
    smaller = fit(table, f"{loss} ~ u[a] + v[b] + c[1]", loss)
    fits = [smf.glm(f"{loss} ~ a {sign} b", table, family=FAMILIES[loss]).fit() for sign in "*+"]
    for own, other in zip((larger, smaller), fits, strict=True):
        if loss != "squared_error":  # whose dispersion statsmodels counts otherwise
            assert own.aic_ == pytest.approx(other.aic, rel=1e-7)
        if loss != "logistic":
            assert own.dispersion_ == pytest.approx(other.pearson_chi2 / other.df_resid, rel=1e-6)
    found, gain = larger.likelihood_ratio_test(smaller), fits[1].deviance - fits[0].deviance
    assert found["df"] == 8
    if loss == "squared_error":
        assert found["p"] == pytest.approx(f.sf(gain / 8 / fits[0].scale, 8, N - 15), rel=1e-4)
    else:
        assert found["p"] == pytest.approx(chi2.sf(gain, 8), rel=1e-4)


def test_a_column_that_another_contains_counts_no_degrees_of_freedom(table):
    with pytest.warns(UserWarning, match="are not unique"):
        both = fit(table, "poisson ~ u[a] + v[zone] + c[1]")
    alone = fit(table, "poisson ~ u[a] + c[1]")
    assert both.aic_ == pytest.approx(alone.aic_, rel=1e-9)
    assert both.bic_ == pytest.approx(alone.bic_, rel=1e-9)


def test_of_several_classes_one_is_the_base(table):
    model = fit(table, "three ~ u[a] + v[b] + c[1]", "three")
    dummies = pd.get_dummies(table[["a", "b"]], drop_first=True, dtype=float).assign(c=1.0)
    other = sm.MNLogit(pd.Categorical(table["three"]).codes, dummies).fit(disp=0)
    assert model.aic_ == pytest.approx(other.aic, rel=1e-6)


def test_coefficients_of_several_classes_end_near_the_optimum(table):
    """Within a thousandth of their standard errors, by default, though the two columns are nearly the same."""
    rng = np.random.default_rng(3)
    twins = table.assign(b=np.where(rng.random(N) < 0.9, table["a"], rng.permutation(table["a"])))
    model = fit(twins, "three ~ u[a] + v[b] + c[1]", "three")
    dummies = pd.get_dummies(twins[["a", "b"]], drop_first=True, dtype=float).assign(c=1.0)
    other = sm.MNLogit(pd.Categorical(twins["three"]).codes, dummies).fit(disp=0, tol=1e-12)
    for name, column in (("u", "a"), ("v", "b")):
        own = model.coefs_[name][["k", "l", "m"]].sort_index()
        own = own - own.iloc[[0]].to_numpy()
        own = own.sub(own["k"], axis=0).iloc[1:, 1:]
        wanted, sd = (
            of.loc[[f"{column}_{label}" for label in own.index]].to_numpy() for of in (other.params, other.bse)
        )
        assert (np.abs(own.to_numpy() - wanted) < 2e-3 * sd).all()


def test_exposures_as_weights_of_rates_are_tested_as_exposures(table):
    def p(*formulas, **options):
        larger, smaller = (
            WideRegressor(formula, loss="poisson", alpha=0.0, **options.get("more", {})).fit(
                table[["a", "b", "e", formula.split(" ")[0]]], sample_weight=options.get("weight")
            )
            for formula in formulas
        )
        return larger.likelihood_ratio_test(smaller)["p"]

    weighted = p("rate ~ u[a] + c[1]", "rate ~ c[1]", weight=table["e"])
    offset = p("poisson ~ u[a] + c[1]", "poisson ~ c[1]", more={"exposure_column": "e"})
    assert weighted == pytest.approx(offset, rel=1e-6)


def test_fits_to_other_rows_are_not_compared(table):
    larger = fit(table, "poisson ~ u[a] + v[b] + c[1]")
    small = "poisson ~ u[a] + c[1]"
    with pytest.raises(ValueError, match="have different offsets; fit both to the same rows, with the same offsets"):
        larger.likelihood_ratio_test(fit(table, small, exposure_column="e"))
    with pytest.raises(ValueError, match="have different targets"):
        larger.likelihood_ratio_test(fit(table.assign(poisson=table["poisson"] + 1), small))
    weighted = WideRegressor(small, loss="poisson", alpha=0.0).fit(table[["a", "poisson"]], sample_weight=table["e"])
    with pytest.raises(ValueError, match=r"have different sample weights"):
        larger.likelihood_ratio_test(weighted)


WEIGHTS = np.arange(1.0, N + 1) / N
OTHER_WEIGHTS = {
    "none": (None, "sample weights"),
    "in another unit": (2 * WEIGHTS, "sample weights"),
    "of the same mean": (np.full(N, WEIGHTS.mean()), "sample weights"),
    "of other rows": (WEIGHTS[::-1], "pairs of target and sample weight"),
}


@pytest.mark.parametrize("kind", OTHER_WEIGHTS)
def test_other_weights_are_told_from_other_targets(table, kind):
    X, y, (weight, says) = table[["a", "b"]], table["poisson"], OTHER_WEIGHTS[kind]
    options = {"loss": "poisson", "alpha": 0.0, "interactions": None}
    larger = WideRegressor(**options).fit(X, y, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=f"The two fits have different {says}; fit both to the same rows, with"):
        larger.likelihood_ratio_test(WideRegressor(**options).fit(X[["a"]], y, sample_weight=weight))
    with pytest.raises(ValueError, match="The two fits have different targets; fit"):
        larger.likelihood_ratio_test(WideRegressor(**options).fit(X[["a"]], y + 1, sample_weight=WEIGHTS))
    offset = WideRegressor(**options).fit(X[["a"]], y, sample_weight=WEIGHTS, offset=np.log(table["e"]))
    with pytest.raises(ValueError, match="The two fits have different offsets; fit"):
        larger.likelihood_ratio_test(offset)


def test_other_class_weights_and_powers_are_told(table):
    X, y = table[["a", "b"]], table["logistic"]
    larger = WideClassifier(alpha=0.0, interactions=None, class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="The two fits have different class weights; fit both"):
        larger.likelihood_ratio_test(WideClassifier(alpha=0.0, interactions=None).fit(X[["a"]], y))
    one, two = (
        WideRegressor(loss=Tweedie(power), alpha=0.0, interactions=None).fit(own, table["poisson"])
        for power, own in ((1.5, X), (1.6, X[["a"]]))
    )
    with pytest.raises(ValueError, match=r"losses \('tweedie' of power 1.5, 'tweedie' of power 1.6\); fit both with"):
        one.likelihood_ratio_test(two)


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_rows_are_the_rows(table, seed):
    draw = np.random.default_rng(seed)
    times, weight = draw.integers(0, 3, N), draw.uniform(0.5, 2.0, N)
    rows = np.repeat(np.arange(N), times)
    options = {"loss": "poisson", "alpha": 0.0, "interactions": None}
    larger = WideRegressor(**options).fit(table[["a", "b"]], table["poisson"], sample_weight=weight, freq_weights=times)
    X, y = table[["a"]].iloc[rows], table["poisson"].iloc[rows]
    found = larger.likelihood_ratio_test(WideRegressor(**options).fit(X, y, sample_weight=weight[rows]))
    again = WideRegressor(**options).fit(table[["a", "b"]].iloc[rows], y, sample_weight=weight[rows])
    wanted = again.likelihood_ratio_test(WideRegressor(**options).fit(X, y, sample_weight=weight[rows]))
    pd.testing.assert_series_equal(found, wanted, rtol=1e-6)


def test_given_coefficients_are_tested_and_are_a_base(table):
    X, y = table[["a", "b"]], table["poisson"]
    given = {"p": 0.2, "q": 0.0, "r": 0.0, "s": 0.0, "t": 0.0}
    options = {"loss": "poisson", "alpha": 0.0, "interactions": None}
    fixed = WideRegressor(fixed={"a": given}, **options).fit(X, y)
    offset = 0.2 * (X["a"] == "p")
    other = smf.glm("poisson ~ b", table, family=FAMILIES["poisson"], offset=offset).fit(scale="X2")
    shown = fixed.coef_table(base={"a": "p", "b": "x"}).set_index(["term", "category"])
    intercept = shown.xs("(intercept)").iloc[0]
    assert intercept["value"] == pytest.approx(other.params["Intercept"] + 0.2, rel=1e-6)
    assert intercept["sd"] == pytest.approx(other.bse["Intercept"], rel=1e-4)
    found = WideRegressor(**options).fit(X, y).likelihood_ratio_test(fixed)
    whole = smf.glm("poisson ~ a + b", table, family=FAMILIES["poisson"]).fit()
    assert found["df"] == 4
    assert found["statistic"] == pytest.approx(other.deviance - whole.deviance, rel=1e-6)


def test_without_penalties_there_are_no_count_effects(table):
    a = pd.Series(np.repeat(np.arange(60), np.arange(60) // 3 + 1), name="a")
    X, y = a.to_frame(), np.random.default_rng(0).poisson(1.0 + a // 10)  # frequent categories have more
    options = {"loss": "poisson", "interactions": None, "categorical_features": ["a"]}
    assert "count of a" in WideRegressor(**options).fit(X, y).coefs_
    assert set(WideRegressor(alpha=0.0, **options).fit(X, y).coefs_) == {"a", "(intercept)"}


NESTED = [  # larger, smaller, and both as statsmodels has them
    ("u[a, b]", "u[a] + v[b] + c[1]", "a * b", "a + b"),
    ("u[a, b] + c[1]", "u[b] + c[1]", "a * b", "b"),
    ("u[b, a] + c[1]", "u[a] * v[b] + c[1]", "a * b", None),
    ("u[a] * e + c[1]", "u[1] * e + c[1]", "a : e", "e"),
    ("u[a]", "c[1]", "a", "1"),
]


@pytest.mark.parametrize(("larger", "smaller", "wide", "narrow"), NESTED)
def test_a_term_contains_those_of_fewer_of_its_columns(table, larger, smaller, wide, narrow):
    one, other = (fit(table, f"poisson ~ {formula}") for formula in (larger, smaller))
    found = one.likelihood_ratio_test(other)
    reference = smf.glm(f"poisson ~ {wide}", table, family=FAMILIES["poisson"]).fit()
    if narrow is None:  # a product of factors, which statsmodels has not
        assert found["statistic"] == pytest.approx(other.deviance_ - reference.deviance, rel=1e-5)
        return
    base = smf.glm(f"poisson ~ {narrow}", table, family=FAMILIES["poisson"]).fit()
    assert found["df"] == reference.df_model - base.df_model
    assert found["p"] == pytest.approx(chi2.sf(base.deviance - reference.deviance, found["df"]), rel=1e-4)


def test_bins_contain_those_that_they_divide(table):
    def of(numeric, **options):
        options |= {"loss": "poisson", "alpha": 0.0, "interactions": None, "numeric": numeric}
        return WideRegressor(**options).fit(table[["a", "e"]], table["poisson"])

    fine, coarse, other = (of({"e": cuts}) for cuts in ([0.5, 1.0, 1.5], [1.0], [0.7]))
    found = fine.likelihood_ratio_test(coarse)
    cut = [pd.cut(table["e"], [0.0, *cuts, 9.0]).astype(str) for cuts in ([0.5, 1.0, 1.5], [1.0])]
    fits = [smf.glm("poisson ~ a + bin", table.assign(bin=bin), family=FAMILIES["poisson"]).fit() for bin in cut]
    assert found["p"] == pytest.approx(chi2.sf(fits[1].deviance - fits[0].deviance, 2), rel=1e-4)
    for smaller in (other, of("linear")):
        with pytest.raises(ValueError, match="no term of this one contains it"):
            fine.likelihood_ratio_test(smaller)


@pytest.mark.parametrize(
    ("larger", "smaller"), [("w[a] + w2[b] + c[1]", "w[a] + c[1]"), ("w[a] + c[1]", None), (None, None)]
)
def test_the_remedy_of_penalized_fits_names_options_that_they_take(table, larger, smaller):
    given = [{} if formula is None else {"formula": formula} for formula in (larger, smaller)]
    X, y = table[["a", "b"]], table["poisson"]
    one, other = (WideRegressor(loss="poisson", **options).fit(X, y) for options in given)
    with pytest.raises(ValueError, match="penalized, and the test is of maximum likelihood") as caught:
        one.likelihood_ratio_test(other)
    assert ("numeric" in str(caught.value)) is (smaller is None)
    assert "count_effect" not in str(caught.value)  # there is none without a penalty
    free = [options | {"alpha": 0.0} | ({} if "formula" in options else {"numeric": "linear"}) for options in given]
    one, other = (WideRegressor(loss="poisson", **options).fit(X, y) for options in free)
    assert not any("count of" in name for name in one.coefs_)
    if larger is not None and smaller is not None:
        assert one.likelihood_ratio_test(other)["df"] > 0


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        ("u[a] - u[zone] + c[1]", "u[zone] + c[1]"),
        ("u[a] * v[b] + c[1]", "u[a] + c[1]"),
        ("u[a, b] + c[1]", "u[a] * e + c[1]"),
        ("u[a] * e + c[1]", "u[a] + c[1]"),
    ],
)
def test_a_term_that_is_no_free_function_of_its_columns_contains_no_others(table, larger, smaller):
    one, other = (fit(table, f"poisson ~ {formula}") for formula in (larger, smaller))
    with pytest.raises(ValueError, match=r"no term of this one contains it: the test is of nested fits"):
        one.likelihood_ratio_test(other)


GIVEN = {"x": 0.1, "y": 0.2, "z": -0.3}


def test_given_coefficients_must_be_the_same(table):
    """They are an offset; what one fit estimates and a smaller one has as given is nested, as statsmodels has it."""
    larger = fit(table, "poisson ~ w[a] + v[b] + c[1]", fixed={"v": GIVEN})
    same = fit(table, "poisson ~ v[b] + c[1]", fixed={"v": GIVEN})
    offset = table["b"].map(GIVEN).to_numpy()
    families = (
        smf.glm(text, table, family=FAMILIES["poisson"], offset=offset) for text in ("poisson ~ a", "poisson ~ 1")
    )
    gain = -np.diff([made.fit().deviance for made in families][::-1])[0]
    assert larger.likelihood_ratio_test(same)["statistic"] == pytest.approx(gain, rel=1e-6)
    free = fit(table, "poisson ~ w[a] + v[b] + c[1]")
    assert free.likelihood_ratio_test(larger)["df"] == 2
    others = [
        fit(table, "poisson ~ v[b] + c[1]", fixed={"v": {key: 5 * value for key, value in GIVEN.items()}}),
        fit(table, "poisson ~ v[b] + c[1]"),
        fit(table, "poisson ~ c[1]"),
    ]
    for other in others:
        with pytest.raises(ValueError, match="The two fits have different coefficients of 'v' in fixed"):
            larger.likelihood_ratio_test(other)


def test_given_coefficients_of_several_classes(table):
    given = pd.DataFrame({"k": [0.1, 0.2, -0.3], "l": [0.0, 0.3, 0.1], "m": [0.2, -0.2, 0.0]}, index=list("xyz"))
    larger, same, other = (
        fit(table, f"three ~ {formula} + c[1]", "three", fixed={"v": times * given})
        for formula, times in (("w[a] + v[b]", 1), ("v[b]", 1), ("v[b]", 5))
    )
    assert larger.likelihood_ratio_test(same)["df"] == 8
    with pytest.raises(ValueError, match="The two fits have different coefficients of 'v' in fixed"):
        larger.likelihood_ratio_test(other)


def test_offsets_of_other_rows_are_told_though_their_sums_are_0(table):
    """A standardized target and offsets that are centred: the same rows in another order are the same."""
    draw = np.random.default_rng(1)
    y = draw.normal(size=N)
    y = (y - y.mean()) / y.std()
    offset = draw.normal(size=N)
    offset -= offset.mean()
    order = draw.permutation(N)

    def made(columns, rows, offset):
        model = WideRegressor(loss="squared_error", alpha=0.0, numeric="linear", interactions=None)
        return model.fit(table[columns].iloc[rows], y[rows], offset=offset)

    larger = made(["a", "b"], np.arange(N), offset)
    wanted = larger.likelihood_ratio_test(made(["a"], np.arange(N), offset))
    pd.testing.assert_series_equal(larger.likelihood_ratio_test(made(["a"], order, offset[order])), wanted)
    for other in (offset[order], None):
        with pytest.raises(ValueError, match="have different offsets"):
            larger.likelihood_ratio_test(made(["a"], np.arange(N), other))
    scores = draw.normal(size=(N, 3))
    models = {
        name: WideClassifier(formula, alpha=0.0).fit(table, table["three"], offset=one)
        for name, formula, one in (
            ("larger", "w[a] + c[1]", scores),
            ("same", "c[1]", scores + draw.normal(size=(N, 1))),  # which all classes have in common
            ("turned", "c[1]", scores[:, [1, 2, 0]]),
            ("none", "c[1]", np.ones((N, 3))),
        )
    }
    assert models["larger"].likelihood_ratio_test(models["same"])["df"] == 8
    for name in ("turned", "none"):
        with pytest.raises(ValueError, match="have different offsets"):
            models["larger"].likelihood_ratio_test(models[name])


@pytest.mark.parametrize(("column", "formula"), [("poisson", "poisson ~"), ("logistic", "logistic ~")])
def test_rows_of_weight_0_take_no_part(table, column, formula):
    weight = np.where(np.arange(N) % 3 == 0, 0.0, 2.0)
    kind, options = (WideClassifier, {}) if column == "logistic" else (WideRegressor, {"loss": "poisson"})
    found = [
        [
            kind(f"{formula} {right}", alpha=0.0, **options).fit(part, sample_weight=own)
            for right in ("w[a] + v[b] + c[1]", "w[a] + c[1]")
        ]
        for part, own in ((table, weight), (table[weight > 0.0], weight[weight > 0.0]))
    ]
    one, other = (larger.likelihood_ratio_test(smaller) for larger, smaller in found)
    pd.testing.assert_series_equal(one, other, rtol=1e-6)


@pytest.mark.parametrize("column", ["logistic", "three"])
def test_constant_class_weights_change_no_test(table, column):
    """Nor do rows of a class of weight 0, which the fit leaves out."""

    def tested(weights, rows):
        part = table[rows]
        larger, smaller = (
            WideClassifier(formula, alpha=0.0, class_weight=weights).fit(part, part[column])
            for formula in ("w[a] + v[b] + c[1]", "w[a] + c[1]")
        )
        return larger.likelihood_ratio_test(smaller), larger.coefs_["v"]

    classes = table[column].unique().tolist()
    everything = table[column].notna()
    plain, _ = tested(None, everything)
    pd.testing.assert_series_equal(tested(dict.fromkeys(classes, 3.0), everything)[0], plain, rtol=1e-6)
    if column == "three":
        weights = {classes[0]: 1.0, classes[1]: 2.0}
        with_zeros, coefs = tested(weights | {classes[2]: 0.0}, everything)
        without, wanted = tested(weights, table[column] != classes[2])
        pd.testing.assert_series_equal(with_zeros, without)
        pd.testing.assert_frame_equal(coefs, wanted)


def test_constraints_must_be_the_same(table):
    """What a constraint costs is no gain of a term."""
    own = table[["a", "e", "squared_error"]]
    options = {"loss": "squared_error", "alpha": 0.0, "interactions": None, "numeric": {"e": [0.5, 1.0, 1.5]}}
    larger, bound = (WideRegressor(monotonic_cst=cst, **options).fit(own, "squared_error") for cst in (None, {"e": -1}))
    smaller = [
        WideRegressor(monotonic_cst=cst, **options).fit(own.drop(columns="a"), "squared_error")
        for cst in (None, {"e": -1})
    ]
    for one, other in ((larger, smaller[1]), (bound, smaller[0])):
        with pytest.raises(ValueError, match="different directions of 'e' in monotonic_cst, which are no coefficients"):
            one.likelihood_ratio_test(other)
    found = larger.likelihood_ratio_test(smaller[0])
    assert found["df"] == 4 and found["df_residual"] == N - 8  # intercept, 4 categories, 3 bins
    assert bound.likelihood_ratio_test(smaller[1])["df"] == 4


@pytest.mark.parametrize("column", ["poisson", "squared_error"])
def test_a_larger_deviance_within_rounding_is_that_of_the_optimum(table, column):
    """A column that tells nothing gains 0, and solvers end a little beside it: a millionth of the deviance."""

    def with_deviance(factor):
        larger = fit(table, f"{column} ~ u[a] + c[1]", column)
        uncertainty = replace(larger.model_.uncertainty, deviance=factor * smaller.deviance_)
        larger.model_ = replace(larger.model_, uncertainty=uncertainty)
        return larger

    smaller = fit(table, f"{column} ~ c[1]", column)
    found = with_deviance(1.0 + 9e-7).likelihood_ratio_test(smaller)
    assert found["statistic"] == 0.0 and found["df"] == 4 and found["p"] == 1.0
    with pytest.raises(ValueError, match="has as many coefficients, or a lower deviance: it is not nested"):
        with_deviance(1.0 + 1.1e-6).likelihood_ratio_test(smaller)


@pytest.mark.parametrize(("shift", "is_same"), [(0.9e-9, True), (1.1e-9, False)])
def test_sums_are_compared_beside_what_they_could_be(table, shift, is_same):
    """The sum of standardized targets is 0, and could be the number of rows: a billionth of that is rounding."""
    y = np.random.default_rng(1).normal(size=N)
    y = (y - y.mean()) / y.std()
    options = {"loss": "squared_error", "alpha": 0.0, "interactions": None}
    larger = WideRegressor(**options).fit(table[["a", "b"]], y)
    smaller = WideRegressor(**options).fit(table[["a"]], y + shift)
    if is_same:
        assert larger.likelihood_ratio_test(smaller)["df"] == 2
    else:
        with pytest.raises(ValueError, match="have different targets"):
            larger.likelihood_ratio_test(smaller)
