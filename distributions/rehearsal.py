"""Rehearses a release: builds all artifacts, serves them as a package index, and installs them as users do.

    python distributions/rehearsal.py --work FOLDER [--artifacts FOLDER] [--only STEP ...] [--python INTERPRETER ...]

Each step is a row of the table at the end: what it did, how long it took, and whether it succeeded. A step that this machine
cannot make is a gap with its reason, not a success. The exit status is 1 if a step failed. `cargo xtask release --dry-run` runs it.

Nothing is published. Packages of others (NumPy, the CUDA toolkit's wheels, NVIDIA's packages) come from the index that pip is
configured for.
"""

import argparse
import contextlib
import functools
import hashlib
import html
import http.server
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

import assemble
import elf
import old_system
import stand_in

OURS = ("cupyrite", *stand_in.NAMES)
#: The published crates, each after those that it needs.
CRATES = (
    "cupyrite-pathfinder",
    "cupyrite-sys",
    "cupyrite-ptx",
    "cupyrite-engine",
    "cupyrite-cpu",
    "cupyrite-cudart",
    "cupyrite",
    "cupyrite-doctor",
)
STEPS = ("build", "check", "pip", "uv", "sdist", "conda", "crates", "old-system")
OLDEST = (3, 11)
#: Seconds for one command: a build with link-time optimisation, large packages over a slow network.
LIMIT = 3600
#: Elements of the demo's arrays.
ELEMENTS = "100000"

#: Prints what is left of Cupyrite in an environment. Runs there after the uninstallation.
LEFT_OVER = """
import importlib.metadata as m, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
names = [d.metadata["Name"] for d in m.distributions() if d.metadata["Name"] in {names!r}]
files = [str(f) for top in ("cupyrite", "cuda") for f in (site / top).rglob("*") if f.is_file() and "__pycache__" not in f.parts]
print(*names, *files)
"""
#: Fails unless the modules are NVIDIA's.
PEERS = """
import importlib.metadata as m
import cuda.bindings.driver as d, cuda.core
assert d.__file__.endswith(".so"), d.__file__
versions = [m.version(n) for n in ("cuda-bindings", "cuda-core", "cuda-pathfinder", "cuda-python")]
assert not any("cupyrite" in v for v in versions), versions
print("cuda-bindings", versions[0])
"""


class Failed(Exception):
    """A step failed; the message says why."""


class Gap(Exception):
    """This machine cannot make a step; the message says why."""


def call(*command, cwd=None, check=True, **variables):
    """The completed process. Raises Failed with the end of its output unless it succeeds or `check` is false."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=clean_environment() | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{' '.join(words)}: {error}") from None
    if check and done.returncode:
        raise Failed(f"{' '.join(words)}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done


def clean_environment():
    """This process's environment without settings that choose packages or interpreters."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "CUPYRITE_", "CUDA_", "CONDA_", "UV_PROJECT", "PIP_REQUIRE", "LD_LIBRARY_PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"CUPYRITE_DEVICE": "cpu", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


def normalized(name):
    """A distribution's name as indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


# ---------------------------------------------------------------------------------------------------------
# The index


def write_index(artifacts, folder):
    """Writes a package index (PEP 503) with these files."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = {}
    for artifact in artifacts:
        name = normalized(artifact.name.split("-")[0])
        target = folder / name / artifact.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artifact, target)
        digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
        shown = html.escape(artifact.name)
        pages.setdefault(name, []).append(f'<a href="{shown.replace("+", "%2B")}#sha256={digest}">{shown}</a><br>')
    start = "<!DOCTYPE html><html><body>\n"
    for name, links in pages.items():
        (folder / name / "index.html").write_text(start + "\n".join(links) + "\n</body></html>\n")
    names = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in pages)
    (folder / "index.html").write_text(f"{start}{names}</body></html>\n")


