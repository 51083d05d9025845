"""What a fitted column knows: its categories, and the output column in which the one of each is."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, Categories, RawCodes
from tabsym.codes.coding import plain_symbols
from tabsym.encoders.base import codes_in
from tabsym.encoders.onehot.options import Options
from tabsym.encoders.onehot.rare import find_rare

ZEROS, NANS = -1, -2
"""Places of rows that have no one: all zeros, or all NaN."""


@dataclass(frozen=True)
class OneHotColumn:
    """State of one column.

    Attributes
    ----------
    alphabet : Categories
        All categories, those without an output column of their own too.
    names : list of str
        Output columns: of categories in code order, of the rare ones together, then the flags. Unique over all columns
        after `with_unique_names`.
    place_of : (M,)
        The output column of each category; ZEROS for what was dropped.
    missing_place, unknown_place : int
        The output column of a missing value that is no category, and of an unknown one; or ZEROS, or NANS.
    symbol_of : (outputs,)
        The code that each output column stands for on the way back; UNSEEN for flags.
    dropped : int
        The code that a row of zeros stands for, UNSEEN where nothing was dropped.
    rare : (R,)
        Codes of the categories that share an output column.
    """

    alphabet: Categories
    names: list[str]
    place_of: NDArray[np.int32]
    missing_place: int
    unknown_place: int
    symbol_of: NDArray[np.int64]
    dropped: int
    rare: NDArray[np.int64]

    @property
    def n_symbol_columns(self) -> int:
        """Output columns that are no flags, which come first."""
        return int((self.symbol_of != UNSEEN).sum())

    def places(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """The output column of each row's one (n,), ZEROS or NANS."""
        table = np.append(self.place_of, [self.missing_place, self.unknown_place]).astype(np.int32)
        return np.asarray(table[codes])  # MISSING, -2, and UNSEEN, -1, read the last two

    def symbols_at(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """The categories (n,) for which places stand; None where that is not known."""
        codes = np.append(self.symbol_of, [UNSEEN, self.dropped])[places]  # NANS and ZEROS read the last two
        return self.alphabet.inverse(codes)


def learn_column(name: str, raw: RawCodes, weight: NDArray[np.float64] | None, options: Options) -> OneHotColumn:
    """The state of a column from its codes, and from the weights of its rows, all 1 if None."""
    alphabet, codes = _alphabet(name, raw, options)
    counts = np.bincount(codes[codes >= 0], None if weight is None else weight[codes >= 0], minlength=len(alphabet))
    n_rows = len(codes) if weight is None else float(weight.sum())
    rare = find_rare(counts, n_rows, alphabet.missing_code, options.rare)
    group_of, labels, symbol_of = _group(alphabet, counts, rare, options)
    drop = _dropped_group(name, alphabet, group_of, options)
    kept = [group for group in range(len(labels)) if group != drop]
    place_of = np.append(np.full(len(labels), ZEROS), ZEROS)
    place_of[kept] = np.arange(len(kept))
    labels = [labels[group] for group in kept]
    unknown_place = missing_place = ZEROS
    if options.unknown == "return_nan":
        unknown_place = NANS
    elif options.unknown == "rare" and len(rare):
        unknown_place = int(place_of[group_of[rare[0]]])
    if options.handle_missing == "return_nan":
        missing_place = NANS
    flags = []
    if options.handle_missing == "indicator":
        missing_place = len(kept)
        flags.append("nan" if options.by_symbol else "-2")
    if options.unknown == "indicator":
        unknown_place = len(kept) + len(flags)
        flags.append("-1")
    names = [options.combine(name, label) for label in [*labels, *flags]]
    return OneHotColumn(
        alphabet, names, place_of[group_of].astype(np.int32), missing_place, unknown_place,
        np.append(symbol_of[kept], np.full(len(flags), UNSEEN)).astype(np.int64),
        UNSEEN if drop is None else int(symbol_of[drop]), rare,
    )  # fmt: skip


def constant_names(state: OneHotColumn, raw: RawCodes) -> list[str]:
    """Output columns that are the same in all rows, found by counting."""
    places = state.places(codes_in(state.alphabet, raw))
    if (places == NANS).any():
        return []
    ones = np.bincount(places[places >= 0], minlength=len(state.names))
    return [state.names[place] for place in np.flatnonzero((ones == 0) | (ones == len(places)))]


def _alphabet(name: str, raw: RawCodes, options: Options) -> tuple[Categories, NDArray[np.int32]]:
    """The categories asked for, or those that occur, and each row's code; missing is one under "value" only."""
    own_missing = options.handle_missing == "value"
    given = options.categories.get(name)
    if given is None:
        present = raw.codes if own_missing else raw.codes[raw.codes >= 0]
        alphabet, _ = Categories.fit(name, RawCodes(present, raw.symbols))
        return alphabet, alphabet.transform(raw)
    alphabet = Categories(name, _given_symbols(name, given, own_missing))
    try:
        codes = alphabet.transform(raw)
    except TypeError:
        raise TypeError(
            f"categories of column {name!r} hold values such as {alphabet.symbols[0]!r} and the column such as "
            f"{raw.symbols[0]!r}; give categories of the column's type."
        ) from None
    unknown = (codes == UNSEEN) & (raw.codes >= 0)
    if options.unknown == "error" and unknown.any():
        value = raw.symbols[raw.codes[np.argmax(unknown)]]
        raise ValueError(
            f"Column {name!r} holds {value!r} (row {int(np.argmax(unknown))}), which is not among its categories; "
            "add it to them, or set handle_unknown to something other than 'error'."
        )
    return alphabet, codes


def _given_symbols(name: str, given: list[Any], own_missing: bool) -> NDArray[Any]:
    if not all(isinstance(one, Hashable) for one in given):
        raise TypeError(f"categories of column {name!r} hold nested values; give a list of categories for each column.")
    symbols = plain_symbols([None if pd.api.types.is_scalar(one) and pd.isna(one) else one for one in given])
    if len(set(symbols.tolist())) < len(symbols):
        raise ValueError(f"categories of column {name!r} hold a value twice; name each once.")
    if None in symbols.tolist() and not own_missing:
        raise ValueError(
            f"categories of column {name!r} hold a missing value, which is a category under handle_missing='value' "
            "only; leave it out, or set handle_missing='value'."
        )
    return symbols


def _group(
    alphabet: Categories, counts: NDArray[Any], rare: NDArray[np.int64], options: Options
) -> tuple[NDArray[np.int64], list[Any], NDArray[np.int64]]:
    """The group of each category, each group's label and the category it stands for: the rare ones last, together."""
    common = np.setdiff1d(np.arange(len(alphabet)), rare)
    group_of = np.full(len(alphabet), len(common))
    group_of[common] = np.arange(len(common))
    labels: list[Any] = alphabet.symbols[common].tolist()
    symbol_of = common
    if len(rare):
        labels.append(options.rare.name_of(alphabet.symbols[rare]))
        symbol_of = np.append(common, rare[np.argmax(counts[rare])])
    if not options.by_symbol:
        labels = [str(place + 1) for place in range(len(labels))]
    return group_of, labels, symbol_of


def _dropped_group(name: str, alphabet: Categories, group_of: NDArray[np.int64], options: Options) -> int | None:
    n_groups = int(group_of.max()) + 1 if len(group_of) else 0
    if isinstance(options.drop, str):
        return 0 if n_groups and (options.drop == "first" or n_groups == 2) else None
    if options.drop is None or name not in options.drop:
        return None
    value = options.drop[name]
    code = next((code for code, symbol in enumerate(alphabet.symbols.tolist()) if symbol == value), None)
    if code is None:
        raise ValueError(f"drop names {value!r} of column {name!r}, which is none of its categories; drop one that is.")
    if (group_of == group_of[code]).sum() > 1:
        raise ValueError(
            f"drop names {value!r} of column {name!r}, which is among its infrequent categories; drop another one, or "
            "do not group it."
        )
    return int(group_of[code])


def with_unique_names(states: dict[str, OneHotColumn]) -> dict[str, OneHotColumn]:
    """The columns with category_encoders' way of naming outputs whose names clash: by trailing #."""
    taken: set[str] = set()
    out = {}
    for name, state in states.items():
        names = []
        for new in state.names:
            while new in taken:
                new += "#"  # noqa: PLW2901
            taken.add(new)
            names.append(new)
        out[name] = replace(state, names=names)
    return out
