"""cuda.bindings.nvml: the same tests on a GPU and on the CPU device, as far as each supports them."""

import importlib.util
import os
import pathlib
import threading

import numpy as np
import pytest
from cuda.bindings import driver, nvml

from helpers.device import check, compile_cuda
from helpers.programs import output
from helpers.threads import run_all


@pytest.fixture(autouse=True)
def session():
    """NVML initialized; shut down as often as it was initialized."""
    nvml.init_v2()
    yield
    nvml.shutdown()


@pytest.fixture
def device():
    return nvml.device_get_handle_by_index_v2(0)


def test_functions_have_the_name_of_the_c_function():
    assert nvml.init_v2._symbol == "nvmlInit_v2"
    assert nvml.device_get_memory_info_v2._symbol == "nvmlDeviceGetMemoryInfo_v2"
    assert driver.cuMemAlloc._symbol == "cuMemAlloc_v2"
    assert nvml.check_status._symbol is None


def test_initialization_is_counted():
    script = """
from cuda.bindings import nvml
def count():
    try: return nvml.device_get_count_v2()
    except nvml.UninitializedError as error: return error.status == nvml.Return.ERROR_UNINITIALIZED
print(count())
nvml.init_v2(); nvml.init_with_flags(0); nvml.shutdown()
print(count() >= 1)
nvml.shutdown()
print(count())
try: nvml.shutdown()
except nvml.UninitializedError as error: print(type(error.status) is int)
"""
    assert output(script).split() == ["True"] * 4


def test_versions():
    version = nvml.system_get_cuda_driver_version_v2()
    assert type(version) is int and version == check(driver.cuDriverGetVersion())
    assert all(part.isdigit() for part in nvml.system_get_driver_version().split("."))
    assert nvml.system_get_nvml_version().startswith(f"{version // 1000}.")


def test_device_is_found_by_every_identifier(device):
    assert type(device) is int and device != 0
    assert nvml.device_get_index(device) == 0
    uuid = nvml.device_get_uuid(device)
    assert uuid.startswith("GPU-") and len(uuid) == 40
    assert nvml.device_get_handle_by_uuid(uuid) == nvml.device_get_handle_by_uuid(uuid.removeprefix("GPU-")) == device
    assert nvml.device_get_handle_by_uuidv(nvml.UUIDType.ASCII, uuid.encode()) == device
    pci = nvml.device_get_pci_info_v3(device)
    assert isinstance(pci, nvml.PciInfo) and int(pci.bus_id.split(":")[1], 16) == pci.bus
    assert nvml.device_get_handle_by_pci_bus_id_v2(pci.bus_id) == device
    assert nvml.device_get_handle_by_pci_bus_id_v2(pci.bus_id_legacy) == device


