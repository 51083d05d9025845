"""Pages in headless Chromium at 400 and 1,400 pixels: nothing sticks out, nothing is loaded, names are text."""

import json
import re
import shutil
import subprocess
from html import escape, unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tabsym import MODLEncoder
from tabsym.compare.run import Comparisons, write_summary
from tests.compare.test_report import EVIL as IMAGE
from tests.compare.test_report import build
from tests.models.test_pages import EVIL, model, rows  # noqa: F401

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="optional engine: Chromium, of the system's packages"),
]
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=5000 --dump-dom"
).split()
HOSTS = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
BY_A_PAGE = 101845102
"""Of a request in Chromium's log: that a page makes it ("blink_resource_loader"), rather than Chromium itself."""
WIDTHS = (400, 1400)
SEEN = """
const seen = {};
onload = () => {
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement, all = [...page.body.querySelectorAll("*")];
    const scrolls = element => element.closest(".scroll") !== null;
    const isSeen = element => { const box = element.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
    const texts = selector => [...page.querySelectorAll(selector)].map(one => one.textContent);
    const styles = (selector, property) =>
      [...new Set([...page.querySelectorAll(selector)].map(one => getComputedStyle(one)[property]))];
    const sorted = page.querySelector("table.ranking th[tabindex]:nth-child(3)");
    if (sorted) sorted.click();
    const named = element => element.tagName + " " + element.textContent.slice(0, 60);
    seen[frame.name] = {
      overflow: root.scrollWidth - root.clientWidth,
      outside: all.filter(one => !scrolls(one) && one.getBoundingClientRect().right > root.clientWidth + 1).map(named),
      headings: [...page.querySelectorAll("h1, h2")].filter(isSeen).map(one => one.textContent),
      hidden: [...page.querySelectorAll("h1, h2")].filter(one => !isSeen(one)).map(named),
      broken: [...page.images].filter(one => !one.complete || one.naturalWidth === 0).map(one => one.alt),
      addresses: [...page.images].filter(one => !one.src.startsWith("data:image/svg+xml")).map(one => one.src),
      scripts: page.scripts.length,
      bold: texts("b"),
      text: page.body.textContent,
      order: sorted ? texts("table.ranking tbody td:nth-child(3)") : null,
      sides: Object.fromEntries(["text", "number"].map(kind => [kind, styles(`td.${kind}`, "textAlign")])),
      inks: styles("body, p, td, th, summary", "color"),
      back: getComputedStyle(page.body).backgroundColor,
    };
  }
  const found = document.createElement("pre");
  found.id = "seen";
  found.textContent = JSON.stringify(seen);
  document.body.append(found);
};
"""
"""The pages are in frames of the widths: a frame has a page's own policy, and a window is never 400 pixels wide."""


def opened(pages, folder, *options):
    """What the pages hold in frames, by name and width; what Chromium's console says; and what it asked a host for."""
    frames = "".join(
        f'<iframe name="{name} {width}" width="{width}" height="900" srcdoc="{escape(text)}"></iframe>'
        for name, text in pages.items()
        for width in WIDTHS
    )
    path = folder / "frames.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><script>{SEEN}</script><body>{frames}", encoding="utf-8")
    folders = (f"--user-data-dir={folder / 'user'}", f"--log-net-log={folder / 'net.json'}")
    command = [CHROMIUM, *OPTIONS, HOSTS, *options, *folders, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, flags=re.S)
    assert found, done.stderr
    requested = re.findall(
        rf'"traffic_annotation":{BY_A_PAGE},"url":"([^"]*)"', (folder / "net.json").read_text(encoding="utf-8")
    )
    return json.loads(unescape(found[1])), re.findall(r":CONSOLE.*", done.stderr), requested


