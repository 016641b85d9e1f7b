"""Holds the device against programs and tests from outside, and prints a table of what does not pass.

    python tests/judges/run.py [--wheels FOLDER] [--device cpu|gpu] JUDGE [PATH] [OPTION ...]
    python tests/judges/run.py --toolkit

`cargo xtask judges` calls it with Cupyrite's wheels. PATH is a checkout or an archive (.tar.*, .zip) of the suite; an archive is
unpacked, a checkout is copied, and nothing is written into either. docs/judges.md describes the judges.
"""

import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import programs  # noqa: E402
import results  # noqa: E402
import suites  # noqa: E402
import toolkit  # noqa: E402

JUDGES = {
    "cuda-samples": "NVIDIA's CUDA samples: a checkout of NVIDIA/cuda-samples, or of the Debian package nvidia-cuda-samples",
    "rodinia": "Rodinia: a checkout with its folders cuda and data",
    "hecbench": "HeCBench: a checkout of zjin-lcf/HeCBench",
    "ptx_tests": "single instructions: a checkout of vosen/ptx_tests; needs cargo",
    "ctest": "a build folder of CMake with tests that was configured with --toolkit's nvcc: CUB, Thrust, CUTLASS",
    "pytest": "a folder of Python tests, with the packages of --with: Triton, numba-cuda-mlir",
    "stumpy": "stumpy: its source archive from PyPI (fetched without PATH); also timed on Numba's simulator",
}
SECONDS, SECONDS_TOTAL = 120, 3600


class Options:
    """What a suite needs to run."""

    def __init__(self, arguments, work):
        self.work = work
        self.only = arguments.only
        self.limit = arguments.limit
        self.total = arguments.total
        self.python = arguments.python
        self.cpu = arguments.device == "cpu"
        self.variables = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        self.launcher, self.libraries = [], None
        if self.cpu:
            self.variables["CUPYRITE_CPU_COMPUTE_CAPABILITY"] = arguments.capability
            self.launcher = [str(self.python), "-m", "cupyrite", "run", "--device", "cpu"]
            words = [self.python, "-m", "cupyrite", "run", "--print-libdir"]
            self.libraries = pathlib.Path(
                subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
            )

    def wanted(self, name):
        """Whether the name matches the pattern of `--only`."""
        return not self.only or fnmatch.fnmatch(name, self.only)

    def progress(self, result):
        """Prints a result as it comes."""
        print(f"{result.outcome:9} {result.name} ({result.seconds:.1f} s) {result.detail}", flush=True)


def checkout(path, work, reuse):
    """A copy of the checkout or archive in `work`. Raises ValueError if there is nothing usable."""
    place = work / "source"
    if reuse and place.exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    if path.is_dir():
        shutil.copytree(path, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return place
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(place, filter="data")
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(place)
    else:
        raise ValueError(f"{path}: expected a folder, a tar archive or a zip archive")
    inside = list(place.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else place


def from_pypi(name, work):
    """The source archive of a package."""
    folder = work / "archives"
    found = sorted(folder.glob(f"{name}-*.tar.gz"))
    if not found:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--no-binary", ":all:", "--dest", folder, name], check=True)
        found = sorted(folder.glob(f"{name}-*.tar.gz"))
    return found[-1]


def judge_programs(arguments, options, root):
    """Builds and runs the programs of a suite."""
    layout = programs.LAYOUTS[arguments.judge]
    kit = build_toolkit(arguments, options)
    variables = dict(options.variables)
    # CMake, if the environment of the judge has it.
    variables["PATH"] = f"{options.python.parent}{os.pathsep}{variables['PATH']}"
    # NVRTC and the other libraries that a program loads.
    folders = sorted({str(path.resolve().parent) for path in (kit / "lib64").glob("libnv*.so")})
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [*folders, variables.get("LD_LIBRARY_PATH")]))
    shop = programs.Workshop(layout, kit, arguments.capability, options.launcher, variables, options.limit)
    found = []
    for name, folder in programs.programs(layout, root).items():
        if options.wanted(name):
            found.append(shop.judge(name, folder, not arguments.built))
            options.progress(found[-1])
    return found


