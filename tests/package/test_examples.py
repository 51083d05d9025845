"""Examples and README run as they stand."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tabsym.datasets import make_retail

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_example_reads_the_truth(capsys):
    runpy.run_path(str(ROOT / "examples" / "read_a_wide_model.py"))
    correlation = float(capsys.readouterr().out.strip().rsplit(" ", 1)[1])
    assert correlation > 0.8


@pytest.mark.slow
def test_readme_python_runs():
    blocks = [
        block
        for page in ("README.md", "docs/index.md")
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
    ]
    assert len(blocks) >= 3
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert "model" in namespace


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("name", "made"),
    [("compare", "result"), ("friends", "model"), ("stacking", "native"), ("unknown_categories", "encoder")],
)
def test_blocks_of_other_guides_run(name, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"), flags=re.S)
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, f"docs/{name}.md", "exec"), namespace)
    assert made in namespace


def test_values_that_comments_of_pages_state():
    """What stands behind a line of the README is what the line gives."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    namespace: dict = {}
    exec(block[1], namespace)
    assert re.search(r'model\.loss_  # "(\w+)"', block[1])[1] == namespace["model"].loss_
    assert "group:week" in namespace["model"].coefs_


@pytest.mark.parametrize("name", ["onnx", "rates", "serving", "sql", "larger_than_memory"])
@pytest.mark.slow
def test_guides_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{name}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert text.split("```python")[0].count("\n\n") == 1  # a title, and then a block that runs
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, f"docs/{name}.md", "exec"), namespace)
    assert ("encoder" if name == "larger_than_memory" else "model") in namespace


MADE = {
    "category_encoders": "crossed",
    "boosters": "stack",
    "ebm": "edited",
    "glm": "tariff",
    "khiops": "model",
    "mixed_models": "model",
    "optbinning": "card",
    "target_encoder": "scores",
    "vowpal_wabbit": "model",
}
"""What the block of each guide makes, by guide."""

GUIDES = [ROOT / "docs" / "category_encoders.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guides_from_other_tools_run(path):
    """A title, a block that runs, a table of translations, and what the package does not do."""
    text = path.read_text(encoding="utf-8")
    assert text.split("```python")[0].count("\n\n") == 1
    assert "| there | here |" in text or "| here |" in text
    assert "## What it does not do" in text
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, path.name, "exec"), namespace)
    assert MADE[path.stem] in namespace


def test_the_page_of_errors_has_the_messages():
    """Each section's block raises the error of its heading."""
    start, *sections = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8").split("\n## ")
    namespace: dict = {}
    exec(re.search(r"```python\n(.*?)```", start, flags=re.S)[1], namespace)
    raised = 0
    for section in sections:
        block = re.search(r"```python\n(.*?)```", section, flags=re.S)
        if block is not None:
            with pytest.raises((ValueError, TypeError)) as info:
                exec(compile(block[1], "errors.md", "exec"), namespace)
            assert section.split("\n")[0] in str(info.value)
            raised += 1
    assert raised >= 15


@pytest.mark.slow
def test_blocks_of_the_guide_to_coefficients_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "wide_models.md").read_text(), flags=re.S)
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "wide_models.md", "exec"), namespace)
    assert "df_residual" in capsys.readouterr().out
    assert namespace["larger"].likelihood_ratio_test(namespace["smaller"])["df"] == 6  # 7 sizes


def test_descent_by_hand_prints_what_paper_gives(capsys):
    runpy.run_path(str(ROOT / "examples" / "descent_by_hand.py"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["1", "slope", "0.555", "b", "0.080"]  # .01 * mean of x y, .01 * mean of y
    assert lines[2].split() == ["2", "slope", "0.892", "b", "0.129"]
    # online: row 1 (1, 1.5) from zero moves both by .015; row 2 (2, 3.5): error .045 - 3.5 = -3.455
    assert lines[7].split() == ["1", "slope", "0.015", "b", "0.015"]
    assert lines[8].split() == ["2", "slope", "0.084", "b", "0.050"]


class AbstractModel:
    """What the classes for TabArena use of AutoGluon's, which does not go with this pandas."""

    def __init__(self, problem_type, eval_metric=None, **options):
        self.problem_type, self.eval_metric, self.options = problem_type, eval_metric, options

    def _get_model_params(self):
        return self.options

    def _get_default_auxiliary_params(self):
        return {"valid_raw_types": None, "max_classes": None}

    def preprocess(self, X, **kwargs):
        return X


@pytest.mark.slow
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_model_classes_for_tabarena(task, monkeypatch):
    mae = object()
    modules = {
        "autogluon.common.space": {"Categorical": lambda *values: values},
        "autogluon.core.constants": {"REGRESSION": "regression"},
        "autogluon.core.metrics": {"mean_absolute_error": mae},
        "autogluon.core.models": {"AbstractModel": AbstractModel},
    }
    for name, values in modules.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**values))
    found = runpy.run_path(str(ROOT / "examples" / "tabarena" / "tabarena_wide.py"))
    table = make_retail(300, random_state=0)
    X, y = table.drop(columns="sales"), table["sales"]
    if task != "regression":
        y = pd.qcut(y, 2 if task == "binary" else 3, labels=False)
    for name in ("TabsymWide", "TabsymStack"):
        model = found[name](task, mae)
        model._fit(X, y, sample_weight=np.ones(300), num_cpus=1, time_limit=10)
        assert type(model.model).__name__ == model.names[task == "regression"]
        if task == "regression":
            assert model.model.get_params().get("scoring", "neg_mean_absolute_error") == "neg_mean_absolute_error"
            assert np.corrcoef(model.model.predict(X), y)[0, 1] > 0.5
        else:
            assert model.model.score(X, y) > 0.6
        assert task in model.supported_problem_types()
        assert "category" in model._get_default_auxiliary_params()["valid_raw_types"]
    if task == "multiclass":  # whose options are those of two classes
        return
    wide = found["TabsymWide"](task)
    for option, values in found["SEARCH_SPACE"].items():
        for value in values:
            wide.options = {option: value}
            wide._fit(X, y)
