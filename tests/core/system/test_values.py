"""Every attribute and method of `cuda.core.system` against a library with fixed answers (`fake_nvml.c`).

The answers are numbers that a wrong conversion would change. The library replaces NVML in a process of its own.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HELPERS = pathlib.Path(__file__).parents[2] / "helpers"
COMPILER = shutil.which(os.environ.get("CC", "cc"))

pytestmark = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="needs a C compiler, to build a library with fixed answers"
)

PRELUDE = """
import json, warnings
from cuda.core import system
from cuda.core.system import typing as T
Device = system.Device
gpu, other = Device(index=0), Device(index=1)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with the library."""
    folder = tmp_path_factory.mktemp("fake-nvml")
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-w", "-o", folder / "libnvidia-ml.so.1", HELPERS / "fake_nvml.c"], check=True
    )
    return folder


@pytest.fixture(scope="module")
def run(library, tmp_path_factory):
    """Runs a program with the library as NVML; returns what it prints."""
    log = tmp_path_factory.mktemp("log") / "calls"

    def run(program, flags=("-W", "error")):
        environment = {
            **os.environ,
            "CUPYRITE_DEVICE": "gpu",
            "LD_LIBRARY_PATH": f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "FAKE_NVML_LOG": str(log),
        }
        log.write_text("")
        done = subprocess.run(
            [sys.executable, *flags, "-c", PRELUDE + program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.log = log
    return run


@pytest.fixture(scope="module")
def values(run):
    """Evaluates expressions in one process; an exception's class name begins with an exclamation mark."""

    def values(*expressions):
        program = f"""
def plain(value):
    if isinstance(value, Device):
        return value.uuid[-2:]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, str) else value
out = []
for text in {list(expressions)!r}:
    try:
        out.append(plain(eval(text)))
    except Exception as error:
        out.append("!" + type(error).__name__)
print(json.dumps(out))
"""
        return json.loads(run(program))

    return values


