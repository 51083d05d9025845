"""What each category and bin adds, in tables: rate tables, in sheets and in the files of `to_csv`, and scorecards.

Cells are text that is never a formula, and numbers. The points of a `scorecard` add up to a score of the odds.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tabsym.export.spec import as_text, terms_of
from tabsym.frame import NUMBERS, Measure
from tabsym.frame.storage import object_array
from tabsym.messages import Number, check_option
from tabsym.models.export_terms import LookupFactor, ModelTerms, TermRecord
from tabsym.models.inspection.coef_table import check_base
from tabsym.models.model import edges
from tabsym.modl.columns import interval_labels

MAX_TITLE, MAX_WHOLE = 31, 10**15
"""Characters of a sheet's name, and a number that keeps all its digits."""
MISSING = "(missing)"
LEVEL = 1.959963984540054
"""Standard deviations on either side of a coefficient in its 95 % interval."""
UNKNOWN = "(unknown)"
"""In a scorecard: a category that the training rows lack."""


class Text(str):
    """Text that is no formula."""


def cell_of(value: Any) -> Any:
    """A category or class as a cell.

    Raises
    ------
    ValueError
        Cells do not hold its type.
    """
    if isinstance(value, str):
        return Text(value)
    fits = isinstance(value, (bool, float, dt.date)) or (isinstance(value, int) and abs(value) < MAX_WHOLE)
    if fits and getattr(value, "tzinfo", None) is None:
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    raise ValueError(f"The category {value!r} is no text, number or date of a sheet; {as_text(value)}.")


def number(value: float) -> str:
    """A number in a formula."""
    return f"({value!r})" if value < 0 else repr(float(value))


