"""The text of a comparison: each contender's significance in words, the summary, and the ranking as rows of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import pandas as pd

from tabsym.compare.ranking import (
    ALPHA,
    BEST,
    CONSTANT,
    EQUIVALENT,
    INCONCLUSIVE,
    UNADJUSTED,
    UNSTABLE,
    WORSE,
    baseline_in,
)

_WORTH_SAYING = 1.5  # ratios of times below this may be noise
_MAX_REPEATS = 10
_NAMED = 5  # columns that a sentence lists
_SHOWN = 4  # contenders named in a list before the rest is counted


MAX_FOLDER_NAME = 255
"""The bytes that file systems allow."""


def folder_name(name: str) -> str:
    """The name of a folder of its own for a name of any characters."""
    safe = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):x}" for c in name)
    return safe.replace(".", "%2e") if not safe.strip(".") else safe


def in_one_line(error: Exception) -> str:
    """An error's kind and first line: some libraries add the stack of their own code."""
    try:
        text = str(error)
    except Exception:  # of a contender's own, whose text fails
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


_REFUSES_TEXT = re.compile(
    r"could not convert string|Cannot convert|pandas dtypes must be|DataFrame.dtypes for data must be|Invalid columns"
)


def remedy_for_text(error: Exception, X: pd.DataFrame, model: Any) -> str:
    """What to do where an estimator of the user's own takes no text, in brackets; "" where that is not the error."""
    columns = [str(name) for name, column in X.items() if not pd.api.types.is_numeric_dtype(column)]
    if not columns or not _REFUSES_TEXT.search(in_one_line(error)):
        return ""
    kind = "an estimator" if hasattr(model, "steps") else type(model).__name__
    return (
        f" ({kind} that gets column {columns[0]!r} as it is; put an encoder before it, such as "
        "make_pipeline(tabsym.WideEncoder(), ...), or for a booster tabsym.encoders.NativeCategories())"
    )


_ROLE_COLUMN = re.compile(r"\b(exposure|offset)_column=(.+) is no column of the table")


def remedy_for_role(error: Exception) -> str:
    """What to do where an estimator of the user's own has an exposure or offset that is no feature, in brackets."""
    named = _ROLE_COLUMN.search(in_one_line(error))
    return f" ({no_role_of_its_own(*named.groups())})" if named else ""


def no_role_of_its_own(role: str, column: str) -> str:
    """That the comparison has exposures and offsets, and not its contenders."""
    return (
        f"leave {role}_column out of the estimator: {role}={column} (--{role}) gives it to every contender, and the "
        "column is no feature then"
    )


def perhaps(name: str, names: Sequence[str]) -> str:
    """The nearest of the names that there are, in brackets, to be put behind an unknown one."""
    lower = {known.lower(): known for known in names}
    near = get_close_matches(name.lower(), lower, n=1)
    return f" (did you mean {lower[near[0]]!r}?)" if near else ""


def columns_that(names: Sequence[str], one: str, several: str) -> str:
    """Columns as the subject of a sentence, with the verb of one or of several."""
    return f"Column {names[0]!r} {one}" if len(names) == 1 else f"Columns {listed(names)} {several}"


def listed(names: Sequence[str]) -> str:
    """Names, the first ones of many."""
    shown = ", ".join(map(repr, names[:_NAMED]))
    return f"{shown} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else shown


def verdict(row: dict[str, Any], settings: dict[str, Any]) -> str:
    """A contender's significance, with its p-value and whether the baseline does better."""
    what = row["verdict"]
    if what == WORSE:
        what += f" (adjusted p {_equals(row['p_adjusted'])})"
    elif what == UNADJUSTED:
        what += f" (p {_equals(row['p'])})"
    folds = row.get("folds_worse_than_baseline", 0)
    if row.get("worse_than_baseline"):
        what += ", worse than the baseline"
    elif folds:
        what += f", worse than the baseline in {folds} of {settings['n_splits']} folds"
    return what


def split_words(settings: dict[str, Any]) -> str:
    """How the rows are split."""
    folds = f"{settings['folds']} folds"
    column = settings["split_column"]
    times = folds + (f" x {settings['repeats']}" if settings["repeats"] > 1 else "")
    how = {
        "random": times,
        "groups": f"{times}, groups of {column!r} kept together",
        "time": f"{folds} in the order of {column!r}, each trained on the earlier rows",
        "column": f"{folds} of column {column!r}",
        "unseen": f"{times}, whole categories of {column!r} held out",
    }
    return how[settings["split"]]


