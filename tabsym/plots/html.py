"""HTML for notebooks and pages: text is escaped, nothing is loaded and no script runs.

Colours are neutral, or the reader's: a notebook's theme need not be that of the browser, so that fragments inherit
text and background; a page follows the browser's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from tabsym.plots.style import BLUE, ORANGE, cut, svg

STYLE = f"""
.tabsym {{ font: 14px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }}
.tabsym p {{ margin: .3rem 0 }} .tabsym .muted {{ opacity: .75; font-size: .9em }}
.tabsym .scroll {{ overflow-x: auto }}
.tabsym table {{ color: inherit; border-collapse: collapse; margin: .4rem 0 }}
.tabsym table {{ font-variant-numeric: tabular-nums; font-size: .9em }}
.tabsym tr, .tabsym th, .tabsym td {{ background: transparent; color: inherit }}
.tabsym th, .tabsym td {{ text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border: 0;
  border-bottom: 1px solid #80808050 }}
.tabsym th, .tabsym td {{ overflow-wrap: normal }}
.tabsym td.text {{ min-width: 6rem; max-width: 26rem; overflow-wrap: anywhere }}
.tabsym td.long {{ min-width: 16rem; max-width: 40rem; overflow-wrap: anywhere }}
.tabsym td.number, .tabsym th.number {{ text-align: right; white-space: nowrap }}
.tabsym tr.flagged td {{ box-shadow: inset 0 0 0 99px {ORANGE}26 }}
.tabsym .bar {{ background: {BLUE}; height: .7em; min-width: 1px; margin-top: .35em }}
.tabsym details {{ margin: .3rem 0 }} .tabsym summary {{ cursor: pointer }}
.tabsym img {{ max-width: 100%; height: auto }}
"""
PAGE_STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --ink: #1c1c1c; --box: #eef3f9 }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --ink: #dddddd; --box: #22303f } }
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
    head = "".join(f"<th{kind}>{text(one)}</th>" for one, kind in zip(headings, kinds, strict=True))
    body = []
    for index, row in enumerate(lines):
        cells = (f"<td{kind}>{_cell(one)}</td>" for one, kind in zip(row, kinds, strict=True))
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
        f"<title>{text(title)}</title>\n<style>{STYLE}{PAGE_STYLE}</style>\n</head>",
        f'<body class="tabsym">\n<h1>{text(title)}</h1>',
        *parts,
        "</body>\n</html>\n",
    ]
    return "\n".join(lines)


def _kind(cells: Sequence[Any], is_number: bool) -> str:
    """The class of a column's cells: long texts need room, also on a narrow screen."""
    if any(isinstance(one, Raw) for one in cells):
        return ""
    kind = "number" if is_number else "long" if max((len(str(one)) for one in cells), default=0) > 30 else "text"
    return f' class="{kind}"'


def _cell(value: Any) -> str:
    return value if isinstance(value, Raw) else text(value)


def _is_number(value: Any) -> bool:
    words = str(value).replace(",", "").rstrip(" %")
    if isinstance(value, Raw) or not words:
        return False
    try:
        float(words)
    except ValueError:
        return words in ("-", "unpenalized", "fixed")
    return True
