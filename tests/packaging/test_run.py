"""`python -m cupyrite run`."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from cupyrite.run import FOLDER, Refused, asks_for_help, parse, triton_variables

pytestmark = pytest.mark.cpu

SHOW = "import os, sys; print(os.environ['CUPYRITE_DEVICE'], os.environ['LD_LIBRARY_PATH'], sys.argv[1:])"


def run(*words, options=(), check=True, **variables):
    environment = {**os.environ, **variables}
    if variables.get("CUPYRITE_DEVICE") is None:
        environment.pop("CUPYRITE_DEVICE", None)
    done = subprocess.run(
        [sys.executable, *options, "-m", "cupyrite", "run", *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "argv, expected",
    [
        (["a.py", "--device", "x"], (None, False, ["a.py", "--device", "x"])),
        (["--device", "cpu", "-m", "a", "-c"], ("cpu", False, ["-m", "a", "-c"])),
        (["--device=gpu", "-c", "pass"], ("gpu", False, ["-c", "pass"])),
        (["--device", "auto", "--", "--odd"], ("auto", False, ["--odd"])),
        (["--print-libdir"], (None, True, [])),
        (["--device", "cpu", "--print-libdir"], ("cpu", True, [])),
        (["--print-libdir", "--device=auto"], ("auto", True, [])),
        (["-", "x"], (None, False, ["-", "x"])),
    ],
)
def test_command_lines(argv, expected):
    assert parse(argv) == expected


@pytest.mark.parametrize(
    "argv, word",
    [
        ([], "the program is missing"),
        (["--device"], "auto, cpu, gpu"),
        (["--device", "tpu", "a.py"], "'tpu'"),
        (["--device=", "a.py"], "''"),
        (["--devices", "cpu"], "--devices"),
        (["-m"], "module is missing"),
        (["-c"], "code is missing"),
        (["--print-libdir", "a.py"], "expected no program"),
        (["--device", "gpu", "--print-libdir"], "expected auto, cpu"),
        (["--", "-m", "a"], "must follow --"),
    ],
)
def test_wrong_command_lines(argv, word):
    with pytest.raises(Refused) as refused:
        parse(argv)
    assert word in str(refused.value) and refused.value.status == 2
    done = run(*argv, check=False)
    assert done.returncode == 2 and word in done.stderr and done.stderr.startswith("usage: ")


@pytest.mark.parametrize(
    "argv, expected",
    [
        (["-h"], True),
        (["--device", "cpu", "--help"], True),
        (["--device", "-h"], True),
        (["--device", "cpu", "a.py", "--help"], False),
        (["-m", "a", "-h"], False),
        (["--device"], False),
        ([], False),
    ],
)
def test_help_is_an_option_before_the_program(argv, expected):
    assert asks_for_help(argv) is expected


def test_the_environment_of_files_modules_and_code(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SHOW)
    shown = f"cpu {FOLDER}:/nowhere ['--device', 'gpu']\n"
    for words in ([program], ["-c", SHOW], ["--", program]):
        done = run("--device", "cpu", *words, "--device", "gpu", LD_LIBRARY_PATH="/nowhere")
        assert done.stdout == shown and not done.stderr
    done = run(
        "--device", "cpu", "-m", "program", "--device", "gpu", LD_LIBRARY_PATH="/nowhere", PYTHONPATH=path(tmp_path)
    )
    assert done.stdout == shown
    # A file without an ending and without permission.
    program = program.rename(tmp_path / "program")
    assert run("--device", "cpu", program, LD_LIBRARY_PATH="").stdout == f"cpu {FOLDER} []\n"


def test_triton_finds_the_ptxas_of_the_cpu_device():
    code = "import os, json; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('TRITON_')}))"
    expected = {
        "TRITON_PTXAS_PATH": f"{FOLDER}/ptxas",
        "TRITON_PTXAS_BLACKWELL_PATH": f"{FOLDER}/ptxas",
        "TRITON_LIBCUDA_PATH": FOLDER,
    }
    variables = {**dict.fromkeys(expected, "/elsewhere"), "PATH": os.environ["PATH"]}
    assert json.loads(run("--device", "cpu", "-c", code, **variables).stdout) == expected
    done = run("--device", "cpu", "sh", "-c", '"$TRITON_PTXAS_PATH" --version; echo "$PATH"', **variables)
    assert "\nCuda compilation tools, release 1" in done.stdout and done.stdout.endswith(f"\n{os.environ['PATH']}\n")


def test_a_gpu_run_inside_a_cpu_run_has_no_ptxas_of_the_cpu_device(monkeypatch):
    for name, value in triton_variables("cpu").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRITON_LIBCUDA_PATH", "/elsewhere")
    assert triton_variables("gpu") == {"TRITON_PTXAS_PATH": None, "TRITON_PTXAS_BLACKWELL_PATH": None}


def path(folder):
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def test_other_programs_and_their_children(tmp_path):
    assert run("--device", "cpu", "sh", "-c", "sh -c 'echo $CUPYRITE_DEVICE $0'", "x").stdout == "cpu sh\n"
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho $1 $LD_LIBRARY_PATH\n")
    script.chmod(0o755)
    assert run("--device", "cpu", script, "one", LD_LIBRARY_PATH="").stdout == f"one {FOLDER}\n"


def test_options_of_the_interpreter_stay():
    code = "import sys; print(sys.flags.optimize, sys.flags.dev_mode, sys.flags.isolated)"
    for options in (["-O", "-X", "dev"], ["-OXdev"]):
        assert run("--device", "cpu", "-c", code, options=options).stdout == "1 True 0\n"


def test_the_devices_own_setting_and_the_fallback():
    assert run("-c", SHOW, CUPYRITE_DEVICE="cpu").stdout.startswith("cpu ")
    done = run("-c", SHOW, CUPYRITE_DEVICE="tpu", check=False)
    assert done.returncode == 1 and "CUPYRITE_DEVICE='tpu': expected auto, gpu or cpu" in done.stderr


def test_without_a_driver(has_driver):
    if has_driver:
        pytest.skip("this machine has an NVIDIA driver")
    done = run("-c", SHOW)
    assert done.stdout.startswith("cpu ") and "no NVIDIA driver" in done.stderr
    done = run("--device", "gpu", "-c", SHOW, check=False)
    assert done.returncode == 1 and "libcuda.so.1 not found" in done.stderr and "Traceback" not in done.stderr


@pytest.fixture
def has_driver():
    """Whether this machine has NVIDIA's driver."""
    code = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    return (
        subprocess.run([sys.executable, "-c", code], env={"LD_LIBRARY_PATH": ""}, capture_output=True).returncode == 0
    )


