"""Random formulas, and what they are worth: a tree that is read row by row, and never made into terms.

`random_formula` draws a tree and its text; `evaluate` reads the tree by hand with parameters laid out
as `coefs_` lays them out: by block, a frame indexed by symbol. Nothing here uses the package.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

FUNCTIONS = {"log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "exp": math.exp, "abs": abs}
CATEGORIES = {"a": list("klmnp"), "b": list("klmnp"), "c": ["red", "green", "blue", None]}


class Node:
    """Arithmetic on trees builds trees."""

    def __add__(self, other):
        return Binary("+", self, node(other))

    def __radd__(self, other):
        return Binary("+", node(other), self)

    def __sub__(self, other):
        return Binary("-", self, node(other))

    def __rsub__(self, other):
        return Binary("-", node(other), self)

    def __mul__(self, other):
        return Binary("*", self, node(other))

    def __rmul__(self, other):
        return Binary("*", node(other), self)

    def __truediv__(self, other):
        return Binary("/", self, node(other))

    def __pow__(self, other):
        return Binary("**", self, node(other))

    def __str__(self):
        return text_of(self)


@dataclass(frozen=True)
class Number(Node):
    value: float


@dataclass(frozen=True)
class Column(Node):
    name: str


@dataclass(frozen=True)
class Function(Node):
    name: str
    inside: Node


@dataclass(frozen=True)
class Block(Node):
    """`name[columns]`, or `name[1]` without columns; `rank` numbers for each symbol inside a dot."""

    name: str
    columns: tuple[str, ...] = ()
    rank: int | None = None


@dataclass(frozen=True)
class Dot(Node):
    left: Block
    right: Block


@dataclass(frozen=True)
class Binary(Node):
    sign: str
    left: Node
    right: Node


def node(thing):
    return thing if isinstance(thing, Node) else Number(float(thing))


# -- text -----------------------------------------------------------------------------


def text_of(tree):
    """The formula as a person writes it."""
    match tree:
        case Number(value):
            return f"{value:g}"
        case Column(name):
            return name
        case Function(name, inside):
            return f"{name}({text_of(inside)})"
        case Block(name, columns):
            return f"{name}[{', '.join(columns) or 1}]"
        case Dot(left, right):
            return f"dot({text_of(left)}, {text_of(right)}, rank={left.rank})"
        case Binary("+", left, right):
            return f"{text_of(left)} + {text_of(right)}"
        case Binary("-", left, right):
            return f"{text_of(left)} - {_closed(right)}"
        case Binary(sign, left, right):
            return f"{_closed(left)}{'**' if sign == '**' else f' {sign} '}{_closed(right)}"
    raise TypeError(tree)


def _closed(tree):
    text = text_of(tree)
    return f"({text})" if isinstance(tree, Binary) or text.startswith("-") else text


# -- what is in a tree ----------------------------------------------------------------


def walk(tree):
    """All nodes, from the left."""
    yield tree
    for part in ("left", "right", "inside"):
        if hasattr(tree, part):
            yield from walk(getattr(tree, part))


def blocks_of(tree):
    """The reads of each block: name -> list of `Block`."""
    found = {}
    for part in walk(tree):
        if isinstance(part, Block):
            found.setdefault(part.name, []).append(part)
    return found


def _is_learned(tree):
    return any(isinstance(part, Block) for part in walk(tree))


def factors_of(tree):
    """Names of the blocks that stand in a product with other blocks."""
    names = set()
    for part in walk(tree):
        product = isinstance(part, Binary) and part.sign == "*" and _is_learned(part.left) and _is_learned(part.right)
        if product or (isinstance(part, Binary) and part.sign == "**" and _is_learned(part.left)):
            names |= set(blocks_of(part))
    return names


# -- reading by hand ------------------------------------------------------------------


def plain(value):
    """Missing values as None, so that they can be looked up."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else value


def key_of(values):
    values = tuple(plain(value) for value in values)
    return values if len(values) > 1 else values[0]


