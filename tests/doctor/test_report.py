"""`python -m cupyrite`: its findings, its output, its exit status, in any environment.

Each examination runs in a separate interpreter. NVIDIA's packages are made-up files with a RECORD as pip writes it.
Failures, hangs and crashes: test_failures.py.
"""

import json
import os
import pathlib
import pty
import subprocess
import sys
import time

import cupyrite
import pytest

from helpers.doctor import (
    PACKAGE,
    codes,
    commands,
    doctor,
    environment,
    errors,
    examine,
    install,
    install_cupyrite,
    own_files,
    problem,
)

# ---------------------------------------------------------------------------------------------------------
# A machine on which everything works


def test_cpu_device_is_described(healthy):
    assert healthy["format"] == 1
    assert healthy["ok"] is True
    assert healthy["device"] == {
        "backend": "cpu",
        "reason": "CUPYRITE_DEVICE=cpu selects the embedded CPU device",
    }
    assert healthy["devices"][0]["name"].startswith("CPU")
    assert healthy["devices"][0]["memory"] > 2**20
    assert healthy["proof"]["ok"] is True
    assert 0 < healthy["proof"]["milliseconds"] < 60_000
    assert healthy["proof"]["in_process"] is False
    assert healthy["proof"]["hung_at"] is None
    assert [step["name"] for step in healthy["proof"]["steps"]][-2:] == [
        "launch the kernel and read its result",
        "load a kernel as PTX",
    ]
    assert errors(healthy) == []


def test_interpreter_and_cupyrite_are_described(healthy):
    assert healthy["interpreter"] == {
        "implementation": "CPython" if sys.implementation.name == "cpython" else sys.implementation.name,
        "version": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "prefix": sys.prefix,
    }
    assert healthy["cupyrite"] == {"version": cupyrite.__version__, "location": str(PACKAGE)}
    modules = {module["module"]: module for module in healthy["modules"]}
    assert modules["cuda.bindings.driver"]["ours"] is True
    assert modules["cupyrite"]["file"] == str(PACKAGE / "__init__.py")


def test_reported_modules_are_the_imported_ones(healthy):
    """The examination reads the file system; this asks the interpreter."""
    names = [module["module"] for module in healthy["modules"] if module["file"]]
    assert "cuda.pathfinder" in names
    find = (
        "import importlib.util, json, sys\n"
        "print(json.dumps({n: importlib.util.find_spec(n).origin for n in json.loads(sys.argv[1])}))"
    )
    names = [name for name in names if name != "cupyrite.__main__"]
    done = subprocess.run(
        [sys.executable, "-c", find, json.dumps(names)], env=environment(), cwd="/", capture_output=True, check=True
    )
    origins = json.loads(done.stdout)
    for module in healthy["modules"]:
        if module["module"] in origins:
            assert module["file"] == origins[module["module"]], module["module"]


def test_nvrtc_is_described(healthy):
    (nvrtc,) = [item for item in healthy["libraries"] if item["name"] == "nvrtc"]
    assert nvrtc["state"] == "found"
    assert pathlib.Path(nvrtc["path"]).is_file()
    assert nvrtc["found_via"]
    assert nvrtc["version"].startswith(healthy["proof"]["nvrtc"])
    assert nvrtc["major"] in (12, 13)
    assert len(healthy["libraries"]) == 50
    assert len(healthy["headers"]) == 31
    assert len(healthy["tools"]) == 16


SCHEMA = {
    "format": int,
    "ok": bool,
    "cupyrite": {"version": str, "location": (str, None)},
    "interpreter": {"implementation": str, "version": str, "executable": (str, None), "prefix": (str, None)},
    "platform": {"name": str, "wsl": bool, "container": bool, "pci_gpus": [str], "device_files": [str]},
    "device": {"backend": (str, None), "reason": (str, None)},
    "driver": {"path": (str, None), "found_via": (str, None), "cuda": (str, None), "kernel_module": (str, None)},
    "devices": [{"ordinal": int, "name": str, "compute_capability": str, "memory": int}],
    "proof": {
        "ok": bool,
        "milliseconds": float,
        "steps": [{"name": str, "milliseconds": float}],
        "stopped_at": (str, None),
        "nvrtc": (str, None),
        "hung_at": (str, None),
        "in_process": bool,
    },
    "variables": [{"name": str, "value": str}],
    "packages": [{"name": str, "version": str, "location": str, "damaged": (int, None), "ours": bool}],
    "modules": [{"module": str, "file": (str, None), "package": (str, None), "ours": bool, "peer": bool}],
    "problems": [
        {"code": str, "severity": str, "what": str, "why": str, "fix": [{"words": str, "command": (str, None)}]}
    ],
}
ITEM = {
    "name": str,
    "state": str,
    "path": (str, None),
    "found_via": (str, None),
    "version": (str, None),
    "major": (int, None),
    "reason": (str, None),
}
SCHEMA |= {"libraries": [ITEM], "headers": [ITEM], "tools": [ITEM]}