def test_nested_runs_do_not_take_the_cpu_device_for_a_driver(has_driver):
    inner = [sys.executable, "-m", "cupyrite", "run"]
    done = run("--device", "cpu", *inner, "--device", "auto", "-c", SHOW)
    assert done.stdout.startswith("gpu" if has_driver else f"cpu {FOLDER}")
    done = run("--device", "cpu", *inner, "--device", "gpu", "-c", "print('ran')", check=False)
    assert (done.returncode == 0) == has_driver


def test_exit_status_and_signals_pass_through():
    assert run("--device", "cpu", "-c", "raise SystemExit(7)", check=False).returncode == 7
    assert run("--device", "cpu", "sh", "-c", "kill -TERM $$", check=False).returncode == -signal.SIGTERM
    # The interpreter ignores SIGPIPE; a program that it starts does not.
    done = run("--device", "cpu", "sh", "-c", "kill -PIPE $$; echo ignored", check=False)
    assert done.returncode == -signal.SIGPIPE and not done.stdout
    code = "import os; print(os.getppid())"
    assert run("--device", "cpu", "-c", code).stdout.strip() == str(os.getpid())


def test_programs_that_cannot_run(tmp_path):
    for name in ("missing.py", "./missing", "no-such-program-anywhere"):
        done = run("--device", "cpu", name, check=False)
        assert done.returncode == 127 and name in done.stderr
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF and nothing else")
    broken.chmod(0o755)
    done = run("--device", "cpu", broken, check=False)
    assert done.returncode == 126 and str(broken) in done.stderr and "Traceback" not in done.stderr


def test_an_empty_name_is_an_invalid_command_line():
    done = run("--device", "cpu", "", check=False)
    assert done.returncode == 2 and "name is empty" in done.stderr


def test_compiled_programs_are_not_run_as_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program"
    shutil.copy(shutil.which("true"), program)
    done = run("--device", "cpu", "program", check=False)  # without `./`: a name that PATH does not have
    assert done.returncode == 0 and not done.stderr
    program.chmod(0o644)
    done = run("--device", "cpu", "./program", check=False)
    assert done.returncode == 126 and str(program) in done.stderr and "Permission denied" in done.stderr


def test_help_and_folder():
    assert "--print-libdir" in run("--help").stdout
    for words in (["--print-libdir"], ["--device", "cpu", "--print-libdir"]):
        folder = pathlib.Path(run(*words).stdout.strip())
        assert folder == pathlib.Path(FOLDER) and (folder / "libcuda.so.1").is_file()
