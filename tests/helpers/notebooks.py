"""Executing the notebooks of docs/notebooks.

`python tests/helpers/notebooks.py NAME.ipynb...` writes the outputs into the files.
"""

import pathlib
import sys
import tempfile

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks"


def execute(path, folder):
    """The notebook with the outputs of a run in the folder. A cell that raises ends it with an exception."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, 4)
    metadata = notebook.metadata.copy()
    nbclient.NotebookClient(
        notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(folder)}}
    ).execute()
    # The kernel adds the version of its Python.
    notebook.metadata = metadata
    return notebook


if __name__ == "__main__":
    import nbformat

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(execute(name, folder), name)