def test_driver_reports_the_same_device(device):
    check(driver.cuInit(0))
    ordinal = check(driver.cuDeviceGetByPCIBusId(nvml.device_get_pci_info_v3(device).bus_id_legacy.encode()))
    assert check(driver.cuDeviceGetName(96, ordinal)).split(b"\0")[0].decode() == nvml.device_get_name(device)
    uuid = bytes(check(driver.cuDeviceGetUuid(ordinal)).bytes).hex()
    assert nvml.device_get_uuid(device).replace("-", "") == f"GPU{uuid}"
    capability = nvml.device_get_cuda_compute_capability(device)
    names = driver.CUdevice_attribute
    wanted = (names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    assert capability == tuple(check(driver.cuDeviceGetAttribute(a, ordinal)) for a in wanted)
    assert nvml.DeviceArch(nvml.device_get_architecture(device)) in nvml.DeviceArch


def test_memory_info(device):
    v2 = nvml.device_get_memory_info_v2(device)
    assert isinstance(v2, nvml.Memory_v2)
    assert v2.total > 0 and v2.free + v2.used + v2.reserved == v2.total
    assert v2.version == 40 | 2 << 24


def test_allocated_memory_is_reported_as_used(device, context):
    size, grown = 64 << 20, []
    # Other processes may free memory of a GPU at the same time.
    while not grown or (grown[-1] < size // 2 and len(grown) < 20):
        before = nvml.device_get_memory_info_v2(device).used
        pointer = check(driver.cuMemAlloc(size))
        try:
            grown.append(nvml.device_get_memory_info_v2(device).used - before)
        finally:
            check(driver.cuMemFree(pointer))
    assert grown[-1] >= size // 2, grown


def test_this_process_is_listed_as_computing(device, context):
    pointer = check(driver.cuMemAlloc(1 << 20))
    processes = nvml.device_get_compute_running_processes_v3(device)
    mine = [p for p in processes if p.pid == os.getpid()]
    check(driver.cuMemFree(pointer))
    assert isinstance(processes, nvml.ProcessInfo)
    # In a container NVML may report other process ids than the process itself.
    if mine:
        assert len(mine) == 1 and mine[0].used_gpu_memory >= 1 << 20
    assert pathlib.Path(nvml.system_get_process_name(os.getpid())).name


@pytest.mark.cpu
def test_cpu_device_lists_exactly_this_process(device, context):
    pointer = check(driver.cuMemAlloc(1 << 20))
    (mine,) = nvml.device_get_compute_running_processes_v3(device)
    check(driver.cuMemFree(pointer))
    assert (mine.pid, mine.gpu_instance_id, mine.compute_instance_id) == (os.getpid(), 2**32 - 1, 2**32 - 1)
    assert (1 << 20) <= mine.used_gpu_memory <= nvml.device_get_memory_info_v2(device).used + (1 << 20)
    assert len(nvml.device_get_graphics_running_processes_v3(device)) == 0
    assert len(nvml.device_get_mps_compute_running_processes_v3(device)) == 0


SPIN = """extern "C" __global__ void spin(unsigned long long n, unsigned *out) {
    unsigned x = threadIdx.x; for (unsigned long long i = 0; i < n; i++) x = x * 1664525u + 1013904223u; *out = x; }"""


@pytest.mark.cpu
def test_running_kernel_shows_as_utilization(device, context):
    code, _ = compile_cuda(SPIN)
    module = check(driver.cuModuleLoadData(code))
    kernel = check(driver.cuModuleGetFunction(module, b"spin"))
    out = check(driver.cuMemAlloc(4))
    args = np.array([20_000_000], np.uint64), np.array([int(out)], np.uint64)
    check(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, np.array([a.ctypes.data for a in args], np.uint64), 0))
    check(driver.cuCtxSynchronize())
    rates = nvml.device_get_utilization_rates(device)
    check(driver.cuMemFree(out))
    assert isinstance(rates, nvml.Utilization) and 0 < rates.gpu <= 100


@pytest.mark.cpu
def test_unsupported_queries_of_the_cpu_device(device):
    for call in (
        lambda: nvml.device_get_fan_speed(device),
        lambda: nvml.device_get_power_usage(device),
        lambda: nvml.device_get_temperature_v(device, 0),
        lambda: nvml.device_get_clock_info(device, nvml.ClockType.CLOCK_VIDEO),
        lambda: nvml.device_get_ecc_mode(device),
        lambda: nvml.device_get_serial(device),
        lambda: nvml.device_set_persistence_mode(device, 1),
        nvml.system_event_set_create,
        lambda: nvml.device_get_supported_memory_clocks(device),
        lambda: nvml.device_get_active_vgpus(device),
    ):
        with pytest.raises(nvml.NotSupportedError) as caught:
            call()
        assert caught.value.status == nvml.Return.ERROR_NOT_SUPPORTED


def test_invalid_names_raise():
    with pytest.raises(nvml.InvalidArgumentError):
        nvml.device_get_handle_by_index_v2(1000)
    with pytest.raises(nvml.NvmlError):
        nvml.device_get_handle_by_uuid("GPU-none")
    with pytest.raises(nvml.NvmlError):
        nvml.device_get_handle_by_pci_bus_id_v2("none")
    with pytest.raises(nvml.InvalidArgumentError):
        nvml.device_get_name(0)
    for wrong in (None, 5, b"GPU-x"):
        with pytest.raises(TypeError):
            nvml.device_get_handle_by_uuid(wrong)
    with pytest.raises(ValueError):
        nvml.device_get_handle_by_uuid("GPU-\0x")
    with pytest.raises(OverflowError):
        nvml.device_get_handle_by_index_v2(1 << 32)
    with pytest.raises(OverflowError):
        nvml.device_get_handle_by_index_v2(-1)


def test_every_status_has_an_error_class():
    for status in nvml.Return:
        if status == nvml.Return.SUCCESS:
            assert nvml.check_status(status) == 0
            continue
        with pytest.raises(nvml.NvmlError) as caught:
            nvml.check_status(status)
        assert caught.value.status == status and str(caught.value) == nvml.error_string(status)
    with pytest.raises(nvml.NvmlError):
        nvml.check_status(77)
    assert nvml.check_status_size(nvml.Return.ERROR_INSUFFICIENT_SIZE) == 0


def test_concurrent_queries(device):
    name, failed = nvml.device_get_name(device), []

    def ask():
        try:
            for _ in range(300):
                assert nvml.device_get_name(nvml.device_get_handle_by_index_v2(0)) == name
                assert nvml.device_get_memory_info_v2(device).total > 0
                nvml.device_get_compute_running_processes_v3(device)
                nvml.init_v2()
                nvml.shutdown()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    run_all(threads)
    assert not failed


@pytest.mark.cpu
def test_forked_child_reinitializes():
    pid = os.fork()
    if pid == 0:
        try:
            nvml.device_get_count_v2()
            status = 1
        except nvml.UninitializedError:
            nvml.init_v2()
            status = 0 if nvml.device_get_count_v2() == 1 else 2
        except BaseException:
            status = 3
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.skipif(importlib.util.find_spec("pynvml") is not None, reason="pynvml is installed and loads NVML")
def test_import_loads_no_library():
    script = """
import sys
from cuda.bindings import nvml, cufile, cudla, nvjitlink, nvvm, nvfatbin
nvml.PciInfo(), nvml.Return.SUCCESS, nvml.NvmlError, cufile.OpError, cudla.Status
maps = open("/proc/self/maps").read()
print("numpy" in sys.modules, [n for n in ("libnvidia-ml", "libcuda", "libcufile", "libnvvm", "libnvJitLink", "libnvfatbin") if n in maps])
"""
    assert output(script).strip() == "False []"


@pytest.mark.parametrize("values", [[], (), nvml.FieldValue(0)])
@pytest.mark.parametrize("call", [nvml.device_get_field_values, nvml.device_clear_field_values])
def test_empty_field_list_makes_no_call(call, values):
    """The library is not called, so the handle is not checked; NVIDIA's package returns the object."""
    got = call(0, values)
    assert type(got) is nvml.FieldValue and len(got) == 0
    assert got is values or not isinstance(values, nvml.FieldValue)
    with pytest.raises(TypeError):
        call("device", values)


def test_exception_has_the_text_of_nvml_and_a_note_with_the_function(device):
    for call, arguments, symbol in (
        (nvml.device_get_handle_by_index_v2, (9999,), "nvmlDeviceGetHandleByIndex_v2"),
        (nvml.device_get_handle_by_uuid, ("GPU-none",), "nvmlDeviceGetHandleByUUID"),
        (nvml.device_get_name, (0,), "nvmlDeviceGetName"),
    ):
        with pytest.raises(nvml.NvmlError) as caught:
            call(*arguments)
        # Programs compare the text, which is NVML's own in NVIDIA's package as well.
        assert str(caught.value) == nvml.error_string(caught.value.status)
        assert caught.value.__notes__ == [f"in {call.__name__}(), which calls {symbol}"]
