"""The notebooks run without an error, and are committed with the outputs of such a run."""

import importlib.util
import json
import re

import pytest

from helpers.notebooks import NOTEBOOKS, execute

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MISSING = [name for name in ("nbclient", "ipykernel", "matplotlib") if importlib.util.find_spec(name) is None]
#: Bytes. Larger ones load slowly where they are rendered.
LARGEST = 300_000
each_notebook = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def outputs(cells):
    return [output for cell in cells for output in cell.get("outputs", [])]


def pictures(cells):
    """The outputs that are pictures or drawings."""
    data = [output.get("data", {}) for output in outputs(cells)]
    return [shown for shown in data if "image/png" in shown or "<svg" in "".join(shown.get("text/html", ""))]


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
@each_notebook
def test_notebook_runs(path, tmp_path, monkeypatch):
    # The notebook chooses how it draws, and leaves no history behind.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    ran = execute(path, tmp_path)
    committed = json.loads(path.read_text())
    assert len(pictures(ran.cells)) == len(pictures(committed["cells"])) > 0


@each_notebook
def test_notebook_is_committed_with_its_outputs(path):
    text = path.read_text()
    cells = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(cells) if output["output_type"] == "error"]
    assert len(text.encode()) < LARGEST
    assert "**You learn**" in "".join(cells[0]["source"])
    # Pictures are base64, in which anything can occur.
    words = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.findall(r"/(?:home|root|tmp|work)/|site-packages", words)


def test_debugging_notebook_shows_thread_and_line():
    shown = (NOTEBOOKS / "05_debugging.ipynb").read_text()
    assert "block (0, 0, 0), thread (0, 0, 0)" in shown and "source /smooth.cu:6" in shown


def test_readme_lists_every_notebook():
    text = (NOTEBOOKS / "README.md").read_text()
    assert len(PATHS) >= 5
    assert [path.name for path in PATHS] == re.findall(r"\]\((.*\.ipynb)\)", text)
