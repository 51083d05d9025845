"""Examples and README run as they stand."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_example_reads_the_truth(capsys):
    runpy.run_path(str(ROOT / "examples" / "read_a_wide_model.py"))
    correlation = float(capsys.readouterr().out.strip().rsplit(" ", 1)[1])
    assert correlation > 0.8


def test_readme_python_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert blocks
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert "model" in namespace