GPU = {
    "addressing_mode": "ats",
    "arch": 9,
    "attributes.multiprocessor_count": 132,
    "attributes.shared_copy_engine_count": 3,
    "attributes.shared_decoder_count": 7,
    "attributes.shared_encoder_count": 2,
    "attributes.shared_jpeg_count": 6,
    "attributes.shared_ofa_count": 1,
    "attributes.gpu_instance_slice_count": 8,
    "attributes.compute_instance_slice_count": 4,
    "attributes.memory_size_mb": 143771,
    "bar1_memory_info.total": 256,
    "bar1_memory_info.free": 200,
    "bar1_memory_info.used": 56,
    "bar1_memory_info.reserved": "!AttributeError",
    "brand": "NVIDIA",
    "cooler.signal_type": "variable",
    "cooler.target": ["gpu", "power_supply"],
    "cuda_compute_capability": [9, 0],
    "current_clock_event_reasons": ["gpu_idle", "sw_power_cap", "hw_thermal_slowdown"],
    "dynamic_pstates_info[3].percentage": 30,
    "dynamic_pstates_info[3].is_present": True,
    "dynamic_pstates_info[4].is_present": False,
    "dynamic_pstates_info[3].inc_threshold": 73,
    "dynamic_pstates_info[3].dec_threshold": 23,
    "dynamic_pstates_info[8]": "!IndexError",
    "dynamic_pstates_info.__len__()": 8,
    "index": 0,
    "inforom.bbx_flush_time": [1700000000, 32000],
    "inforom.board_part_number": "692-2G520",
    "inforom.configuration_checksum": 4022250974,
    "inforom.image_version": "G520.0200",
    "inforom.get_version('den')": "5.3",
    "inforom.get_version('x')": "!ValueError",
    "inforom.validate()": "!CorruptedInforomError",
    "is_auto_boosted_clocks_enabled": [True, False],
    "is_c2c_enabled": True,
    "is_display_active": False,
    "is_display_connected": True,
    "is_persistence_mode_enabled": True,
    "memory_info.total": 1000,
    "memory_info.free": 900,
    "memory_info.used": 99,
    "memory_info.reserved": 1,
    "mig.device_count": 3,
    "mig.is_mig_device": False,
    "mig.mode": True,
    "mig.pending_mode": False,
    "mig.parent": "!InvalidArgumentError",
    "mig.get_device_by_index(1)": "aa",
    "mig.get_device_by_index(1).mig.is_mig_device": True,
    "mig.get_device_by_index(1).mig.parent": "ff",
    "mig.get_device_by_index(0)": "!NotFoundError",
    "minor_number": 5,
    "module_id": 4,
    "name": "Fake GPU",
    "num_fans": 2,
    "numa_node_id": 6,
    "pci_bus_id": "00000001:02:00.0",
    "pci_info.bus_id": "00000001:02:00.0",
    "pci_info.domain": 1,
    "pci_info.bus": 2,
    "pci_info.device": 0,
    "pci_info.vendor_id": 0x10DE,
    "pci_info.device_id": 0x2335,
    "pci_info.subsystem_id": 0x18BE10DE,
    "pci_info.base_class": 3,
    "pci_info.sub_class": 2,
    "pci_info.current_link_generation": 3,
    "pci_info.link_generation": 4,
    "pci_info.max_link_generation": 5,
    "pci_info.current_link_width": 8,
    "pci_info.max_link_width": 16,
    "pci_info.replay_counter": 12,
    "pci_info.tx_throughput": 500,
    "pci_info.rx_throughput": 501,
    "performance_state": 2,
    "repair_status.channel_repair_pending": False,
    "repair_status.tpc_repair_pending": True,
    "serial": "1654922",
    "supported_pstates": [0, 2, 8],
    "supported_clock_event_reasons.__len__()": 10,
    "temperature.margin": -3,
    "temperature.get_sensor()": 41,
    "temperature.get_threshold('gps_curr')": 87,
    "temperature.get_threshold('x')": "!ValueError",
    "temperature.get_thermal_settings('gpu').__len__()": 2,
    "temperature.get_thermal_settings('gpu')[0].controller": "gpu_internal",
    "temperature.get_thermal_settings('gpu')[0].default_min_temp": -5,
    "temperature.get_thermal_settings('gpu')[0].default_max_temp": 127,
    "temperature.get_thermal_settings('gpu')[0].current_temp": 39,
    "temperature.get_thermal_settings('all')[1].current_temp": 15,
    "temperature.get_thermal_settings('gpu')[1].controller": "unknown",
    "temperature.get_thermal_settings('gpu')[1].target": "power_supply",
    "temperature.get_thermal_settings('gpu')[2]": "!IndexError",
    "utilization.gpu": 55,
    "utilization.memory": 11,
    "uuid": "GPU-00112233-4455-6677-8899-aabbccddeeff",
    "uuid_without_prefix": "00112233-4455-6677-8899-aabbccddeeff",
    "get_fan().speed": 30,
    "get_fan(1).speed_rpm": 1501,
    "get_fan(1).target_speed": 41,
    "get_fan().min_max_speed": [10, 100],
    "get_fan().control_policy": "temperature_controlled",
    "get_fan(1).control_policy": "manual",
    "get_fan().set_default_speed()": None,
    "get_fan(2)": "!ValueError",
    "get_fan(-1)": "!ValueError",
    "get_clock('memory').get_current_mhz('customer_boost_max')": 1023,
    "get_clock('sm').get_current_mhz()": 1010,
    "get_clock('video').get_max_mhz()": 1903,
    "get_clock(T.ClockType.SM).get_max_customer_boost_mhz()": 1981,
    "get_clock('sm').get_min_max_clock_of_pstate_mhz(3)": [301, 1703],
    "get_clock('sm').get_min_max_clock_of_pstate_mhz(16)": "!ValueError",
    "get_clock('video').get_offsets(2).clock_offset_mhz": -3,
    "get_clock('video').get_offsets(2).min_offset_mhz": -202,
    "get_clock('video').get_offsets(2).max_offset_mhz": 300,
    "get_clock('x')": "!ValueError",
    "get_clock(1)": "!ValueError",
    "get_cpu_affinity()": [0, 2, 63],
    "get_cpu_affinity('socket')": [0, 1, 2, 3, 4, 5, 6, 7],
    "get_memory_affinity()": [1],
    "get_memory_affinity('socket')": [0, 1],
    "get_memory_affinity('x')": "!ValueError",
    "get_nvlink_count()": 2,
    "get_nvlink(0).state": True,
    "get_nvlink(0).version": [4, 0],
    "get_nvlink(1).state": False,
    "get_nvlink(1).version": "!RuntimeError",
    "get_nvlink(2)": "!ValueError",
    "get_supported_event_types()": ["single_bit_ecc_error", "xid_critical_error", "mig_config_change"],
    "get_field_values([1, 2, 3, 4, 5, 6, (9, 3)]).get_all_values()": [2.5, -5000000000, -7, 65535, 2**64 - 1, 8, 9003],
    "get_field_values([7])[0].value": "!NotSupportedError",
    "get_field_values([1, 7]).get_all_values()": "!NotSupportedError",
    "get_field_values([1, 7]).validate()": "!NotSupportedError",
    "get_field_values([1, 7])[0].value": 2.5,
    "get_field_values([1, (9, 3)])[1].scope_id": 3,
    "get_field_values([1, (9, 3)])[1].field_id": 9,
    "get_field_values([1, (9, 3)])[1].timestamp": 1001,
    "get_field_values([1, (9, 3)])[-1].latency_usec": 21,
    "get_field_values([]).__len__()": 0,
    "get_field_values([1, 9])[2]": "!IndexError",
    "get_field_values([1.5])": "!ValueError",
    "get_field_values([(1, 2, 3)])": "!ValueError",
    "get_field_values(1)": "!TypeError",
    "clear_field_values([1])": "!NoPermissionError",
    "compute_running_processes[0].pid": 7,
    "compute_running_processes[0].used_gpu_memory": 4096,
    "compute_running_processes[0].gpu_instance_id": "!NotSupportedError",
    "compute_running_processes[1].gpu_instance_id": 3,
    "compute_running_processes[1].compute_instance_id": 1,
}


