"""The report: an HTML parser finds no element or address that comes from data, and the parts that it should have."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabsym.compare.column_gains import column_gains, column_levels, leak_sentences
from tabsym.compare.job import RunConfig
from tabsym.compare.metrics import choose_metric, score_fold
from tabsym.compare.report import sort_key, write_report
from tabsym.compare.results import Results
from tabsym.compare.run import _ranking
from tabsym.compare.settings import settings_of
from tabsym.compare.splits import make_plan
from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.compare.text import summary

EVIL = "<img src=x onerror=alert(1)>"
NAMES = [
    EVIL,
    "\"quoted\" & 'so' onmouseover=alert(2)",
    "</script><script>alert(3)</script>",
    "</style><b>",
    "{{ 7 * 7 }}",
]
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li", "b", "details", "summary",
    "div", "table", "thead", "tbody", "tr", "th", "td", "img", "script",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "open", "data-sort", "src", "alt", "style",
}  # fmt: skip
CLASSES = {
    "muted", "summary", "scroll", "ranking", "sortable", "ranking sortable", "best", "flagged", "number", "said",
    "name", "bar", "",
}  # fmt: skip


class Page(HTMLParser):
    """Elements, attributes, text; and what is in the script."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.stack = [], [], []
        self.text, self.scripts, self.titles, self.images, self.rows = "", [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag == "script":
            self.scripts.append("")
        if tag == "img":
            self.images.append(dict(attrs))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in ("meta", "img"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            self.scripts[-1] += data
        elif self.stack and self.stack[-1] == "title":
            self.titles.append(data)
        elif self.stack and self.stack[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        self.text += data


def table_of(task, n=400, evil=False, seed=0):
    rng = np.random.default_rng(seed)
    names = NAMES if evil else ["colour", "size", "day", "flag", "zone"]
    code, size = rng.integers(0, 5, n), rng.normal(size=n)
    words = np.array([*NAMES[:3], "c", "d"] if evil else list("abcde"))
    effect = code - 2 + size
    table = pd.DataFrame({
        names[0]: words[code], names[1]: size, names[2]: pd.date_range("2024-01-01", periods=n, freq="D"),
        names[3]: rng.random(n) < 0.5, names[4]: rng.choice(words, n),
    })  # fmt: skip
    table.loc[: n // 20, names[1]] = np.nan
    target = f"t {EVIL}" if evil else "target"
    outcome = effect + rng.normal(size=n)
    if task == "binary":
        table[target] = np.where(outcome > 0, f"yes {EVIL}" if evil else "yes", "no")
    elif task == "multiclass":
        table[target] = np.array([f"A {EVIL}" if evil else "A", "B", "C</td>" if evil else "C"])[
            np.digitize(outcome, [-1, 1])
        ]
    elif task == "count":
        table["years <i>" if evil else "years"] = rng.uniform(0.2, 2, n)
        table[target] = rng.poisson(np.exp(effect / 1.5 - 0.5) * table.iloc[:, -1])
    else:
        table[target] = outcome * 3 + 0.25
    return table, target, effect


def build(folder, task, *, contenders=3, evil=False, repeats=1, groups=None, weight=False, tune=None):
    """A report of contenders that are made up: what is known with noise, more of it from one to the next."""
    table, target, effect = table_of(task, evil=evil)
    if weight:
        table["w"] = np.random.default_rng(1).uniform(0.5, 2, len(table))
    roles = RoleColumns(
        weight="w" if weight else None, exposure=[*table][-2] if task == "count" else None, groups=groups
    )  # fmt: skip
    prepared = prepare(table, target, task=task, roles=roles)
    metric = choose_metric(task, None)
    plan = make_plan(
        prepared.frame, folds=3, repeats=repeats, seed=0, groups=groups, time=None, fold_column=None, unseen=None
    )  # fmt: skip
    splits = plan.splits(prepared.y, task)
    config = RunConfig(prepared, plan, splits, metric, None, tune, 0, 1)
    results = Results(settings_of(config, EVIL if evil else "sales"))
    names = ["constant", *(f"{EVIL}{k}" if evil else f"mine-{k}" for k in range(contenders - 1))]
    for place, name in enumerate(names):
        random = np.random.default_rng(place)
        for fold, (train, test) in enumerate(splits):
            known = effect[test] + random.normal(size=len(test)) * 0.4 * place
            prediction = predicted(prepared, train, test, known if place else None)
            told = {
                "fit_seconds": 0.1 * 3**place, "predict_seconds": 0.01, "predict_row_seconds": 1e-5,
                "one_row_seconds": 1e-3, "peak_bytes": 10**7, "model_bytes": 10**5, "unweighted": False,
                "fit_cpu_seconds": 0.1, **score_fold(prepared, test, prediction, metric),
            }  # fmt: skip
            if tune:
                told |= {
                    "params": {f"a{EVIL}": 0.1} if evil else {"a": 0.1},
                    "tried": 3,
                    "failed": 0,
                    "tune_seconds": 1.0,
                }
            results.add(name, name if place else "Baseline", fold, told, prediction, folder)
    if evil:
        results.fail("broken", f"Broken {EVIL}", f"ValueError: {EVIL}")
    ranking = _ranking(config, results, folder)
    results.settings["levels"] = column_levels(prepared, 0) if evil else []
    results.settings["column_gains"] = column_gains(prepared, splits, metric, ranking, folder, 0)
    sentences = summary(ranking, [], results.settings, [])
    sentences += leak_sentences(results.settings["column_gains"], ranking)
    path = write_report(results, ranking, sentences, folder, prepared, splits, plan.clusters)
    text = path.read_text(encoding="utf-8")
    return text, Page(text), ranking


def predicted(prepared, train, test, known):
    if prepared.classes:
        n = len(prepared.classes)
        if known is None:
            return np.tile(np.bincount(prepared.y[train], minlength=n) / len(train), (len(test), 1))
        edges = [0.0] if n == 2 else [-1.0, 1.0]
        up = np.stack([1 / (1 + np.exp(2 * (edge - known))) for edge in edges], axis=1)
        cumulative = np.concatenate([np.ones((len(test), 1)), up, np.zeros((len(test), 1))], axis=1)
        mass = cumulative[:, :-1] - cumulative[:, 1:]
        order = np.argsort([["no", "yes"], ["A", "B", "C"]][n - 2]) if n < 4 else np.arange(n)
        return mass[:, order]
    if prepared.exposure is not None:
        rate = prepared.y[train].sum() / prepared.exposure[train].sum() if known is None else np.exp(known / 1.5 - 0.5)
        return rate * prepared.exposure[test]
    return np.full(len(test), prepared.y[train].mean()) if known is None else known * 3 + 0.25


CASES = {
    "binary": {"task": "binary"},
    "multiclass": {"task": "multiclass"},
    "count": {"task": "count"},
    "amounts": {"task": "regression", "weight": True, "repeats": 2},
    "one": {"task": "binary", "contenders": 1},
    "many": {"task": "regression", "contenders": 13, "tune": "3"},
    "groups": {"task": "regression", "groups": "zone"},
    "evil binary": {"task": "binary", "evil": True, "tune": "3"},
    "evil multiclass": {"task": "multiclass", "evil": True},
    "evil count": {"task": "count", "evil": True},
}


@pytest.fixture(scope="module", params=list(CASES))
def built(request, tmp_path_factory):
    options = CASES[request.param]
    return request.param, options, *build(tmp_path_factory.mktemp("report"), **options)


def test_nothing_in_the_page_comes_from_data_but_text(built):
    _, _, text, page, _ = built
    assert set(page.elements) <= ELEMENTS
    assert {name for _, name, _ in page.attributes} <= ATTRIBUTES
    assert {value for _, name, value in page.attributes if name == "class"} <= CLASSES
    for tag, name, value in page.attributes:
        if name == "style":
            assert re.fullmatch(r"width: \d+\.\drem", value), (tag, value)
        if name == "data-sort":
            float(value)
        if name == "alt":
            assert "<" not in value
    assert page.stack == []
    assert len(page.scripts) == 1
    assert page.elements.count("title") == 1
    assert "49" not in re.sub(r"[\d.,]+\d", "", page.text)  # names are no templates
    assert "javascript:" not in text


def test_nothing_is_loaded_from_elsewhere_and_the_policy_allows_the_script_alone(built):
    _, _, text, page, _ = built
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.images)
    assert not re.search(r"https?:|url\(|@import|<link|srcset|href", re.sub(r'src="data:[^"]*"', "", text))
    policy = next(value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    for image in page.images:
        drawing = base64.b64decode(image["src"].split(",", 1)[1]).decode()
        assert "<script" not in drawing
        assert "onerror=alert(1)>" not in drawing or "&lt;img" in drawing


def test_the_parts_are_there_in_order(built):
    case, options, text, page, ranking = built
    want = ["How the table was read", "Summary", "Ranking"]
    if options["task"] != "multiclass":
        want += ["Lift, and predicted next to observed by decile", "Where "]
    if options.get("contenders", 3) > 1:
        want.append("Each column alone")
    want += ["Other metrics, and totals"]
    if options.get("tune"):
        want.append("Tuned settings")
    if options.get("evil"):
        want.append("Failed or not run")
    want.append("Provenance")
    found = re.findall(r"<h2>(.*?)</h2>", text)
    assert len(found) == len(want), (case, found)
    assert all(one.startswith(wanted) for one, wanted in zip(found, want, strict=True))
    for row in ranking:
        assert any(row["label"] in cells for cells in page.rows)
    if options.get("evil"):
        for name in (EVIL, f"A {EVIL}" if options["task"] == "multiclass" else EVIL):
            assert name in page.text
        assert page.titles == [f"tabsym compare: {EVIL}"]


def test_gini_is_among_the_other_metrics_where_rows_have_an_order(built):
    _, options, _, page, ranking = built
    rows = [row for row in page.rows if row and row[-1] == "Gini (normalized)"]
    assert bool(rows) == (options["task"] != "multiclass")
    if options["task"] == "binary":
        row = next(row for row in page.rows if row[1:2] == [ranking[0]["label"]] and len(row) == len(rows[0]))
        assert float(row[-1]) == pytest.approx(2 * ranking[0]["scores"]["auc"] - 1, abs=1e-4)


def test_the_best_sorts_as_no_difference_to_itself(built):
    text = built[2]
    best = text[text.index('<tr class="best">') :].partition("</tr>")[0]
    assert 'data-sort="0"></td>' in best
    assert (
        len(re.findall("<td", best))
        == len(re.findall("<th", text[text.index("ranking sortable") :].partition("</tr>")[0])) - 1
    )


def test_cells_sort_by_their_first_number():
    assert sort_key("0.8123 ± 0.01") == pytest.approx(0.8123)
    assert sort_key("12,345") == 12345
    assert sort_key("-0.5") == -0.5
    assert sort_key("+1.2e-05") == pytest.approx(1.2e-5)
    assert sort_key("3.2 % worse [-1 to +7 %]") == pytest.approx(3.2)
    assert sort_key("3.2 % better [-7 to +1 %]") == pytest.approx(-3.2)
    assert sort_key("1.5 worse [+1 to +2]") == pytest.approx(1.5)
    assert sort_key("") is None
    assert sort_key("-") is None
    assert sort_key("2nd hand cars") == 2.0 or sort_key("2nd hand cars") is None


def test_the_script_makes_no_elements_of_text():
    """The script runs in `test_browser.py`; here: that it makes nothing of what cells hold."""
    script = (Path(__file__).parents[2] / "tabsym/compare/sort.js").read_text()
    assert "dataset.sort" in script
    assert "eval" not in script
    assert "innerHTML" not in script
