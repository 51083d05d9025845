"""The formula language: what it means, and errors that point at the place."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym.design.formula import FormulaError, evaluate, expand, parse, show
from tabsym.design.plan import used_columns
from tabsym.frame import read_table


def terms(text):
    return [
        (
            t.constant,
            tuple(show(n) for n in t.numerics),
            tuple(f"{b.block}[{','.join(b.columns) or 1}]" for b in t.blocks),
        )
        for t in expand(parse(text))
    ]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (
            "tips ~ gamma[taxi] * mu[payment] * distance + b[1]",
            [(1, ("distance",), ("gamma[taxi]", "mu[payment]")), (1, (), ("b[1]",))],
        ),
        ("w[home] - w[away]", [(1, (), ("w[home]",)), (-1, (), ("w[away]",))]),
        ("w[a, b]", [(1, (), ("w[a,b]",))]),
        ("(u[a] + 2) * v[b]", [(1, (), ("u[a]", "v[b]")), (2, (), ("v[b]",))]),
        ("-w[a] * -3", [(3, (), ("w[a]",))]),
        ("w[a]**2", [(1, (), ("w[a]", "w[a]"))]),
        ("w[a] + w[a]", [(2, (), ("w[a]",))]),
        ("w[a] * x / z", [(1, ("(1 / z)", "x"), ("w[a]",))]),
        ("w[a] / 4", [(0.25, (), ("w[a]",))]),
        ("w[a] * log(x + 1)", [(1, ("log((x + 1))",), ("w[a]",))]),
        ("x + w[a]", [(1, ("x",), ()), (1, (), ("w[a]",))]),
        ("`my col` * w[`b c`]", [(1, ("my col",), ("w[b c]",))]),
        ("größe[straße]", [(1, (), ("größe[straße]",))]),
        ("2e-1 * w[a]", [(0.2, (), ("w[a]",))]),
        ("(1 | g)", [(1, (), ("1 | g[g]",))]),
        ("(x || g)", [(1, (), ("1 | g[g]",)), (1, ("x",), ("x | g[g]",))]),
        ("(x | g)", [(1, (), ("1 | g[g]",)), (1, ("x",), ("x | g[g]",))]),
        ("(1 + x | g)", [(1, (), ("1 | g[g]",)), (1, ("x",), ("x | g[g]",))]),
        ("(0 + log(x) | g)", [(1, ("log(x)",), ("log(x) | g[g]",))]),
        ("(1 | a/b)", [(1, (), ("1 | a[a]",)), (1, (), ("1 | a:b[a,b]",))]),
        ("(1 | a:b) + (w[c] + (x))", [(1, (), ("1 | a:b[a,b]",)), (1, (), ("w[c]",)), (1, ("x",), ())]),
        ("s(x) + s[1] * x", [(1, (), ("s(x)[x]",)), (1, ("x",), ("s[1]",))]),
    ],
)
def test_meaning(text, meaning):
    assert terms(text) == meaning


def test_dot_is_a_sum_over_the_parts_of_vectors():
    found = expand(parse("dot(u[user], v[item], rank=3)"))
    assert [[(b.block, b.component, b.rank) for b in term.blocks] for term in found] == [
        [("u", r, 3), ("v", r, 3)] for r in range(3)
    ]


def test_target_and_columns():
    formula = parse("`net price` ~ w[a, b] * log(x) + dot(u[c], v[d], rank=2)")
    assert formula.target == "net price"
    table = read_table(pd.DataFrame({"x": [1.0], "d": ["s"], "c": ["s"], "b": ["s"], "a": ["s"], "other": ["s"]}))
    assert used_columns(formula, table) == ["a", "b", "x", "c", "d"]
    assert parse("w[a]").target is None


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("w[a", "Expected ']' to close the brackets, found the end", 3),
        ("w[a] / v[b]", "Nothing can be divided by coefficients", 7),
        ("w[a] / (x + v[b])", "Nothing can be divided by coefficients", 12),
        ("w[a] / 0", "Division by zero", 7),
        ("log(w[a])", "log() is for columns", 4),
        ("2 * x", "has no coefficients", 0),
        ("w[a] - w[a]", "cancels out of the formula", 0),
        ("b[1] + 0 * w[a]", "cancels out of the formula", 11),
        ("y ~ y * w[a]", "target 'y' cannot predict itself", 4),
        ("y ~ w[y]", "target 'y' cannot predict itself", 4),
        ("foo(x) * w[a]", "There is no function 'foo'; there are log", 0),
        ("w[a] + offset(log(x))", "There is no function 'offset'; give the offset as offset_column='NAME'", 7),
        ("C(a)", "There is no function 'C'; a category has coefficients where they are named: write b[NAME]", 0),
        ("w[a] ** 2.5", "The exponent after '**' must be a whole number", 8),
        ("w[a] ** 99", "The exponent after '**' must be a whole number", 8),
        ("w[a] + w[a, b]", "read with 1 column(s) before", 7),
        ("w[a] + w[1]", "read with 1 column(s) before", 7),
        ("dot(w[a], v[b], rank=2) + w[a]", "of rank 2 and of rank 1", 26),
        ("w[a] ? 3", "'?' is not understood", 5),
        ("y ~ 1 | g", "random effects stand in parentheses", 6),
        ("y ~ (1 | g) + (x | g)", "(1 | g) is there twice; leave one out, and write (0 + x | g)", 14),
        ("y ~ (2 | g)", "Left of the bar use 1, 0 or numeric columns, found 2", 4),
        ("y ~ (w[a] | g)", "numeric columns, not coefficients", 5),
        ("y ~ (0 | g)", "have neither intercepts nor slopes", 4),
        ("y ~ (1 | 2)", "Expected a column after the bar", 9),
        ("y ~ (1 | y)", "target 'y' cannot predict itself", 4),
        ("y ~ s(x + 1)", "Expected ')' to close s(", 8),
        ("y ~ te(x, x)", "te() names 'x' twice; write s(x).", 4),
        ("y ~ s(x, by=x)", "s() names 'x' twice; write s(x).", 4),
        ("y ~ a:b", "R's a:b is w[a, b] here", 5),
        ("w[2]", "A scalar is written name[1]", 2),
        ("`abc * w[a]", "close the backquote", 0),
        ("y ~ w[a] ~ b", "one '~'", 9),
        ("log(y) ~ w[a]", "The left side of '~' must be one column", 0),
        ("w[a] w[b]", "Expected an operator", 5),
        ("", "Expected a column", 0),
        ("dot(u[a], v[b])", "Expected ',' before rank=", 14),
        ("dot(u[a], v[b], rank=0)", "whole number from 1", 21),
        ("dot(u[1], v[b], rank=2)", "belongs to the categories of a column", 4),
        ("__import__('os')", "is not understood", 11),
        ("s[1]*np.log(x)", "write log(x) for np.log(x)", 7),
        ("s[1]*math.sqrt(x)", "write sqrt(x) for math.sqrt(x)", 9),
        ("s[1]*np.where(x, 1, 0)", "make a column of np.where() beforehand", 7),
        ("b[1] + s[1]*net.price", "put names with such signs in backquotes", 15),
        ("as.factor(g)", "write w[NAME] for a coefficient of each category", 2),
        ("np.log(y) ~ w[g]", "The left side of '~' must be one column", 0),
        ("y ~ .", "name the columns", 4),
        ("~ w[g]", "Left of '~' stands the target", 0),
        ("s(log(x))", "s() takes the name of a column: make a column of log(...) beforehand", 5),
        ("te(log(x), z)", "te() takes names of columns: make a column of log(...) beforehand", 6),
        ("te(x, z*2)", "make a column of the expression beforehand", 7),
        ("s(x, k=10)", "s() has no option k=; leave it out", 5),
        ("te(x, z, k=5)", "te() has no option k=; leave it out", 9),
        ('s(x, bs="cr")', "leave bs= out", 8),
        ('s(g, bs="re")', "random effects are (1 | g)", 8),
        ("s(x, by='g')", "names of columns stand without quotes", 8),
        ('Q("net price")', "write the name in backquotes", 2),
        ('C(g, Treatment("a"))', "write b[NAME] for C(NAME)", 15),
        ("w[C(g)]", "write g for C(g)", 3),
        ("w[log(x)]", "make a column of log(...) beforehand", 5),
        ("w[g*h]", "write w[a, b] for w[a * b]", 3),
        ("(1 | factor(g))", "write g for factor(g)", 11),
        ("(x - 1 | g)", "write (0 + x || g) for (x - 1 || g)", 3),
        ("ti(x, z)", "write te(x, z) for a surface", 0),
        ("ns(x, 4)", "write s(x) for a smooth curve", 0),
        ("s[1]*x^2", "write ** for a power", 6),
        ("s[1]*(x == 2)", "make a column of the comparison beforehand", 8),
        ("y ~ x + g", "w[x] is a coefficient for each category of x, s[1]*x the slope of a number", 0),
    ],
)
def test_errors_point_at_the_place(text, message, place):
    with pytest.raises(FormulaError) as caught:
        expand(parse(text))
    lines = str(caught.value).splitlines()
    assert message in lines[0]
    assert lines[1] == f"    {text}"
    assert lines[2].index("^") == place + 4


def test_a_product_that_explodes_is_refused():
    with pytest.raises(FormulaError, match="more than 10,000 terms"):
        expand(parse("(" + " + ".join(f"w{j}[a]" for j in range(40)) + ")**4"))


numbers = st.floats(-3, 3, allow_nan=False)
leaf = st.one_of(
    st.floats(0.1, 3).map(lambda v: f"{v:.3f}"),
    st.sampled_from(["x", "z", "u[a]", "v[b]", "c[1]", "log(z)", "sqrt(z)"]),
)


def combine(children):
    pair = st.tuples(children, children)
    return st.one_of(
        pair.map(lambda p: f"({p[0]} + {p[1]})"),
        pair.map(lambda p: f"({p[0]} - {p[1]})"),
        pair.map(lambda p: f"{p[0]} * {p[1]}"),
        children.map(lambda c: f"({c}) / z"),
        children.map(lambda c: f"({c})**2"),
        children.map(lambda c: f"-({c})"),
    )


@settings(deadline=None, max_examples=60)
@given(st.recursive(leaf, combine, max_leaves=6), numbers, numbers, numbers, numbers)
def test_the_sum_of_products_equals_python(text, x, u, v, c):
    """Generated formulas, worth what Python's own arithmetic makes of them (here, never in the package)."""
    z = 1.7
    try:
        found = expand(parse(text))
    except FormulaError as error:
        assert "has no coefficients" in str(error) or "cancels out" in str(error)
        return
    columns = {"x": np.array([x]), "z": np.array([z])}
    blocks = {"u": u, "v": v, "c": c}
    total = 0.0
    for term in found:
        value = term.constant * np.prod([evaluate(n, columns)[0] for n in term.numerics])
        total += value * np.prod([blocks[b.block] for b in term.blocks])
    python = text.replace("u[a]", "u").replace("v[b]", "v").replace("c[1]", "c")
    names = {"x": x, "z": z, "u": u, "v": v, "c": c, "log": np.log, "sqrt": np.sqrt}
    want = eval(python, {"__builtins__": {}}, names)  # noqa: S307
    assert total == pytest.approx(want, rel=1e-6, abs=1e-6)