def test_values_of_a_gpu(values):
    got = dict(zip(GPU, values(*[f"gpu.{name}" for name in GPU]), strict=True))
    assert got == GPU


# Attributes that a device may lack, and those with a value that this package does not know.
OTHER = {
    **dict.fromkeys(
        [
            "attributes",
            "bar1_memory_info",
            "dynamic_pstates_info",
            "is_auto_boosted_clocks_enabled",
            "mig.mode",
            "serial",
            "minor_number",
            "module_id",
            "numa_node_id",
            "repair_status",
            "supported_pstates",
            "utilization",
            "temperature.margin",
            "pci_info.rx_throughput",
            "get_cpu_affinity()",
            "get_nvlink_count()",
            "get_nvlink(0)",
            "list(other.get_nvlinks())",
            "register_events('clock')",
            "inforom.image_version",
            "get_clock('sm').get_max_mhz()",
        ],
        "!NotSupportedError",
    ),
    "addressing_mode": None,
    "arch": 0xFFFFFFFF,
    "brand": "Unknown",
    "cooler.signal_type": None,
    "cooler.target": ["none"],
    "current_clock_event_reasons": [],
    "performance_state": None,
    "num_fans": 0,
    "get_fan()": "!ValueError",
    "compute_running_processes": [],
    "is_display_active": True,
    "is_c2c_enabled": False,
    "mig.device_count": 0,
    "list(other.mig.get_all_devices())": [],
}


def test_values_of_a_device_without_features(values):
    names = [name if name.startswith("list(") else f"other.{name}" for name in OTHER]
    assert dict(zip(OTHER, values(*names), strict=True)) == OTHER


