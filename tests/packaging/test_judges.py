"""The runner of outside suites (tests/judges), without a compiler: options of nvcc, verdicts, reports."""

import importlib.util
import subprocess
import sys

import pytest

from helpers import TESTS

FOLDER = TESTS / "judges"


def load(name):
    """A module of the runner, whose folder is no package."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location(f"judges_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(FOLDER))


nvcc, programs, results = load("nvcc"), load("programs"), load("results")
RUNTIME = ["-cudart", "shared"]


@pytest.mark.parametrize(
    "given, kept, architecture",
    [
        ("-gencode arch=compute_80,code=sm_80 -O3 a.cu", "-O3 a.cu", "89"),
        ("-gencode=arch=compute_90a,code=sm_90a a.cu", "a.cu", "89"),
        ("--generate-code=arch=compute_80,code=[compute_80,sm_80] -c a.cu", "-c a.cu", "89"),
        ("-arch=sm_60 -code sm_60 -cudart static a.o", "a.o", "89"),
        ("--std=c++11 a.cu", "-std=c++17 a.cu", "89"),
        ("-std c++14 a.cu", "-std=c++17 a.cu", "89"),
        ("-std=c++20 a.cu", "-std=c++20 a.cu", "89"),
        ("a.o -lcuda -lcudart_static", "a.o -lcuda -lcudart", "89"),
        ("-ccbin g++ -m64", "-ccbin g++ -m64", "89"),
    ],
)
def test_options_of_nvcc(given, kept, architecture):
    assert nvcc.changed(given.split(), "8.9") == [f"-arch=compute_{architecture}", *RUNTIME, *kept.split()]


def test_a_specific_architecture_is_kept_on_its_capability():
    words = nvcc.changed(["-gencode", "arch=compute_90a,code=sm_90a", "a.cu"], "9.0")
    assert words == ["-arch=compute_90a", *RUNTIME, "a.cu"]


@pytest.mark.parametrize(
    "status, output, outcome",
    [
        (0, "Test PASSED\n", "passed"),
        (0, "Result = FAIL\n", "failed"),
        (0, "0 mismatches\n", "passed"),
        (0, "verification failed\n", "failed"),
        (0, "Device assert failed as expected, CUDA error message is: x\n", "passed"),
        (1, "", "failed"),
        (2, "Waiving execution\n", "waived"),
        (2, "usage: program\n", "failed"),
        (-11, "", "failed"),
        (None, "running", "too slow"),
    ],
)
def test_verdicts(status, output, outcome):
    assert programs.verdict(status, output)[0] == outcome


def test_reports_compare_with_what_is_recorded(tmp_path):
    (tmp_path / "suite.toml").write_text(
        '[slow]\noutcome = "too slow"\nreason = "4 GiB"\n[mended]\noutcome = "failed"\nreason = "old"\n'
    )
    table = results.recorded("suite", tmp_path)
    found = [results.Result(*row) for row in [("fine", "passed"), ("slow", "too slow"), ("mended", "passed")]]
    assert results.unexpected(found, table) == []
    assert [result.name for result in results.better(found, table)] == ["mended"]
    found.append(results.Result("new", "failed", 1.0, "what it said"))
    assert [result.name for result in results.unexpected(found, table)] == ["new"]
    text = results.report("suite", found, table)
    assert "| slow | too slow | 0.0 | 4 GiB |" in text
    assert "| new | failed | 1.0 | NOT RECORDED: what it said |" in text


def test_an_unknown_outcome_in_a_record_is_an_error(tmp_path):
    (tmp_path / "suite.toml").write_text('[a]\noutcome = "fine"\nreason = ""\n')
    with pytest.raises(ValueError, match="unknown outcome 'fine'"):
        results.recorded("suite", tmp_path)


@pytest.mark.parametrize("path", sorted((FOLDER / "recorded").glob("*.toml")), ids=lambda path: path.stem)
def test_records_are_valid(path):
    assert all(reason for _, reason in results.recorded(path.stem).values())


@pytest.mark.parametrize(
    "words, message",
    [
        (["rodinia"], "expected PATH"),
        (["rodinia", "/does/not/exist"], "no such file"),
        (["unknown"], "invalid choice"),
    ],
)
def test_wrong_arguments_are_explained(words, message, tmp_path):
    command = [sys.executable, FOLDER / "run.py", *words, "--device", "gpu", "--work", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_folder_without_programs_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="expected the suite's root folder"):
        programs.programs(programs.LAYOUTS["rodinia"], tmp_path)
