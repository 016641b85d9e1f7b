"""The installed package offers the interface that the manifests in api/interface describe."""

import subprocess
import sys

import pytest

from helpers import TESTS

INTERFACE = TESTS.parent / "api" / "interface"


def run(*words):
    """(exit status, output) of a checker."""
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_the_package_matches_the_manifests():
    """All modules and all tiers: public, experimental and internal."""
    status, output = run(INTERFACE / "check_api.py", "--tier", "all", "--missing")
    assert status == 0, output


@pytest.mark.parametrize("module", ["cuda.bindings._v2.driver", "cuda.bindings._v2.nvrtc"])
def test_experimental_module_matches_its_manifest(module):
    words = ["--tier", "all", "--missing", "--deep", "--module", module]
    status, output = run(INTERFACE / "check_api.py", *words)
    assert status == 0, output


def test_checker_reports_a_missing_name():
    program = (
        "import runpy, sys\n"
        "from cuda.pathfinder import DynamicLibNotFoundError\n"
        "import cuda.pathfinder as pathfinder\n"
        "del pathfinder.DynamicLibNotFoundError\n"
        "path, *sys.argv = sys.argv[1:]\n"
        "sys.argv.insert(0, path)\n"
        "runpy.run_path(path, run_name='__main__')\n"
    )
    words = [INTERFACE / "check_api.py", "--missing", "--module", "cuda.pathfinder"]
    status, output = run("-c", program, *words)
    assert status == 1 and "DynamicLibNotFoundError" in output, output


def test_the_manifests_have_one_record_a_line():
    status, output = run(INTERFACE / "format_manifests.py", "--check")
    assert status == 0, output
