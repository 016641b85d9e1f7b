"""What the benchmarks share: the interpreters to compare, and how their figures are shown.

Three ways to say where things are:

* nothing: this interpreter has Cupyrite installed (``cargo xtask bench``);
* ``--wheel FILE``: the wheel is unpacked into a temporary folder, for machines where nothing is installed;
* ``--peer PYTHON`` (or CUPYRITE_PEER_PYTHON): an interpreter with NVIDIA's package. With ``--wheel`` the interpreter
  itself is tried.
"""

import argparse
import atexit
import compileall
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Side:
    """One of the programs compared: a name, an interpreter, and its environment."""

    name: str
    python: str
    environment: dict

    def run(self, *words, check=True):
        """Standard output of the interpreter with these words."""
        result = subprocess.run(
            [self.python, *map(str, words)], env=self.environment, capture_output=True, text=True, cwd=HERE
        )
        if check and result.returncode != 0:
            sys.exit(f"{self.name}: {' '.join(map(str, words))}\n{result.stdout}{result.stderr}")
        return result.stdout if result.returncode == 0 else None

    def json(self, *words):
        """The JSON that the interpreter prints as its last line."""
        return json.loads(self.run(*words).strip().splitlines()[-1])

    def has(self, module, without=None):
        """Whether this side can import `module`, and cannot import `without`."""
        script = (
            "import importlib.util as u, sys\n"
            "def there(n):\n"
            "    try: return u.find_spec(n) is not None\n"
            "    except ModuleNotFoundError: return False\n"
            "a = sys.argv[1:]\n"
            "print(int(there(a[0]) and not (len(a) > 1 and there(a[1]))))"
        )
        return self.run("-c", script, module, *([without] if without else [])).strip() == "1"


def parser(description):
    """An argument parser with the options above."""
    options = argparse.ArgumentParser(description=description.splitlines()[0])
    options.add_argument("--wheel", type=pathlib.Path, help="Cupyrite's wheel, to be unpacked and used")
    options.add_argument(
        "--peer", default=os.environ.get("CUPYRITE_PEER_PYTHON"), metavar="PYTHON", help="has NVIDIA's package"
    )
    return options


def sides(options):
    """(ours, peer or None)."""
    environment = dict(os.environ)
    bare = Side("bare", sys.executable, environment)
    if options.wheel:
        folder = tempfile.mkdtemp(prefix="cupyrite-bench-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        with zipfile.ZipFile(options.wheel) as wheel:
            wheel.extractall(folder)
        compileall.compile_dir(folder, quiet=2)
        path = os.pathsep.join(filter(None, (folder, environment.get("PYTHONPATH"))))
        ours = Side("cupyrite", sys.executable, dict(environment, PYTHONPATH=path))
    else:
        ours = Side("cupyrite", sys.executable, environment)
    if not ours.has("cupyrite"):
        sys.exit(f"{sys.executable} has no Cupyrite: use --wheel FILE, or cargo xtask bench")
    peer = None
    if options.peer:
        without_ours = {k: v for k, v in environment.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        peer = Side("peer", options.peer, without_ours)
        if not peer.has("cuda.bindings", without="cupyrite"):
            sys.exit(f"{options.peer} has no package of NVIDIA's")
    elif options.wheel and bare.has("cuda.bindings", without="cupyrite"):
        peer = Side("peer", sys.executable, environment)
    return ours, peer


def compiler():
    """The C compiler, or None."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "cc", "gcc", "clang"))), None)


def build(name, folder):
    """Compiles `name`.c as a program and as a library below `folder`; returns both paths."""
    program = folder / name
    compile_c("-o", program, HERE / f"{name}.c", "-ldl")
    return program, build_library(name, folder)


def build_library(name, folder):
    """Compiles `name`.c as a library below `folder`; returns its path."""
    library = folder / f"{name}.so"
    compile_c("-shared", "-fPIC", "-o", library, HERE / f"{name}.c", "-ldl")
    return library


def compile_c(*words):
    cc = compiler()
    if cc is None:
        sys.exit("a C compiler is needed (cc, gcc or clang on PATH, or CC)")
    subprocess.run([cc, "-O2", *words], check=True)


def machine():
    """One line about where this was measured."""
    model = "unknown processor"
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} threads, Python {sys.version.split()[0]}"


def table(header, rows):
    """Prints rows of text under a header, the first column to the left, the others to the right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for number, row in enumerate([header, *rows]):
        cells = [str(row[0]).ljust(widths[0]), *(str(c).rjust(w) for c, w in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))