def lookup(frame, column):
    """Symbol(s) -> number(s) of one block: a number, or an array for latent vectors."""
    if column not in frame.columns:
        names = [name for name in frame.columns if re.fullmatch(rf"{re.escape(column)} \d+", name)]
        numbers = list(frame[sorted(names, key=lambda name: int(name.split()[-1]))].to_numpy(dtype=float))
    else:
        numbers = frame[column].tolist()
    keys = [key_of(key if isinstance(key, tuple) else (key,)) for key in frame.index]
    return dict(zip(keys, numbers))


def evaluate(tree, params, table, column="value"):
    """The formula read with these parameters, one score per row. A symbol that has no parameter is a KeyError."""
    params = multiplied(params)
    tables = {name: lookup(params[name], column) for name in blocks_of(tree)}
    return np.array([_worth(tree, row, tables) for row in table.to_dict("records")])


def multiplied(params):
    """Coefficients whose products are read as they are: the first factor takes the scale of its term."""
    found = dict(params)
    for name in [name for name in found if name.startswith("scale of ")]:
        first = name.removeprefix("scale of ").split("*")[0]
        scale = found.pop(name).iloc[0]  # a column for each class
        found[first] = found[first].assign(**{column: found[first][column] * scale[column] for column in scale.index})
    return found


def _worth(tree, row, tables):
    match tree:
        case Number(value):
            return value
        case Column(name):
            return row[name]
        case Function(name, inside):
            return FUNCTIONS[name](_worth(inside, row, tables))
        case Block(name, ()):
            (value,) = tables[name].values()
            return value
        case Block(name, columns):
            return tables[name][key_of(row[column] for column in columns)]
        case Dot(left, right):
            return float(sum(_worth(left, row, tables) * _worth(right, row, tables)))
    left, right = _worth(tree.left, row, tables), _worth(tree.right, row, tables)
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "**": lambda: left**right,
    }[tree.sign]()


# -- parameters -----------------------------------------------------------------------


def draw_params(tree, table, rng):
    """Parameters of a formula for the symbols of a table, laid out as `coefs_` are, about 1 for factors of products
    and about 0 for the parts of sums."""
    factors, params = factors_of(tree), {}
    for name, reads in blocks_of(tree).items():
        keys = list(dict.fromkeys(key for read in reads for key in _keys(read, table)))
        shape = (len(keys), reads[0].rank or 1)
        values = rng.lognormal(0.0, 0.3, shape) if name in factors else rng.normal(0.0, 1.0, shape)
        params[name] = _frame(name, keys, reads[0], values)
    return params


def _keys(read, table):
    if not read.columns:
        return [read.name]
    return [key_of(row) for row in table[list(read.columns)].itertuples(index=False, name=None)]


def _frame(name, keys, read, values):
    columns = ["value"] if read.rank is None else [f"value {part + 1}" for part in range(read.rank)]
    index = pd.MultiIndex.from_tuples(keys) if len(read.columns) > 1 else pd.Index(keys, dtype=object, name=name)
    return pd.DataFrame(values, index=index, columns=columns)


def disturb(params, rng, share=0.1):
    """Every number moved by about `share` of itself, and a little more."""
    return {
        name: frame * (1 + share * rng.choice([-1, 1], frame.shape)) + 0.3 * share * rng.normal(size=frame.shape)
        for name, frame in params.items()
    }


# -- tables and formulas by chance ----------------------------------------------------


def random_table(rng, n=150, x_scale=1.0):
    """Symbols a, b (of one alphabet) and c (with missing ones), positive numbers x and z."""
    columns = {name: rng.choice(np.array(values, dtype=object), n) for name, values in CATEGORIES.items()}
    return pd.DataFrame({**columns, "x": x_scale * rng.uniform(0.3, 1.7, n), "z": rng.gamma(3.0, 0.3, n) + 0.1})


X, Z = Column("x"), Column("z")


class Namer:
    """Gives out blocks; now and then one that another piece of the formula reads already."""

    def __init__(self, rng):
        self.rng, self.made, self.shared = rng, [], False

    def __call__(self, letter, kind=1, rank=None):
        fitting = [name for name, made in self.made if made == (kind, rank)]
        if fitting and self.rng.random() < 0.2:
            self.shared, name = True, str(self.rng.choice(fitting))
        else:
            name = f"{letter}{len(self.made)}"
            self.made.append((name, (kind, rank)))
        return lambda *columns: Block(name, columns, rank)

    def number(self):
        return float(self.rng.choice([0.3, 0.7, 1.9, 2.5]))

    def columns(self, size):
        return tuple(self.rng.choice(["a", "b", "c"], size, replace=False).tolist())

    def numeric(self):
        return [X, Z, Function("log1p", X), X / (1 + Z), X + Z, 2.5 * X, Function("sqrt", Z), X * Z][
            self.rng.integers(8)
        ]


