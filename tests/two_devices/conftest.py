"""Where the tests with two devices run.

In this process if it has two devices with peer access. Otherwise test_on_cpu_devices.py runs them for the CPU device in a process
with two devices, and skips them on a machine with one GPU.
"""

import pathlib

from helpers.two_devices import has_two_devices

RUNNER = "test_on_cpu_devices.py"
if has_two_devices():
    from helpers.two_devices import code, current, devices, located, step, streams, words  # noqa: F401

    collect_ignore = [RUNNER]
else:
    collect_ignore = [path.name for path in pathlib.Path(__file__).parent.glob("test_*.py") if path.name != RUNNER]