@pytest.fixture(scope="module")
def pages(model, rows, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("browser")
    held, y = rows[0].head(300), rows[1][:300]
    return folder, {
        "model": model.report(folder / "model.html", held, y).read_text(encoding="utf-8"),
        "comparison": build(folder, "binary", contenders=12, evil=True, tune="3")[0],
        "tables": write_summary(tables(folder)).read_text(encoding="utf-8"),
    }


def tables(folder):
    """Ranks of seven contenders on twelve tables, whose names are long."""
    names = [f"{IMAGE} {number} of the twelve" for number in range(12)]
    scores = np.random.default_rng(0).normal(size=(7, 12))
    labels = [f"Contender {number} {EVIL}" for number in range(7)]
    ranking = pd.DataFrame({"label": labels, "score": scores[:, 0]})
    ranks = pd.DataFrame(scores.argsort(axis=0) + 1.0, labels, names)
    ranks = ranks.assign(mean=ranks.mean(axis=1)).sort_values("mean")
    each = dict.fromkeys(names, SimpleNamespace(ranking=ranking))
    return Comparisons(each, ranks, 2.6, 0.4, ["Over 12 tables there is no difference."], {}, folder)


@pytest.fixture(scope="module")
def seen(pages):
    folder, texts = pages
    return opened(texts, folder)


NAMES = [f"{name} {width}" for name in ("model", "comparison", "tables") for width in WIDTHS]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_sticks_out_and_all_headings_are_seen(seen, name):
    page = seen[0][name]
    assert page["overflow"] <= 0
    assert page["outside"] == []
    assert page["hidden"] == []
    assert len(page["headings"]) >= (1 if name.startswith("tables") else 7)
    assert page["broken"] == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_loaded_and_names_are_text(seen, name):
    pages, console, requested = seen
    page = pages[name]
    assert console == []  # errors of scripts, and what the page's policy has stopped
    assert requested == page["addresses"] == []
    is_comparison = name.startswith("comparison")
    assert page["scripts"] == is_comparison
    assert (IMAGE if is_comparison else EVIL) in page["text"]
    assert page["bold"] == ([f"Broken {IMAGE}"] if is_comparison else [])


def test_a_page_with_these_faults_is_found_out(tmp_path):
    page = (
        '<h1 style="display: none">a</h1><h2 style="width: 1500px; overflow: hidden">b</h2><script>nosuch()</script>'
        '<img src="http://127.0.0.1:9/nosuch.png" alt="c"><style>@import "http://127.0.0.1:9/nosuch.css"</style>'
    )
    seen, console, requested = opened({"bad": page}, tmp_path)
    for width in WIDTHS:
        found = seen[f"bad {width}"]
        assert found["overflow"] > 0
        assert found["outside"] == ["H2 b"]
        assert (found["headings"], found["hidden"]) == (["b"], ["H1 a"])
        assert (found["broken"], len(found["addresses"]), found["scripts"]) == (["c"], 1, 1)
    assert any("nosuch is not defined" in line for line in console)
    assert set(requested) == {"http://127.0.0.1:9/nosuch.png", "http://127.0.0.1:9/nosuch.css"}


LAB = """<style>
body { background: #111; color: #eee } .lab table { color: #eee; table-layout: fixed; margin: 0 auto 1em }
.lab td, .lab th, .lab tr { vertical-align: middle; padding: .5em; white-space: normal; border: none }
:not(.markdown).lab td, :not(.markdown).lab th, :not(.markdown).lab tr { text-align: right }
.lab tbody tr:nth-child(odd) { background: #111 } .lab tbody tr:nth-child(even) { background: #212121 }
</style>"""
"""The rules of JupyterLab's dark theme for tables of an output; the browser's scheme stays light."""


def test_fragments_have_the_ink_and_background_of_a_notebook(model, rows, tmp_path):  # noqa: F811
    encoder = MODLEncoder().fit(rows[0], rows[1] > 1)
    made = {"model": model._repr_html_(), "encoder": encoder._repr_html_()}
    seen, console, requested = opened(
        {name: f'{LAB}<div class="lab">{text}</div>' for name, text in made.items()}, tmp_path
    )
    assert console == requested == []
    for page in seen.values():
        assert page["overflow"] <= 0
        assert page["sides"] == {"text": ["left"], "number": ["right"]}
        assert page["inks"] == ["rgb(238, 238, 238)"]
        assert EVIL in page["text"]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_on_a_heading_sorts_the_ranking(seen, width):
    scores = [float(cell.split()[0]) for cell in seen[0][f"comparison {width}"]["order"]]
    assert len(scores) == 12
    assert scores == sorted(scores) and not np.allclose(scores, scores[0])


@pytest.mark.parametrize("name", ["model", "comparison", "tables"])
def test_pages_are_dark_where_the_reader_wants_it(pages, seen, name):
    folder, texts = pages
    dark = opened({name: texts[name]}, folder, "--blink-settings=preferredColorScheme=0")[0]
    light, dark = (page[f"{name} 400"]["back"] for page in (seen[0], dark))
    assert light == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", dark))) < 60
