"""The formula language: text to a syntax tree, and the tree to a sum of products, with errors that show the position.

In the sum parentheses are expanded, like terms collected and semantics checked. A monomial has a constant, numeric
factors (columns and functions of them) and coefficient factors (coefficients of blocks).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, cast

import numpy as np
from numpy.typing import NDArray

FUNCTIONS = {
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "abs": np.abs,
}
"""Functions that a formula can apply to numeric columns."""
_CURVE = "write s(x) for a smooth curve of a number x"
_SURFACE = "write te(x, z) for a surface of two numbers"
_NUMBER = "write the number itself, less a number near its mean where that is far from 0: (x - 5)"
_FACTOR = "write w[NAME] for a coefficient of each category"
_ELSEWHERE = {
    "offset": "give the offset as offset_column='NAME', or exposure_column='NAME' for the logarithm of an exposure",
    "C": "a category has coefficients where they are named: write b[NAME] for C(NAME)",
    "I": "write the product or the power itself, without I()",
    "Q": "write the name in backquotes",
    "factor": _FACTOR,
    "as.factor": _FACTOR,
    "ln": "write log(x)",
    "pow": "write x**2 for a power",
    "poly": f"write s[1]*x + q[1]*x**2 for a polynomial, or {_CURVE.removeprefix('write ')}",
    **dict.fromkeys(("bs", "ns", "cr", "cc", "lo"), _CURVE),
    **dict.fromkeys(("ti", "t2"), _SURFACE),
    **dict.fromkeys(("center", "scale", "standardize"), _NUMBER),
}
"""Functions of other formula languages, and what to write here instead."""


class FormulaError(ValueError):
    """Syntax error in a formula; the message marks the position."""

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(f"{message}\n    {text}\n    {' ' * at}^")


@dataclass(frozen=True)
class NumberLiteral:
    value: float
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class ColumnRef:
    """A numeric column."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class BlockRef:
    """A coefficient of a block, indexed by the categories of `columns` (empty for a scalar). `component`: index within
    a latent vector. `smooth`: those of its columns that are numbers with bins, as `s(x)` and `te(x, z)` say.
    """

    block: str
    columns: tuple[str, ...]
    component: int = 0
    rank: int = 1
    at: int = field(default=0, compare=False)
    smooth: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    function: str
    argument: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Dot:
    """The inner product of two latent vectors, `rank` components each."""

    left: BlockRef
    right: BlockRef
    rank: int
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Binary:
    """`operator` is one of ``+ - * / **``; the exponent is an integer `NumberLiteral`."""

    operator: str
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


Node = NumberLiteral | ColumnRef | BlockRef | Call | Dot | Binary


@dataclass(frozen=True)
class Formula:
    """A parsed formula: `target` is the column before ``~``, or None.

    `correlated`: texts of random effects that lme4 would take as correlated, ``(x | g)``.
    """

    text: str
    target: str | None
    root: Node
    correlated: tuple[str, ...] = ()


MAX_POWER = 8


