"""What a fitted wide model shows of itself: pictures, its page in a notebook, its report, and `shap.Explanation`."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tabsym.frame import Table, check_regression_target, check_weights, plain_labels, split_target
from tabsym.frame.read import as_rows
from tabsym.models.explain import columns_of_terms, shap_explanation
from tabsym.models.page import notebook_html, write_report
from tabsym.models.page_rows import RowsOfReport
from tabsym.models.pictures import draw_model, draw_term, link_of
from tabsym.models.readable import Readable
from tabsym.plots.axes import draw_waterfall
from tabsym.plots.style import category_text
from tabsym.validation import check_option

Floats = NDArray[np.float64]


class Pictured(Readable):
    """The plots of the wide models; not public."""

    def plot(self, *, top: int = 6, scale: str = "link", output: Any = None) -> Any:
        """Plot the most important terms of the model, each as `plot_term` does (needs matplotlib).

        Parameters
        ----------
        top : int, default 6
            Number of terms, those with the largest fraction of the linear predictor's variance; of products those
            whose coefficients differ most.
        scale : {"link", "response"}, default "link"
            "response": relativities (factors of the mean) for a log link, odds ratios in classification.
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
            "response": the axis shows relativities (factors of the mean) for a log link, odds ratios in classification;
            positions in the axes are their logarithms.
        base : category, optional
            The base, whose value is 0, or 1 as a ratio; default: the mean of the term.
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
            raise ValueError(f"row={row!r} is not among the {len(table)} rows; use a place from 0 to {len(table) - 1}.")
        outputs = self._output_names()
        made, of = self.explain(X).iloc[row], ""
        if len(outputs) > 1:
            if output is not None and str(output) not in outputs:
                raise ValueError(f"There is no output {output!r}; it has {', '.join(map(repr, outputs))}.")
            best = str(made.groupby(level=1, sort=False).sum().idxmax()) if output is None else str(output)
            made, of = made.xs(best, level=1), f" of {best}"
        constants = [name for name, columns in columns_of_terms(self.model_).items() if not columns]
        base = float(made.reindex(constants).sum())
        made = made.drop(constants, errors="ignore")
        told = self._symbols_of_row(table, int(row))
        labels = [f"{name} = {told[name]}" if name in told else str(name) for name in made.index]
        link = link_of(self.model_) if scale == "response" else None
        if scale == "response" and link is None and len(outputs) > 1:
            raise ValueError("scale='response' is for one linear predictor, and each class has its own; use 'link'.")
        score = base + float(made.sum())
        unit = "linear predictor" if link is None else link[0]
        shown = score if link is None else float(link[2](score))
        return draw_waterfall(
            made, base, labels, top=top, ax=ax, unit=unit + of, link=None if link is None else link[1:],
            title=f"{unit}{of}: {shown:.4g}, from the intercept (dotted) on",
        )  # fmt: skip

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
            rows = self._rows_of_report(as_rows(X), y, sample_weight, offset)
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
        >>> explanation = model.to_shap(X)  # doctest: +SKIP
        >>> shap.plots.waterfall(explanation[0])  # doctest: +SKIP
        """
        X = as_rows(X)
        made = self.explain(X)
        return shap_explanation(self.model_, made, self._read_to_predict(X)[0], self._output_names())

    def _rows_of_report(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> RowsOfReport:
        """The rows with their predictions, validated."""
        table, own = self._read_to_predict(X)
        given = np.ones(len(table)) if (found := check_weights(sample_weight, len(table))) is None else found
        if self.model_.loss.for_classes and not self.model_.loss.is_smooth:
            raise ValueError("The hinge loss has no probabilities for the sections of rows; leave X and y out.")
        score = self.score(X, y, sample_weight, offset=offset)  # type: ignore[attr-defined]
        if is_classifier(self):
            predicted = np.asarray(self.predict_proba(X, offset=offset))  # type: ignore[attr-defined]
            classes = self.classes_  # type: ignore[attr-defined]
            observed = (np.asarray(plain_labels(y))[:, None] == classes[None, :]).astype(np.float64)
            names = list(map(str, classes))
            if len(names) == 2:
                predicted, observed, names = predicted[:, 1:], observed[:, 1:], names[1:]
            task = "binary" if len(names) == 1 else "multiclass"
            return RowsOfReport(table, observed, predicted, given, given, names, task, f"accuracy {score:.3f}")
        target = check_regression_target(y, len(table), caller=type(self).__name__)
        values, weight = np.asarray(self.predict(X, offset=offset), dtype=np.float64), given  # type: ignore[attr-defined]
        column = getattr(self, "_offset_column", None)
        if column is not None and column.is_exposure and own is not None:
            exposure = np.exp(own)
            values, target, weight = values / exposure, target / exposure, weight * exposure
        task = "count" if self.model_.loss.name == "poisson" else "regression"
        is_squared = self._names_no_loss() or not self.model_.loss.log_link  # type: ignore[attr-defined]
        words = f"R2 {score:.3f}" if is_squared else f"D2, the fraction of deviance explained, {score:.3f}"
        return RowsOfReport(table, target[:, None], values[:, None], weight, given, ["target"], task, words)

    def _html_repr(self) -> str:
        """What a notebook shows: the fitted model, or scikit-learn's diagram before fit."""
        return notebook_html(self) if hasattr(self, "model_") else str(estimator_html_repr(self))

    def _symbols_of_row(self, table: Table, row: int) -> dict[str, str]:
        """The categories and values of a row, by block."""
        held = {name: _value_text(table[name].series.to_list()[row]) for name in table.names}
        blocks = [block for block in self.model_.spec.blocks if block.columns]
        said = {block.name: " | ".join(held[name] for name in block.columns) for block in blocks}
        return {name: value for name, value in held.items() if name not in said} | said

    def _date_columns(self) -> set[str]:
        """The columns of dates, whose bins are days since 1970."""
        return {name for name, measure in getattr(self, "_moments", {}).items() if "date" in measure}


def _value_text(value: Any) -> str:
    """A cell of a table, with numbers in six digits."""
    return f"{value:.6g}" if isinstance(value, float) and value == value else category_text(value)  # noqa: PLR0124
