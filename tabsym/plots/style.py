"""How pictures and pages look: axes without a background, colours that read on white and on black, and HTML.

Matplotlib is loaded for the first plot. Text is escaped: names of columns and categories are no formulas, and
no HTML. Pages load nothing and run no script; colours are neutral, or the reader's: a notebook's theme need not be that
of the browser, so that fragments inherit text and background, and a page follows the browser's light or dark scheme.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Series = TypeVar("Series")

INK = "#7c7c7c"
"""Text and axes: a contrast of 4.2 to white, and of 5.0 to black."""
BLUE, ORANGE, GREEN, PURPLE, YELLOW = "#3a7fc1", "#d9692a", "#3a9a68", "#9467bd", "#b8960c"
PALE_BLUE = "#8fb0d3"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, "#c4568a", "#5aa7a7", "#8c6d4f")
"""Of series: none is lighter than 65 % or darker than 40 %, so that all of them read on white and on black."""
PALE = "#9a9a9a66"
"""Grids and bars of rows: seen through."""
LONGEST = 32
"""Letters of a label; longer ones are cut."""


def load_matplotlib() -> None:
    """Import matplotlib without its words on folders: where its own cannot be written it takes a temporary one.

    It removes that folder at exit; processes started from this one use the same.

    Raises
    ------
    ModuleNotFoundError
        It is not installed; the message names the extra.
    """
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import_module("matplotlib")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('Pictures need matplotlib: pip install "tabsym[plot]".', name=error.name) from None
    finally:
        log.setLevel(level)


def axes_of(ax: Any, width: float = 7.0, height: float = 4.0) -> Any:
    """The axes given, or those of a new figure; both without a background, and with neutral ink.

    A figure given, of a page, takes the height.
    """
    load_matplotlib()
    from matplotlib.figure import Figure

    if isinstance(ax, Figure):
        ax.set_figheight(height)
        return dressed(ax.subplots())
    return dressed(window(width, height).subplots() if ax is None else ax)


def window(width: float, height: float) -> Any:
    """A figure that a notebook or a window shows."""
    load_matplotlib()
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    return figure


def dressed(ax: Any) -> Any:
    """Axes in the style of all pictures."""
    ax.patch.set_alpha(0.0)
    ax.spines[["top", "right"]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_color(INK)
    ax.tick_params(which="both", colors=INK, labelsize=8)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title, ax._right_title):
        text.set_color(INK)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_fontsize(9)
    ax.set_axisbelow(True)
    return ax


def new_figure(width: float, height: float) -> Any:
    """A figure for a page, which no window shows."""
    load_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    return figure


def titled(ax: Any, text: str) -> None:
    """A title to the left; to the right where long labels make the axes narrower than it."""
    labels = max((len(label.get_text()) for label in ax.get_yticklabels()), default=0)
    is_wide = 0.075 * len(text) + 0.07 * labels + 0.5 > ax.figure.get_figwidth()  # inches of a letter, about
    ax.set_title(plain(text), loc="right" if is_wide else "left", fontsize=10, color=INK)


def legend(ax: Any, **options: Any) -> None:
    """The legend without a box."""
    ax.legend(frameon=False, fontsize=8, labelcolor=INK, **options)


def svg(figure: Any) -> str:
    """The figure as a data address: an image element runs no script, whatever the labels hold."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()


def plain(text: Any) -> str:
    """Text in one line that matplotlib does not read as a formula."""
    return " ".join(str(text).split()).replace("$", r"\$")


