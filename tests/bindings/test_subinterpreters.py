"""The bindings in a subinterpreter that is the first to import them."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.cpu

#: Exceptions that functions outside of PyO3 set: of a missing library, of an argument, of `cuda.core`.
CODE = """
import os
os.environ["CUPYRITE_LIB_NVFATBIN"] = "/nonexistent"
from cuda.bindings import driver, nvfatbin
from cuda.core import Device
def refused(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        print(type(error).__name__)
refused(nvfatbin.version)
refused(driver.cuDeviceGet, "0")
refused(Device, -1)
print(driver.cuInit(0)[0].name)
"""
PROGRAM = f"""
import faulthandler, sys
faulthandler.dump_traceback_later(60, exit=True)
import _xxsubinterpreters as interpreters
identity = interpreters.create()
interpreters.run_string(identity, {CODE!r})
interpreters.destroy(identity)
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later Pythons refuse the import or bind each thread state")
def test_exceptions_are_raised_in_a_subinterpreter():
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *errors, status = done.stdout.split()
    assert len(errors) == 3 and status == "CUDA_SUCCESS", done.stdout
