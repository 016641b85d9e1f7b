"""Judges that are folders of CUDA C++ programs: each is built, run with a limit, and believed if it verifies itself."""

import dataclasses
import os
import re
import shutil
import signal

from processes import execute
from results import FAILED, NOT_BUILT, PASSED, TOO_SLOW, WAIVED, Result

SECONDS_BUILD = 600
# The exit status by which CUDA's samples say that they do not apply to the device.
EXIT_WAIVED = 2
BAD = re.compile(
    r"\bFAIL(?:ED|URE)?\b|(?i:\b(?:test|verification|comparison|validation|check)\s+failed\b|\bmismatch(?:es)?\b"
    r"|\bCUDA\s*(?:runtime\s+)?error)"
)
# Lines that contain such a word and are no failure.
HARMLESS = re.compile(
    r"\b(?:0|no|zero)\s+(?:errors?|failures?|mismatch\w*)|mismatch(?:es)?\s*[:=]\s*0\b|failed\s*[:=]\s*0\b|\bas expected\b",
    re.I,
)
ELF = b"\x7fELF"


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the programs of a suite lie in its folder and how they are built and run."""

    patterns: tuple[str, ...]  # of the folders of programs, below the suite's folder
    name: str = r"([^/]+)$"  # the group is the program's name
    make: tuple[str, ...] = ()  # words for make, with {toolkit} and {number} of the capability
    run: str = "program"  # "program": the newest program of the folder; "make run"; "script": the file `run`


LAYOUTS = {
    # Makefiles up to release 12.5, CMake from 12.8 on.
    "cuda-samples": Layout(("Samples/*/*", "cpp/*/*"), make=("CUDA_PATH={toolkit}", "SMS={number}")),
    "rodinia": Layout(("cuda/*", "cuda/*/CUDA"), make=("CUDA_DIR={toolkit}",), run="script"),
    "hecbench": Layout(("src/*-cuda",), name=r"([^/]+)-cuda$", make=("ARCH=sm_{number}",), run="make run"),
}


def programs(layout, root):
    """Program names and their folders: those with a build file, sorted by path. Raises ValueError if no folder has one."""
    found = {}
    for pattern in layout.patterns:
        for folder in sorted(root.glob(pattern)):
            if any((folder / name).exists() for name in ("Makefile", "CMakeLists.txt")):
                found.setdefault(re.search(layout.name, folder.as_posix())[1], folder)
    if not found:
        raise ValueError(f"{root}: no programs in {' or '.join(layout.patterns)}; expected the suite's root folder")
    return found


class Workshop:
    """Builds and runs the programs of one suite."""

    def __init__(self, layout, toolkit, capability, launcher, variables, limit):
        """`launcher` are the words before a program, `variables` the environment, `limit` the seconds of a run."""
        self.layout = layout
        self.toolkit = toolkit
        self.capability = capability
        self.launcher = launcher
        self.variables = variables
        self.limit = limit

    def judge(self, name, folder, build=True):
        """Builds the program unless told not to, and runs it."""
        if build:
            detail = self.build(folder)
            if detail is not None:
                return Result(name, NOT_BUILT, 0.0, detail)
        command = self.command(folder)
        if command is None:
            return Result(name, NOT_BUILT, 0.0, missing(folder) or "the build made no program")
        status, seconds, output = self.execute(command, folder, self.limit)
        (folder / "judge-run.log").write_text(output)
        outcome, detail = verdict(status, output)
        return Result(name, outcome, seconds, detail)

    def build(self, folder):
        """Builds in the folder. Returns None, or why there is no program."""
        if (folder / "Makefile").exists():
            number = self.capability.replace(".", "")
            words = [word.format(toolkit=self.toolkit, number=number) for word in self.layout.make]
            commands = [["make", "-B", *words]]
        else:
            build = folder / "build"
            shutil.rmtree(build, ignore_errors=True)
            nvcc = self.toolkit / "bin" / "nvcc"
            options = [f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DCUDAToolkit_ROOT={self.toolkit}"]
            commands = [
                ["cmake", "-S", ".", "-B", str(build), "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared", *options],
                ["cmake", "--build", str(build)],
            ]
        text = ""
        for command in commands:
            status, _, output = self.execute(command, folder, SECONDS_BUILD)
            text += output
            if status != 0:
                break
        (folder / "judge-build.log").write_text(text)
        if status is None:
            return f"not built within {SECONDS_BUILD} s"
        return None if status == 0 else first_error(text)

    def command(self, folder):
        """The words that run the built program, or None."""
        if self.layout.run == "make run":
            return [*self.launcher, "make", "run"]
        if self.layout.run == "script" and (folder / "run").exists():
            return [*self.launcher, "bash", "./run"]
        program = newest_program(folder)
        return program and [*self.launcher, str(program)]

    def execute(self, command, folder, limit):
        """Exit status (None after the limit), seconds and output of a command that finds the toolkit."""
        path = f"{self.toolkit / 'bin'}{os.pathsep}{self.variables['PATH']}"
        variables = dict(self.variables, PATH=path, CUDA_PATH=str(self.toolkit), CUDA_HOME=str(self.toolkit))
        return execute(command, folder, variables, limit)


def newest_program(folder):
    """The newest ELF program in the folder or its folder `build`; no shared library."""
    found = []
    for path in (*folder.iterdir(), *(folder / "build").glob("**/*")):
        if "CMakeFiles" in path.parts or not path.is_file() or not os.access(path, os.X_OK) or ".so" in path.name:
            continue
        with path.open("rb") as file:
            if file.read(4) == ELF:
                found.append(path)
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def verdict(status, output):
    """Outcome and detail of a run from its exit status and its output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = lines[-1][:200] if lines else ""
    if status is None:
        return TOO_SLOW, last
    waived = [line for line in lines if re.search(r"\bwaiv", line, re.I)]
    if status == EXIT_WAIVED and waived:
        return WAIVED, waived[-1][:200]
    if status != 0:
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        bad = [line for line in lines if BAD.search(line)]
        return FAILED, f"{name}: {(bad or [last])[0][:200]}"
    bad = [line for line in lines if BAD.search(line) and not HARMLESS.search(line)]
    return (FAILED, bad[0][:200]) if bad else (PASSED, last)


def missing(folder):
    """What a sample's Makefile, which then builds nothing, says it does not find."""
    log = folder / "judge-build.log"
    found = re.search(r"^.*(?:WARNING|[Ww]aiving).*$", log.read_text(), re.M) if log.exists() else None
    return found and found[0].strip(" ><").removeprefix("WARNING - ")[:200]


def first_error(text):
    """The first error of a compiler, a linker, make or cmake."""
    for pattern in (
        r"(?:fatal )?error\s*:.*",
        r"^.*cannot find .*",
        r"^.*undefined reference.*",
        r"CMake Error.*",
        r"\*\*\* .*",
    ):
        found = re.search(pattern, text, re.M)
        if found:
            return " ".join(found[0].split())[:200]
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no output"
