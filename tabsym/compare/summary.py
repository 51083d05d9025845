"""summary.html and summary.csv: the contenders' ranks over several tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tabsym.compare.plots import ranks_plot

if TYPE_CHECKING:
    from tabsym.compare.many import Comparisons

_TEMPLATE = Path(__file__).with_name("summary.html.jinja")


def write_summary(found: Comparisons) -> Path:
    """Write both into the folder; names from data are escaped."""
    from jinja2 import Environment

    found.folder.mkdir(parents=True, exist_ok=True)
    found.ranks.to_csv(found.folder / "summary.csv")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        n_tables=len(found.tables),
        summary=found.summary,
        plot=ranks_plot(found.ranks["mean"], found.critical_difference),
        tables=list(found.tables),
        rows=[_row(found, label) for label in found.ranks.index],
        links=[(name, quote(f"{name}/report.html")) for name in found.tables],
    )
    path = found.folder / "summary.html"
    path.write_text(page, encoding="utf-8")
    return path


def _row(found: Comparisons, label: str) -> list[Any]:
    ranks: dict[str, float] = found.ranks.loc[label].to_dict()  # type: ignore[assignment]
    cells: list[Any] = [label, f"{ranks['mean']:.2f}"]
    for name, one in found.tables.items():
        own = one.ranking[one.ranking["label"] == label]
        score = f"{own['score'].iloc[0]:.5g}" if len(own) else "failed"
        cells.append(f"{ranks[name]:g} ({score})")
    return cells