@dataclass(frozen=True)
class Token:
    kind: str  # number, name, quoted, sign, end
    text: str
    at: int


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|`(?P<quoted>[^`]*)`"
    r"|(?P<sign>\*\*|\|\|?|[-+*/()\[\],~=:]))"
)


def parse(text: str) -> Formula:
    """Parse a formula.

    Parameters
    ----------
    text : str

    Returns
    -------
    Formula

    Raises
    ------
    FormulaError
        With the position in the text.

    Examples
    --------
    >>> formula = parse("tips ~ gamma[taxi] * distance + b[1]")
    >>> formula.target, formula.root.operator
    ('tips', '+')
    """
    tokens = _tokens(text)
    signs = [token for token in tokens if token.text == "~" and token.kind == "sign"]
    if signs and tokens[0] is signs[0]:
        raise FormulaError("Left of '~' stands the target; add it, or leave '~' out and pass y.", text, signs[0].at)
    if len(signs) > 1:
        raise FormulaError("A formula has one '~', between the target and the score.", text, signs[1].at)
    target = None
    if signs:
        if len(tokens) < 2 or tokens[1] is not signs[0] or tokens[0].kind not in ("name", "quoted"):
            raise FormulaError(_ONE_TARGET, text, tokens[0].at)
        target = tokens[0].text
        tokens = tokens[2:]
    try:
        parser = _Parser(text, tokens)
        return Formula(text, target, parser.formula(), tuple(parser.correlated))
    except RecursionError:
        raise FormulaError("Parentheses are nested too deeply; simplify the formula.", text, 0) from None


_ONE_TARGET = "The left side of '~' must be one column, the target; transform it beforehand."
_COMPARED = "; make a column of the comparison beforehand"
_HINTS = {
    "^": "; write ** for a power",
    "{": "; write parentheses in place of braces",
    "%": "; R's a %in% b is w[a, b] here, and names with such signs go in backquotes",
    **dict.fromkeys("<>!=", _COMPARED),
    "`": "; close the backquote",
    "|": "; random effects stand in parentheses, (1 | g) or (x || g), and names with such signs go in backquotes",
    "||": "; random effects stand in parentheses, (x || g), and names with such signs go in backquotes",
    ":": "; R's a:b is w[a, b] here, x:a is v[a] * x, and names with such signs go in backquotes",
}


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            if re.match(r"\.\w+\s*\(.*~", text[at:]) and all(token.text != "~" for token in tokens):  # np.log(y) ~ ...
                raise FormulaError(_ONE_TARGET, text, 0)
            raise FormulaError(f"{text[at]!r} is not understood{_hint(text, at)}.", text, at)
        kind = str(match.lastgroup)
        start = match.start(kind) - (1 if kind == "quoted" else 0)
        tokens.append(Token(kind, match.group(kind), start))
        at = match.end()
    return [*tokens, Token("end", "", len(text.rstrip()))]


_MODULES = ("np", "numpy", "math")


def _hint(text: str, at: int) -> str:
    """What to write in place of a sign that is none of formulas, by what stands around it."""
    before, sign = text[:at], text[at]
    if sign == ".":
        left, right = re.search(r"(\w*)$", before), re.match(r"\.(\w+)\s*\(", text[at:])
        module = left.group(1) if left else ""
        if right is not None and module:
            name, whole = right.group(1), f"{module}.{right.group(1)}"
            if name in FUNCTIONS:
                return f"; write {name}(x) for {whole}(x)" if module in _MODULES else f"; write {name}({module})"
            known = f"there are {', '.join(FUNCTIONS)}; make a column of {whole}() beforehand"
            return f"; {_ELSEWHERE.get(whole, known)}"
        if not module:
            return "; name the columns, '.' does not stand for all others"
    if sign in "'\"":
        call = re.search(r"(\w+)\s*\([^()]*$", before)
        option = re.search(r"(\w+)\s*=\s*$", before)
        if option is not None and option.group(1) not in ("by", "rank"):
            group = re.search(r"\bs\(\s*(\w+)\s*,\s*bs\s*=\s*$", before) if text[at + 1 : at + 3] == "re" else None
            if group is not None:
                return f"; random effects are (1 | {group.group(1)})"
            return f"; leave {option.group(1)}= out, which no term takes"
        outer = [name for name in re.findall(r"(\w+)\s*\(", before) if name in _ELSEWHERE]
        if outer:
            return f"; {_ELSEWHERE[outer[-1]]}"
        if call is None or call.group(1) in ("s", "te", *FUNCTIONS):
            return "; names of columns stand without quotes, or in backquotes"
    return _HINTS.get(sign, "; put names with such signs in backquotes")


