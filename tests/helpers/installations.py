"""Fresh environments made with pip or uv, what is installed in them, and the wheels that the tests install."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from helpers import TESTS

ROOT = TESTS.parent
OUR_NAMES = ("cuda-bindings", "cuda-core", "cuda-pathfinder", "cuda-python", "cupyrite")
#: Seconds for one command: large packages over a slow network.
LIMIT = 900

#: Describes an environment: versions, and for each file below the shared folders the packages that list it with this
#: content. Runs in the environment, and imports nothing but the standard library.
DESCRIBE = r"""
import base64, hashlib, importlib.metadata as m, json, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
owners, versions, broken = {}, {}, []
for d in m.distributions(path=[str(site)]):
    name = d.metadata["Name"].lower().replace("_", "-")
    versions[name] = d.version
    if not name.startswith("cu"):
        continue
    for f in d.files or ():
        if not str(f).startswith(("cuda/", "cupyrite/")) or "__pycache__" in str(f):
            continue
        path = site / f
        if not path.is_file():
            broken.append(f"{f} of {name} is missing")
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        if f.hash and f.hash.value != digest:
            broken.append(f"{f} of {name} has other content")
        owners.setdefault(str(f), []).append(name)
for top in ("bindings", "core", "pathfinder"):
    for path in (site / "cuda" / top).rglob("*"):
        file = str(path.relative_to(site))
        if path.is_file() and "__pycache__" not in file and file not in owners:
            broken.append(f"{file} belongs to no package")
print(json.dumps({"versions": versions, "owners": owners, "broken": broken}))
"""

#: Imports the three packages and runs a kernel.
FIRST_PROGRAM = """
import importlib.metadata
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, launch
import cuda.pathfinder
assert driver.__file__.endswith("driver.py"), driver.__file__
assert importlib.metadata.version("cuda-bindings").startswith("13.5.0+cupyrite.")
device = Device(); device.set_current(); stream = device.create_stream()
code = 'extern "C" __global__ void squares(int *x) { x[threadIdx.x] = threadIdx.x * threadIdx.x; }'
kernel = Program(code, "c++").compile("cubin").get_kernel("squares")
x = np.zeros(8, np.int32)
buffer = device.allocate(x.nbytes, stream=stream)
launch(stream, LaunchConfig(grid=1, block=8), kernel, buffer)
buffer.copy_to(x, stream=stream); stream.sync()
assert x.tolist() == [i * i for i in range(8)]
"""


def wheels():
    """The folder of Cupyrite's wheels: CUPYRITE_TEST_WHEELS."""
    folder = os.environ.get("CUPYRITE_TEST_WHEELS")
    assert folder, "CUPYRITE_TEST_WHEELS is not set; run these tests with cargo xtask installations"
    return pathlib.Path(folder)


def native_wheel():
    (wheel,) = wheels().glob("cupyrite-*.whl")
    return wheel


@functools.cache
def cache():
    """uv's cache of this process. uv keeps what it unpacked from a wheel of the same name in an earlier build."""
    folder = tempfile.TemporaryDirectory(prefix="cupyrite-uv-")
    atexit.register(folder.cleanup)
    return folder.name


def clean_environment():
    """This process's environment without settings of Python, pip and uv that choose packages or interpreters."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "CUPYRITE_", "CUDA_", "CONDA_", "UV_PROJECT", "PIP_REQUIRE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    fixed = {"CUPYRITE_DEVICE": "cpu", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    return kept | fixed | {"UV_CACHE_DIR": cache(), "UV_LINK_MODE": "copy"}


def call(*command, check=True, cwd=None, **variables):
    """The completed process; fails with its output unless it succeeds or `check` is false."""
    done = subprocess.run(
        list(map(str, command)),
        env=clean_environment() | variables,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert not check or done.returncode == 0, (
        f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    )
    return done


def uv():
    """uv's program, which its wheel puts beside the interpreter."""
    found = shutil.which("uv", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]))
    assert found, "uv is not installed: pip install '.[installations]'"
    return found


class FreshEnvironment:
    """An empty virtual environment; `tool` is pip or uv. With uv it has no pip."""

    def __init__(self, folder, tool):
        self.folder, self.tool = pathlib.Path(folder), tool
        # The newest pip; an interpreter's own may be years old.
        seed = ["--seed"] if tool == "pip" else []
        call(uv(), "venv", *seed, "--no-project", "--python", sys.executable, self.folder)
        self.python = self.folder / "bin" / "python"

    def _command(self, verb, words):
        if self.tool == "pip":
            return [self.python, "-m", "pip", verb, *words]
        return [uv(), "pip", verb, "--python", self.python, *words]

    def install(self, *words, check=True, ours=False):
        """Installs packages; with `ours`, Cupyrite's wheels are found too."""
        places = ["--find-links", wheels()] if ours else []
        return call(*self._command("install", [*places, *words]), check=check)

    def conflicts(self):
        """What the tool's own check complains about; empty if nothing."""
        done = call(*self._command("check", []), check=False)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def run(self, *words, check=True):
        """Runs this environment's interpreter in the root folder."""
        return call(self.python, *words, check=check, cwd="/", PATH=self.path())

    def path(self):
        """PATH with this environment's programs and uv."""
        return os.pathsep.join([str(self.folder / "bin"), str(pathlib.Path(uv()).parent), os.environ["PATH"]])

    def shell(self, command):
        """Runs a printed command as a user does."""
        return call("sh", "-c", command, cwd="/", PATH=self.path())

    def describe(self):
        return json.loads(self.run("-I", "-c", DESCRIBE).stdout)

    def doctor(self):
        """The report of `python -m cupyrite --json`."""
        return json.loads(self.run("-m", "cupyrite", "--json", check=False).stdout)

    def lend_toolkit(self):
        """Makes the CUDA libraries of the running interpreter visible here, without installing a second copy."""
        source = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia"
        assert source.is_dir(), f"{source} does not exist: the interpreter of the tests has no CUDA libraries"
        target = pathlib.Path(self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
        # Clients look for them in their packages' metadata too.
        for folder in [source, *source.parent.glob("nvidia_*.dist-info")]:
            if not (target / folder.name).exists():
                (target / folder.name).symlink_to(folder)

    def assert_cupyrite(self):
        """All `cuda` modules are Cupyrite's, every file has one owner, no conflicts, and a kernel runs."""
        assert self.conflicts() == ""
        found = self.describe()
        assert found["broken"] == []
        shared = {file: names for file, names in found["owners"].items() if len(names) > 1}
        assert shared == {}
        for name in OUR_NAMES[:-1]:
            assert "+cupyrite." in found["versions"][name], found["versions"]
        native = [
            file
            for file in found["owners"]
            if file.startswith(("cuda/bindings/", "cuda/core/", "cuda/pathfinder/")) and file.endswith(".so")
        ]
        assert native == [], "NVIDIA's modules"
        if "numpy" not in found["versions"]:
            self.install("numpy")
        self.lend_toolkit()
        self.run("-W", "ignore", "-c", FIRST_PROGRAM)
        report = self.doctor()
        assert report["ok"], report["problems"]
        assert [p["code"] for p in report["problems"] if p["code"].startswith(("peer", "stand-in", "files"))] == []