@contextlib.contextmanager
def served(folder):
    """Serves the folder on the loopback interface; gives its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


# ---------------------------------------------------------------------------------------------------------
# Interpreters


def interpreters(given=()):
    """Version -> path of each CPython from 3.11 on: the given ones, or those on PATH, of pyenv and of uv on this machine."""
    candidates = [pathlib.Path(path) for path in given]
    if not candidates:
        names = (f"python{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], 30))
        candidates = [pathlib.Path(path) for path in map(shutil.which, names) if path]
        pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
        candidates += sorted(pyenv.glob("versions/*/bin/python3"))
        with contextlib.suppress(Gap, Failed):
            managed = pathlib.Path(call(uv(), "python", "dir").stdout.strip())
            candidates += sorted(managed.glob("cpython-*/bin/python3"))
        candidates.append(pathlib.Path(sys.executable))
    ask = (
        "import sys, sysconfig, ensurepip, venv; "
        "print(sys.implementation.name, *sys.version_info[:3], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
    )
    found = {}
    for path in candidates:
        try:
            answer = call(path, "-c", ask, check=False).stdout.split()
        except Failed:
            continue
        if len(answer) != 5 or answer[0] != "cpython" or answer[4] != "0":
            continue
        version = tuple(map(int, answer[1:4]))
        if version >= OLDEST:
            found.setdefault(".".join(answer[1:4]), path)
    if not found:
        raise Failed("no CPython from 3.11 on was found; name one: --python INTERPRETER")
    return dict(sorted(found.items()))


def uv():
    """uv's program, which its package puts beside the interpreter."""
    folders = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("uv", path=folders)
    if found is None:
        raise Gap("uv is not installed: pip install uv")
    return found


# ---------------------------------------------------------------------------------------------------------
# The steps


class Environment:
    """A fresh virtual environment of pip or uv, and an index with Cupyrite."""

    def __init__(self, folder, python, tool, index):
        self.folder, self.tool, self.index = pathlib.Path(folder), tool, index
        self.python = self.folder / "bin" / "python"
        if tool == "pip":
            call(python, "-m", "venv", self.folder)
        else:
            call(uv(), "venv", "--no-project", "--python", python, self.folder)

    def _tool(self, verb, *words):
        if self.tool == "pip":
            return call(self.python, "-m", "pip", verb, *words)
        return call(uv(), "pip", verb, "--python", self.python, *words, UV_LINK_MODE="copy")

    def install(self, *words, ours=True):
        option = {"pip": "--extra-index-url", "uv": "--index"}[self.tool]
        return self._tool("install", *([option, self.index] if ours else []), *words)

    def uninstall(self, *names):
        yes = ["--yes"] if self.tool == "pip" else []
        return self._tool("uninstall", *yes, *names)

    def check(self):
        return self._tool("check")

    def command(self, *words):
        """Runs the console script."""
        return call(self.folder / "bin" / "cupyrite", *words, cwd="/")

    def run(self, code):
        return call(self.python, "-I", "-c", code, cwd="/").stdout.strip()


def try_out(environment):
    """What a user does with an installed Cupyrite; the demo's time of the kernel."""
    version = environment.command("--version").stdout.strip()
    if version != f"cupyrite {stand_in.cupyrite_version()}":
        raise Failed(f"cupyrite --version prints {version!r}")
    report = json.loads(environment.command("doctor", "--json").stdout)
    wrong = [problem["code"] for problem in report["problems"] if problem["severity"] != "note"]
    if not report["ok"] or wrong:
        raise Failed(f"the doctor reports {', '.join(wrong) or 'that kernels do not run'}")
    for topic, expected in (("700", "CUDA_ERROR_ILLEGAL_ADDRESS = 700"), ("doctor", "# The doctor")):
        if not environment.command("explain", topic).stdout.startswith(expected):
            raise Failed(f"cupyrite explain {topic} does not begin with '{expected}'")
    shown = environment.command("demo", "--elements", ELEMENTS).stdout
    if ": correct" not in shown:
        raise Failed(f"the demo's result is not correct:\n{shown}")
    environment.check()


def round_trip(folder, python, tool, index):
    """Installs, tries out, uninstalls, and returns to NVIDIA's packages."""
    environment = Environment(folder, python, tool, index)
    environment.install("cupyrite[all]")
    try_out(environment)
    environment.uninstall(*OURS)
    left = environment.run(LEFT_OVER.replace("{names!r}", repr(OURS)))
    if left or (environment.folder / "bin" / "cupyrite").exists():
        raise Failed(f"uninstalled, and left: {left or 'the command cupyrite'}")
    environment.install("cuda-python", ours=False)
    peers = environment.run(PEERS)
    environment.check()
    return f"demo correct; uninstalled; back to {peers}"