class _Parser:
    """Recursive-descent parser over the tokens, one method per grammar rule."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0
        self.effects: set[str] = set()  # names of the random effects so far
        self.correlated: list[str] = []  # the text of those of a single bar that are several
        self.curves: dict[str, int] = {}  # numbers of te(x, z) and s(x, by=g), and where these are

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise FormulaError(message, self.text, self.token.at if at is None else at)

    def is_next(self, *signs: str) -> bool:
        return self.token.kind == "sign" and self.token.text in signs

    def take(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def expect(self, sign: str, why: str) -> Token:
        if not self.is_next(sign):
            self.fail(f"Expected {sign!r} {why}, found {_shown(self.token)}.")
        return self.take()

    def refuse_expression(self, name: str, expected: str, why: str, what: str) -> None:
        """Where a column alone can stand, and a function or product of it begins: a message with the remedy."""
        if not self.is_next("(", "+", "-", "*", "/", "**"):
            return
        message = f"Expected {expected!r} {why}, found {_shown(self.token)}"
        if self.is_next("("):
            if name in ("C", "factor"):
                inner = self.tokens[self.index + 1].text
                self.fail(f"{message}; write {inner} for {name}({inner}).")
            self.fail(f"{message}; {what}: make a column of {name}(...) beforehand, and name that.")
        if what.startswith("brackets") and self.is_next("*"):
            self.fail(f"{message}; {what}: write w[a, b] for w[a * b].")
        self.fail(f"{message}; {what}: make a column of the expression beforehand, and name that.")

    def formula(self) -> Node:
        root = self.sum()
        if self.token.kind != "end":
            self.fail(f"Expected an operator (+ - * / **) or the end, found {_shown(self.token)}.")
        # surfaces and curves by category vary about the curves s(x), which are added where the formula has them not
        present = {node.block for node in walk(root) if isinstance(node, BlockRef)}
        for name, at in self.curves.items():
            if f"s({name})" not in present:
                root = Binary("+", root, _curve(name, at), at)
        return root

    def sum(self) -> Node:
        node = self.product()
        while self.is_next("+", "-"):
            sign = self.take()
            node = Binary(sign.text, node, self.product(), sign.at)
        return node

    def product(self) -> Node:
        node = self.signed()
        while self.is_next("*", "/"):
            sign = self.take()
            node = Binary(sign.text, node, self.signed(), sign.at)
        return node

    def signed(self) -> Node:
        if self.is_next("+"):
            self.take()
            return self.signed()
        if self.is_next("-"):
            sign = self.take()
            return Binary("*", NumberLiteral(-1.0, sign.at), self.signed(), sign.at)
        return self.power()

    def power(self) -> Node:
        node = self.atom()
        if not self.is_next("**"):
            return node
        sign = self.take()
        token = self.token
        if token.kind != "number" or not token.text.isdigit() or not 1 <= int(token.text) <= MAX_POWER:
            self.fail(f"The exponent after '**' must be a whole number from 1 to {MAX_POWER}, found {_shown(token)}.")
        self.take()
        return Binary("**", node, NumberLiteral(float(token.text), token.at), sign.at)

    def atom(self) -> Node:
        """Parse a number, column, block, call or parenthesis."""
        token = self.take()
        if token.kind == "number":
            return NumberLiteral(float(token.text), token.at)
        if token.kind == "quoted":
            return ColumnRef(token.text, token.at)
        if token.kind == "name":
            return self.named(token)
        if token.kind == "sign" and token.text == "(":
            if self.has_bar():
                return self.random_effects(token)
            node = self.sum()
            self.expect(")", "to close the parenthesis")
            return node
        self.fail(f"Expected a column, a term such as w[column], a number or '(', found {_shown(token)}.", token.at)

    def named(self, token: Token) -> Node:
        """Parse what starts with a name: a block, a function call or a column."""
        if self.is_next("["):
            return BlockRef(token.text, self.subscript(), at=token.at)
        if not self.is_next("("):
            return ColumnRef(token.text, token.at)
        if token.text == "dot":
            return self.dot(token)
        if token.text == "s":
            return self.smooth(token)
        if token.text == "te":
            return self.surface(token)
        if token.text not in FUNCTIONS:
            known = f"there are {', '.join(FUNCTIONS)}, s, te and dot"
            self.fail(f"There is no function {token.text!r}; {_ELSEWHERE.get(token.text, known)}.", token.at)
        self.take()
        argument = self.sum()
        self.expect(")", f"to close {token.text}(")
        return Call(token.text, argument, token.at)

    def smooth(self, token: Token) -> Node:
        """Parse a smooth effect of a number, ``s(x)``, or one for each category of g, ``s(x, by=g)``."""
        self.take()
        name = self.column("in s()")
        self.refuse_expression(name, ")", "to close s(", "s() takes the name of a column")
        if not self.is_next(","):
            self.expect(")", "to close s(")
            return _curve(name, token.at)
        self.take()
        if self.token.text != "by":
            self.refuse_option("s()", "by= and a categorical column")
            self.fail(
                f"s({name}) also takes by= and a categorical column, found {_shown(self.token)}; a surface of two "
                f"numbers is te({name}, z)."
            )
        self.take()
        self.expect("=", "after by")
        group = self.column("after by=")
        self.expect(")", "to close s(")
        self.refuse_same(name, group, token)
        self.curves.setdefault(name, token.at)
        return BlockRef(f"s({name}, by={group})", (group, name), smooth=(name,), at=token.at)

    def refuse_option(self, function: str, known: str) -> None:
        """Refuse options of other packages' smooth terms, such as k=10."""
        after = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if self.token.kind == "name" and after.text == "=":
            name = self.token.text
            self.fail(f"{function} has no option {name}=; leave it out: {function} takes {known}, and how smooth it is "
                      "is estimated.")  # fmt: skip

    def surface(self, token: Token) -> Node:
        """Parse a surface of two numbers, ``te(x, z)``."""
        self.take()
        names = [self.column("in te()")]
        self.refuse_expression(names[0], ",", "between the two numbers of te()", "te() takes names of columns")
        self.expect(",", "between the two numbers of te()")
        names.append(self.column("in te()"))
        self.refuse_expression(names[1], ")", "to close te(", "te() takes names of columns")
        if self.is_next(","):
            self.take()
            self.refuse_option("te()", "two columns")
            self.index -= 1
            self.fail(
                "te() takes two numbers; add further ones as te(x, v) + te(z, v), or s(x, by=g) for categories g."
            )
        self.expect(")", "to close te(")
        self.refuse_same(names[0], names[1], token)
        for name in names:
            self.curves.setdefault(name, token.at)
        return BlockRef(f"te({', '.join(names)})", tuple(names), smooth=tuple(names), at=token.at)

    def refuse_same(self, name: str, second: str, token: Token) -> None:
        if name == second:
            self.fail(f"{token.text}() names {name!r} twice; write s({name}).", token.at)

    def has_bar(self) -> bool:
        """Whether the parenthesis that was just opened has a bar of its own, and so holds random effects."""
        depth = 0
        for token in self.tokens[self.index :]:
            if token.kind != "sign":
                continue
            if depth == 0 and token.text in ("|", "||"):
                return True
            depth += (token.text in "([") - (token.text in ")]")
            if depth < 0:
                return False
        return False

    def random_effects(self, opened: Token) -> Node:
        """Parse lme4's ``(1 + x || g)``: an intercept and a slope for each category of g, independent of each other."""
        factors = [self.effect()]
        while self.is_next("+"):
            self.take()
            factors.append(self.effect())
        if not self.is_next("|", "||"):
            self.fail(
                f"Left of the bar stand 1, 0 and numeric columns, joined by +, found {_shown(self.token)}; write "
                "(0 + x || g) for (x - 1 || g)."
            )
        is_single = self.take().text == "|"
        groups = [self.group()]
        while self.is_next("/"):  # (1 | a/b): a, and b within a
            self.take()
            groups.append((*groups[-1], *self.group()))
        self.expect(")", "to close the random effects")
        known = [node.value for _, node in factors if isinstance(node, NumberLiteral)]
        wrong = next((value for value in known if value not in (0.0, 1.0)), None)
        if wrong is not None:
            self.fail(f"Left of the bar use 1, 0 or numeric columns, found {wrong:g}.", opened.at)
        if not known:
            factors.insert(0, ("1", NumberLiteral(1.0, opened.at)))  # (x | g) has intercepts too
        factors = [(label, node) for label, node in factors if not isinstance(node, NumberLiteral) or node.value == 1.0]
        if is_single and len(factors) > 1:
            self.correlated.append(self.text[opened.at : self.tokens[self.index - 1].at + 1])
        nodes: list[Node] = []
        for columns in groups:
            for label, node in factors:
                name = f"{label} | {':'.join(columns)}"
                if name in self.effects:
                    self.fail(
                        f"({name}) is there twice; leave one out, and write (0 + x | g) for slopes alone.", opened.at
                    )
                self.effects.add(name)
                effect: Node = BlockRef(name, columns, at=opened.at)
                nodes.append(effect if isinstance(node, NumberLiteral) else Binary("*", effect, node, opened.at))
        if not nodes:
            self.fail("These random effects have neither intercepts nor slopes; write (1 | g) or (x || g).", opened.at)
        root = nodes[0]
        for node in nodes[1:]:
            root = Binary("+", root, node, opened.at)
        return root

    def effect(self) -> tuple[str, Node]:
        """Parse what an effect multiplies, and its text."""
        start = self.token.at
        node = self.product()
        if any(isinstance(part, (BlockRef, Dot)) for part in walk(node)):
            self.fail("Left of the bar use 1, 0 or numeric columns, not coefficients.", start)
        return "".join(self.text[start : self.token.at].split()), node

    def group(self) -> tuple[str, ...]:
        """Parse the categories of random effects, a column or ``a:b``."""
        columns = [self.column("after the bar")]
        if self.is_next("("):
            what = "right of the bar stand names of columns"
            self.refuse_expression(columns[0], ")", "to close the random effects", what)
        while self.is_next(":"):
            self.take()
            columns.append(self.column("after ':'"))
        return tuple(columns)

    def subscript(self) -> tuple[str, ...]:
        """Parse the columns in brackets; empty for a scalar, ``[1]``."""
        self.expect("[", "after the name of a block")
        if self.token.kind == "number":
            if self.token.text != "1":
                self.fail(f"A scalar is written name[1], found {_shown(self.token)} in the brackets.")
            self.take()
            self.expect("]", "to close the brackets")
            return ()
        columns = [self.column()]
        self.refuse_expression(columns[-1], "]", "to close the brackets", "brackets take names of columns")
        while self.is_next(","):
            self.take()
            columns.append(self.column())
            self.refuse_expression(columns[-1], "]", "to close the brackets", "brackets take names of columns")
        self.expect("]", "to close the brackets")
        return tuple(columns)

    def column(self, where: str = "in the brackets") -> str:
        if self.token.kind not in ("name", "quoted"):
            self.fail(f"Expected a column {where}, found {_shown(self.token)}.")
        return self.take().text

    def dot(self, token: Token) -> Node:
        """Parse the inner product of two latent vectors."""
        self.take()
        left = self.vector()
        self.expect(",", "between the two vectors")
        right = self.vector()
        self.expect(",", "before rank=")
        if self.token.text != "rank":
            self.fail(f"Expected rank=, found {_shown(self.token)}.")
        self.take()
        self.expect("=", "after rank")
        number = self.take()
        if number.kind != "number" or not number.text.isdigit() or not 1 <= int(number.text) <= 1024:
            self.fail(f"The rank is a whole number from 1 to 1024, found {_shown(number)}.", number.at)
        self.expect(")", "to close dot(")
        return Dot(left, right, int(number.text), token.at)

    def vector(self) -> BlockRef:
        token = self.token
        if token.kind != "name":
            self.fail(f"Expected a term such as u[user], found {_shown(token)}.")
        self.take()
        columns = self.subscript()
        if not columns:
            self.fail("A latent vector belongs to the categories of a column: name[column].", token.at)
        return BlockRef(token.text, columns, at=token.at)