SYSTEM = {
    "system.get_driver_branch()": "r580_00",
    "system.get_kernel_mode_driver_version()": [580, 65, 6],
    "system.get_nvml_version()": [13, 580, 65, 6],
    "system.get_num_devices()": 2,
    "Device.get_device_count()": 2,
    "system.get_process_name(7)": "seven",
    "system.get_process_name(8)": "!NotFoundError",
    "system.get_topology_common_ancestor(gpu, other)": "hostbridge",
    "system.get_topology_common_ancestor(gpu, gpu)": "internal",
    "system.get_topology_common_ancestor(gpu, 1)": "!TypeError",
    "system.get_p2p_status(gpu, other, 'pci')": "disabled by regkey",
    "system.get_p2p_status(gpu, other, 'prop')": "disabled by regkey",
    "system.get_p2p_status(gpu, other, 'write')": "chipset not supported",
    "system.get_p2p_status(other, gpu, 'read')": "unknown",
    "system.get_p2p_status(gpu, other, 'x')": "!ValueError",
    "list(Device.get_all_devices())": ["ff", "01"],
    "list(Device.get_all_devices_with_cpu_affinity(0))": ["01", "ff"],
    "list(gpu.get_topology_nearest_gpus('system'))": ["01"],
    "list(gpu.get_topology_nearest_gpus('single'))": [],
    "gpu.get_topology_nearest_gpus('x')": "!ValueError",
    "list(gpu.mig.get_all_devices())": ["aa"],
    "[link.state for link in gpu.get_nvlinks()]": [True, False],
    "Device(uuid='GPU-00112233-4455-6677-8899-000000000001')": "01",
    "Device(uuid=b'00112233-4455-6677-8899-000000000001')": "01",
    "Device(uuid='00112233-4455-6677-8899-0000000000aa')": "aa",
    "Device(uuid='MIG-00112233-4455-6677-8899-0000000000aa').uuid_without_prefix": "00112233-4455-6677-8899-0000000000aa",
    "Device(uuid='x')": "!NotFoundError",
    "Device(pci_bus_id=b'00000001:02:00.0')": "ff",
    "Device(pci_bus_id='x')": "!NotFoundError",
    "Device(index=2)": "!InvalidArgumentError",
    "Device(index=-1)": "!OverflowError",
    "Device(index='0')": "!TypeError",
    "Device(index=0.0)": "!TypeError",
    "Device(uuid=1)": "!TypeError",
    "Device(0)": "!TypeError",
    "Device()": "!ValueError",
    "Device(index=0, uuid='x')": "!ValueError",
    "__import__('pickle').loads(__import__('pickle').dumps(other))": "01",
}


def test_values_of_the_system(values):
    assert dict(zip(SYSTEM, values(*SYSTEM), strict=True)) == SYSTEM


def test_events_of_a_device(run, values):
    expected = {
        "gpu.register_events('xid_critical_error').wait(7).event_data": 79,
        "gpu.register_events('xid_critical_error').wait(7).gpu_instance_id": 2,
        "gpu.register_events('xid_critical_error').wait(7).compute_instance_id": 4,
        "gpu.register_events('xid_critical_error').wait().event_type": "xid_critical_error",
        "gpu.register_events(['clock']).wait(7).device": "ff",
        "gpu.register_events(['clock']).wait(7).event_data": "!ValueError",
        "gpu.register_events(['clock', T.EventType.PSTATE]).wait(7).event_type": "none",
        "gpu.register_events('clock').wait(5)": "!NvmlTimeoutError",
        "gpu.register_events('clock').wait(-1)": "!ValueError",
        "gpu.register_events('clock').wait('x')": "!TypeError",
        "gpu.register_events('x')": "!ValueError",
        "gpu.register_events(1)": "!TypeError",
    }
    assert dict(zip(expected, values(*expected), strict=True)) == expected
    calls = run.log.read_text().split("\n")
    assert "register 8 77" in calls  # XID_CRITICAL_ERROR
    assert "register 20 77" in calls  # PSTATE and CLOCK
    assert "wait 7 0" in calls and "wait 0 0" not in calls
    assert calls.count("create 0 0") == calls.count("free 77 0") > 0