def _difference(new):
    w = new("w")
    return w("a") - w("b")


def _sum_of_columns(new):
    return new("w")(*new.columns(1)) * (X + Z)


def _one_and_column(new):
    return new("w")(*new.columns(1)) * (1 + X)


def _level_and_slope(new):
    w, column = new("w"), new.columns(1)
    return w(*column) + w(*column) * Z


def _scalar_level_and_slope(new):
    t = new("t", kind=0)
    return t() + t() * Z


def _product_of_sums(new):
    return (1 + new("w")("a")) * (1 + new("v")("b"))


def _product(new):
    return new("g")("a") * new("m")(*new.columns(1)) * X


def _slope(new):
    return new("w")(*new.columns(1)) * new.numeric()


def _level(new):
    return new("w")(*new.columns(1))


def _scalar_slope(new):
    return new("t", kind=0)() * new.numeric()


def _number_times(new):
    return new.number() * new("w")(*new.columns(1)) * new.numeric()


def _square(new):
    return (new("w")("a") + 1) ** 2


def _pair(new):
    return new("s", kind=2)("a", "b")


def _pair_slope(new):
    return new("s", kind=2)("b", "c") * X


def _dot(new):
    return Dot(new("u", rank=2)("a"), new("q", rank=2)("b"))


def _dot_slope(new):
    return new.number() * Dot(new("u", rank=2)("b"), new("q", rank=2)("c")) * Z


def _scaled_difference(new):
    w, t = new("w"), new("t", kind=0)
    return t() * (w("a") - 0.5 * w("b") + 2)


def _nested(new):
    return (new("w")("a") * X + new("v")("b") - 1) * (new("g")("c") + new.numeric())


PIECES = [_difference, _sum_of_columns, _one_and_column, _level_and_slope, _scalar_level_and_slope, _product_of_sums,
          _product, _slope, _level, _scalar_slope, _number_times, _square, _pair, _pair_slope, _dot, _dot_slope,
          _scaled_difference, _nested]  # fmt: skip
ADDITIVE = [_difference, _slope, _level, _scalar_slope, _number_times, _pair, _pair_slope, _level_and_slope]


def random_formula(rng, *, intercept=None, pieces=PIECES, fixed=None):
    """A sum of one to three pieces, at times with a lone scalar `c[1]` and a term that is not learned."""
    new = Namer(rng)
    tree = None
    for make in rng.choice(np.array(pieces, dtype=object), rng.integers(1, 4)):
        new.shared = False
        piece = make(new)
        if new.shared:  # a factor that cannot cancel what another piece holds
            piece = 0.83 * piece
        tree = piece if tree is None else tree + piece
    if rng.random() < 0.3 if fixed is None else fixed:
        tree = tree + 3 * Z
    if rng.random() < 0.6 if intercept is None else intercept:
        tree = tree + Block("c0")
    return tree


def has_lone_scalar(tree):
    """Whether `c0[1]` was added."""
    return "c0" in blocks_of(tree)


TERMS = {  # of a formula: what multiplies the numbers of a block, and by which symbols they go, if any
    "a[s]": ("a", "s", lambda X: 1.0),
    "3*c[t]": ("c", "t", lambda X: 3.0),
    "w[s]*x": ("w", "s", lambda X: X["x"]),
    "-2*v[t]*x*z": ("v", "t", lambda X: -2.0 * X["x"] * X["z"]),
    "u[s, t]": ("u", ("s", "t"), lambda X: 1.0),
    "d[1]*x": ("d", None, lambda X: X["x"]),
    "e[1]*z": ("e", None, lambda X: X["z"]),
    "b[1]": ("b", None, lambda X: 1.0),
}

TAKES_UP = {"a": "b", "c": "b", "u": "b", "w": "d"}
"""The common coefficient beside which a block is about its mean, if the formula has it."""