def letter(column: int) -> str:
    """The letters of a column of a sheet, from 1 on."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(column))


def title(text: str) -> str:
    """A name for a sheet."""
    return re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", text)[:MAX_TITLE].strip("'")


def names_of_outputs(terms: ModelTerms) -> list[str]:
    """What the columns of coefficients are called: the classes, where there are linear predictors of several."""
    several = terms.n_outputs > 1 and terms.classes is not None
    return [str(label) for label in terms.classes.tolist()] if several else ["coefficient"]  # type: ignore[union-attr]


class TermLines:
    """The lines of a lookup table, the first one its heads.

    With formulas, relativities and intervals follow the coefficients in Excel; else they are numbers.
    """

    def __init__(self, terms: ModelTerms, factor: LookupFactor, names: list[str], *, with_formulas: bool) -> None:
        self.terms, self.names, self.with_formulas = terms, names, with_formulas
        self.table = terms.tables[factor.table]
        codings = self.table.codings
        self._bins = {
            position: edges(coding.bounds, coding.missing)
            for position, coding in enumerate(terms.codings[index] for index in codings)
            if coding.bounds is not None
        }
        self._keys = [self._keys_of(coding, column) for coding, column in zip(codings, factor.columns, strict=True)]
        self._heads_of_keys = [
            f"{column} bin" if self._is_bin(coding) else column
            for coding, column in zip(codings, factor.columns, strict=True)
        ]
        if not codings:
            self._heads_of_keys, self._keys = ["coefficient of"], [[Text(self.table.name)]]

    @property
    def n_keys(self) -> int:
        """Columns of a line that name its category or bin."""
        return len(self._keys)

    def __iter__(self) -> Iterator[list[Any]]:
        table, first = self.table, self.n_keys + 2
        yield [Text(head) for head in [*self._heads_of_keys, "rows", *self._heads()]]
        codes = table.codes if table.codings else np.zeros((1, 1), dtype=np.int64)
        values = table.values.reshape(len(table.values), -1).tolist()
        deviations = None if table.sd is None else table.sd.reshape(len(table.values), -1).tolist()
        for position, line in enumerate(values):
            cells: list[Any] = [keys[code] for keys, code in zip(self._keys, codes[position].tolist(), strict=True)]
            cells += [int(table.rows[position]), *line]
            named = [f"{letter(first + k)}{position + 2}" for k in range(len(line))] if self.with_formulas else line
            cells += map(_exp_of, named) if self._has_ratios else []
            if deviations is not None:
                limits = self._limits(named, deviations[position])
                cells += limits + (list(map(_exp_of, limits)) if self._has_ratios else [])
            yield cells + self._edges(codes[position].tolist())

    def _heads(self) -> list[str]:
        table = self.table
        rank = table.values.shape[1]
        heads = [f"{name} {part + 1}" if rank > 1 else name for part in range(rank) for name in self.names]
        is_single = self.names == ["coefficient"] and rank == 1
        ratios = (["relativity"] if is_single else [f"relativity {head}" for head in heads]) if self._has_ratios else []
        scales = ["coefficient", "relativity"] if self._has_ratios else ["coefficient"]
        if is_single:
            limits = [f"{what} {side}" for what in scales for side in ("lower", "upper")]
        else:
            between = ["" if what == "coefficient" else f"{what} " for what in scales]
            limits = [f"{what}{side} {head}" for what in between for head in heads for side in ("lower", "upper")]
        ends = [f"bin {position + 1} {side}" for position in self._bins for side in ("above", "up to")]
        return [*heads, *ratios, *(limits if table.sd is not None else []), *ends]

    @property
    def _has_ratios(self) -> bool:
        return self.terms.link != "identity"

    def _limits(self, coefficients: list[Any], deviations: Sequence[float]) -> list[Any]:
        """The 95 % intervals; empty where deviations are not known."""
        limits: list[Any] = []
        for coefficient, deviation in zip(coefficients, deviations, strict=True):
            half_width = LEVEL * deviation
            if not np.isfinite(half_width):
                limits += [None, None]
            elif self.with_formulas:
                limits += [f"={coefficient}-{number(half_width)}", f"={coefficient}+{number(half_width)}"]
            else:
                limits += [coefficient - half_width, coefficient + half_width]
        return limits

    def _edges(self, codes: Sequence[int]) -> list[Any]:
        """The bounds of bins ``(above, up to]``; nothing of missing values."""
        ends = [float(side[codes[position]]) for position, sides in self._bins.items() for side in sides]
        return [end if math.isfinite(end) else None for end in ends]

    def _is_bin(self, index: int) -> bool:
        return self.terms.codings[index].bounds is not None

    def _keys_of(self, index: int, column: str) -> list[Any]:
        """The cell of each code."""
        coding = self.terms.codings[index]
        if coding.categories is None:
            return list(range(len(coding)))
        categories = coding.categories.tolist()
        if MISSING in categories:
            raise ValueError(
                f"Column {column!r} has a category {MISSING!r}, as empty cells have; rename it before fit."
            )
        return [Text(MISSING) if category is None else cell_of(category) for category in categories]


def _exp_of(value: Any) -> Any:
    """The cell of exp of a coefficient or of a limit of one: a number, a cell or a formula."""
    if value is None:
        return None
    return f"=EXP({value.removeprefix('=')})" if isinstance(value, str) else float(np.exp(value))


def to_csv(model: Any, folder: str | os.PathLike[str], *, base: Mapping[str, Any] | str | None = None) -> list[Path]:
    """Write the rate tables of a fitted model as CSV files, one for each term.

    They have the columns of the sheets of `to_excel`: categories (or bins), training rows, coefficients, relativities
    (factors of the mean or of the odds) and 95 % intervals. Numbers have all their digits; the encoding is UTF-8.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison.
    folder : path
        Made where it is absent; files of the same names are replaced, others stay.
    base : mapping of term -> category, "largest" or None, default None
        As in `coef_table`: the base category of a term, from which coefficients and intervals are differences and
        relativities ratios (its own is 1); "largest": the category with most rows. None: from the mean of the term. The
        intercept is that of the base categories, so that predictions stay the same. A category's count effect is part
        of its coefficient. Factors of products have no base.

    Returns
    -------
    list of Path
        The files, in the order of the terms.

    Raises
    ------
    ValueError, TypeError
        A part of the model has no place in a file, with a message that names it.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import to_csv
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = to_csv(WideRegressor().fit(X, y), folder)
    ...     [file.name for file in files], pd.read_csv(files[0])["town"].tolist()
    (['1 town.csv', '2 (intercept).csv'], ['Ulm', 'Bonn'])
    """
    terms = terms_of(model, base)
    factors: dict[int, LookupFactor] = {}
    for term in terms.terms:
        for factor in term.lookups:
            factors.setdefault(factor.table, factor)
    tables = {}
    for position, factor in enumerate(factors.values(), 1):
        name = re.sub('[<>|"]', "_", title(f"{position} {terms.tables[factor.table].name}"))
        tables[f"{name}.csv"] = list(TermLines(terms, factor, names_of_outputs(terms), with_formulas=False))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return [folder / name for name in tables]


# -- scorecards -------------------------------------------------------------------------------------------


def scorecard(
    model: Any,
    points: float = 600,
    odds: float = 50,
    pdo: float = 20,
    *,
    good: Any = None,
    base: Mapping[str, Any] | str | None = None,
    decimals: int | None = None,
) -> pd.DataFrame:
    """The points of each category and bin of a model of two classes.

    The points of a row's categories and bins add up to ``offset + factor * log odds``, where ``factor = pdo / ln 2``
    and ``offset = points - factor * ln odds`` (Siddiqi, "Credit Risk Scorecards", 2006): as many `points` where the
    odds are `odds` to 1, and `pdo` more where they are twice that.

    Parameters
    ----------
    model : WideClassifier or WideSGDClassifier
        A sum of terms of categories, bins and smooth numbers, fitted on two classes. Also behind `DateParts` in a
        pipeline, or the winner of a comparison.
    points, odds, pdo : float, default 600, 50, 20
        The score at these odds, and the points to double the odds.
    good : class label, default None
        The class whose odds the score rises with; None: the second one, ``classes_[1]``.
    base : mapping of term -> category, "largest" or None, default None
        The base category of a term, which gets no points; what it would have is in the points of the intercept.
        "largest": the category or bin with the most rows. A bin is named by its label or by a number within it.
    decimals : int, default None
        Number of decimals of points; the column `rounding` then has what that adds to each. The score of a row
        is off by the sum of its `rounding`. None: points are exact.

    Returns
    -------
    pandas.DataFrame
        `term`, `category` (a label for bins, a tuple for interactions, None for missing and for the intercept,
        "(unknown)" for categories and combinations that the training rows lack), `low` and `high` (of bins
        ``(low, high]``), training `rows`, `coefficient` (what is added to the log odds of `good`) and `points`.

    Raises
    ------
    ValueError, TypeError
        The model has no scorecard, with a message that names the term.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideClassifier
    >>> from tabsym.export import scorecard
    >>> X = pd.DataFrame({"town": ["Ulm"] * 400 + ["Bonn"] * 400})
    >>> y = ["paid"] * 300 + ["late"] * 100 + ["paid"] * 360 + ["late"] * 40
    >>> card = scorecard(WideClassifier(count_effect=False).fit(X, y), base={"town": "Ulm"}, decimals=0)
    >>> card.query("category != '(unknown)'")[["category", "rows", "points"]].values.tolist()
    [['Ulm', 400, 0.0], ['Bonn', 400, 31.0], [None, 800, 519.0]]
    """
    for name, value in (("points", points), ("odds", odds), ("pdo", pdo)):
        check_option(name, value, [Number() if name == "points" else Number(above=0)])
    check_option("decimals", decimals, [Number(at_least=0, at_most=12, whole=True), None])
    terms = terms_of(model)
    factor = pdo / math.log(2.0)
    sign = _sign_of(terms, good)
    table = _coefficients(terms, base)
    table["coefficient"] *= sign
    exact = factor * table["coefficient"].to_numpy()
    exact[-1] += points - factor * math.log(odds)  # of the intercept
    table["points"] = exact if decimals is None else np.round(exact, decimals) + 0.0
    if decimals is not None:
        table["rounding"] = table["points"] - exact
    return table


def _sign_of(terms: ModelTerms, good: Any) -> float:
    """1 where the linear predictor is the log odds of the good class, -1 where it is that of the other."""
    if terms.classes is None or len(terms.classes) != 2 or terms.link != "logit":
        what = "has no log odds (its loss is no log-loss)"
        if terms.classes is None or len(terms.classes) != 2:
            what = "predicts no classes" if terms.classes is None else f"has {len(terms.classes)} classes"
        raise ValueError(f"A scorecard has points for the log odds of two classes, and the model {what}.")
    classes = terms.classes.tolist()
    if good is not None and good not in classes:
        raise ValueError(f"good={good!r} is none of the classes; use {classes[0]!r} or {classes[1]!r}.")
    return -1.0 if good is not None and good == classes[0] else 1.0


def _coefficients(terms: ModelTerms, base: Any) -> pd.DataFrame:
    """One row per category or bin, and a last one of what is added to every row."""
    if terms.offset is not None:
        raise ValueError(
            f"The offset column {terms.offset.name!r} adds a number of each row, which no category has points for; fit "
            "without it."
        )
    parts, constant = [], 0.0
    names = [term.name for term in terms.terms if _factor_of(terms, term) is not None]
    for name in base if isinstance(base, Mapping) else ():
        if name not in names:
            raise ValueError(
                f"base names {name!r}, which is no term with categories; use {', '.join(map(repr, names))}."
            )
    check_base(base)
    for term in terms.terms:
        factor = _factor_of(terms, term)
        if factor is None:
            constant += term.constant * _scalar(terms, term)
            continue
        part, position = _part(terms, term, factor), None
        if base == "largest":
            position = int(part["rows"].argmax())
        elif isinstance(base, Mapping) and term.name in base:
            position = _position_of(part, base[term.name], term.name)
        if position is not None:
            shift = float(part["coefficient"].iloc[position])
            part["coefficient"] -= shift
            constant += shift
        parts.append(part)
    n_rows = max((int(table.rows.sum()) for table in terms.tables), default=0)
    last = {"term": "(intercept)", "category": None, "low": np.nan, "high": np.nan, "rows": n_rows}
    parts.append(pd.DataFrame([last | {"coefficient": constant}]))
    parts[-1]["category"] = pd.Series([None], dtype=object)
    return pd.concat(parts, ignore_index=True)


def _factor_of(terms: ModelTerms, term: TermRecord) -> LookupFactor | None:
    """The lookup that a term is; None for a coefficient of its own."""
    lookups = [factor for factor in term.lookups if terms.tables[factor.table].codings]
    if term.numbers:
        raise ValueError(
            f"The term {term.name!r} multiplies a number, and a scorecard has points for categories and bins; leave "
            "the number out, or fit with numeric='smooth' or 'quantile' (with 'modl' a number that is not informative "
            "on its own has a slope)."
        )
    if len(lookups) > 1:
        raise ValueError(f"The term {term.name!r} is a product, and the points of a scorecard add up; leave it out.")
    return lookups[0] if lookups else None


def _scalar(terms: ModelTerms, term: TermRecord) -> float:
    """What a term without columns adds, or the scalars that multiply its lookup."""
    tables = [(terms.tables[factor.table], factor.component) for factor in term.lookups]
    scalars = [table.values[0, component, 0] for table, component in tables if not table.codings]
    return float(np.prod(scalars))


def _part(terms: ModelTerms, term: TermRecord, factor: LookupFactor) -> pd.DataFrame:
    """The rows of a term."""
    table = terms.tables[factor.table]
    multiplier = term.constant * _scalar(terms, term)
    labels = [_labels(terms, coding, column) for coding, column in zip(table.codings, factor.columns, strict=True)]
    keys = [tuple(of[code] for of, code in zip(labels, codes, strict=True)) for codes in table.codes.tolist()]
    categories = [key[0] for key in keys] if len(labels) == 1 else keys
    coding = terms.codings[table.codings[0]]
    bounds = coding.bounds if len(labels) == 1 else None
    part = pd.DataFrame({
        "term": term.name, "category": pd.Series(object_array(categories), dtype=object), "low": np.nan, "high": np.nan,
        "rows": table.rows, "coefficient": multiplier * table.values[:, factor.component, 0],
    })  # fmt: skip
    if bounds is not None:
        part["low"], part["high"] = (ends[table.codes[:, 0]] for ends in edges(bounds, coding.missing))
        if coding.missing:  # every value has a bin
            return part
    default_row = part.iloc[:1].assign(low=np.nan, high=np.nan, rows=0)
    default_row["category"] = UNKNOWN if bounds is None else "Missing"
    default_row["coefficient"] = multiplier * float(table.default[factor.component, 0])
    return pd.concat([part, default_row], ignore_index=True)


def _labels(terms: ModelTerms, index: int, column: str) -> list[Any]:
    """The category, or the label of the bin, of each code."""
    coding = terms.codings[index]
    if coding.bounds is not None:
        measure = Measure("dates") if terms.columns.get(column, "").startswith("date") else NUMBERS
        return ["Missing"] * coding.missing + interval_labels(coding.bounds, measure=measure)
    assert coding.categories is not None
    categories = coding.categories.tolist()
    if UNKNOWN in categories:
        raise ValueError(f"Column {column!r} has a category {UNKNOWN!r}, as the scorecard has; rename it before fit.")
    return categories


def _position_of(part: pd.DataFrame, key: Any, term: str) -> int:
    """The row of a category, of a bin's label, or of the bin with a number."""
    is_number = isinstance(key, (int, float, np.number)) and not isinstance(key, bool)
    if is_number and part["low"].notna().any():
        indices = np.flatnonzero((part["low"] < key) & (key <= part["high"]))
    else:
        missing = key is None or bool(pd.isna(key))
        indices = np.flatnonzero([category is None if missing else category == key for category in part["category"]])
    if not len(indices):
        raise ValueError(f"base[{term!r}] is {key!r}, which is none of the categories of the term.")
    return int(indices[0])
