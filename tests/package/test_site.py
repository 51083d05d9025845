"""The documentation site: it builds without a warning, leaves no public name out, and its links and pictures are there.

The gallery is not run by the build here: its scripts run one by one, as the examples do.
"""

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("api/index.md")])
TEXTS = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))]
GALLERY = sorted(DOCS.glob("gallery/*/plot_*.py"))


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    """By the builder that writes no pages: all are read, and their references looked up."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=False", "-b", "dummy"]
    built = subprocess.run([*command, "-E", str(DOCS), str(tmp_path)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


def slugs(text):
    """The anchors of a page's headings, by GitHub's rule."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: path.stem)
def test_no_link_is_broken(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        if anchor and path.suffix == ".md":
            assert anchor in slugs(path.read_text(encoding="utf-8")), link


def names_of(path):
    """`__all__` of a module, which is not imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (names,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__")
    return set(ast.literal_eval(names))


@pytest.mark.parametrize(
    "module",
    [
        *("tabsym/__init__", "tabsym/optimizers", "tabsym/datasets", "integrations/tabsym_torch/__init__"),
        *(f"tabsym/{name}/__init__" for name in ("export", "losses", "interactions", "compare", "plots")),
    ],
)
def test_the_reference_has_every_public_name(module):
    page = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", page, flags=re.M))
    assert listed >= names_of(ROOT / f"{module}.py") - {"datasets", "plots"}  # modules


def test_every_page_is_in_the_tree():
    trees = "".join(
        f"\n{block}\n"
        for page in PAGES
        for block in re.findall(r"```\{toctree\}(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    )
    names = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"index"}
    assert names <= set(trees.split())


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_script_draws(path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    runpy.run_path(str(path), run_name="__main__")
    axes = [ax for number in plt.get_fignums() for ax in plt.figure(number).axes]
    drawn = [ax for ax in axes if ax.lines or ax.patches or ax.collections or ax.images]
    titled = [ax for ax in drawn if any(ax.get_title(loc=side) for side in ("left", "center", "right"))]
    assert titled
    assert all(ax.get_xlabel() for ax in titled)
    plt.close("all")
