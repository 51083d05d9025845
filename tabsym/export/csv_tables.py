"""`to_csv`: a file a term, with what the sheets of `to_excel` have."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabsym.export.excel_tables import TermLines, names_of_outputs, title
from tabsym.export.terms import terms_of
from tabsym.models.records import LookupFactor


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
        A part of the model has no place in a file, in a sentence that names it.

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
    for place, factor in enumerate(factors.values(), 1):
        name = re.sub('[<>|"]', "_", title(f"{place} {terms.tables[factor.table].name}"))
        tables[f"{name}.csv"] = list(TermLines(terms, factor, names_of_outputs(terms), with_formulas=False))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
    return [folder / name for name in tables]
