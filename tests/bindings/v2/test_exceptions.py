"""What the exceptions of all three modules say: status, name, description, functions of Python and C, log."""

import pytest
from cuda.bindings._v2 import driver, nvrtc, runtime


@pytest.fixture(autouse=True)
def context():
    driver.init(0)
    driver.ctx_set_current(driver.device_primary_ctx_retain(0))
    yield
    driver.device_primary_ctx_release_v2(0)


CASES = {
    "driver": (driver, driver.DriverError, lambda: driver.device_get(9999), "InvalidDeviceError", 101),
    "driver, two words": (driver, driver.DriverError, lambda: driver.mem_alloc_v2(0), "InvalidValueError", 1),
    "driver, no fast route": (
        driver,
        driver.DriverError,
        lambda: driver.device_get_by_pci_bus_id(b"ffff:ff:1f.0"),
        "InvalidDeviceError",
        101,
    ),
    "nvrtc": (nvrtc, nvrtc.NvrtcError, lambda: nvrtc.get_ptx_size(0), "InvalidProgramError", 4),
    "nvrtc, written for Python": (nvrtc, nvrtc.NvrtcError, lambda: nvrtc.get_ptx(0), "InvalidProgramError", 4),
    "runtime": (runtime, runtime.CudartError, lambda: runtime.set_device(9999), "InvalidDeviceError", 101),
    "runtime, a struct": (
        runtime,
        runtime.CudartError,
        lambda: runtime.get_device_properties(9999),
        "InvalidDeviceError",
        101,
    ),
}
CALLS = {
    "driver": ("device_get", "cuDeviceGet"),
    "driver, two words": ("mem_alloc_v2", "cuMemAlloc_v2"),
    "driver, no fast route": ("device_get_by_pci_bus_id", "cuDeviceGetByPCIBusId"),
    "nvrtc": ("get_ptx_size", "nvrtcGetPTXSize"),
    "nvrtc, written for Python": ("get_ptx", "nvrtcGetPTX"),
    "runtime": ("set_device", "cudaSetDevice"),
    "runtime, a struct": ("get_device_properties", "cudaGetDeviceProperties"),
}


@pytest.mark.parametrize("case", CASES)
def test_exception_names_status_and_functions(case):
    module, base, call, kind, status = CASES[case]
    function, symbol = CALLS[case]
    with pytest.raises(base) as caught:
        call()
    error = caught.value
    assert type(error) is getattr(module, kind) and type(error).__module__ == module.__name__
    assert error.status == status and error.name == module.Result(status).name
    assert error.function == function
    assert error.args == (str(error),) and f"({status})" in str(error)
    description = module.get_error_string(status)
    description = description.decode() if type(description) is bytes else description
    assert description in str(error)
    assert any(f"in {function}(), which calls {symbol}" in note for note in error.__notes__)
    assert type(error.log) is str


@pytest.mark.cpu
@pytest.mark.parametrize(
    "module, call, word",
    [
        (driver, lambda: driver.mem_alloc_v2(0), "cuMemAlloc"),
        (runtime, lambda: runtime.malloc_pitch(1 << 62, 4), "cuMemAllocPitch"),
        (runtime, lambda: runtime.free(0x1234560), "cuMemFree"),
    ],
    ids=["driver", "runtime malloc_pitch", "runtime free"],
)
def test_exception_has_the_text_of_the_driver_log(module, call, word):
    with pytest.raises(Exception) as caught:
        call()
    assert word in caught.value.log
    assert caught.value.log in caught.value.__notes__


def test_compilation_error_has_the_log_of_the_compiler():
    program = nvrtc.create_program(b"int x = y;", b"bad.cu")
    with pytest.raises(nvrtc.CompilationError) as caught:
        nvrtc.compile_program(program)
    assert 'identifier "y" is undefined' in caught.value.log and caught.value.log in caught.value.__notes__
    assert caught.value.function == "compile_program"
    nvrtc.destroy_program(program)


def test_host_memory_of_another_type_is_a_value_error():
    pointer = driver.mem_alloc_v2(16)
    for wrong in ("text", 1.5, object(), [1, 2], {}):
        for call, name, arguments in (
            (driver.memcpy_htod_v2, "src_host", (pointer, wrong, 16)),
            (driver.memcpy_htod_async_v2, "src_host", (pointer, wrong, 16, 0)),
            (driver.memcpy_dtoh_v2, "dst_host", (wrong, pointer, 16)),
        ):
            with pytest.raises(ValueError, match=f"'{name}' must be None, an address or .* not {type(wrong).__name__}"):
                call(*arguments)
    driver.mem_free_v2(pointer)


def test_log_without_an_iterator_returns_0(tmp_path):
    path = bytes(tmp_path / "log")
    with pytest.raises(driver.DriverError):
        driver.mem_alloc_v2(0)
    assert driver.logs_dump_to_file(None, path, 0) == 0
    assert driver.logs_dump_to_file(iterator=None, path_to_file=path, flags=0) == 0
    assert driver.logs_dump_to_file(0, path, 0) == driver.logs_current(0)
