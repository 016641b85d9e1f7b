"""cuda.bindings.utils."""

import pytest
from cuda.bindings import driver, nvrtc, runtime, utils

from helpers.programs import output


@pytest.mark.parametrize(
    "text, value",
    [
        (None, None),
        ("", None),
        ("0", False),
        ("No", False),
        ("off", False),
        ("FALSE", False),
        ("00", False),
        ("1", True),
        ("yes", True),
        ("2", True),
        ("-1", True),
        ("x", True),
        ("n", True),
    ],
)
@pytest.mark.parametrize("default", [False, True])
def test_per_thread_stream_switch(monkeypatch, text, value, default):
    monkeypatch.delenv("SOME_SWITCH", raising=False)
    if text is not None:
        monkeypatch.setenv("SOME_SWITCH", text)
    assert utils.envvar_bool("SOME_SWITCH", default) is (default if value is None else value)


def test_getters_return_handle_values():
    assert utils.get_cuda_native_handle(driver.CUstream(5)) == 5
    assert utils.get_cuda_native_handle(nvrtc.nvrtcProgram(0)) == 0
    assert utils.get_cuda_native_handle(driver.EGLSyncKHR()) == 0
    for kind in (
        runtime.cudaStream_t,
        runtime.cudaEvent_t,
        runtime.cudaArray_t,
        runtime.cudaKernel_t,
        runtime.EGLSyncKHR,
    ):
        assert utils.get_cuda_native_handle(kind(9)) == 9
    for wrong in (
        driver.CUdeviceptr(7),
        driver.CUdevice(0),
        driver.CUhostFn(0),
        driver.CUmemGenericAllocationHandle(0),
        driver.CUresult.CUDA_SUCCESS,
        runtime.cudaTextureObject_t(1),
        runtime.cudaHostFn_t(0),
        runtime.dim3(),
        runtime.cudaError_t.cudaSuccess,
        5,
        None,
    ):
        with pytest.raises(TypeError):
            utils.get_cuda_native_handle(wrong)


@pytest.mark.parametrize("version, disabled, warns", [(12080, "", True), (12080, "1", False), (13000, "", False)])
def test_driver_of_an_older_major_version_warns(version, disabled, warns):
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
    assert output(script).strip() == ("[('UserWarning', True)]" if warns else "[]")


def test_getter_of_another_class_raises():
    class Stream:
        pointer = 77

    with pytest.raises(TypeError, match="Stream"):
        utils.get_cuda_native_handle(Stream())
    utils._add_cuda_native_handle_getter(Stream, lambda stream: stream.pointer)
    try:
        assert utils.get_cuda_native_handle(Stream()) == 77
    finally:
        del utils._handle_getters[Stream]


def test_class_that_only_shares_a_handle_name_raises():
    class CUstream:
        __module__ = "cuda.bindings.driver2"

    with pytest.raises(TypeError, match="CUstream"):
        utils.get_cuda_native_handle(CUstream())


@pytest.mark.parametrize(
    "source, version",
    [
        (".version 7.0", "7.0"),
        ("//\n.version\t8.4\n.target sm_90", "8.4"),
        (".version\n  10.12 ", "10.12"),
        (".version x\n.version 3.1.2", "3.1"),
        ("// .version 1.0\n.version 2.0", "1.0"),
    ],
)
def test_ptx_version(source, version):
    assert utils.get_ptx_ver(source) == version


@pytest.mark.parametrize(
    "source",
    ["", ".version 8", ".version 8.x", ".VERSION 8.1", ".versions 8.1", ".version8.1", ".version \u0663.\u0664"],
)
def test_text_without_ptx_version_raises(source):
    with pytest.raises(ValueError, match="version directive"):
        utils.get_ptx_ver(source)


def test_ptx_of_a_wrong_type_raises():
    with pytest.raises(TypeError, match="decode"):
        utils.get_ptx_ver(b".version 8.1")
    with pytest.raises(TypeError, match="NoneType"):
        utils.get_ptx_ver(None)


def test_ptx_version_of_the_compiler():
    from helpers.device import compile_cuda

    ptx = compile_cuda('extern "C" __global__ void k() {}', kind="ptx", arch="80")[0].decode()
    _status, major, minor = nvrtc.nvrtcVersion()
    assert utils.get_minimal_required_cuda_ver_from_ptx_ver(utils.get_ptx_ver(ptx)) <= major * 1000 + minor * 10 + 9


@pytest.mark.parametrize(
    "ptx, cuda",
    [
        ("1.0", 1000),
        ("1.1", 1010),
        ("1.4", 2020),
        ("2.2", 3020),
        ("2.3", 4000),
        ("3.0", 4010),
        ("3.2", 5050),
        ("4.1", 6050),
        ("4.3", 7050),
        ("5.0", 8000),
        ("6.2", 9020),
        ("6.5", 10020),
        ("7.0", 11000),
        ("7.8", 11080),
        ("8.0", 12000),
        ("8.4", 12040),
        ("8.5", 12050),
        ("8.6", 12070),
        ("8.8", 12090),
        ("9.0", 13000),
        ("9.5", 13050),
    ],
)
def test_toolkit_of_a_ptx_version(ptx, cuda):
    assert utils.get_minimal_required_cuda_ver_from_ptx_ver(ptx) == cuda


@pytest.mark.parametrize("wrong", ["", "1.5", "5.1", "8.40", " 8.4", "8,4", "9.99", 8.4, None, b"8.4", [], {}])
def test_unknown_ptx_version_raises(wrong):
    with pytest.raises(ValueError, match=r"'9\.5'"):
        utils.get_minimal_required_cuda_ver_from_ptx_ver(wrong)


def has_nvvm():
    from cuda import pathfinder
    from cuda.bindings import nvvm

    try:
        nvvm.version()
    except pathfinder.DynamicLibNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.parametrize(
    "options, good",
    [
        ([], True),
        (["-g"], True),
        (("-arch=compute_80",), True),
        (["-arch=compute_100", "-opt=3"], True),
        (["-ftz=1", "-fma=0"], True),
        ([b"-g"], True),
        (iter(["-g"]), True),
        (["-gen-lto"], True),
        (["-bogus"], False),
        ([""], False),
        (["-opt=9"], False),
        (["-arch=compute_1"], False),
        (["-arch=compute_80", "-arch=compute_90"], False),
        (["-g", "-bogus"], False),
    ],
)
def test_nvvm_options(options, good):
    has_nvvm()
    assert utils.check_nvvm_compiler_options(options) is good


@pytest.mark.parametrize("wrong", ["-g", b"-g", "", None, 3, [3], [None]])
def test_invalid_nvvm_options_raise(wrong):
    has_nvvm()
    with pytest.raises(TypeError):
        utils.check_nvvm_compiler_options(wrong)