def _curve(name: str, at: int) -> BlockRef:
    return BlockRef(f"s({name})", (name,), smooth=(name,), at=at)


def walk(node: Node) -> Iterator[Node]:
    """All nodes of a syntax tree, in text order; iterative, because long sums are deep trees."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        match current:
            case Call():
                waiting.append(current.argument)
            case Binary() | Dot():
                waiting += [current.right, current.left]


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text) + _HINTS.get(token.text, "")


# -- a formula as a sum of products ----------------------------------------------------------------

Floats = NDArray[np.float64]

MAX_TERMS = 10_000


@dataclass(frozen=True)
class Monomial:
    """``constant * product of numerics * product of blocks``."""

    constant: float
    numerics: tuple[Node, ...] = ()
    blocks: tuple[BlockRef, ...] = ()


def expand(formula: Formula) -> list[Monomial]:
    """The terms of a formula, like terms collected, in order of first appearance.

    Raises
    ------
    FormulaError
        For a division by a block, a function of a block, a block that cancels out, a block used with different
        numbers of columns, a column that is both categorical and numeric, or a formula without coefficients.

    Examples
    --------
    >>> from tabsym.design.formula import parse
    >>> for term in expand(parse("(u[a] + 2) * v[b] - x / 4")):
    ...     print(term.constant, [n.name for n in term.numerics], [b.block for b in term.blocks])
    1.0 [] ['u', 'v']
    2.0 [] ['v']
    -0.25 ['x'] []
    """
    refs = _block_refs(formula.root)
    _check_refs(formula, refs)
    united: dict[tuple[tuple[Node, ...], tuple[BlockRef, ...]], float] = {}
    for term in _expand(formula.root, formula.text):
        blocks = sorted(term.blocks, key=lambda ref: (ref.block, ref.columns, ref.component))
        key = (tuple(sorted(term.numerics, key=repr)), tuple(blocks))
        united[key] = united.get(key, 0.0) + term.constant
    terms = [Monomial(constant, *key) for key, constant in united.items() if constant != 0.0]
    used = {ref.block for term in terms for ref in term.blocks}
    for ref in refs:
        if ref.block not in used:
            raise FormulaError(f"{ref.block}[...] cancels out of the formula; remove it.", formula.text, ref.at)
    if not used:
        numbers = list(dict.fromkeys(node.name for node in columns_read(formula.root)))
        x = numbers[0] if numbers else "column"
        raise FormulaError(
            "The formula has no coefficients; add a term such as w[column] or b[1]: "
            f"w[{x}] is a coefficient for each category of {x}, s[1]*{x} the slope of a number, b[1] an intercept.",
            formula.text,
            0,
        )
    return terms


def columns_read(node: Node) -> list[ColumnRef]:
    """Numeric columns of a syntax tree, in text order."""
    return [ref for ref in walk(node) if isinstance(ref, ColumnRef)]


def evaluate(node: Node, columns: Mapping[str, Floats]) -> Floats:
    """Values (n,) of a numeric factor, from columns (n,); NaN or infinite outside a function's domain."""
    with np.errstate(all="ignore"):
        match node:
            case NumberLiteral():
                return np.asarray(node.value)
            case ColumnRef():
                return columns[node.name]
            case Call():
                return np.asarray(FUNCTIONS[node.function](evaluate(node.argument, columns)))
            case Binary():
                left, right = evaluate(node.left, columns), evaluate(node.right, columns)
                return np.asarray(_OPERATORS[node.operator](left, right))
    raise AssertionError(f"{node} is not numeric")