class Rehearsal:
    """The steps and their results."""

    def __init__(self, work, artifacts=None, pythons=()):
        self.work = pathlib.Path(work).resolve()
        self.dist = pathlib.Path(artifacts).resolve() if artifacts else self.work / "dist"
        self.given, self.pythons, self.rows = artifacts is not None, pythons, []

    def step(self, name, where, work):
        """Runs one step and notes its row."""
        print(f"==> {name}: {where}", flush=True)
        start = time.monotonic()
        try:
            outcome, text = "ok", work() or ""
        except Gap as gap:
            outcome, text = "gap", str(gap)
        except (Failed, OSError, RuntimeError, ValueError, AssertionError) as error:
            outcome, text = "FAILED", str(error) or type(error).__name__
        seconds = time.monotonic() - start
        self.rows.append((name, where, seconds, outcome, text))
        print(f"    {outcome}, {seconds:.0f} s: {text}", flush=True)
        return outcome == "ok"

    def artifacts(self):
        """The files to publish; raises Failed unless they are one wheel of cupyrite, the stand-ins and a source distribution."""
        files = sorted([*self.dist.glob("*.whl"), *self.dist.glob("*.tar.gz")])
        kinds = sorted(
            f"{normalized(f.name.split('-')[0])}{'.tar.gz' if f.name.endswith('.gz') else ''}" for f in files
        )
        if kinds != sorted([*OURS, "cupyrite.tar.gz"]):
            raise Failed(
                f"{self.dist} has {', '.join(kinds) or 'no artifacts'}; expected a wheel of each distribution and an sdist"
            )
        return files

    def wheel(self):
        (found,) = [file for file in self.artifacts() if file.name.startswith("cupyrite-") and file.suffix == ".whl"]
        return found

    def build_wheels(self):
        shutil.rmtree(self.dist, ignore_errors=True)
        words = ["--out", self.dist, "--manylinux", "--release", "--locked"]
        call(sys.executable, stand_in.HERE / "assemble.py", *words, cwd=stand_in.ROOT)
        return ", ".join(sorted(file.name for file in self.dist.glob("cupyrite-*")))

    def build_sdist(self):
        call(sys.executable, "-m", "build", "--sdist", "--outdir", self.dist, cwd=stand_in.ROOT)
        return ", ".join(file.name for file in self.dist.glob("*.tar.gz"))

    def check_metadata(self):
        """The upload tool's own checks: descriptions that render."""
        call(sys.executable, "-m", "twine", "check", "--strict", *self.artifacts())
        return f"{len(self.artifacts())} artifacts"

    def check_glibc(self):
        assemble.check(self.wheel())
        with zipfile.ZipFile(self.wheel()) as archive:
            libraries = [name for name in archive.namelist() if ".so" in pathlib.PurePath(name).suffixes]
            newest = max(elf.glibc(archive.read(name)) for name in libraries)
        return f"{len(libraries)} shared libraries need at most glibc {newest[0]}.{newest[1]}"

    def check_sdist(self):
        """The sdist builds in a fresh environment, without the repository."""
        (sdist,) = self.dist.glob("*.tar.gz")
        with tempfile.TemporaryDirectory(prefix="cupyrite-sdist-") as folder:
            python = next(reversed(interpreters(self.pythons).values()))
            environment = Environment(pathlib.Path(folder) / "env", python, "pip", self.dist.as_uri())
            # The stand-ins, which are on no public index.
            environment._tool(
                "install", "--no-cache-dir", "--find-links", self.dist, "numpy", "nvidia-cuda-nvrtc>=13,<14", sdist
            )
            origin = environment.run(
                "import importlib.metadata as m; print(m.distribution('cupyrite').read_text('WHEEL'))"
            )
            if "manylinux_2_28" in origin:
                raise Failed("the wheel was installed, not the sdist")
            shown = environment.command("demo", "--elements", ELEMENTS).stdout
            if ": correct" not in shown:
                raise Failed(f"the demo's result is not correct:\n{shown}")
        return "built, installed; demo correct"

    def check_conda(self):
        """The solver's tests of `cargo xtask installations`."""
        if importlib.util.find_spec("rattler") is None or importlib.util.find_spec("pytest") is None:
            raise Gap("py-rattler and pytest are not installed: pip install '.[installations]'")
        tests = stand_in.ROOT / "tests" / "packaging" / "test_installations.py"
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "installation", "-k", "conda", tests]
        with tempfile.TemporaryDirectory(prefix="cupyrite-unpacked-") as folder:
            # The tests' fixtures import the modules.
            for wheel in self.dist.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(folder)
            variables = {"CUPYRITE_TEST_WHEELS": str(self.dist), "PYTHONPATH": folder}
            done = call(sys.executable, *words, cwd=stand_in.ROOT, **variables)
        return done.stdout.strip().splitlines()[-1].strip("= ")

    def check_crates(self):
        """The crates compile from what would be uploaded."""
        chosen = [word for crate in CRATES for word in ("--package", crate)]
        call(os.environ.get("CARGO", "cargo"), "package", "--locked", "--allow-dirty", *chosen, cwd=stand_in.ROOT)
        return f"{len(CRATES)} crates packaged and compiled"

    def check_old_system(self):
        """A Debian with an older C library."""
        try:
            system = old_system.ready(self.work / "old-system", call)
        except old_system.Missing as missing:
            raise Gap(str(missing)) from None
        return system.rehearse(self.dist, ELEMENTS)

    def run(self, only):
        """Runs the steps; returns whether none failed."""
        if "build" in only and not self.given:
            if not self.step("build", "wheels, zig", self.build_wheels):
                return False
            self.step("build", "sdist", self.build_sdist)
        if not self.step("check", "artifacts", lambda: f"{len(self.artifacts())} in {self.dist}"):
            return False
        if "check" in only:
            self.step("check", "twine --strict", self.check_metadata)
            self.step("check", "C library", self.check_glibc)
        write_index(self.artifacts(), self.work / "index")
        with served(self.work / "index") as index:
            found = interpreters(self.pythons)
            for tool in [tool for tool in ("pip", "uv") if tool in only]:
                for version, python in found.items():
                    with tempfile.TemporaryDirectory(prefix="cupyrite-environment-") as folder:
                        work = functools.partial(round_trip, pathlib.Path(folder) / "env", python, tool, index)
                        self.step(tool, f"CPython {version}", work)
        if "sdist" in only:
            self.step("sdist", "pip, from source", self.check_sdist)
        if "conda" in only:
            self.step("conda", "solver", self.check_conda)
        if "crates" in only:
            self.step("crates", "cargo package", self.check_crates)
        if "old-system" in only:
            self.step("old-system", old_system.NAME, self.check_old_system)
        return not any(outcome == "FAILED" for _, _, _, outcome, _ in self.rows)

    def table(self):
        """The artifacts with their sizes, and the rows."""
        lines = ["", f"{'artifact':<70} {'bytes':>10}"]
        with contextlib.suppress(Failed):
            lines += [f"{file.name:<70} {file.stat().st_size:>10,}" for file in self.artifacts()]
        lines += ["", f"{'step':<11} {'where':<22} {'seconds':>7}  result"]
        for name, where, seconds, outcome, text in self.rows:
            first = text.strip().splitlines()[0] if text.strip() else ""
            lines.append(f"{name:<11} {where:<22} {seconds:>7.0f}  {outcome}{': ' if first else ''}{first}")
        return "\n".join(lines)


def main(argv=None):
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for everything that this writes")
    parser.add_argument("--artifacts", type=pathlib.Path, help="folder with built artifacts, instead of building them")
    parser.add_argument("--only", action="append", choices=STEPS, help="this step; may be repeated")
    parser.add_argument("--python", action="append", default=[], help="this interpreter; may be repeated")
    options = parser.parse_args(argv)
    rehearsal = Rehearsal(options.work, options.artifacts, options.python)
    try:
        passed = rehearsal.run(options.only or STEPS)
    except (Failed, Gap) as error:
        print(error, file=sys.stderr)
        passed = False
    print(rehearsal.table())
    gaps = [where for _, where, _, outcome, _ in rehearsal.rows if outcome == "gap"]
    missing = f"; not possible here: {', '.join(gaps)}" if gaps else ""
    print(f"\n{'rehearsal passed' if passed else 'rehearsal FAILED'}{missing}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
