"""Sizes of the package: modules, lines of code, and what a fit runs through.

``python benchmarks/sizes.py`` prints, for every folder of `tabsym`, its modules and its lines of code (docstrings,
comments and blank lines apart), and for a fit of ``WideClassifier()`` and of ``WideBoostClassifier()`` on 400 rows
the files and functions of `tabsym` that a profile meets, without what compiles.
"""

from __future__ import annotations

import ast
import cProfile
import io
import pstats
import tokenize
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1] / "tabsym"


def code_lines(path: Path) -> int:
    """Lines that hold code: no blanks, no comments, no docstrings."""
    text = path.read_text()
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docs |= set(range(first.lineno, first.end_lineno + 1))
    lines: set[int] = set()
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skip:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


def met(estimator: object, X: pd.DataFrame, y: np.ndarray) -> tuple[int, int]:
    """Files and functions of the package that a fit runs through; kernels are compiled beforehand."""
    estimator.fit(X, y)
    profile = cProfile.Profile()
    profile.enable()
    estimator.fit(X, y)
    profile.disable()
    names = {key for key in pstats.Stats(profile).stats if key[0].startswith(str(ROOT))}
    return len({name[0] for name in names}), len(names)


def main() -> None:
    from tabsym import WideBoostClassifier, WideClassifier

    modules, lines = Counter(), Counter()
    for path in sorted(ROOT.rglob("*.py")):
        folder = "/".join(path.relative_to(ROOT).parts[:-1][:2]) or "."
        modules[folder] += 1
        lines[folder] += code_lines(path)
    for folder in sorted(modules):
        print(f"{folder:24s} {modules[folder]:4d} modules {lines[folder]:6d} lines")
    print(f"{'all':24s} {sum(modules.values()):4d} modules {sum(lines.values()):6d} lines")
    rng = np.random.default_rng(0)
    X = (
        pd.DataFrame({"a": rng.integers(0, 9, 400), "b": rng.integers(0, 5, 400)})
        .astype(str)
        .assign(x=rng.normal(size=400))
    )
    y = (rng.random(400) < 0.3 + 0.4 * (X["a"] < "4")).to_numpy()
    for estimator in (WideClassifier(), WideBoostClassifier()):
        files, functions = met(estimator, X, y)
        print(f"a fit of {type(estimator).__name__}: {files} files, {functions} functions")


if __name__ == "__main__":
    main()
