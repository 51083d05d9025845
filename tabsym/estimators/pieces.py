"""A model's blocks as Newton's method sees them: what rows select, what holds entries back, what lies within what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tabsym.estimators.beginning import Coded
from tabsym.wide.layout import Layout
from tabsym.wide.model import WideModel
from tabsym.wide.newton.pieces import Piece, Prior
from tabsym.wide.program import Rows as LaidRows
from tabsym.wide.sources import Bins, Crossing, Flag, Rarity, Source

_EMPTY = np.empty(0)


def pieces_of(model: WideModel, coded: Coded, rows: LaidRows) -> list[Piece]:
    """The blocks as the solver sees them, small ones first."""
    layout, numerics = model.layout, model.program.numerics
    pieces = []
    for constant, term in zip(model.units.constants, layout.learned, strict=True):
        factor = term.factors[0]
        x = _EMPTY
        if term.numeric is not None:
            x = constant * rows.x[:, numerics.index(term.numeric)]
        elif constant != 1.0:
            x = np.full(len(rows.y), constant)
        source = source_of(layout, factor.block)
        if source is None:
            codes = np.zeros(len(rows.y), dtype=np.int32)
        else:
            codes = np.ascontiguousarray(coded.codes[factor.read], dtype=np.int32)
        prior, apart = _prior(layout, factor.block)
        pieces.append(Piece(factor.block, codes, x, layout.sizes[factor.block], prior, apart))
    made_of = {piece.block: _made_of(layout, piece.block) for piece in pieces}
    whole = {piece.block for piece in pieces if not len(piece.x) and piece.codes.min(initial=0) >= 0}
    pieces = [replace(piece, within=_within(layout, piece, pieces, made_of, whole)) for piece in pieces]
    return sorted(pieces, key=lambda piece: (piece.prior is not Prior.FLAT, piece.size))


def _within(
    layout: Layout, piece: Piece, pieces: list[Piece], made_of: dict[int, frozenset[tuple[int, str]]], whole: set[int]
) -> dict[int, NDArray[np.int32]]:
    """The entries of other blocks that each entry of a cross lies within: of its columns, and of crosses of some.

    Of slopes by category, those of the same number that a coarser column selects. `whole`: the blocks of which every
    row has an entry, as it is.
    """
    if len(piece.x) and piece.prior is Prior.RIDGE:
        return _coarser_slopes(piece, pieces)
    if not isinstance(source_of(layout, piece.block), Crossing) or piece.block not in whole:
        return {}
    found: dict[int, NDArray[np.int32]] = {}
    a_row = np.zeros(piece.size, dtype=np.intp)  # of each entry
    a_row[piece.codes] = np.arange(len(piece.codes))
    for other in pieces:
        if other.block not in whole or not made_of[other.block] < made_of[piece.block]:
            continue
        if other.prior is Prior.RIDGE and not isinstance(source_of(layout, other.block), Rarity):
            found[other.block] = other.codes[a_row]
    return found


def _coarser_slopes(piece: Piece, pieces: list[Piece]) -> dict[int, NDArray[np.int32]]:
    """Slopes of the same number by a column that is a function of the piece's: those of cities and of regions."""
    found: dict[int, NDArray[np.int32]] = {}
    if piece.codes.min(initial=0) < 0:
        return found
    for other in pieces:
        if other.prior is not Prior.RIDGE or other.size >= piece.size or not np.array_equal(other.x, piece.x):
            continue
        above = np.zeros(piece.size, dtype=np.int32)
        above[piece.codes] = other.codes
        if other.codes.min(initial=0) >= 0 and np.array_equal(above[piece.codes], other.codes):
            found[other.block] = above
    return found


def _made_of(layout: Layout, block: int) -> frozenset[tuple[int, str]]:
    """The sources whose symbols an entry of a block stands for, each with its column: what decides about the entry."""

    def made(place: int, columns: tuple[str, ...]) -> frozenset[tuple[int, str]]:
        source = layout.sources[place]
        if isinstance(source, Crossing):
            return made(source.left, columns[:-1]) | made(source.right, columns[-1:])
        return frozenset({(place, columns[0])})

    place = layout.blocks[block].source
    return frozenset() if place is None else made(place, layout.blocks[block].columns)


def _prior(layout: Layout, place: int) -> tuple[Prior, int]:
    source = source_of(layout, place)
    if source is None or isinstance(source, Flag):
        return Prior.FLAT, 0
    apart = int(isinstance(source, Bins) and source.missing)
    if layout.blocks[place].ordered and len(source) - apart > 1:
        return Prior.WALK, apart
    return Prior.RIDGE, 0


def source_of(layout: Layout, place: int) -> Source | None:
    """The source of a block's codes; None for a scalar."""
    number = layout.blocks[place].source
    return None if number is None else layout.sources[number]
