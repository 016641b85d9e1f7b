"""The lower bound: what a hand-written extension module (lower_bound.c) costs, as a further column of core.py and runtime.py."""

import pathlib
import sys
import sysconfig

from harness import HERE
from harness.c_code import build_library, compiler
from harness.sides import Side

COLUMN = "lower bound"


def build(folder):
    """Compiles lower_bound.c in `folder`; None where Python's headers or a compiler are missing."""
    include = sysconfig.get_paths()["include"]
    if compiler() is None or not (pathlib.Path(include) / "Python.h").is_file():
        return None
    return build_library(HERE / "lower_bound.c", folder, f"-I{include}")


def run(library, rounds, environment, *libcudart):
    """What lower_bound_side.py prints in one turn."""
    return Side(COLUMN, sys.executable, environment).json(HERE / "lower_bound_side.py", library, rounds, *libcudart)


def as_runs(runs, names):
    """Its turns in the form of the other sides: a figure per name, None where lower_bound.c lacks the row."""
    turns = runs.get(COLUMN, [])
    return [{"python": [turn["rows"].get(name) for name in names], "loop": turn["loop"]} for turn in turns]
