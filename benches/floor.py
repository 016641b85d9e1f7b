"""What floor.c measures, as a further column of core.py and runtime.py: the least that Python can cost."""

import json
import pathlib
import subprocess
import sys
import sysconfig

from sides import HERE, compiler


def build(folder):
    """Compiles floor.c below `folder`; None where Python's headers or a compiler are missing."""
    include, cc = sysconfig.get_paths()["include"], compiler()
    if cc is None or not (pathlib.Path(include) / "Python.h").is_file():
        return None
    library = folder / "floor.so"
    subprocess.run([cc, "-O2", "-shared", "-fPIC", f"-I{include}", "-o", library, HERE / "floor.c"], check=True)
    return library


def run(library, rounds, environment, *libcudart):
    """One turn: what the side printed."""
    command = [sys.executable, HERE / "floor_side.py", library, str(rounds), *libcudart]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=HERE).stdout
    return json.loads(text.splitlines()[-1])


def in_order(runs, names):
    """Its turns in the form of the other sides: a figure for each of the names, None where floor.c has no such row."""
    turns = runs.get("floor", [])
    return [{"python": [turn["rows"].get(name) for name in names], "loop": turn["loop"]} for turn in turns]
