"""Rewrite what is stored: ``python -m tests.golden.update [case ...]``; it says what changed, and by how much."""

from __future__ import annotations

import sys

from tests.golden.cases import CASES
from tests.golden.store import differences, read, told, write


def main(chosen: list[str]) -> int:
    """Compute the cases named, or all; write them, and drop those that are there no more."""
    unknown = [name for name in chosen if name not in CASES]
    if unknown:
        print(f"There is no case {unknown[0]!r}; there are {', '.join(CASES)}.", file=sys.stderr)
        return 2
    n_changed = 0
    for table in sorted({case.table for case in CASES.values()}):
        before = read(table)
        after = {name: stored for name, stored in before.items() if name in CASES and CASES[name].table == table}
        for name in sorted(set(before) - set(after)):
            print(f"{name}: dropped")
        for case in CASES.values():
            if case.table != table or (chosen and case.name not in chosen):
                continue
            if not case.can_run:
                print(f"{case.name}: left as it is, as {case.needs} is not installed")
                continue
            found = case.found()
            stored = before.get(case.name)
            changes = [] if stored is None else differences(stored, found, 0.0)
            moved = [one for one in changes if one.kind != "values" or one.size > case.tolerance]
            if stored is None:
                print(f"{case.name}: new, {len(found)} entries")
            elif moved:
                n_changed += 1
                print(f"{case.name}: {told(moved)}")
            elif changes:
                print(f"{case.name}: as stored, but for {changes[0].size:.0e} of the largest, which is rounding (kept)")
                continue
            after[case.name] = found
        write(table, after)
    print(f"{n_changed} cases changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
