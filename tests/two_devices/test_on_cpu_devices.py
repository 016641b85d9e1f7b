"""Runs the other files of this folder with two CPU devices, where this process has no two devices."""

import os
import pathlib
import subprocess
import sys

import pytest

from helpers.device import on_cpu_device

FILES = sorted(path for path in pathlib.Path(__file__).parent.glob("test_*.py") if path != pathlib.Path(__file__))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_in_a_process_with_two_devices(path):
    if not on_cpu_device():
        pytest.skip("needs two GPUs that can access each other")
    environment = dict(os.environ, CUPYRITE_CPU_DEVICES="2", CUPYRITE_DEVICE="cpu")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
