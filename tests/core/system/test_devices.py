"""`cuda.core.system` on the machine's own devices."""

import contextlib
import os
import pickle
import subprocess
import sys
import warnings

import pytest
from cuda.core import Device, system
from cuda.core.system import typing as names

ON_CPU = Device(0).name.startswith("CPU")


@pytest.fixture(scope="module")
def nvml_device():
    return Device(0).to_system_device()


def test_devices_map_to_each_other_by_uuid(nvml_device):
    for device in Device.get_all_devices():
        found = device.to_system_device()
        assert found.uuid_without_prefix == device.uuid
        assert found.name == device.name
        assert found.to_cuda_device() == device
    assert system.get_num_devices() == system.Device.get_device_count() >= len(Device.get_all_devices())


def test_a_device_is_found_by_index_uuid_and_pci_bus_id(nvml_device):
    for found in (
        system.Device(index=nvml_device.index),
        system.Device(uuid=nvml_device.uuid),
        system.Device(uuid=nvml_device.uuid_without_prefix),
        system.Device(pci_bus_id=nvml_device.pci_bus_id),
        pickle.loads(pickle.dumps(nvml_device)),
    ):
        assert (found.uuid, found.index) == (nvml_device.uuid, nvml_device.index)
    domain, _, rest = nvml_device.pci_bus_id.partition(":")
    mine, _, other = Device(0).pci_bus_id.partition(":")
    assert (int(domain, 16), rest.lower()) == (int(mine, 16), other.lower())


def test_unknown_devices_are_refused():
    with pytest.raises(system.NotFoundError, match="nvmlDeviceGetHandleByUUID"):
        system.Device(uuid="GPU-00000000-0000-0000-0000-000000000000")
    with pytest.raises(system.InvalidArgumentError, match="nvmlDeviceGetHandleByIndex_v2"):
        system.Device(index=1 << 16)
    with pytest.raises(ValueError, match="exactly one of index, uuid and pci_bus_id; got index and uuid"):
        system.Device(index=0, uuid="x")


def test_memory_adds_up_and_follows_allocations(nvml_device):
    device = Device(0)
    device.set_current()
    before = nvml_device.memory_info
    assert before.total >= device.total_memory
    assert before.total == before.free + before.used + before.reserved
    buffer = device.allocate(1 << 26, stream=device.default_stream)
    device.sync()
    assert nvml_device.memory_info.used >= before.used
    process = next((p for p in nvml_device.compute_running_processes if p.pid == os.getpid()), None)
    if ON_CPU:
        assert process.used_gpu_memory >= 1 << 26
        with pytest.raises(system.NotSupportedError, match="not partitioned"):
            _ = process.gpu_instance_id
    buffer.close()


def test_versions(nvml_device):
    from cuda.bindings import driver

    number = driver.cuDriverGetVersion()[1]
    assert system.get_user_mode_driver_version() == (number // 1000, number % 1000 // 10)
    assert all(isinstance(part, int) for part in system.get_kernel_mode_driver_version())
    assert system.get_nvml_version()[0] >= 12
    with pytest.warns(DeprecationWarning, match="get_user_mode_driver_version"):
        assert system.driver_version == system.get_user_mode_driver_version()
    assert nvml_device.cuda_compute_capability == tuple(Device(0).compute_capability)
    assert isinstance(nvml_device.arch, names.DeviceArch)


def test_process_names():
    assert "python" in system.get_process_name(os.getpid())
    with pytest.raises(system.NotFoundError, match="nvmlSystemGetProcessName"):
        system.get_process_name(2**31 - 1)


def test_every_attribute_has_a_value_or_an_nvml_error(nvml_device):
    refused = {}
    for name in sorted(vars(system.Device)):
        if isinstance(vars(system.Device)[name], property) and not name.startswith("_"):
            try:
                getattr(nvml_device, name)
            except system.NvmlError as error:
                refused[name] = str(error)
    assert {"name", "uuid", "index", "memory_info", "pci_info", "mig", "temperature", "inforom"}.isdisjoint(refused)
    for name, text in refused.items():
        assert text.startswith("nvml") and ":" in text, f"{name}: {text}"


def test_cpu_affinity_names_processors_of_this_machine(nvml_device):
    try:
        close = nvml_device.get_cpu_affinity()
    except system.NotSupportedError:
        pytest.skip("the system does not report the topology")
    assert close and max(close) < 4096
    before = os.sched_getaffinity(0)
    try:
        nvml_device.set_cpu_affinity()
        assert os.sched_getaffinity(0) <= set(close)
        nvml_device.clear_cpu_affinity()
        assert os.sched_getaffinity(0) >= before & set(range(os.cpu_count()))
    finally:
        os.sched_setaffinity(0, before)


def test_signal_handlers_run_while_events_are_awaited(nvml_device):
    program = """
import signal, sys
from cuda.core import system
device = system.Device(index=0)
try:
    events = device.register_events("xid_critical_error")
except system.NotSupportedError:
    sys.exit(3)
def stop(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    while True:
        # Other processes of the machine may cause events.
        events.wait()
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    if done.returncode == 3:
        pytest.skip("the device reports no such events")
    assert done.stdout == "interrupted\n", done.stderr


def test_a_wait_for_events_times_out(nvml_device):
    try:
        events = nvml_device.register_events("xid_critical_error")
    except system.NotSupportedError:
        pytest.skip("the device reports no such events")
    with pytest.raises(system.TimeoutError, match="nvmlEventSetWait"):
        events.wait(timeout_ms=20)


@pytest.mark.skipif(not ON_CPU, reason="makes the device's context unusable")
def test_a_failed_kernel_is_an_event():
    program = """
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch, system
device = Device(0)
device.set_current()
events = device.to_system_device().register_events("xid_critical_error")
code = 'extern "C" __global__ void fail() { *(volatile int *)8 = 1; }'
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("fail")
stream = device.create_stream()
launch(stream, LaunchConfig(grid=1, block=1), kernel)
event = events.wait(timeout_ms=20_000)
print(event.event_type, event.event_data, event.device.uuid == device.to_system_device().uuid)
try:
    event.gpu_instance_id
    events.wait(timeout_ms=50)
except system.TimeoutError:
    print("once")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[:2] == ["xid_critical_error 31 True", "once"], done.stderr


def test_importing_the_package_loads_no_nvml():
    program = "import sys, cuda.core.system as s; s.Device; print('cuda.bindings.nvml' in sys.modules, s._nvml.is_initialized())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[1] == "False"
    done = subprocess.run(
        [sys.executable, "-c", "import sys, cuda.core.system; print('cuda.bindings.nvml' in sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "False\n"


def test_repeated_queries_leak_nothing(nvml_device):
    import gc
    import resource

    def queries(count):
        for _ in range(count):
            device = system.Device(index=0)
            _ = device.name, device.memory_info.used, device.pci_info.bus, device.utilization.gpu
            with contextlib.suppress(system.NotSupportedError):
                device.get_clock("sm").get_current_mhz()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        queries(500)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        queries(5000)
        gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


@pytest.mark.skipif(not ON_CPU, reason="sets the number of CPU devices")
def test_visible_devices_and_hidden_ones():
    program = """
from cuda.core import Device, system
print(system.get_num_devices(), len(Device.get_all_devices()))
for device in system.Device.get_all_devices():
    assert device.to_cuda_device().to_system_device().uuid == device.uuid
"""
    environment = {**os.environ, "CUPYRITE_CPU_DEVICES": "3"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "3 3\n", done.stderr
