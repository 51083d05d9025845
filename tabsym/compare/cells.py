"""The ranking as rows of text, for terminals and the report."""

from __future__ import annotations

from typing import Any

from tabsym.compare import words


def headings(settings: dict[str, Any], *, judged: bool) -> list[str]:
    """The headings over `cells`."""
    said = ["difference to best, 95 % CI", "significance"] if judged else ["difference to best"]
    tuned = ["tune s"] if settings.get("tune") else []
    units = [f"s.e. clustered by {words.units(settings)}"] if judged and words.units(settings) else []
    return [
        "", "contender", f"{settings['metric']} (sd)", *units, *said, *tuned, "fit s", "fit CPU s",
        "predict µs/row", "one row ms", "peak MB", "model MB",
    ]  # fmt: skip


def cells(row: dict[str, Any], place: int, settings: dict[str, Any]) -> list[str]:
    """A row of the ranking, with its significance if it has one."""
    if "verdict" in row:
        said = [words.difference(row, settings), words.verdict(row, settings)]
    else:
        said = ["" if place == 1 else f"{row['difference']:+.3g}"]
    tuned = [f"{row['tune_seconds']:.1f}" if row["tune_seconds"] is not None else ""] if settings.get("tune") else []
    units = []
    if "verdict" in row and words.units(settings):
        units = ["" if row.get("clustered_error") is None else _two_digits(row["clustered_error"])]
    return [
        str(place),
        row["label"],
        f"{row['score']:.5g} ± {_two_digits(row['sd'])}",
        *units,
        *said,
        *tuned,
        f"{row['fit_seconds']:.2f}",
        f"{row['fit_cpu_seconds']:.2f}",
        f"{1e6 * row['predict_row_seconds']:.3g}",
        f"{1e3 * row['one_row_seconds']:.3g}",
        f"{row['peak_bytes'] / 1e6:.0f}",
        "" if row["model_bytes"] is None else f"{row['model_bytes'] / 1e6:.1f}",
    ]


def _two_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def other_headings(settings: dict[str, Any]) -> list[str]:
    """The headings over `other_cells`."""
    totals = "predicted / observed" + ("" if settings["task"] != "multiclass" else ", worst class")
    return ["", "contender", *settings["metrics"], totals]


def other_cells(row: dict[str, Any], place: int, settings: dict[str, Any]) -> list[str]:
    """Every metric of a contender, and how its predictions add up."""
    totals = [(one, place) for place, one in enumerate(row["totals"]) if one is not None]
    furthest, where = max(totals, key=lambda one: abs(one[0] - 1), default=(None, 0))
    total = "" if furthest is None else f"{furthest:.4f}"
    if furthest is not None and settings["task"] == "multiclass":
        total += f" ({settings['classes'][where]})"
    scores = (row["scores"][name] for name in settings["metrics"])
    return [str(place), row["label"], *("-" if score is None else f"{score:.5g}" for score in scores), total]
