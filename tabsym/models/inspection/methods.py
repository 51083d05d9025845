"""What a fitted wide model shows of itself, as documented methods; the work is done in other modules.

`coef_table`: the table of coefficients, its intervals and p, contrasts; `significance`: tests of terms and of nested
models; `explain`: `summary`, and contributions to predictions; `page`: plots and the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tabsym.frame import Table, split_target
from tabsym.frame.frames import as_rows
from tabsym.messages import check_option, plural
from tabsym.models.inspection.coef_table import differences, model_by, table_of
from tabsym.models.inspection.explain import (
    OFFSET,
    contributions,
    describe_crosses,
    describe_model,
    shap_explanation,
    variances_of_columns,
)
from tabsym.models.inspection.page import (
    draw_explanation,
    draw_model,
    draw_term,
    notebook_html,
    rows_of_report,
    write_report,
)
from tabsym.models.inspection.significance import compare_nested, wald_tests_of_terms
from tabsym.models.interactions import table_of_crosses
from tabsym.models.model import CoefficientFrames, WideModel, mean_of_factor
from tabsym.solvers.newton.uncertainty import Uncertainty

Floats = NDArray[np.float64]


class InspectionMethods:
    """The methods of the wide models that show what was fitted; not public."""

    model_: WideModel
    n_rows_seen_: int
    n_iter_: int
    n_features_in_: int
    n_jobs: int | None

    def _read_to_predict(self, X: Any) -> tuple[Table, Floats | None]:
        raise NotImplementedError

    def _warn_of_no_offset(self, how: str) -> None:
        raise NotImplementedError

    def explain(self, X: Any) -> pd.DataFrame:
        """Contributions of the terms to each prediction.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        pandas.DataFrame of shape (n_rows, n_terms)
            The contribution of every term to the linear predictor, in units of the target, or of the linear predictor
            with a link. The contribution of a slope is that of the centred column; the rest is in the intercept (or
            in the main effect of the same category), and that of a category holds the effect of its count. Dropped
            terms are left out. The sum of a row is `decision_function`, or the prediction before its link: with the
            offset of `offset_column` or `exposure_column`, which has a column ``(offset)``, and without one that is
            passed to `predict` (of a fit with one there is a UserWarning). With several linear predictors the columns
            are (term, class), and each class has its own sum. Unknown categories contribute as for
            ``handle_unknown="neutral"``, also under "similar", where the sum is that for "neutral".

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> model.explain(X[:2]).round(1)
           size  (intercept)
        0 -10.2         20.2
        1   0.3         20.2
        """
        X = as_rows(X)
        table, offsets = self._read_to_predict(X)
        if offsets is None:
            self._warn_of_no_offset("explains predictions without one; to have it there,")
        by_name = contributions(self.model_, table, self.n_jobs)
        if offsets is not None:
            column = OFFSET if OFFSET not in by_name else f"{OFFSET} of the rows"  # where a term has that name
            by_name[column] = np.repeat(offsets[:, None], self.model_.n_outputs, axis=1)
        index = X.index if isinstance(X, pd.DataFrame) else None
        outputs = self._output_names()
        if len(outputs) == 1:
            return pd.DataFrame({name: values[:, 0] for name, values in by_name.items()}, index=index)
        columns = pd.MultiIndex.from_product([by_name, outputs], names=["term", "class"])
        return pd.DataFrame(np.concatenate(list(by_name.values()), axis=1), index=index, columns=columns)

    @property
    def variances_(self) -> pd.DataFrame:
        """The variance component of each penalized term (REML), largest first; unpenalized terms have none.

        Columns: `variance`, for smooth terms that of the difference of neighbouring bins; `sd`, the standard deviation
        of coefficients about their mean, which is comparable between all terms; `edf`, the effective degrees of
        freedom, given the other terms; `coefficients`, their number. Those of factors that are shown with mean 1 are
        relative to it, as their coefficients are.
        """
        uncertainty, spec = self._uncertainty("variances_"), self.model_.spec
        means = [mean_of_factor(self.model_, block) for block in range(len(spec.blocks))]
        squares = np.array([1.0 if mean is None else float(np.square(mean).mean()) for mean in means])
        sd = np.sqrt([self.model_.entry_variance(block) for block in range(len(spec.blocks))])
        frame = pd.DataFrame(
            {
                "variance": uncertainty.variances / squares,
                "sd": sd / np.sqrt(squares),
                "edf": uncertainty.edf,
                "coefficients": [size * self.model_.n_outputs for size in spec.sizes],
            },
            index=pd.Index([block.name for block in spec.blocks], name="term", dtype=object),
        )
        is_free = np.array([not block.fixed for block in spec.blocks])
        return frame[np.isfinite(uncertainty.variances) & is_free].sort_values("sd", ascending=False, kind="stable")

    def term_table(self) -> pd.DataFrame:
        """Which terms matter: a test of each term, given the others, as mgcv's summary has it (R's `drop1` by refits).

        The hypothesis is that all coefficients of the term are equal; of a slope, and of slopes by category without a
        common one, that they are 0. The statistic is Wald's,
        divided by the effective degrees of freedom: F, and for classes, whose dispersion is 1, chi2 over its degrees of
        freedom. With ``alpha=0.0`` that is statsmodels' `wald_test_terms`.

        Returns
        -------
        pandas.DataFrame of shape (n_terms, 8), indexed by `term`, the largest `share` first
            `coefficients`, their number; `edf`, effective degrees of freedom; `sd` of the coefficients about their mean
            (REML), infinite where they are unpenalized; `share` of the linear predictor's variance, as if terms were
            uncorrelated (NaN in products); `statistic`; `df`, of which the statistic has the distribution (no fewer
            than `edf`, and equal to it without a penalty); `df_residual`, NaN for chi2; and `p`.
            A term that was dropped has neither statistic nor p, as its variance is estimated as 0; nor have fixed
            terms, factors of products, more than two classes, and terms whose covariances are unknown.

        Notes
        -----
        Over generated tables, terms without an effect have a p below .05 in 3 to 7 % without penalties (2 % in
        classification, for categories with few rows), in 5 to 9 % with them, and a p below .01 in up to 4 %
        (`benchmarks/uncertainty`);
        dropped terms are those of a large p. It is too small for counts whose variance is not in proportion to their
        mean (12 %), for interactions that ``interactions="auto"`` has chosen by the same rows, and, in models of more
        than 600 coefficients without the largest term, for terms that several large terms contain; it does not count on
        `monotonic_cst`.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "day": ["Mo", "Tu", "We", "Th", "Fr"] * 40})
        >>> model = WideRegressor(loss="squared_error", alpha=0.0).fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> model.term_table()[["edf", "df", "p"]].round(3)
              edf   df    p
        term
        size  2.0  2.0  0.0
        day   4.0  4.0  1.0
        """
        self._uncertainty("term_table")
        return wald_tests_of_terms(self.model_, self._n_rows())

    @property
    def dispersion_(self) -> float:
        """Pearson's dispersion: squared Pearson residuals over residual degrees of freedom; 1 in classification.

        By relative weights (of mean 1): of a row of mean sample weight. Of models with penalties behind a log link it
        is divided by Fletcher's factor for sparse data, as in mgcv [1]_.

        References
        ----------
        .. [1] Fletcher, D. J. (2012). "Estimating overdispersion when fitting a generalized linear model to sparse
           data". Biometrika 99 (1), 230-237.
        """
        return self._uncertainty("dispersion_").dispersion

    @property
    def deviance_(self) -> float:
        """Deviance: twice the training loss above that of perfect predictions, by relative weights (of mean 1)."""
        return self._uncertainty("deviance_").deviance

    @property
    def aic_(self) -> float:
        """Akaike's information criterion, ``2 edf - 2 log likelihood``; the dispersion is not counted as a coefficient.

        For penalized terms the effective degrees of freedom, given the variance components: of up to 1,200 coefficients
        of all terms together, fewer than the sum of `edf` in `variances_`, each given the others. NaN for huber and
        tweedie. Sample weights count relative to their mean, as in `deviance_`: a row of twice the mean weight as two
        rows; for squared error and gamma its variance is half as large, as in weighted least squares. So do weights of
        classes, by which larger models look better than they are: compare fits without `class_weight`, or by
        `likelihood_ratio_test`.
        """
        uncertainty = self._uncertainty("aic_")
        return 2.0 * uncertainty.total_edf - 2.0 * uncertainty.log_likelihood

    @property
    def bic_(self) -> float:
        """Schwarz's Bayesian information criterion, ``log(rows) edf - 2 log likelihood``; see `aic_`."""
        uncertainty = self._uncertainty("bic_")
        return float(np.log(self._n_rows())) * uncertainty.total_edf - 2.0 * uncertainty.log_likelihood

    def likelihood_ratio_test(self, smaller: Any) -> pd.Series:
        """Test of this fit against a smaller one nested in it, both without penalties.

        Parameters
        ----------
        smaller : WideClassifier or WideRegressor
            Fitted to the same rows with the same loss and fewer terms (``alpha=0.0``).

        Returns
        -------
        pandas.Series
            `statistic`, `df`, `df_residual` and `p`: the difference of the deviances by chi2 for classes and
            poisson; for other losses, whose dispersion is estimated, the F test of the analysis of deviance. Of classes
            and counts a row of sample weight 2 counts as two rows: weights are frequencies, or exposures of rates.

        Raises
        ------
        ValueError
            Terms are penalized, the fits are not nested, or are of other rows or losses.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"a": ["u", "v"] * 60, "b": ["p", "q", "r"] * 40})
        >>> y = [3, 5, 2, 8, 1, 9] * 20
        >>> larger = WideRegressor("f[a] + g[b] + c[1]", loss="poisson", alpha=0.0).fit(X, y)
        >>> smaller = WideRegressor("f[a] + c[1]", loss="poisson", alpha=0.0).fit(X, y)
        >>> larger.likelihood_ratio_test(smaller)[["df", "p"]].round(3).tolist()
        [2.0, 0.0]
        """
        check_is_fitted(self, "model_")
        check_is_fitted(smaller, "model_")
        return compare_nested(self, smaller)

    def _n_rows(self) -> int:
        """The number of training rows of positive weight, of a solved model."""
        return self.n_rows_seen_ // max(self.n_iter_, 1)

    def _uncertainty(self, name: str) -> Uncertainty:
        check_is_fitted(self, "model_")
        if self.model_.uncertainty is None:
            raise AttributeError(
                f"{name} is there after a fit of WideClassifier or WideRegressor; models that were trained online, and "
                "those whose coefficients were edited (with_coefs), have none."
            )
        return self.model_.uncertainty

    @property
    def loss_(self) -> str:
        """The loss of the fit; the selected one for "auto"."""
        check_is_fitted(self, "model_")
        return self.model_.loss.public_name

    @property
    def coefs_(self) -> CoefficientFrames:
        """The coefficients, by term: frames indexed by category, with `sd` where it is known and training `rows`."""
        check_is_fitted(self, "model_")
        return CoefficientFrames(self.model_, self._output_names())

    def coef_table(self, *, scale: str = "link", base: Any = None, level: float = 0.95) -> pd.DataFrame:
        """All coefficients in one long frame, as a rating table.

        Parameters
        ----------
        scale : {"link", "response"}, default "link"
            "response": values, deviations and limits as factors of the mean for a log link, as factors of the odds
            for two classes; for more of the class's probability over the geometric mean of all classes' (differences of
            two classes are logarithms of their odds).
        base : mapping of term -> category, "largest" or None, default None
            The base category of a term, from which `value` and `sd` are differences; "largest": the category with
            most rows. None: differences from the mean of the term. The intercept is that of the base categories, so
            that it and the values of a row add up to the linear predictor either way (but for factors of a product).
            Where nothing can take up that of a base category, a term has none: "largest" leaves it as it is, and naming
            it is refused. So it is with slopes by category without a common slope, effects without an intercept,
            factors of a product, and interactions within one category, whose values are differences from 0.
        level : float, default 0.95
            Level of the intervals from `lower` to `upper`.

        Returns
        -------
        pandas.DataFrame of shape (n_coefficients, 11)
            `term`, `category` (a tuple for an interaction, None for a single coefficient), `class` where there are
            several linear predictors, `low` and `high` (of bins ``(low, high]``), `value`, `sd`, `lower`, `upper`, `p`
            (two-sided normal test of no difference), `relativity` (exp of the value on the link scale) and the number
            of training `rows`. Where the terms of categories are penalized, `sd` of the intercept, and of a common
            slope with slopes by category, is that of the mean of the population that the categories are drawn from,
            as in mixed models (statsmodels' MixedLM, lme4); the mean of the categories seen is known better.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> model.coef_table(base="largest")[["term", "category", "value", "rows"]].round(1)
                  term category  value   rows
        0         size        S  -10.5   50.0
        1         size        M    0.0  100.0
        2         size        L    9.5   50.0
        3  (intercept)     None   20.5    NaN
        """
        check_is_fitted(self, "model_")
        return table_of(self.model_, self.coefs_, self._output_names(), scale=scale, base=base, level=level)

    def contrast(self, term: str, a: Any, b: Any, *, level: float = 0.95) -> pd.Series | pd.DataFrame:
        """The difference of two categories of a term, with its posterior standard deviation, limits and p.

        Parameters
        ----------
        term : str
            A key of `coefs_`. Of a surface or curves by category, of which parts have coarser bins (`g:x (4 bins)`),
            the sum of the parts, with deviations by samples (`n_posterior_samples`) unless all parts but one are
            dropped; these are NaN else, with a warning.
        a, b : category, or list of categories
            ``a - b``; for an interaction tuples; for bins a number within one, or its label, in tuples too. A list for
            `a` compares each of its categories with `b`, or with that at its place in a list for `b`.
        level : float, default 0.95
            Level of the intervals from `lower` to `upper`.

        Returns
        -------
        pandas.Series with `value`, `sd`, `lower`, `upper` and `p` (two-sided normal test of no difference)
            A DataFrame of these, with a row for each class for several linear predictors, and for each difference of
            lists. `sd` accounts for the covariance of the two coefficients (for several classes and more than 1,200
            coefficients given the other penalized terms); infinite where the rows do not determine the difference, as
            of stores in two regions along with unpenalized regions, or of a separated category; NaN after a fit without
            deviations, for dropped terms (0, with a warning), and for bins of more than 1,200 coefficients of all
            classes.
            The p of several differences are not adjusted for their number.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> float(model.contrast("size", "L", "S")["value"].round(1))
        20.0
        >>> model.contrast("size", ["M", "L"], "S")[["value", "p"]].round(1)
               value    p
        size
        M - S   10.5  0.0
        L - S   20.0  0.0
        """
        check_is_fitted(self, "model_")
        return differences(self.model_, self.coefs_, term, a, b, self._output_names(), level)

    def with_coefs(self, coefs: Mapping[str, Any]) -> Any:
        """A copy of the fitted model with user-defined coefficients.

        Parameters
        ----------
        coefs : mapping of term -> number, {category: number}, Series or frame of `coefs_`
            On the scale of `coefs_`; terms and categories that are left out keep their coefficients.

        Returns
        -------
        WideClassifier or WideRegressor
            Fitted, without deviations, which are unknown for the new coefficients.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> changed = model.with_coefs({"size": {"L": 0.0}})
        >>> changed.predict(pd.DataFrame({"size": ["L", "new"]})).round(2).tolist()  # both are the intercept
        [20.17, 20.17]
        """
        check_is_fitted(self, "model_")
        changed = copy(self)
        changed.model_ = model_by(self.model_, self.coefs_, coefs)
        return changed

    @property
    def feature_importances_(self) -> Floats:
        """The fraction of the linear predictor's variance over the training rows by column (n_columns,).

        As if terms were uncorrelated; interactions are divided equally among their columns. For sums of terms. With
        names: ``pd.Series(model.feature_importances_, model.feature_names_in_)``.
        """
        check_is_fitted(self, "model_")
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{index}" for index in range(self.n_features_in_)] if names is None else list(names)
        by_column = variances_of_columns(self.model_)
        if by_column is None:
            raise AttributeError("feature_importances_ is there for sums of terms only; see explain(X) for products.")
        variances = np.array([by_column.get(name, 0.0) for name in names])
        total = float(variances.sum())
        return variances / total if total > 0.0 else variances

    @property
    def interactions_(self) -> pd.DataFrame:
        """The selected interactions, with ``interactions="auto"``."""
        check_is_fitted(self, "model_")
        chosen = getattr(self, "_chosen", None)
        if chosen is None:
            raise AttributeError("interactions_ is there after a fit with interactions='auto' only.")
        return table_of_crosses(chosen)

    def summary(self) -> str:
        """Text summary: the linear predictor, and for every term its coefficients, rows, and extreme categories.

        Returns
        -------
        str

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> print(model.summary().splitlines()[0])
        WideRegressor: loss squared_error, 200 rows
        """
        check_is_fitted(self, "model_")
        heading = f"{type(self).__name__}: loss {self.loss_}, {self._rows_in_words()}"
        text = describe_model(self.model_, self.coefs_, heading)
        return f"{text}\n\n{describe_crosses(self.interactions_)}" if hasattr(self, "interactions_") else text

    def _rows_in_words(self) -> str:
        """The number of training rows, as text."""
        return plural(self._n_rows(), "row")

    def _output_names(self) -> list[str]:
        return ["value"]

    def plot(self, *, top: int = 6, scale: str = "link", output: Any = None) -> Any:
        """Plot the most important terms of the model, each as `plot_term` does (needs matplotlib).

        Parameters
        ----------
        top : int, default 6
            Number of terms, those with the largest fraction of the linear predictor's variance; of products those
            whose coefficients differ most.
        scale : {"link", "response"}, default "link"
            "response": relativities (factors of the mean) for a log link, odds ratios of two classes; of more see
            `coef_table`.
        output : optional
            A class, where there are several.

        Returns
        -------
        ndarray of matplotlib axes
            One for each term; their figure is ``axes[0].figure``.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50, "colour": ["red", "blue"] * 100})
        >>> model = WideRegressor().fit(X, [10.0, 20.0, 30.0, 21.0] * 50)
        >>> len(model.plot(top=1))
        1
        """
        check_is_fitted(self, "model_")
        outputs, dates = self._output_names(), self._date_columns()
        return draw_model(self.model_, self.coefs_, outputs, dates, scale=scale, top=top, output=output)

    def plot_term(
        self,
        term: str,
        *,
        scale: str = "link",
        base: Any = None,
        level: float = 0.95,
        top: int = 30,
        output: Any = None,
        ax: Any = None,
    ) -> Any:
        """Plot the coefficients of a term (needs matplotlib).

        Categories are points with intervals, sorted by value; bins of numbers are steps to scale, with a band, and the
        rows below as bars; interactions of two columns are heatmaps, in order where a column has one (bins, numbers,
        dates, "week 7"). Intervals are there for solved models.

        Parameters
        ----------
        term : str
            A key of `coefs_`.
        scale : {"link", "response"}, default "link"
            "response": the axis shows relativities (factors of the mean) for a log link, odds ratios of two classes (of
            more see `coef_table`); positions in the axes are their logarithms.
        base : category or "largest", optional
            The base, whose value is 0, or 1 as a ratio; "largest": the category with most rows. Default: the mean of
            the term.
        level : float, default 0.95
            Level of the intervals.
        top : int, default 30
            Number of categories, the most frequent; a heatmap has at most 30 to a side.
        output : optional
            The column of the frame: a class, where there are several. Default: the first, of curves all.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="poisson").fit(X, [1, 2, 3, 2] * 50)
        >>> ax = model.plot_term("size", scale="response", base="S")
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['S  (50)', 'M  (100)', 'L  (50)']
        """
        check_is_fitted(self, "model_")
        return draw_term(
            self.model_, self.coefs_, self._output_names(), self._date_columns(), term,
            scale=scale, base=base, level=level, top=top, output=output, ax=ax,
        )  # fmt: skip

    def plot_explanation(
        self, X: Any, *, row: int = 0, top: int = 12, scale: str = "link", output: Any = None, ax: Any = None
    ) -> Any:
        """Plot one row's prediction as a waterfall: from the intercept, term by term (needs matplotlib).

        Parameters
        ----------
        X : dataframe or array-like
        row : int, default 0
            Its position in X.
        top : int, default 12
            Number of terms, those with the largest contributions; the others are one bar.
        scale : {"link", "response"}, default "link"
            "response": ticks are predictions or probabilities, and bars are factors of the mean or of the odds. Not
            for more than two classes.
        output : optional
            A class, where there are several; default: the one that is predicted.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 20.0] * 50)
        >>> [label.get_text() for label in model.plot_explanation(X, row=2).get_yticklabels()]
        ['size = L']
        """
        check_option("scale", scale, ("link", "response"))
        table = self._read_to_predict(as_rows(X))[0]
        if not isinstance(row, Integral) or not -len(table) <= row < len(table):
            raise ValueError(
                f"row={row!r} is not among the {plural(len(table), 'row')}; use a place from 0 to {len(table) - 1}."
            )
        explained = self.explain(X).iloc[row]
        return draw_explanation(
            self.model_, explained, table, int(row), self._output_names(), scale=scale, top=top, output=output, ax=ax
        )

    def report(
        self,
        path: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write one self-contained HTML page on the fitted model (needs matplotlib).

        It has what to be careful with, the terms by importance with their variances, their pictures and coefficients;
        with rows also calibration, lift, worst segments, and what fit has not seen. It loads nothing, and runs no
        script.

        Parameters
        ----------
        path : path
            Of the file, such as "model.html".
        X : dataframe or array-like, optional
            Rows, best of those held out of fit.
        y : array-like of shape (n_rows,), or the name of its column in X, optional
            Their target.
        sample_weight, offset : array-like of shape (n_rows,), optional
        title : str, optional
            Of the page.

        Returns
        -------
        pathlib.Path
            The path.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 20.0] * 50)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(f"{folder}/model.html").name
        'model.html'
        """
        check_is_fitted(self, "model_")
        rows = None
        if X is not None:
            X, y = split_target(X, y, type(self).__name__)
            if y is None:
                raise ValueError("X is given without y; give both, for calibration and errors, or neither.")
            rows = rows_of_report(self, as_rows(X), y, sample_weight, offset)
        elif y is not None or sample_weight is not None or offset is not None:
            raise ValueError("y, sample_weight and offset belong to rows, and X is None; give X too, or none of them.")
        return write_report(self, path, rows, title)

    def to_shap(self, X: Any) -> Any:
        """The contributions of `explain` as a `shap.Explanation`, for shap's plots (needs shap: ``pip install shap``).

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        shap.Explanation
            `values` (n_rows, n_terms), with a last axis for the classes where there are several; `base_values`, the
            intercept with the offset; `data`, the row's values of each term; `feature_names`, the terms. Values and
            base values of a row add up to `decision_function`, or to the prediction before its link. Of main
            effects in a sum they are the Shapley values, against the training rows.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import WideRegressor
        >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
        >>> model = WideRegressor(loss="squared_error").fit(X, [10.0, 20.0, 30.0, 20.0] * 50)
        >>> import shap  # doctest: +SKIP
        >>> explanation = model.to_shap(X)  # doctest: +SKIP
        >>> shap.plots.waterfall(explanation[0])  # doctest: +SKIP
        """
        X = as_rows(X)
        made = self.explain(X)
        return shap_explanation(self.model_, made, self._read_to_predict(X)[0], self._output_names())

    def _html_repr(self) -> str:
        """What a notebook shows: the fitted model, or scikit-learn's diagram before fit."""
        return notebook_html(self) if hasattr(self, "model_") else str(estimator_html_repr(self))

    def _date_columns(self) -> set[str]:
        """The columns of dates, whose bins are days since 1970."""
        return {name for name, measure in getattr(self, "_moments", {}).items() if "date" in measure}
