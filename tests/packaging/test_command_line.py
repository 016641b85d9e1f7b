"""The command `cupyrite` and its subcommand `explain`. No device is used."""

import ast
import importlib
import os
import re
import subprocess
import sys

import cupyrite
import pytest
from cupyrite import command_line, explain
from cupyrite.advice import ADVICE

from helpers import TESTS

ROOT = TESTS.parent
COMMANDS = ("doctor", "demo", "run", "coredump", "explain", "stand-in")


def run(*words, script=None, **variables):
    """`python -m cupyrite` with these words; with `script`, a console script of that path."""
    start = ["-m", "cupyrite"] if script is None else [str(script)]
    return subprocess.run(
        [sys.executable, *start, *words],
        env={**os.environ, **variables},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def script(tmp_path):
    """The console script as pip writes it."""
    path = tmp_path / "cupyrite"
    path.write_text("import sys\nfrom cupyrite.command_line import script\nsys.exit(script())\n")
    return path


def explained(*words):
    done = run("explain", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*words):
    done = run("explain", *words)
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr
    return done.stderr


def test_version():
    for word in ("--version", "-V"):
        assert run(word).stdout == f"cupyrite {cupyrite.__version__}\n"


def test_help_names_every_command_and_every_command_has_help(script):
    text = run("--help").stdout
    assert text.startswith("usage: python -m cupyrite [COMMAND]")
    for command in COMMANDS:
        assert re.search(rf"^  {command}\b", text, re.MULTILINE)
        assert run(command, "--help").stdout.startswith(f"usage: python -m cupyrite {command}")
        assert run(command, "--help", script=script).stdout.startswith(f"usage: cupyrite {command}")
    assert set(command_line.COMMANDS) == set(COMMANDS)


def test_unknown_commands_name_the_nearest():
    done = run("explian", "700")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("usage: ") and "unknown command 'explian': did you mean 'explain'?" in done.stderr
    assert "expected doctor, demo, run, coredump, explain, stand-in" in run("xyz").stderr


def test_commands_are_imported_when_they_are_chosen():
    code = "import sys; from cupyrite.command_line import main; main(['--version']); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"cupyrite._native", "cupyrite.doctor", "argparse"} & set(modules.split()[2:])


@pytest.mark.cpu
def test_run_of_the_console_script_keeps_the_interpreter_and_its_options(script):
    code = "import sys; print(sys.flags.optimize, sys.argv)"
    done = subprocess.run(
        [sys.executable, "-O", str(script), "run", "--device", "cpu", "-c", code, "x"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "1 ['-c', 'x']\n"), done.stderr


def test_the_console_script_of_the_metadata_exists():
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the whole repository")
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["cupyrite"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


# ---------------------------------------------------------------------------------------------------------
# Statuses


ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS = 700"


@pytest.mark.parametrize(
    "words",
    [
        ["CUDA_ERROR_ILLEGAL_ADDRESS"],
        ["cuda_error_illegal_address"],
        ["illegal address"],
        ["driver", "700"],
        ["driver:700"],
        ["driver.ILLEGAL_ADDRESS"],
        ["0x2bc"],
        ["cuda.bindings.driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS"],
        ["<CUresult.CUDA_ERROR_ILLEGAL_ADDRESS: 700>"],
        ["CUDA_ERROR_ILLEGAL_ADDRESS:", "a", "kernel", "accessed", "an", "invalid", "address", "(cuStreamSynchronize)"],
    ],
)
def test_spellings_of_a_status(words):
    text = explained(*words)
    assert text.startswith(ILLEGAL)
    assert "in Python: cuda.bindings.driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS" in text
    assert "run --device cpu PROGRAM" in text


def test_a_number_means_the_status_of_every_library():
    assert "cudaErrorIllegalAddress = 700" in explained("700")
    lines = explained("2").splitlines()
    assert {"CUDA_ERROR_OUT_OF_MEMORY", "NVML_ERROR_INVALID_ARGUMENT", "NVVM_ERROR_PROGRAM_CREATION_FAILURE"} <= {
        line.split()[0] for line in lines if line
    }
    assert lines[-1] == "Name one of them to read what to do."


def test_a_status_of_the_runtime_has_the_advice_of_the_drivers():
    assert "{" not in explained("cudaErrorMemoryAllocation")
    assert "cuMemGetInfo" in explained("cudaErrorMemoryAllocation")
    assert "CUPYRITE_DEVICE=cpu" in explained("cudaErrorInsufficientDriver")


def test_python_names_of_several_libraries():
    text = explained("ERROR_INVALID_INPUT")
    assert "NVRTC_ERROR_INVALID_INPUT = 3" in text and "NVVM_ERROR_INVALID_INPUT = 4" in text
    assert explained("nvvm", "ERROR_INVALID_INPUT").startswith("NVVM_ERROR_INVALID_INPUT = 4")
    assert explained("Return.ERROR_NO_PERMISSION").startswith("NVML_ERROR_NO_PERMISSION = ")


@pytest.mark.parametrize(
    "words, message",
    [
        (["CUDA_ERROR_ILEGAL_ADRESS"], "did you mean CUDA_ERROR_ILLEGAL_ADDRESS"),
        (["cudaErrorIlegalAdress"], "did you mean cudaErrorIllegalAddress"),
        (["CUPYRITE_DEVIC"], "did you mean CUPYRITE_DEVICE"),
        (["pear-mixed"], "did you mean peer-mixed"),
        (["99999"], "no library has a status 99999"),
        (["nvrtc", "700"], "NVRTC has no status 700"),
        (["-5"], "no library has a status -5"),
        (["zzz"], "'zzz'; expected the name or number of a status"),
        (["%s{0}\x00"], "expected the name or number"),
    ],
)
def test_unknown_names(words, message):
    if "\x00" in words[0]:
        with pytest.raises(explain.Unknown, match=message):
            explain.explain(words[0])
        return
    assert message in refused(*words)


def test_no_name_is_a_usage_error():
    for words in ([], [""], [" "]):
        done = run("explain", *words)
        assert done.returncode == 2 and "the status or topic is missing" in done.stderr


@pytest.mark.parametrize("library", list(explain.TITLES))
def test_the_table_is_the_modules(library):
    from cupyrite.generated.statuses import STATUSES

    enum, rows = STATUSES[library]
    module, _, name = enum.partition(".")
    found = getattr(importlib.import_module(f"cuda.bindings.{module}"), name)
    assert {member: int(getattr(found, member)) for _, member, _, _ in rows} == {
        member: int(value) for member, value in found.__members__.items() if member == value.name
    }
    assert all(meaning and c_name.isidentifier() for c_name, _, _, meaning in rows)


def test_advice_belongs_to_statuses_and_fits_the_terminal():
    names = {status.c_name for status in explain.statuses()}
    assert set(ADVICE) <= names
    for name in ADVICE:
        text = explain.explain(name)
        assert "{" not in text
        assert all(len(line) <= explain.WIDTH for line in text.splitlines()), text


# ---------------------------------------------------------------------------------------------------------
# Topics


def test_variables_and_problems_of_the_doctor_are_topics():
    assert explained("CUPYRITE_CPU_THREADS").startswith("CUPYRITE_CPU_THREADS\n  values: an integer from 1\n")
    assert explained("driver-missing").startswith("driver-missing\n  severity: error\n")
    page = (ROOT / "docs" / "environment.md").read_text() if (ROOT / "docs").is_dir() else explain.page("environment")
    table = page.partition("## At run time")[2].partition("\n## ")[0]
    variables = re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE)
    assert len(variables) > 10 and set(variables) <= set(explain.topics())


@pytest.mark.parametrize(
    "name", ["CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_HANDLE"]
)
def test_explanations_have_the_words_of_errors(name):
    from cuda.bindings import driver, runtime
    from cuda.core._utils.cuda_utils import CUDAError, handle_return

    of_driver = getattr(driver.CUresult, name)
    for status in of_driver, runtime.cudaError_t(int(of_driver)):
        with pytest.raises(CUDAError) as raised:
            handle_return((status,))
        _, _, meaning = str(raised.value).partition(": ")
        assert meaning in " ".join(explained(status.name).split())


def test_every_problem_of_the_doctor_has_advice():
    from cupyrite.advice import PROBLEMS

    codes = [code for code, cells in explain.rows("doctor").items() if cells[0][0] == "severity"]
    assert len(codes) > 40 and sorted(PROBLEMS) == sorted(codes)
    assert "docker run --gpus all" in explained("driver-missing")
    for code in codes:
        text = explain.explain(code)
        assert text.endswith("doctor prints the command for this machine."), text
        assert "{" not in text and all(len(line) <= explain.WIDTH for line in text.splitlines()), text


@pytest.mark.parametrize("name", list(explain.PAGES))
def test_pages_print_and_link_to_commands(name):
    text = explained(name)
    assert text.startswith("# ")
    assert not re.search(r"\]\([\w-]+\.md", text)
    for target in re.findall(r"cupyrite explain ([a-z-]+)", text):
        explain.explain(target)
    assert explained(f"docs/{name}.md") == text


def test_messages_name_no_file_of_the_repository():
    """`docs/...` does not exist where the package is installed."""
    package = os.path.dirname(os.path.abspath(cupyrite.__file__))
    for file in os.listdir(package):
        if not file.endswith(".py"):
            continue
        with open(os.path.join(package, file), encoding="utf-8") as source:
            tree = ast.parse(source.read())
        docstrings = {id(node.body[0].value) for node in ast.walk(tree) if has_docstring(node)}
        texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docstrings]
        named = [text for text in texts if isinstance(text, str) and re.search(r"docs/\w|README|\.md\b.*\bsee\b", text)]
        assert [text for text in named if text != "docs/"] == [], file


def has_docstring(node):
    kinds = (ast.Module, ast.FunctionDef, ast.ClassDef)
    return isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)


def test_the_wheel_gets_the_pages():
    if not (ROOT / "distributions").is_dir():
        pytest.skip("needs the whole repository")
    sys.path.insert(0, str(ROOT / "distributions"))
    import assemble

    pages = assemble.pages()
    assert set(pages) == {f"cupyrite/_pages/{name}.md" for name in explain.PAGES}
    assert pages["cupyrite/_pages/doctor.md"].startswith(b"# The doctor\n")
