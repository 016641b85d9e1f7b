"""cuda.bindings.utils."""

import subprocess
import sys

import pytest
from cuda.bindings import driver, nvrtc, utils


@pytest.mark.parametrize("text, value", [(None, None), ("", None), ("0", False), ("No", False), ("off", False), ("FALSE", False), ("00", False),
                                         ("1", True), ("yes", True), ("2", True), ("-1", True), ("x", True), ("n", True)])
@pytest.mark.parametrize("default", [False, True])
def test_switches(monkeypatch, text, value, default):
    monkeypatch.delenv("SOME_SWITCH", raising=False)
    if text is not None:
        monkeypatch.setenv("SOME_SWITCH", text)
    assert utils.envvar_bool("SOME_SWITCH", default) is (default if value is None else value)


def test_handles():
    assert utils.get_cuda_native_handle(driver.CUstream(5)) == 5
    assert utils.get_cuda_native_handle(nvrtc.nvrtcProgram(0)) == 0
    for wrong in (driver.CUdeviceptr(7), driver.CUdevice(0), driver.CUhostFn(0), driver.CUresult.CUDA_SUCCESS, 5, None):
        with pytest.raises(TypeError):
            utils.get_cuda_native_handle(wrong)


@pytest.mark.parametrize("version, disabled, warns", [(12080, "", True), (12080, "1", False), (13000, "", False)])
def test_a_driver_of_an_older_major_version(version, disabled, warns):
    script = f"""
import os, warnings
os.environ["CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING"] = {disabled!r}
from cuda.bindings import driver, utils
driver.cuDriverGetVersion = lambda: (driver.CUresult.CUDA_SUCCESS, {version})
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    utils.warn_if_cuda_major_version_mismatch()
    utils.warn_if_cuda_major_version_mismatch()
print([(w.category.__name__, "12.8" in str(w.message)) for w in seen])
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.strip() == ("[('UserWarning', True)]" if warns else "[]")