def cut(text: str, longest: int = LONGEST) -> str:
    """Text of at most that many letters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def category_text(category: Any) -> str:
    """A category, or a combination of categories, as text."""
    parts = category if isinstance(category, tuple) else (category,)
    return " | ".join("(missing)" if pd.isna(part) else str(part) for part in parts)


def label_of(category: Any, longest: int = LONGEST) -> str:
    """The same for an axis: cut, and no formula."""
    return plain(cut(category_text(category), longest))


def show_as_ratios(axis: Any, values: Floats) -> None:
    """Ticks of an axis of logarithms at round ratios, such as 0.5, 1 and 2, that cover the values."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

    known = np.clip(values[np.isfinite(values)], -600.0, 600.0)
    low, high = np.exp([min(known.min(initial=0.0), 0.0), max(known.max(initial=0.0), 0.0)])
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    steps, every = ((1, 2, 5), 1) if last - first <= 3 else ((1,), (last - first + 7) // 8)
    ticks = [step * 10.0**power for power in range(first, last + 1, every) for step in steps]
    if high / low < 5.0:
        ticks = [tick for tick in MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high) if tick > 0.0]
    ticks = [tick for tick in ticks if 0.8 * low <= tick <= 1.25 * high] or [1.0]
    axis.set_major_locator(FixedLocator(np.log(ticks).tolist()))
    axis.set_major_formatter(FixedFormatter(_distinct_texts(ticks)))
    axis.set_minor_locator(FixedLocator([]))


def _distinct_texts(values: Iterable[float]) -> list[str]:
    """Numbers as text, in four digits, or as many as tell them apart."""
    numbers = list(values)
    for digits in (4, 7, 10):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            return texts
    return list(map(repr, numbers))


def bounds_as_text(bounds: Iterable[float], is_date: bool) -> list[str]:
    """Bounds of bins as text; those of dates are days since 1970."""
    if not is_date:
        return _distinct_texts(map(float, bounds))
    return [str(pd.Timestamp(bound, unit="D").round("s")).removesuffix(" 00:00:00") for bound in bounds]


def widened(low: float, high: float, share: float = 0.04) -> tuple[float, float]:
    """Limits of an axis with room at both sides."""
    room = share * (high - low) or 0.01 * abs(high) or 0.01
    return low - room, high + room