_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power}


def _expand(node: Node, text: str) -> list[Monomial]:
    """Expand a node; a loop over the left operands, which are nested as deeply as the formula has terms."""
    spine: list[Binary] = []
    while isinstance(node, Binary) and node.operator != "**":
        spine.append(node)
        node = node.left
    out = _expand_leaf(node, text)
    for binary in reversed(spine):
        out = _combine(binary, out, text)
    return out


def _expand_leaf(node: Node, text: str) -> list[Monomial]:
    match node:
        case NumberLiteral():
            return [Monomial(node.value)]
        case ColumnRef():
            return [Monomial(1.0, numerics=(node,))]
        case BlockRef():
            return [Monomial(1.0, blocks=(node,))]
        case Call():
            _refuse_blocks(node.argument, text, f"{node.function}() is for columns, not for coefficients.")
            return [Monomial(1.0, numerics=(node,))]
        case Dot():
            sides = node.left, node.right
            vectors = [tuple(BlockRef(s.block, s.columns, r, node.rank, s.at) for s in sides) for r in range(node.rank)]
            return [Monomial(1.0, blocks=blocks) for blocks in vectors]
    power = cast("Binary", node)
    out = left = _expand(power.left, text)
    for _ in range(int(cast("NumberLiteral", power.right).value) - 1):
        out = _multiply(out, left, power, text)
    return out


