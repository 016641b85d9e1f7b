"""The sides of a benchmark: Cupyrite and its peer, each an interpreter with an environment; and how results are printed.

The interpreters are chosen by:

* nothing: this interpreter has Cupyrite installed (``cargo xtask bench``);
* ``--wheel FILE``: the wheel is unpacked into a temporary folder, for machines where nothing can be installed;
* ``--peer PYTHON`` (or CUPYRITE_PEER_PYTHON): an interpreter with NVIDIA's package. With ``--wheel`` the default is this
  interpreter, if it has NVIDIA's package.
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

from harness import BENCHES

sys.path.append(str(BENCHES.parent / "tests"))

from helpers.wheels import unpack


@dataclasses.dataclass
class Side:
    """One of the programs compared: a name, an interpreter, and its environment."""

    name: str
    python: str
    environment: dict

    def run(self, *words, check=True):
        """Standard output of the interpreter with these arguments; None where it fails and `check` is false."""
        path = os.pathsep.join(filter(None, (self.environment.get("PYTHONPATH"), str(BENCHES))))
        result = subprocess.run(
            [self.python, *map(str, words)],
            env=dict(self.environment, PYTHONPATH=path),
            capture_output=True,
            text=True,
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
            "def found(n):\n"
            "    try: return u.find_spec(n) is not None\n"
            "    except ModuleNotFoundError: return False\n"
            "a = sys.argv[1:]\n"
            "print(int(found(a[0]) and not (len(a) > 1 and found(a[1]))))"
        )
        return self.run("-c", script, module, *([without] if without else [])).strip() == "1"


def parser(description):
    """An argument parser with the options above."""
    options = argparse.ArgumentParser(description=description.splitlines()[0])
    options.add_argument("--wheel", type=pathlib.Path, help="Cupyrite's wheel, to unpack and measure")
    options.add_argument(
        "--peer",
        default=os.environ.get("CUPYRITE_PEER_PYTHON"),
        metavar="PYTHON",
        help="interpreter with NVIDIA's package",
    )
    return options


def find_sides(options):
    """(ours, peer or None)."""
    environment = dict(os.environ)
    bare = Side("bare", sys.executable, environment)
    if options.wheel:
        folder = tempfile.mkdtemp(prefix="cupyrite-bench-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        unpack(options.wheel, folder)
        compileall.compile_dir(folder, quiet=2)
        path = os.pathsep.join(filter(None, (folder, environment.get("PYTHONPATH"))))
        ours = Side("cupyrite", sys.executable, dict(environment, PYTHONPATH=path))
    else:
        ours = Side("cupyrite", sys.executable, environment)
    if not ours.has("cupyrite"):
        sys.exit(f"{sys.executable} cannot import cupyrite: pass --wheel FILE, or run cargo xtask bench")
    peer = None
    if options.peer:
        without_ours = {k: v for k, v in environment.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        peer = Side("peer", options.peer, without_ours)
        if not peer.has("cuda.bindings", without="cupyrite"):
            sys.exit(f"--peer {options.peer}: cannot import NVIDIA's cuda.bindings")
    elif options.wheel and bare.has("cuda.bindings", without="cupyrite"):
        peer = Side("peer", sys.executable, environment)
    return ours, peer


def find_core_sides(options):
    """As `find_sides`; a peer without cuda.core is left out."""
    ours, peer = find_sides(options)
    if peer is not None and not peer.has("cuda.core", without="cupyrite"):
        print("(the peer has no cuda.core and is left out)")
        peer = None
    return ours, peer


def without_cpu_peer(peer, on_cpu):
    """The peer; None, with a message, on the CPU device, which only Cupyrite has."""
    if on_cpu and peer is not None:
        print("(NVIDIA's package has no CPU device and is left out)")
        return None
    return peer


def machine():
    """One line about this machine."""
    model = "unknown processor"
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} threads, Python {sys.version.split()[0]}"


def verdict(held):
    """The last column of a row with a budget."""
    return "held" if held else "MISSED"


def table(header, rows):
    """Prints rows of text under a header, the first column left-aligned, the others right-aligned."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for number, row in enumerate([header, *rows]):
        cells = [str(row[0]).ljust(widths[0]), *(str(c).rjust(w) for c, w in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))
