"""Memory of two devices: access to pools, copies, kernels, closing on the other device's stream.

The tests are in peer_cases.py. They run in this process if it has two devices with peer access; for the CPU device a
process with two devices is started.
"""

import os
import pathlib
import subprocess
import sys

import pytest
from cuda.core import Device

from helpers.device import on_cpu_device

CASES = pathlib.Path(__file__).with_name("peer_cases.py")


def two_devices():
    """Whether this process has two devices with peer access."""
    devices = Device.get_all_devices()
    return len(devices) > 1 and devices[0].can_access_peer(1) and devices[1].can_access_peer(0)


if two_devices():
    from core.memory.peer_cases import *  # noqa: F403
elif on_cpu_device():

    def test_in_a_process_with_two_devices():
        environment = dict(os.environ, CUPYRITE_CPU_DEVICES="2", CUPYRITE_DEVICE="cpu")
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert " passed" in done.stdout

else:
    pytest.skip("needs two devices with peer access", allow_module_level=True)