def limits_of(values: Floats, lower: Floats, upper: Floats) -> tuple[float, float]:
    """Of an axis that shows all values and their intervals, but for intervals far wider than the values' range."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    ends = np.concatenate([lower, upper])
    ends = ends[np.isfinite(ends)]
    reach = 1.5 * (high - low) or 3.0 * float(np.ptp(ends) if len(ends) else 1.0)
    near = ends[(ends >= low - reach) & (ends <= high + reach)]
    return widened(min(low, near.min(initial=low)), max(high, near.max(initial=high)))


def coloured(series: Mapping[str, Series]) -> Iterable[tuple[str, Series, str]]:
    """Names, series and their colours."""
    for index, (name, table_) in enumerate(series.items()):
        yield name, table_, COLOURS[index % len(COLOURS)]


# -- pages and what notebooks show ------------------------------------------------------------------

# twice the class: JupyterLab sets the cells of outputs to the right by a rule of two classes
STYLE = f"""
.tabsym {{ font: 14px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }}
.tabsym p {{ margin: .3rem 0 }} .tabsym .muted {{ opacity: .75; font-size: .9em }}
.tabsym .scroll {{ overflow-x: auto }}
.tabsym table {{ color: inherit; border-collapse: collapse; margin: .4rem 0 }}
.tabsym table {{ font-variant-numeric: tabular-nums; font-size: .9em }}
.tabsym.tabsym tr, .tabsym.tabsym th, .tabsym.tabsym td {{ background: transparent; color: inherit }}
.tabsym.tabsym th, .tabsym.tabsym td {{ text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border: 0;
  border-bottom: 1px solid #80808050; overflow-wrap: normal }}
.tabsym.tabsym td.text {{ min-width: 6rem; max-width: 26rem; overflow-wrap: anywhere }}
.tabsym.tabsym td.long {{ min-width: 16rem; max-width: 40rem; overflow-wrap: anywhere }}
.tabsym.tabsym td.number, .tabsym.tabsym th.number {{ text-align: right; white-space: nowrap }}
.tabsym tr.flagged td {{ box-shadow: inset 0 0 0 99px {ORANGE}26 }}
.tabsym .bar {{ background: {BLUE}; height: .7em; min-width: 1px; margin-top: .35em }}
.tabsym details {{ margin: .3rem 0 }} .tabsym summary {{ cursor: pointer }}
.tabsym img {{ max-width: 100%; height: auto }}
"""
SCHEME = """
:root { color-scheme: light dark; --back: #ffffff; --ink: #1c1c1c; --box: #eef3f9 }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --ink: #dddddd; --box: #22303f } }
"""
"""The colours of a page, by the reader's scheme."""
PAGE_STYLE = """
body { background: var(--back); color: var(--ink); max-width: 84rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin-top: 2rem }
h3 { font-size: 1rem; margin: .4rem 0 }
.box { background: var(--box); padding: .6rem 1rem; border-radius: 4px } .box li { margin: .25rem 0 }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); gap: 1rem 2rem }
.grid > * { min-width: 0 }
.grid img { width: 100% }
ul { padding-left: 1.2rem }
"""
_MAX_TEXT = 90
"""Letters of a cell."""


def text(value: Any, longest: int = _MAX_TEXT) -> str:
    """Text for a page: cut, and escaped."""
    return escape(cut(" ".join(str(value).split()), longest))


def bar(fraction: float, width: float = 8.0) -> str:
    """A bar of a fraction, `width` rem for 1."""
    return f'<div class="bar" style="width: {width * min(max(fraction, 0.0), 1.0):.2f}rem"></div>'


class Raw(str):
    """HTML in a cell, which is not escaped."""


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], flagged: Sequence[bool] = ()) -> str:
    """A table of texts; cells of numbers, formatted as text, are set to the right. `flagged`: rows that are marked."""
    lines = [list(row) for row in rows]
    numbers = [all(_is_number(row[column]) for row in lines) for column in range(len(headings))]
    kinds = [_kind([row[column] for row in lines], is_number) for column, is_number in enumerate(numbers)]
    head = "".join(f"<th{kind}>{text(heading)}</th>" for heading, kind in zip(headings, kinds, strict=True))
    body = []
    for index, row in enumerate(lines):
        texts = [cell if isinstance(cell, Raw) else text(cell) for cell in row]
        cells = (f"<td{kind}>{cell}</td>" for cell, kind in zip(texts, kinds, strict=True))
        mark = ' class="flagged"' if index < len(flagged) and flagged[index] else ""
        body.append(f"<tr{mark}>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def paragraph(words: str, *, muted: bool = False) -> str:
    """A paragraph of escaped text, however long."""
    kind = ' class="muted"' if muted else ""
    return f"<p{kind}>{escape(words)}</p>"


def listed(sentences: Iterable[str]) -> str:
    """A list of escaped sentences."""
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"


def details(summary: str, body: str, *, is_open: bool = False) -> str:
    """What a click shows."""
    return f"<details{' open' if is_open else ''}><summary>{text(summary)}</summary>{body}</details>"


def image(figure: Any, alternative: str) -> str:
    """A figure in the page."""
    return f'<img src="{svg(figure)}" alt="{text(alternative)}">'


def fragment(*parts: str) -> str:
    """What a notebook shows, with its style."""
    return f'<div class="tabsym"><style>{STYLE}</style>{"".join(parts)}</div>'


def page(title: str, *parts: str) -> str:
    """A page of its own; its policy allows no script, and nothing from elsewhere."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>\n<style>{STYLE}{SCHEME}{PAGE_STYLE}</style>\n</head>",
        f'<body class="tabsym">\n<h1>{text(title)}</h1>',
        *parts,
        "</body>\n</html>\n",
    ]
    return "\n".join(lines)


def _kind(cells: Sequence[Any], is_number: bool) -> str:
    """The class of a column's cells: long texts need room, also on a narrow screen."""
    if any(isinstance(cell, Raw) for cell in cells):
        return ""
    kind = "number" if is_number else "long" if max((len(str(cell)) for cell in cells), default=0) > 30 else "text"
    return f' class="{kind}"'


def _is_number(value: Any) -> bool:
    words = str(value).replace(",", "").rstrip(" %")
    if isinstance(value, Raw) or not words:
        return False
    try:
        float(words)
    except ValueError:
        return words in ("-", "unpenalized", "fixed")
    return True