def units(settings: dict[str, Any]) -> str:
    """What is held out whole, if anything is: its standard errors are shown."""
    return {"groups": "groups", "unseen": "categories"}.get(settings["split"], "")


def difference(row: dict[str, Any], settings: dict[str, Any]) -> str:
    """A contender's difference to the best with its interval, worse being positive; see `unit`."""
    if row["verdict"] == BEST:
        return ""
    return f"{_worse(row, settings)} [{_bounds(row, settings)}]"


def summary(
    ranking: list[dict[str, Any]], partial: list[dict[str, Any]], settings: dict[str, Any],
    failed: list[tuple[str, str]] | None = None,
) -> list[str]:  # fmt: skip
    """The summary, a sentence each; `failed`: contenders without any fold, and why."""
    failures = [f"{label} failed: {why.rstrip('.')}." for label, why in failed or []]
    if not ranking:
        return ["No contender completed all folds.", *_incomplete(partial, settings), *failures]
    best, others = ranking[0], ranking[1:]
    out = [f"{best['label']} has the best mean {settings['metric']} ({best['score']:.5g})."]
    if best["name"] == CONSTANT and not others:
        why = "finished all folds" if partial or failures else "was chosen"
        out.append(
            f"Only the baseline {why}, so that the comparison does not show whether the columns predict the target."
        )
    if best.get("gain") is not None:
        out.append(f"Its gain over the baseline is {best['gain']:.4g}; differences are in percent of it.")
    if best["name"] == CONSTANT and others:
        out.append("No contender does better than the baseline.")
    # the baseline is best of several, or not significantly worse than a best that it beats in some fold
    constant = baseline_in(ranking)
    nothing = (
        constant is not None
        and len(ranking) > 1
        and (constant["verdict"] == BEST or (constant["verdict"] == INCONCLUSIVE and constant["folds_won"] > 0))
    )
    out += _others(best, others, settings, nothing=nothing)
    if not nothing:
        out += _fastest(ranking)
    elif best["name"] != CONSTANT:
        out.append("No contender predicts the target significantly better than the baseline.")
    out += _under(ranking, settings) + _busy(ranking) + _incomplete(partial, settings)
    unweighted = [row for row in ranking if row["unweighted"] and row["name"] != CONSTANT]
    if unweighted:
        out.append(f"Trained without the sample weights, as their fit takes none: {_names(unweighted)}.")
    untuned = [row for row in ranking if row.get("untuned")]
    if untuned:
        out.append(f"Not tuned in some folds, as all settings but one failed there: {_names(untuned)}.")
    return out + failures


def _others(
    best: dict[str, Any], others: list[dict[str, Any]], settings: dict[str, Any], *, nothing: bool
) -> list[str]:
    by = {
        word: [row for row in others if row["verdict"] == word]
        for word in (WORSE, UNADJUSTED, EQUIVALENT, UNSTABLE, INCONCLUSIVE)
    }
    out = []
    if others and len(by[WORSE]) == len(others):
        out.append(
            "Every other contender is significantly worse."
            if len(others) > 1
            else f"{others[0]['label']} is significantly worse."
        )
    elif by[WORSE]:
        out.append(f"Significantly worse: {len(by[WORSE])} of the {len(others)} others.")
    if by[UNADJUSTED]:
        each = [f"{row['label']} ({_worse(row, settings)})" for row in by[UNADJUSTED]]
        out.append(
            f"Worse before adjustment for multiple comparisons of {len(others) + 1} contenders: {'; '.join(each)}."
        )
    if by[EQUIVALENT] and best["name"] == CONSTANT:  # which has no gain over itself
        out.append(f"Equal to the baseline: {_names(by[EQUIVALENT])}.")
    elif by[EQUIVALENT]:
        out.append(
            f"Practically equivalent to the best (within 1 % of its gain over the baseline): {_names(by[EQUIVALENT])}."
        )
    if by[UNSTABLE]:
        each = [f"{row['label']} (in {row['folds_unstable']} of {settings['n_splits']})" for row in by[UNSTABLE]]
        out.append(f"Unstable across folds, worse than the baseline in some: {'; '.join(each)}.")
    if by[INCONCLUSIVE]:
        each = []
        for row in by[INCONCLUSIVE][:_SHOWN]:
            fold = row.get("outlying_fold")
            apart = "" if fold is None else f"; fold {fold} differs widely from the others"
            each.append(
                f"{row['label']} ({_worse(row, settings)}, 95 % CI {_bounds(row, settings)}; "
                f"worse in {row['folds_lost']} of {settings['n_splits']} folds{apart})"
            )
        more = f", and {len(by[INCONCLUSIVE]) - _SHOWN} more" if len(by[INCONCLUSIVE]) > _SHOWN else ""
        out.append(
            f"No significant difference to the best, which does not mean equal: {'; '.join(each)}{more}."
            + ("" if nothing else _remedy(settings))
        )
    return out + _of_two_tests(others)


