"""The Rust example with MPI: built by cargo, and started with several ranks."""

import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from helpers.device import on_cpu_device
from helpers.mpi import NO_DEVICE, OPEN_MPI, find_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "mpi" / "rust"
# A folder of its own in the target folder: the flags differ from those of the project.
TARGET = ROOT / "target" / "mpi-example"
# The compiler wrapper and the launcher must be of the same MPI library.
MPICC = find_program("mpicc")
MPIEXEC = MPICC and shutil.which("mpiexec", path=os.path.dirname(MPICC))
OFFLINE = r"failed to download|network failure|Could not (connect|resolve)|offline mode"

pytestmark = [
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo"),
    pytest.mark.skipif(MPICC is None, reason="needs mpicc, for example of the wheel mpich"),
    pytest.mark.skipif(MPIEXEC is None, reason=f"needs mpiexec beside {MPICC}"),
    # The first test builds the program.
    pytest.mark.timeout(1500),
]


def libclang():
    """The variables with which bindgen finds libclang and the headers of a C compiler; None without libclang."""
    if "LIBCLANG_PATH" in os.environ:
        folder = pathlib.Path(os.environ["LIBCLANG_PATH"])
    else:
        # The wheel of libclang, else what bindgen finds without help.
        wheel = importlib.util.find_spec("clang")
        places = [f"{place}/native" for place in (wheel and wheel.submodule_search_locations) or ()]
        places += [*glob.glob("/usr/lib/llvm*/lib"), *glob.glob("/usr/lib/*-linux-gnu"), "/usr/lib64", "/usr/local/lib"]
        # Not libclang-cpp.
        names = ("libclang.so*", "libclang-[0-9]*.so*")
        found = (place for place in places if any(glob.glob(f"{place}/{name}") for name in names))
        folder = next(map(pathlib.Path, found), None)
        if folder is None:
            return None
    variables = {"LIBCLANG_PATH": str(folder)}
    # The wheel has no headers, and accepts those of GCC.
    if not [*folder.glob("clang/*/include/stddef.h")] and "BINDGEN_EXTRA_CLANG_ARGS" not in os.environ:
        command = [os.environ.get("CC", "cc"), "-print-file-name=include"]
        headers = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        variables["BINDGEN_EXTRA_CLANG_ARGS"] = f"-I{headers}"
    return variables


@pytest.fixture(scope="module")
def program():
    """The built program."""
    variables = libclang()
    if variables is None:
        pytest.skip("needs libclang, for example the wheel libclang, or LIBCLANG_PATH")
    # The versions of the project; cargo adds those of MPI.
    if not (FOLDER / "Cargo.lock").exists():
        shutil.copy(ROOT / "Cargo.lock", FOLDER)
    # Incremental compilation would take longer, and as much disk space again.
    variables |= {"CARGO_TARGET_DIR": str(TARGET), "CARGO_INCREMENTAL": "0", "MPICC": MPICC}
    command = ["cargo", "build", "--manifest-path", str(FOLDER / "Cargo.toml")]
    done = subprocess.run(command, env=dict(os.environ, **variables), capture_output=True, text=True)
    offline = done.returncode and re.search(OFFLINE, done.stderr)
    if offline:
        pytest.skip(f"needs the crates.io registry: {offline.group()}")
    assert done.returncode == 0, done.stderr
    return str(TARGET / "debug" / "halo-exchange")


def run(*parts, devices="4"):
    """Starts ranks together: each part is a number of ranks, and their command line."""
    command = [MPIEXEC]
    for count, *line in parts:
        command += [":"] if len(command) > 1 else []
        command += ["-n", str(count), *line]
    several = {"CUPYRITE_CPU_DEVICES": devices, "CUPYRITE_DEVICE": "cpu"} if on_cpu_device() else {}
    # NVRTC of the environment that runs the tests. The MPI library of a wheel is not where the loader searches.
    libraries = os.path.join(os.path.dirname(os.path.dirname(MPICC)), "lib")
    libraries = os.pathsep.join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")]))
    environment = dict(os.environ, VIRTUAL_ENV=sys.prefix, LD_LIBRARY_PATH=libraries, **OPEN_MPI, **several)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def confirm(done, count, place):
    assert done.returncode == 0, done.stdout + done.stderr
    assert f": {count} ranks, {count} on this machine, " in done.stdout, done.stdout
    assert f" steps on {count} bands in " in done.stdout, done.stdout
    assert f", messages in {place} memory, " in done.stdout, done.stdout
    assert done.stdout.endswith("done: the results are right\n"), done.stdout


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ranks_exchange_edge_rows(program, count):
    confirm(run((count, program)), count, "device" if on_cpu_device() else "host")


def test_ranks_exchange_by_host_memory(program):
    confirm(run((3, program, "--messages", "host")), 3, "host")


@pytest.mark.cpu
@pytest.mark.parametrize("messages", ["device", "host"])
def test_ranks_with_one_row_share_devices(program, messages):
    done = run((3, program, "--size", "5", "--steps", "4", "--messages", messages), devices="2")
    confirm(done, 3, messages)


@pytest.mark.cpu
def test_ranks_with_other_arguments_use_those_of_rank_0(program):
    confirm(run((1, program, "--size", "33"), (1, program, "--size", "64", "--messages", "host")), 2, "device")


@pytest.mark.cpu
def test_the_rank_without_a_device_says_so_and_all_end(program):
    done = run((1, program), (1, "env", *NO_DEVICE, program), (1, program))
    assert done.returncode == 77, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "skipped: " in line]
    assert len(lines) == 1 and lines[0].startswith("skipped: rank 1 on ") and ": no device: " in lines[0], done.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--size", "4"), "--size 4: expected 5 to 32768 for 3 ranks"),
        (("--steps", "few"), '--steps "few": expected a number'),
        (("--messages", "gpu"), '--messages "gpu": expected device or host'),
    ],
)
def test_invalid_arguments_are_refused_once(program, arguments, message):
    done = run((3, program, *arguments))
    assert done.returncode == 2 and done.stderr.count(message) == 1, done.stdout + done.stderr


def test_ranks_end_if_one_is_killed(program):
    endless = (program, "--steps", "1000000000")
    done = run((1, *endless), (1, "timeout", "-s", "KILL", "3", *endless), (1, *endless))
    assert done.returncode != 0 and "done: " not in done.stdout, done.stdout + done.stderr