def _combine(node: Binary, left: list[Monomial], text: str) -> list[Monomial]:
    """The expansion of a sum or product, given the expansion of its left operand, which is modified."""
    if node.operator == "/":
        _refuse_blocks(node.right, text, "Nothing can be divided by coefficients; multiply by them instead.")
        return _multiply(left, [_inverse(node.right, text)], node, text)
    right = _expand(node.right, text)
    if node.operator == "*":
        if all(term.blocks for term in left) and _is_sum_of_columns(node.right):
            right = [Monomial(1.0, numerics=(node.right,))]
        elif all(term.blocks for term in right) and _is_sum_of_columns(node.left):
            left = [Monomial(1.0, numerics=(node.left,))]
        return _multiply(left, right, node, text)
    sign = 1.0 if node.operator == "+" else -1.0
    left += [Monomial(sign * term.constant, term.numerics, term.blocks) for term in right]
    if len(left) > MAX_TERMS:
        raise FormulaError(f"This sum has more than {MAX_TERMS:,} terms; simplify it.", text, node.at)
    return left


def _is_sum_of_columns(node: Node) -> bool:
    """Whether a factor such as ``year - 2010`` is one number, which is then centred as a column is.

    Expanded, its coefficients would be shared by two terms, and penalized for a number far from 0.
    """
    parts = list(walk(node))
    sums = any(isinstance(part, Binary) and part.operator in "+-" for part in parts)
    return sums and any(isinstance(part, ColumnRef) for part in parts) and not _block_refs(node)


