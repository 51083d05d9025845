"""Progress of a comparison: a live table on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from tabsym.compare.ranking import rank
from tabsym.compare.results import Results
from tabsym.compare.text import cells, headings, split_words
from tabsym.messages import plural


class Live:
    """A live ranking on a terminal (with rich), plain lines elsewhere."""

    def __init__(self, settings: dict[str, Any], *, quiet: bool) -> None:
        self.settings = settings
        self.quiet = quiet
        self._running: list[str] = []
        self._notes: list[str] = []
        self._results: Results | None = None
        self._rich: Any = None
        self._said: dict[str, int] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Live:
        if self.quiet:
            return self
        s = self.settings
        for line in first_lines(s):
            self._print(line)
        if sys.stdout.isatty():
            try:
                from rich.live import Live as RichLive
            except ModuleNotFoundError:
                return self
            self._rich = RichLive(refresh_per_second=4)
            self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._rich:
            self._rich.stop()

    def begin(self, label: str) -> None:
        """A contender starts."""
        with self._lock:
            self._running.append(label)
        self._draw()

    def note(self, text: str) -> None:
        """A message for the user."""
        self._notes.append(text)
        if not self.quiet and self._rich is None:
            self._print(f"  {text}")
        self._draw()

    def update(self, results: Results) -> None:
        """Folds arrived."""
        with self._lock:
            self._results = results
            for entry in results.contenders.values():
                finished = entry["error"] or len(entry["folds"]) == self.settings["n_splits"]
                if finished and entry["label"] in self._running:
                    self._running.remove(entry["label"])
            if not self.quiet and self._rich is None:
                self._say_lines(results)
        self._draw()

    def close_with(self, results: Results, ranking: list[dict[str, Any]], sentences: list[str], folder: Path) -> None:
        """Print ranking, failures, the summary and the paths of the files."""
        self._print()
        self._print(plain_ranking(results, ranking))
        self._print()
        self._print("\n".join(sentences))
        self._print(f"\nResults and report: {folder}/report.html, results.json, results.csv")

    def _print(self, text: str = "") -> None:
        try:
            print(text, flush=True)
        except BrokenPipeError:  # the reader went away, as `head` does: go on to the files
            self.quiet = True

    def _say_lines(self, results: Results) -> None:
        metric = self.settings["metric"]
        for name, entry in results.contenders.items():
            count = len(entry["folds"]) + (1000 if entry["error"] else 0)
            if count == self._said.get(name, 0):
                continue
            self._said[name] = count
            if entry["error"]:
                self._print(f"  {entry['label']}: {entry['error']}")
            elif len(entry["folds"]) == self.settings["n_splits"]:
                scores = [r["scores"][metric] for r in entry["folds"].values()]
                seconds = sum(r["fit_seconds"] for r in entry["folds"].values())
                self._print(f"  {entry['label']}: {metric} {sum(scores) / len(scores):.4f}, all fits {seconds:.1f} s")

    def _draw(self) -> None:
        if self._rich is None:
            return
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            lines: list[Any] = [Text(note, style="yellow") for note in self._notes]
            if self._results is not None:
                lines.append(_rich_table(self._results))
            if self._running:
                lines.append(Text("running: " + ", ".join(self._running), style="dim"))
            self._rich.update(Group(*lines))


def first_lines(settings: dict[str, Any]) -> list[str]:
    """What is about to be done, the reading of the target first."""
    notes = settings["notes"]
    tuned = (
        f"all contenders tuned with {settings['tune']} in every fold"
        if settings["tune"]
        else "all contenders at their defaults"
    )
    return [
        notes[0],
        f"{settings['table']}: {plural(settings['rows'], 'row')}, {plural(len(settings['columns']), 'column')}; "
        f"{split_words(settings)}, ranked by {settings['metric']}; {tuned}",
        *(f"  {note}" for note in notes[1:]),
    ]


def plain_ranking(results: Results, ranking: list[dict[str, Any]]) -> str:
    """The ranking as aligned text, with what failed below."""
    settings = results.settings
    rows = [headings(settings, judged=True)]
    rows += [cells(row, position, settings) for position, row in enumerate(ranking, 1)]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"   {e['label']}: {e['error']}" for e in results.contenders.values() if e["error"]]
    return "\n".join(lines)


def _rich_table(results: Results) -> Any:
    from rich.markup import escape
    from rich.table import Table

    settings = results.settings
    table = Table(box=None)
    for heading in headings(settings, judged=False):
        table.add_column(heading, no_wrap=heading != "contender")
    for position, row in enumerate(rank(settings, results.contenders), 1):
        table.add_row(*(escape(cell) for cell in cells(row, position, settings)), style="bold" if position == 1 else "")
    for entry in results.contenders.values():
        if entry["error"]:
            table.add_row("", escape(entry["label"]), escape(entry["error"]), style="red")
        elif 0 < len(entry["folds"]) < settings["n_splits"]:
            table.add_row("", escape(entry["label"]), f"{len(entry['folds'])} of {settings['n_splits']} folds")
    return table