def test_events_of_the_system(run, values):
    wait = "system.register_events(['bind', 'unbind']).wait(9, 5)"
    expected = {
        f"{wait}[0].event_type": "bind",
        f"{wait}[1].event_type": "unbind",
        f"{wait}[0].gpu_id": 0x00010200,
        f"{wait}[0].device": "ff",
        f"{wait}[1].device": "!NotFoundError",
        f"{wait}[2]": "!IndexError",
        f"len({wait})": 2,
        "len(system.register_events('bind').wait(9))": 1,
        "system.register_events('bind').wait(5)": "!NvmlTimeoutError",
        "system.register_events('bind').wait(9, 0)": "!ValueError",
        "system.register_events('x')": "!ValueError",
    }
    assert dict(zip(expected, values(*expected), strict=True)) == expected
    calls = run.log.read_text().split("\n")
    assert "system register 3 88" in calls and "system register 2 88" in calls and "system wait 9 5" in calls
    assert "system free 88 0" in calls


def test_a_refused_change_names_the_call_and_the_permission(run):
    out = run(
        """
def text(change):
    try:
        change()
    except system.NvmlError as error:
        print(type(error).__name__, error)
def persistence(): gpu.is_persistence_mode_enabled = True
def fan(): gpu.get_fan().speed = 50
text(persistence)
text(fan)
text(lambda: other.serial)
"""
    ).splitlines()
    assert out[0].startswith("NoPermissionError nvmlDeviceSetPersistenceMode: ") and "root" in out[0]
    assert out[1].startswith("NoPermissionError nvmlDeviceSetFanSpeed_v2: ") and "root" in out[1]
    assert out[2].startswith("NotSupportedError nvmlDeviceGetSerial: ") and "InfoROM" in out[2]


def test_deprecated_thresholds_and_links_warn(run):
    out = run(
        """
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    print(gpu.temperature.get_threshold("shutdown"), system.NvlinkInfo.max_links)
print([w.category.__name__ for w in caught])
"""
    )
    assert out.split("\n")[:2] == ["80 18", "['DeprecationWarning', 'DeprecationWarning']"]


def test_devices_survive_a_shutdown_by_another_library(run):
    out = run(
        """
from cuda.bindings import nvml
clock, fan, events = gpu.get_clock("sm"), gpu.get_fan(1), gpu.register_events("clock")
partition = gpu.mig.get_device_by_index(1)
before = gpu._handle
nvml.shutdown()  # unbalanced: it ends the initialisation of cuda.core.system
print(gpu.name, other.name, partition.uuid[-2:], clock.get_max_mhz(), fan.speed)
print(gpu._handle != before)
nvml.init_v2(); nvml.shutdown()  # balanced
print(gpu.name)
del events
"""
    )
    assert out.split("\n")[:3] == ["Fake GPU Fake other aa 1901 31", "True", "Fake GPU"]


def test_a_forked_child_initialises_nvml_again(run):
    out = run(
        """
import os
pid = os.fork()
if pid == 0:
    print(gpu.name, gpu.get_fan(1).speed, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(other.name)
"""
    )
    assert out.split("\n")[:2] == ["Fake GPU 31", "Fake other"]


def test_threads_share_one_initialisation(run):
    out = run(
        """
import threading
from cuda.core.system import _nvml
_nvml._initialized_in = None
names, barrier = [], threading.Barrier(8)
def read():
    barrier.wait()
    for _ in range(200):
        names.append(Device(index=0).name)
threads = [threading.Thread(target=read) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(names), set(names), _nvml._generation)
"""
    )
    assert out.split("\n")[0] == "1600 {'Fake GPU'} 2"


def test_examples_of_the_docstrings_run(run):
    """Devices that lack a reading end an example early; this library has them all."""
    program = """
import doctest, inspect
NEED_CUDA = {"Device.to_cuda_device", "get_user_mode_driver_version"}
found = {}
for module in (system, T):
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            found |= {f"{name}.{member}": of.__doc__ for member, of in vars(value).items() if not member.startswith("_")}
        found[name] = value.__doc__
examples = {name: text for name, text in found.items() if text and ">>>" in text and name not in NEED_CUDA}
warnings.simplefilter("ignore")
failed = []
for name, text in examples.items():
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    if runner.run(test, out=lambda text: None).failed:
        failed.append(name)
print(json.dumps([len(examples), failed]))
"""
    count, failed = json.loads(run(program))
    assert count > 50
    assert failed == []