def build_toolkit(arguments, options):
    """The toolkit folder, from `--cuda` or from PyPI."""
    root = arguments.cuda.absolute() if arguments.cuda else toolkit.packages(arguments.work / "packages")
    folder = arguments.work / f"toolkit-{arguments.device}-{arguments.capability}"
    return toolkit.assemble(folder, root, arguments.capability, options.libraries)


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="judges:\n" + "\n".join(f"  {name:13} {text}" for name, text in JUDGES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("judge", nargs="?", choices=JUDGES, metavar="JUDGE")
    parser.add_argument("path", nargs="?", type=pathlib.Path, metavar="PATH")
    parser.add_argument(
        "--only", metavar="PATTERN", help="programs or tests to run; with ctest and pytest, their expression"
    )
    parser.add_argument("--capability", default="8.9", help="compute capability to compile for and to present (8.9)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--limit", type=float, default=SECONDS, help=f"seconds of one program or test ({SECONDS})")
    parser.add_argument("--total", type=float, default=SECONDS_TOTAL, help=f"of a whole test runner ({SECONDS_TOTAL})")
    parser.add_argument("--built", action="store_true", help="run what an earlier call has built")
    parser.add_argument("--with", dest="requirements", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument(
        "--cuda", type=pathlib.Path, help="an installed CUDA toolkit instead of NVIDIA's packages on PyPI"
    )
    parser.add_argument("--wheels", type=pathlib.Path, help="folder of the wheels of cupyrite and the stand-ins")
    parser.add_argument("--python", type=pathlib.Path, default=pathlib.Path(sys.executable), help=argparse.SUPPRESS)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("target/judges"))
    parser.add_argument("--out", type=pathlib.Path, help="write the table there (Markdown)")
    parser.add_argument(
        "--toolkit", action="store_true", help="print the folder of the toolkit, to build by hand with it"
    )
    arguments = parser.parse_args(words)
    if not arguments.judge and not arguments.toolkit:
        parser.print_help()
        return 0
    arguments.work = arguments.work.absolute()
    work = arguments.work / (arguments.judge or "toolkit")
    work.mkdir(parents=True, exist_ok=True)
    try:
        return run(arguments, work)
    except (ValueError, OSError, toolkit.ToolkitError) as error:
        parser.error(str(error))
    except subprocess.CalledProcessError as error:
        parser.error(f"{' '.join(map(str, error.cmd))}: exit status {error.returncode}")


def run(arguments, work):
    """Runs the judge, or prints the toolkit. Returns the exit status: 1 if a result is worse than recorded."""
    requirements = [*suites.REQUIREMENTS.get(arguments.judge, ()), *arguments.requirements]
    if requirements or arguments.wheels:
        wheels = arguments.wheels and arguments.wheels.absolute()
        arguments.python = suites.python(work / "environment", requirements, wheels)
    options = Options(arguments, work)
    if arguments.toolkit:
        print(build_toolkit(arguments, options))
        return 0
    path = arguments.path
    if path is None and arguments.judge == "stumpy":
        path = from_pypi("stumpy", work)
    if path is None:
        raise ValueError(f"{arguments.judge}: expected PATH: {JUDGES[arguments.judge]}")
    if not path.exists():
        raise ValueError(f"{path}: no such file or folder")
    # The tests of a build folder name its paths, and Python tests need not be copied.
    in_place = arguments.judge in ("ctest", "pytest")
    root = path.absolute() if in_place else checkout(path, work, arguments.built)
    if arguments.judge in programs.LAYOUTS:
        found = judge_programs(arguments, options, root)
    else:
        found = suites.SUITES[arguments.judge](root, options)
    if not found:
        raise ValueError(
            f"{arguments.judge}: nothing matches {arguments.only!r}" if arguments.only else f"{root}: no tests"
        )
    table = results.recorded(arguments.judge)
    text = results.report(arguments.judge, found, table)
    print(f"\n{text}")
    if arguments.out:
        arguments.out.write_text(text)
    for result in results.better(found, table):
        print(f"{result.name}: passes now, recorded as {table[result.name][0]}")
    worse = results.unexpected(found, table)
    print(f"{len(worse)} of {len(found)} worse than recorded" if worse else f"{len(found)} as recorded or better")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
