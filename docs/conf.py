"""The documentation site: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``, without a network.

The pages are Markdown that reads on GitHub as well. A link from a page to a file outside of this folder leads, on the
site, to that file in the repository.
"""

import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any
from warnings import filterwarnings

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

filterwarnings("ignore", module="category_encoders")  # of an example; it is about pandas, not about the reader's code

project = "tabsym"
author = copyright = "the authors of tabsym"
version = release = PROJECT["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
suppress_warnings = ["config.cache"]  # the gallery's options hold functions

html_theme = "pydata_sphinx_theme"
html_title = "tabsym"
html_show_sourcelink = False
html_theme_options = {
    "github_url": PROJECT["urls"]["Source"],
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"changelog": [], "benchmarks": [], "errors": []}

myst_heading_anchors = 4

default_role = "code"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # the templates list them

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "subsection_order": [f"gallery/{name}" for name in ("models", "categories", "practice")],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "capture_repr": (),
    "write_computation_times": False,  # that page would load scripts from elsewhere
    "show_memory": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "abort_on_example_error": False,
}

COPIES = {"changelog": "CHANGELOG.md", "benchmarks": "benchmarks/README.md"}
"""Pages of the site that are files from elsewhere in the repository."""


def on_site(text: str, folder: str) -> str:
    """Lead the relative links of a text that lies in `folder` of the repository to pages, or to the repository."""

    def lead(match: re.Match) -> str:
        target, hash_, anchor = match[1].partition("#")
        path = PurePosixPath(*_resolve(PurePosixPath(folder, target).parts))
        if path.parts[:2] == ("docs", "gallery"):
            path = PurePosixPath("docs", "auto_gallery", *path.parts[2:]).with_suffix(".rst")
        if path.parts[:1] == ("docs",) and path.suffix in (".md", ".png", ".rst"):
            here = PurePosixPath("docs" if folder in ("", "benchmarks") else folder)
            up = [".."] * (len(here.parts) - 1)
            return f"]({PurePosixPath(*up, *path.parts[1:])}{hash_}{anchor})"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({PROJECT['urls']['Source']}/{kind}/main/{path}{hash_}{anchor})"

    return re.sub(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)", lead, text)


def _resolve(parts: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        if part == "..":
            found.pop()
        else:
            found.append(part)
    return found


def _read(app: Any, name: str, source: list[str]) -> None:
    """A page as the site has it."""
    if name in COPIES:
        path = PurePosixPath(COPIES[name])
        source[0] = on_site((ROOT / path).read_text(encoding="utf-8"), str(path.parent).removeprefix("."))
    elif (DOCS / f"{name}.md").exists():
        source[0] = on_site(source[0], str(PurePosixPath("docs", name).parent))


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class has from scikit-learn and torch, whose own sites describe it."""
    function = member.fget if isinstance(member, property) else member
    module = getattr(function, "__module__", None) or ""
    foreign = not isinstance(module, str) or not module.startswith("tabsym")
    return True if what == "class" and foreign and callable(function) else None


def setup(app: Any) -> None:
    app.connect("source-read", _read)
    app.connect("autodoc-skip-member", _skip)