def _of_two_tests(others: list[dict[str, Any]]) -> list[str]:
    """Why significance and interval differ, if they do: by ratios (over time, `ranking._tests`), or by adjustment."""
    apart = {
        row["name"]: all(_no_rounding(end, row) > 0 for end in (row["low"], row["high"]))
        or all(_no_rounding(end, row) < 0 for end in (row["low"], row["high"]))
        for row in others
    }
    said = [row for row in others if row["verdict"] != EQUIVALENT]
    if any(apart[row["name"]] != (row["p"] < ALPHA) for row in said):
        return [
            "Intervals are of the difference in loss, unadjusted; significance is by the test of ratios of losses, "
            "adjusted for multiple comparisons."
        ]
    if any(apart[row["name"]] for row in said if row["verdict"] in (UNSTABLE, INCONCLUSIVE)):
        return ["Intervals are unadjusted; significance is adjusted for multiple comparisons."]
    return []


def _remedy(settings: dict[str, Any]) -> str:
    """More repeats, where splits can be repeated."""
    now = settings["repeats"]
    if settings["split"] in ("time", "column") or (settings["folds"] >= 5 and now >= _MAX_REPEATS):
        return " More rows would be needed to show one."
    if settings["folds"] < 5:
        return f" With {settings['folds']} folds only large differences are significant: try --folds 5."
    return f" More repeats may show a difference: --repeats {min(_MAX_REPEATS, max(3, 2 * now))}."


def _fastest(ranking: list[dict[str, Any]]) -> list[str]:
    """A faster contender, where it is known to be as good, and the clock and the processors agree that it is faster."""
    best = ranking[0]
    equal = [row for row in ranking if row["verdict"] in (BEST, EQUIVALENT) and not row.get("busy")]
    if best.get("busy") or not equal:
        return []
    fastest = min(equal, key=lambda row: row["fit_seconds"])
    ratio = best["fit_seconds"] / max(fastest["fit_seconds"], 1e-9)
    in_cpu = best["fit_cpu_seconds"] / max(fastest["fit_cpu_seconds"], 1e-9)
    if min(ratio, in_cpu) < _WORTH_SAYING or not 0.5 < ratio / in_cpu < 2:
        return []
    return [
        f"{fastest['label']}, practically equivalent to the best, fits {ratio:.1f} times as fast "
        f"({in_cpu:.1f} times in processor time)."
    ]


def _busy(ranking: list[dict[str, Any]]) -> list[str]:
    """That the machine had other work to do, so that times by the clock are no guide."""
    rows = [row for row in ranking if row.get("busy")]
    if not rows:
        return []
    who = "all fits" if len(rows) == len(ranking) else f"the fits of {_names(rows)}"
    return [f"The machine was busy with other processes during {who}: fit s is an upper bound, compare fit CPU s."]


def _under(ranking: list[dict[str, Any]], settings: dict[str, Any]) -> list[str]:
    under = [row for row in ranking if row.get("worse_than_baseline")]
    some = [row for row in ranking if row.get("folds_worse_than_baseline") and not row.get("worse_than_baseline")]
    some = [row for row in some if row["verdict"] != UNSTABLE]
    out = []
    if under:
        out.append(f"Worse than the baseline on average: {_names(under)}.")
    if some:
        each = [
            f"{row['label']} (in {row['folds_worse_than_baseline']} of {settings['n_splits']} folds)" for row in some
        ]
        out.append(f"Worse than the baseline in some folds: {'; '.join(each)}.")
    return out


