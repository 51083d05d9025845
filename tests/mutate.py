"""Random faults planted in the package, one by one: which does no test find?

    python -m tests.mutate trace                    # once: which tests reach which function (a run of the tests)
    python -m tests.mutate run --n 60 --seed 1 tabsym/models tabsym/solvers

A fault is one change of the syntax tree in one function: another operator, a comparison turned round, a number
changed, a condition negated, a statement left out, `min` for `max`. The faults are drawn by `--seed` from all of the
paths named. Each is written into a copy of the package, where the tests run that reach its function, the ones that
reach least else first, for `--seconds`; a survivor is tried again by all that reach it. Compiled functions are not
traced: the tests of what calls them are taken. Survivors are printed as a line of the source before and after, to be
looked at: some are no faults (a faster path left out, a bound that no number meets).
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from cProfile import Profile as Profiler
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PARTS = ("tabsym", "integrations")  # what is traced
TRACES = ROOT / ".mutate"  # what `trace` wrote
TWICE = {"min": "max", "argmin": "argmax", "minimum": "maximum", "any": "all", "floor": "ceil", "zeros": "ones"}
TWINS = TWICE | {other: one for one, other in TWICE.items()}
COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


# -- which tests reach which function ----------------------------------------------------


class Tracer:
    """A pytest plugin that notes the functions of the package that each test calls, and how long it takes."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, set[Any]]] = {}
        self.names: dict[Any, str | None] = {}

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        self.began, self.passed = time.perf_counter(), True
        self.profiler = Profiler(builtins=False, subcalls=False)
        self.profiler.enable()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if hasattr(self, "profiler"):  # xdist's own process runs no test
            self.profiler.disable()
            seen = {self.name(entry.code) for entry in self.profiler.getstats()} - {None}
            if self.passed:
                self.found[nodeid] = (time.perf_counter() - self.began, seen)

    def name(self, code: Any) -> str | None:
        """`file:line` of a function of the package."""
        if code not in self.names:
            file = getattr(code, "co_filename", "")
            within = any(file.startswith(str(ROOT / part)) for part in PARTS)
            self.names[code] = f"{Path(file).relative_to(ROOT)}:{code.co_firstlineno}" if within else None
        return self.names[code]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed = getattr(self, "passed", True) and report.outcome == "passed"

    def pytest_sessionfinish(self) -> None:
        TRACES.mkdir(exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        text = json.dumps({name: [seconds, sorted(seen)] for name, (seconds, seen) in self.found.items()})
        (TRACES / f"{worker}.json").write_text(text)


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(Tracer())


@dataclass
class Reached:
    """The tests of each function, and each test's seconds and number of functions."""

    tests: dict[str, set[str]]
    seconds: dict[str, float]
    breadth: dict[str, int]

    @classmethod
    def read(cls) -> Reached:
        tests, seconds, breadth = defaultdict(set), {}, {}
        for path in TRACES.glob("*.json"):
            for name, (took, functions) in json.loads(path.read_text()).items():
                is_strange = any(sign in name for sign in ';\\"\n') or not name.isascii()
                test = name.partition("[")[0] if is_strange else name  # all its cases: pytest finds none by such a name
                seconds[test] = seconds.get(test, 0.0) + took
                breadth[test] = max(breadth.get(test, 0), len(functions))
                for function in functions:
                    tests[function].add(test)
        if not tests:
            raise SystemExit("Which test reaches what is not known yet; run `python -m tests.mutate trace` first.")
        return cls(tests, seconds, breadth)

    def chosen(self, tests: set[str], seconds: float) -> list[str]:
        """Tests for so many seconds, those that reach least first, files in turn."""
        turn: dict[str, int] = defaultdict(int)
        ranks = {}
        for test in sorted(tests, key=lambda one: (self.breadth[one], self.seconds[one])):
            file = test.partition("::")[0]
            ranks[test] = turn[file]
            turn[file] += 1
        taken, left = [], seconds
        for test in sorted(tests, key=lambda one: (ranks[one], self.breadth[one])):
            if self.seconds[test] <= left:
                taken.append(test)
                left -= self.seconds[test]
        return taken


# -- functions and faults ----------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """One function of the package."""

    file: str
    node: ast.FunctionDef

    @property
    def key(self) -> str:
        """As the tracer names it: by the line where it begins, decorators included."""
        first = min([self.node.lineno, *(one.lineno for one in self.node.decorator_list)])
        return f"{self.file}:{first}"

    def mentions(self) -> set[str]:
        names = {node.id for node in ast.walk(self.node) if isinstance(node, ast.Name)}
        return names | {node.attr for node in ast.walk(self.node) if isinstance(node, ast.Attribute)}


def functions_of(paths: list[str]) -> list[Function]:
    files = sorted(
        file for path in paths for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))
    )
    return [
        Function(str(file.relative_to(ROOT)), node)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def tests_of(function: Function, everything: list[Function], reached: Reached) -> set[str]:
    """The tests that call a function; of a compiled one, those that call what mentions it."""
    wanted, seen = [function], set()
    while wanted:
        tests = set().union(*(reached.tests.get(one.key, set()) for one in wanted))
        if tests:
            return tests
        names = {one.node.name for one in wanted}
        seen |= names
        wanted = [one for one in everything if one.node.name not in seen and names & one.mentions()]
    return set()


def faults_of(function: Function) -> Iterator[tuple[ast.AST, str]]:
    """Nodes of a function, and what each might read instead."""
    skipped: set[int] = set()
    for node in ast.walk(function.node):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            skipped |= {id(one) for one in ast.walk(node)}
        if isinstance(node, ast.Call) and "warn" in ast.unparse(node.func):
            skipped |= {id(one) for one in ast.walk(node)} - {id(node)}
        if isinstance(node, ast.FunctionDef):
            parts = [
                *node.decorator_list,
                node.returns,
                *(one.annotation for one in node.args.args + node.args.kwonlyargs),
            ]
            skipped |= {id(one) for part in parts if part is not None for one in ast.walk(part)}
        if isinstance(node, ast.AnnAssign):
            skipped |= {id(one) for one in ast.walk(node.annotation)}
    for node in ast.walk(function.node):
        if id(node) not in skipped and node is not function.node:
            yield from ((node, text) for text in _instead(node))


def _instead(node: ast.AST) -> Iterator[str]:
    """What a node might read instead."""

    def with_(**changes: Any) -> str:
        other = copy.copy(node)
        for name, value in changes.items():
            setattr(other, name, value)
        return f"({ast.unparse(other)})"

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from (with_(ops=[other()]) for other in COMPARED[type(node.ops[0])])
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield with_(op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield with_(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        yield str(not node.value) if isinstance(node.value, bool) else repr(node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield with_(test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in TWINS:
        yield TWINS[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in TWINS:
        yield f"({ast.unparse(node.value)}).{TWINS[node.attr]}"
    elif (
        isinstance(node, ast.AugAssign)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple))
    ):
        yield "pass"


def planted(source: str, node: Any, text: str) -> str:
    """The source with a node replaced."""
    lines = source.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()


# -- trials ------------------------------------------------------------------------------


class Copy:
    """A copy of the package in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for file in [*kept.splitlines(), *(str(one.relative_to(ROOT)) for one in (ROOT / "tabsym").rglob("*.nb?"))]:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)

    def is_found(self, file: str, source: str, tests: list[str]) -> bool:
        """Whether one of the tests fails where a file reads otherwise."""
        compiled = re.search(r"^@(inlined|(allocating_)?kernel)|njit", source, re.MULTILINE) is not None
        (self.folder / file).write_text(source)
        if compiled:  # the compiler's cache watches the file of a function, not those that it calls
            for cached in (self.folder / "tabsym").rglob("*.nb?"):
                cached.unlink()
        environment = {**os.environ, "PYTHONPATH": f"{self.folder}{os.pathsep}{self.folder / 'integrations'}"}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--no-header",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        try:
            ended = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=900
            )
            code = ended.returncode
            if code == 4 and re.search(r"^ERROR \S+\.py|loading conftest", ended.stdout + ended.stderr, re.MULTILINE):
                code = 2  # a file of tests that cannot be imported
        except subprocess.TimeoutExpired:
            code = 1  # an endless loop is noticed
        shutil.copy2(ROOT / file, self.folder / file)
        if compiled:
            for cached in (ROOT / "tabsym").rglob("*.nb?"):
                shutil.copy2(cached, self.folder / cached.relative_to(ROOT))
        if code == 4 and any("[" in test for test in tests):  # pytest does not find each name again
            return self.is_found(file, source, sorted({test.partition("[")[0] for test in tests}))
        if code not in (0, 1, 2) and code > 0:
            raise SystemExit(f"pytest ended with {code} on {tests[:3]}")
        return code != 0


def run(paths: list[str], n: int, seed: int, seconds: float) -> int:
    """Plant `n` faults; the number that no test finds."""
    reached, everything = Reached.read(), functions_of(list(PARTS))
    keyed = {one.key: one for one in everything}
    pool = [(one, node, text) for one in functions_of(paths) for node, text in faults_of(one)]
    unique = list({(one.file, node.lineno, node.col_offset, node.end_col_offset, text): (one, node, text)
                   for one, node, text in pool}.values())  # fmt: skip
    print(f"{len(unique):,} faults can be planted in {len(keyed):,} functions; {n} are drawn.", flush=True)
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        copied = Copy(Path(name))
        for function, node, text in random.Random(seed).sample(unique, n):
            source = (ROOT / function.file).read_text()
            changed = planted(source, node, text)
            tests, began = tests_of(function, everything, reached), time.perf_counter()
            first = reached.chosen(tests, seconds)
            found = bool(first) and copied.is_found(function.file, changed, first)
            if not found and (rest := reached.chosen(tests - set(first), 6 * seconds)):
                found = copied.is_found(function.file, changed, rest)
            missed += not found
            line = source.splitlines()[node.lineno - 1].strip()
            was = ast.get_source_segment(source, node)
            print(
                f"{'found ' if found else 'MISSED'} {time.perf_counter() - began:4.0f} s {function.file}:{node.lineno} "
                f"{function.node.name}: {was!r} -> {text!r}  in  {line}  ({len(tests)} tests)",
                flush=True,
            )
    print(f"{n - missed} of {n} faults found")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["trace", "run"])
    parser.add_argument("paths", nargs="*", default=["tabsym"], help="folders and files of the package")
    parser.add_argument("--n", type=int, default=20, help="how many faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="tests for so long, then six times as long")
    asked = parser.parse_intermixed_args()
    if asked.what == "trace":
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.mutate",
        ]
        raise SystemExit(subprocess.run(command, cwd=ROOT, check=False).returncode)
    raise SystemExit(run(asked.paths or ["tabsym"], asked.n, asked.seed, asked.seconds) > 0)


if __name__ == "__main__":
    main()