def fits(value, schema, where="report"):
    """Checks that a value matches the schema exactly."""
    if isinstance(schema, dict):
        assert isinstance(value, dict), where
        assert set(value) == set(schema), where
        for name, inner in schema.items():
            fits(value[name], inner, f"{where}.{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for number, element in enumerate(value):
            fits(element, schema[0], f"{where}[{number}]")
    elif isinstance(schema, tuple):
        assert value is None or type(value) is schema[0], f"{where}: {value!r}"
    else:
        assert type(value) is schema, f"{where}: {value!r}"


def test_json_has_the_documented_fields(healthy):
    fits(healthy, SCHEMA)
    status, report = examine(CUPYRITE_DEVICE="none", CUDA_PATH="relative")
    assert status == 1
    fits(report, SCHEMA)
    assert {item["state"] for item in healthy["libraries"]} <= {"found", "missing", "broken", "unavailable"}


def test_text_output_on_a_terminal():
    done = doctor()
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == f"Cupyrite {cupyrite.__version__}"
    assert lines[-1] == "Kernels can be compiled and run on the CPU device."
    assert "\x1b" not in text
    assert sys.executable in text.replace("\n" + " " * 15, "")
    for word in ("Python", "Driver", "Device 0", "Proof", "Libraries", "nvrtc", "CUPYRITE_DEVICE=cpu", "Problems"):
        assert word in text


@pytest.mark.gpu
def test_gpu_is_described():
    status, report = examine(CUPYRITE_DEVICE="gpu")
    assert status == 0, report["problems"]
    assert report["device"]["backend"] == "gpu"
    assert not report["devices"][0]["name"].startswith("CPU")
    assert pathlib.Path(report["driver"]["path"]).is_file()
    assert report["driver"]["cuda"].count(".") == 1
    assert report["platform"]["device_files"] or report["platform"]["wsl"]
    assert "gpu-without-driver" not in codes(report)
    done = doctor("--demo", CUPYRITE_DEVICE="auto")
    assert done.returncode == 0, done.stderr.decode()
    assert "on the GPU" in done.stdout.decode()


@pytest.mark.gpu
def test_hidden_gpu():
    status, report = examine(CUPYRITE_DEVICE="gpu", CUDA_VISIBLE_DEVICES="")
    assert status == 1
    assert commands(report, "no-device")[0] == "unset CUDA_VISIBLE_DEVICES"


def test_auto_selects_the_cpu_device_silently(healthy):
    if healthy["driver"]["path"]:
        pytest.skip("this machine has an NVIDIA driver")
    done = doctor(CUPYRITE_DEVICE=None, PYTHONWARNINGS="error")
    assert done.returncode == 0
    assert done.stderr == b""
    assert "no NVIDIA driver" in " ".join(done.stdout.decode().split())


# ---------------------------------------------------------------------------------------------------------
# The command line


def test_demo_runs_after_the_examination():
    pytest.importorskip("numpy")
    done = doctor("--demo")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert text.index("Kernels can be compiled") < text.index("largest error against NumPy")


def test_demo_output_stays_out_of_the_json():
    pytest.importorskip("numpy")
    done = doctor("--demo", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"] is True
    assert b"largest error against NumPy" in done.stderr


def test_failing_demo_fails_the_examination(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('hidden', name='numpy')")
    done = doctor("--demo", PYTHONPATH=os.pathsep.join([str(tmp_path), str(PACKAGE.parent)]))
    assert done.returncode == 1
    assert "Kernels can be compiled" in done.stdout.decode()
    assert b"pip install numpy" in done.stderr


def test_demo_is_skipped_without_a_device():
    done = doctor("--demo", CUPYRITE_DEVICE="none")
    assert done.returncode == 1
    assert done.stderr.decode() == "The demo did not run.\n"


def test_help_lists_the_options():
    done = doctor("--help")
    assert done.returncode == 0
    for word in (b"--json", b"--demo", b"--deadline"):
        assert word in done.stdout


@pytest.mark.parametrize(
    "words", [["--jsn"], ["extra"], ["--deadline"], ["--deadline", "soon"], ["--deadline", "0"], ["--deadline", "nan"]]
)
def test_usage_errors_exit_with_2(words):
    done = doctor(*words)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"usage: python -m cupyrite" in done.stderr
    assert b"Traceback" not in done.stderr


# ---------------------------------------------------------------------------------------------------------
# Packages that share a folder


def peer_files():
    import importlib.machinery

    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    return {
        "cuda/bindings/__init__.py": b"# made up\n",
        f"cuda/bindings/driver{suffix}": b"no library",
        f"cuda/bindings/nvrtc{suffix}": b"no library either",
        "cuda/bindings/runtime.py": b"# made up\n",
    }


@pytest.mark.parametrize("order", ["peer last", "cupyrite last"])
def test_nvidia_package_in_the_same_folder(tmp_path, order):
    steps = [
        lambda: install_cupyrite(tmp_path, own_files()),
        lambda: install(tmp_path, "cuda_bindings", "13.5.0", peer_files()),
    ]
    for step in steps if order == "peer last" else reversed(steps):
        step()
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1
    assert report["proof"]["ok"] is True, "the native module works"
    assert "peer-mixed" in errors(report)
    found = problem(report, "peer-mixed")
    assert "cuda-bindings 13.5.0" in found["what"]
    assert "cuda.bindings.driver" in found["why"]
    modules = {module["module"]: module for module in report["modules"]}
    for name in ("cuda.bindings.driver", "cuda.bindings.nvrtc"):
        assert modules[name]["package"] == "cuda-bindings"
        assert modules[name]["file"].endswith(".so")
        assert modules[name]["ours"] is False
    assert modules["cuda.bindings"]["package"] == "cuda-bindings"
    assert modules["cuda.bindings"]["peer"] is (order == "peer last")
    back, away, others = commands(report, "peer-mixed")
    assert back.endswith("-m cupyrite stand-in")
    assert away.endswith("-m pip uninstall -y cupyrite cuda-python")
    assert "-m pip install --force-reinstall --no-deps " in others and " cuda-bindings==13.5.0" in others


def test_nvidia_package_in_place_of_a_stand_in(tmp_path):
    files = own_files()
    install_cupyrite(tmp_path, files, left_out=["cuda_bindings"])
    missing = {name: text for name, text in files.items() if name.startswith("cuda/bindings/")}
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1
    assert "cuda-bindings" in problem(report, "stand-in-missing")["what"]
    assert not any((tmp_path / file).exists() for file in missing)
    install(tmp_path, "cuda_bindings", "13.0.3", peer_files())
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1
    assert "cuda-bindings 13.0.3" in problem(report, "peer-mixed")["what"]
    versions = {package["version"]: package["ours"] for package in report["packages"]}
    assert versions["13.0.3"] is False and versions[f"1.2.2+cupyrite.{cupyrite.__version__}"] is True


def test_nvidia_package_uninstalled_again(tmp_path):
    """Uninstalling removes the files that both packages own."""
    install_cupyrite(tmp_path, own_files())
    for file in peer_files():
        (tmp_path / file).unlink(missing_ok=True)
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1
    assert "cuda/bindings/__init__.py" in problem(report, "files-damaged")["why"]


def test_nvidia_package_earlier_on_the_path(tmp_path):
    install(tmp_path, "cuda_bindings", "13.5.0", peer_files())
    status, report = examine(PYTHONPATH=os.pathsep.join([str(tmp_path), str(PACKAGE.parent)]))
    assert status == 1
    assert str(tmp_path) in problem(report, "peer-first")["why"]


def test_two_copies_of_cupyrite(tmp_path):
    install_cupyrite(tmp_path, own_files())
    status, report = examine(PYTHONPATH=os.pathsep.join([str(tmp_path), str(PACKAGE.parent)]))
    assert status == 0
    assert str(tmp_path) in problem(report, "two-copies")["why"]
    assert report["cupyrite"]["location"] == str(tmp_path / "cupyrite")


def test_cuda_package_in_the_working_directory(tmp_path):
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "__init__.py").write_text("")
    status, report = examine(cwd=tmp_path)
    assert status == 1
    assert str(tmp_path / "cuda" / "__init__.py") in problem(report, "cuda-shadowed")["what"]


def test_missing_native_module(tmp_path):
    files = {name: content for name, content in own_files().items() if not name.endswith(".so")}
    install_cupyrite(tmp_path, files)
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1
    assert errors(report) == ["native-module"]
    assert report["format"] == 1
    done = doctor(PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and done.stderr == b""
    assert b"native-module" in done.stdout
    (tmp_path / "cupyrite" / "_native.abi3.so").write_bytes(b"no library")
    status, report = examine(PYTHONPATH=str(tmp_path))
    assert status == 1 and errors(report) == ["native-module"]


# ---------------------------------------------------------------------------------------------------------
# Surroundings


def test_reader_that_closes_the_pipe_early():
    command = [sys.executable, "-m", "cupyrite", "--json"]
    with subprocess.Popen(
        command, env=environment(), cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(60) == 0
    assert said == b""


@pytest.mark.parametrize("module, status", [("cupyrite.demo", 1), ("cupyrite --demo", 0)])
def test_demo_ends_quietly_when_the_reader_closes_the_pipe(module, status):
    command = [sys.executable, "-m", *module.split()]
    with subprocess.Popen(
        command, env=environment(), cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(60) == status
    assert said == b""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", ">&- 2>&- <&-", ">/dev/full"])
def test_closed_and_full_streams(closed):
    command = f'exec "$0" -m cupyrite {closed}'
    done = subprocess.run(["sh", "-c", command, sys.executable], env=environment(), cwd="/", capture_output=True)
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize(
    "changes",
    [
        {"HOME": None, "PATH": "", "LANG": None},
        {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"},
        {"TERM": "dumb", "NO_COLOR": "1"},
        {"COLUMNS": "0"},
        {"COLUMNS": "-7"},
        {"COLUMNS": "wide"},
        {"COLUMNS": "100000000000000000000000"},
        {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        {"PYTHONIOENCODING": "utf-16", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONWARNINGS": "error"},
        {"PYTHONFAULTHANDLER": "1", "PYTHONDEVMODE": "1"},
        {"CUDA_PATH": "/proc/self/mem", "CUDA_HOME": "/dev/zero"},
        {"CUDA_PATH": os.fsdecode(b"/\xff\xfe"), "CUDNN_PATH": "\x1b[2J"},
        {"LD_LIBRARY_PATH": ":::relative:/nonexistent:/dev/null:" + os.fsdecode(b"/\xff")},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_hostile_environment_variables(changes):
    done = doctor(**changes)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    if "utf-16" not in changes.get("PYTHONIOENCODING", ""):
        assert b"Kernels can be compiled" in done.stdout


@pytest.mark.parametrize("option", ["-I", "-O", "-OO", "-bb", "-u", "-B", "-Werror", "-E", "-P"])
def test_interpreter_options(option):
    if option in ("-I", "-E") and "PYTHONPATH" in os.environ:
        pytest.skip("Cupyrite is found through PYTHONPATH, which the option ignores")
    done = doctor(options=(option,))
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""


@pytest.mark.parametrize("width", [1, 40, 57, 60, 80, 100, 300])
def test_lines_fit_the_terminal(width):
    text = doctor(COLUMNS=str(width), CUDA_PATH="/nonexistent/" + "folder/" * 40).stdout.decode()
    assert max(map(len, text.splitlines())) <= min(max(width, 40), 100)


@pytest.mark.parametrize(
    "changes, coloured",
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colors_only_on_a_terminal(changes, coloured):
    parent, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cupyrite"], env=environment(**changes), cwd="/", stdout=child, stderr=child
    ) as process:
        os.close(child)
        text = b""
        while True:
            try:
                block = os.read(parent, 65536)
            except OSError:
                break
            if not block:
                break
            text += block
        assert process.wait(60) == 0
    os.close(parent)
    assert (b"\x1b[1m" in text) is coloured


def test_unusual_entries_on_the_path(tmp_path):
    strange = tmp_path / "strange"
    strange.mkdir()
    os.mkfifo(strange / "cuda")
    os.mkfifo(strange / "numpy.py")
    info = strange / "cuda_core-1.0.dist-info"
    info.mkdir()
    os.mkfifo(info / "RECORD")
    (strange / "cuda_bindings-1.dist-info").symlink_to("cuda_bindings-1.dist-info")
    (strange / "cuda_pathfinder-.dist-info").write_text("a file, not a folder")
    broken = strange / "cuda_python-2.dist-info"
    broken.mkdir()
    (broken / "RECORD").write_bytes(b"\xff\xfe,,\n\0\0\n" + b"," * 100_000)
    (strange / os.fsdecode(b"\xff-1.dist-info")).mkdir()
    crowded = tmp_path / "crowded"
    crowded.mkdir()
    for number in range(5000):
        (crowded / f"package{number}-1.dist-info").touch()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    path = [
        strange,
        crowded,
        loop,
        tmp_path / "none",
        "relative",
        "/dev/null",
        os.fsdecode(os.fsencode(tmp_path) + b"/\xff"),
    ]
    path += [PACKAGE.parent]
    begun = time.monotonic()
    status, report = examine(PYTHONPATH=os.pathsep.join(map(str, path)))
    assert time.monotonic() - begun < 30
    assert status == 0, report["problems"]
    names = {
        package["name"]: package["damaged"] for package in report["packages"] if package["location"] == str(strange)
    }
    assert names["cuda-core"] is None


def test_removed_working_directory(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f'cd "{gone}" && rmdir "{gone}" && exec "$0" -m cupyrite'
    done = subprocess.run(["sh", "-c", code, sys.executable], env=environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""


def test_importing_cupyrite_imports_no_other_module():
    code = "import sys; before = set(sys.modules); import cupyrite; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), cwd="/", capture_output=True, check=True)
    assert done.stdout.decode().strip() == "['cupyrite']"