def _incomplete(partial: list[dict[str, Any]], settings: dict[str, Any]) -> list[str]:
    out = []
    for row in partial:
        text = f"{row['label']} completed {row['folds']} of {settings['n_splits']} folds and is not ranked: "
        text += f"{settings['metric']} {row['score']:.5g} on these folds"
        if "best" in row:
            text += f"; {row['best']} has {row['best_score']:.5g} on the same folds"
        out.append(text + ".")
    return out


def unit(ranking: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """What differences are given in: percent of the best's gain over the baseline, or the metric's unit."""
    if ranking and ranking[0].get("gain") is not None:
        return "percent of the best's gain over the baseline"
    return f"the unit of {settings['metric']}"


def _worse(row: dict[str, Any], settings: dict[str, Any]) -> str:
    """How much worse than the best, in percent of the best's gain over the baseline, or in the metric's unit."""
    value = _no_rounding(-row["difference"] if settings["larger_is_better"] else row["difference"], row)
    if row["gain"] is None:
        return f"{value:.3g} worse" if value >= 0 else f"{-value:.3g} better"
    share = 100 * value / row["gain"]
    return f"{_percent(share)} % worse" if share >= 0 else f"{_percent(-share)} % better"


def _bounds(row: dict[str, Any], settings: dict[str, Any]) -> str:
    ends = [-row["high"], -row["low"]] if settings["larger_is_better"] else [row["low"], row["high"]]
    low, high = (_no_rounding(end, row) for end in ends)
    if row["gain"] is None:
        return f"{low:+.2g} to {high:+.2g}"
    return f"{_percent(100 * low / row['gain'], '+')} to {_percent(100 * high / row['gain'], '+')} %"


def _no_rounding(value: float, row: dict[str, Any]) -> float:
    """Without what is rounding compared with the scores, and without a sign for nothing."""
    return 0.0 if abs(value) <= 1e-9 * abs(row["best_score"]) else value


def _percent(value: float, sign: str = "") -> str:
    """Two digits, or whole numbers."""
    return format(value, f"{sign}.0f" if abs(value) >= 10 else f"{sign}.2g")


def _names(rows: list[dict[str, Any]]) -> str:
    return "; ".join(row["label"] for row in rows)  # labels have commas


def _equals(value: float) -> str:
    """A p-value with its sign of equality."""
    return "< .001" if value < 0.001 else "= " + f"{value:.3f}".lstrip("0")


def headings(settings: dict[str, Any], *, judged: bool) -> list[str]:
    """The headings over `cells`."""
    said = ["difference to best, 95 % CI", "significance"] if judged else ["difference to best"]
    tuned = ["tune s"] if settings.get("tune") else []
    clustered = [f"s.e. clustered by {units(settings)}"] if judged and units(settings) else []
    return [
        "", "contender", f"{settings['metric']} (sd)", *clustered, *said, *tuned, "fit s", "fit CPU s",
        "predict µs/row", "one row ms", "peak MB", "model MB",
    ]  # fmt: skip


def cells(row: dict[str, Any], position: int, settings: dict[str, Any]) -> list[str]:
    """A row of the ranking, with its significance if it has one."""
    if "verdict" in row:
        said = [difference(row, settings), verdict(row, settings)]
    else:
        said = ["" if position == 1 else f"{row['difference']:+.3g}"]
    tuned = [f"{row['tune_seconds']:.1f}" if row["tune_seconds"] is not None else ""] if settings.get("tune") else []
    clustered = []
    if "verdict" in row and units(settings):
        clustered = ["" if row.get("clustered_error") is None else _two_digits(row["clustered_error"])]
    return [
        str(position),
        row["label"],
        f"{row['score']:.5g} ± {_two_digits(row['sd'])}",
        *clustered,
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


def other_cells(row: dict[str, Any], position: int, settings: dict[str, Any]) -> list[str]:
    """Every metric of a contender, and how its predictions add up."""
    totals = [(total, position) for position, total in enumerate(row["totals"]) if total is not None]
    furthest, where = max(totals, key=lambda one: abs(one[0] - 1), default=(None, 0))
    total = "" if furthest is None else f"{furthest:.4f}"
    if furthest is not None and settings["task"] == "multiclass":
        total += f" ({settings['classes'][where]})"
    scores = (row["scores"][name] for name in settings["metrics"])
    return [str(position), row["label"], *("-" if score is None else f"{score:.5g}" for score in scores), total]