def _multiply(left: list[Monomial], right: list[Monomial], node: Binary, text: str) -> list[Monomial]:
    if len(left) * len(right) > MAX_TERMS:
        raise FormulaError(f"This product has more than {MAX_TERMS:,} terms; simplify it.", text, node.at)
    return [
        Monomial(a.constant * b.constant, a.numerics + b.numerics, a.blocks + b.blocks) for a in left for b in right
    ]


def _inverse(node: Node, text: str) -> Monomial:
    if isinstance(node, NumberLiteral):
        if node.value == 0:
            raise FormulaError("Division by zero.", text, node.at)
        return Monomial(1.0 / node.value)
    return Monomial(1.0, numerics=(Binary("/", NumberLiteral(1.0), node),))


def _block_refs(node: Node) -> list[BlockRef]:
    """The block references, latent vectors with their rank."""
    refs: list[BlockRef] = []
    ranks: dict[int, int] = {}  # of the operands of a dot, which `walk` yields after it
    for part in walk(node):
        if isinstance(part, Dot):
            ranks |= {id(side): part.rank for side in (part.left, part.right)}
        elif isinstance(part, BlockRef):
            refs.append(replace(part, rank=ranks.get(id(part), part.rank)))
    return refs


def _refuse_blocks(node: Node, text: str, message: str) -> None:
    for ref in _block_refs(node):
        raise FormulaError(message, text, ref.at)


def _check_refs(formula: Formula, refs: list[BlockRef]) -> None:
    first: dict[str, BlockRef] = {}
    for ref in refs:
        known = first.setdefault(ref.block, ref)
        if len(known.columns) != len(ref.columns):
            raise FormulaError(
                f"{ref.block} is one term and was read with {len(known.columns)} column(s) before; "
                "give one of them another name.",
                formula.text,
                ref.at,
            )
        if known.rank != ref.rank:
            raise FormulaError(
                f"{ref.block} is a term of rank {known.rank} and of rank {ref.rank}; give one of them another name.",
                formula.text,
                ref.at,
            )
    read = [(ref.at, (ref.name,)) for ref in columns_read(formula.root)] + [(ref.at, ref.columns) for ref in refs]
    for at, names in read:
        if formula.target in names:
            raise FormulaError(f"The target {formula.target!r} cannot predict itself.", formula.text, at)


def show(node: Node) -> str:
    """Text of a numeric factor."""
    match node:
        case NumberLiteral():
            return f"{node.value:g}"
        case ColumnRef():
            return node.name
        case Call():
            return f"{node.function}({show(node.argument)})"
        case Binary():
            return f"({show(node.left)} {node.operator} {show(node.right)})"
    raise AssertionError(f"{node} is not numeric")
