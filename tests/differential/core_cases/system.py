"""The machine through NVML (`cuda.core.system`), and checkpoints of processes.

Figures that change between two calls are compared by type or range only. Lines that change the machine's configuration
are left out.
"""

COMMON = """
import os, pickle
from cuda.core import Device as CudaDevice, system
from cuda.core.system import typing as T
d = system.Device(index=0)
def kind(call):
    try:
        value = call()
    except Exception as error:
        return type(error).__name__
    return [type(v).__name__ for v in value] if isinstance(value, (list, tuple)) else type(value).__name__
def shows(value):
    return sorted((name, kind(lambda: getattr(value, name))) for name in public(type(value)) if not callable(getattr(type(value), name, None)))
"""

CHECKPOINT = """
import os, subprocess, sys
from cuda.core import Device, checkpoint
from cuda.core.checkpoint import Process
d = Device(0); d.set_current()
p = Process(os.getpid())
CHILD = '''
import sys
from cuda.core import Device
d = Device(0); d.set_current()
s = d.create_stream()
b = d.allocate(64 << 20, stream=s)
b.fill(5, stream=s); s.sync()
print("ready", flush=True)
sys.stdin.readline()
out = d.memory_resource
from cuda.bindings import driver
import ctypes
host = (ctypes.c_ubyte * (64 << 20))()
print(driver.cuMemcpyDtoH(ctypes.addressof(host), b.handle, 64 << 20)[0].name, set(bytes(host)), flush=True)
'''
c = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
first = c.stdout.readline()
q = Process(c.pid)
"""

GROUPS = {
    "system: functions": (
        COMMON,
        """
        sorted(system.__all__)
        system.CUDA_BINDINGS_NVML_IS_COMPATIBLE
        system.get_num_devices() == system.Device.get_device_count(), system.get_num_devices()
        system.get_driver_branch()
        system.get_kernel_mode_driver_version()
        system.get_user_mode_driver_version()
        system.get_nvml_version()
        "python" in system.get_process_name(os.getpid())
        system.get_process_name(2**31 - 1)
        system.get_process_name(-1)
        system.get_process_name("1")
        system.get_topology_common_ancestor(d, d)
        system.get_topology_common_ancestor(d, 1)
        [kind(lambda: system.get_p2p_status(d, d, index)) for index in T.GpuP2PCapsIndex]
        [system.get_p2p_status(d, e, "read") for e in system.Device.get_all_devices() if e.index != d.index]
        [system.get_topology_common_ancestor(d, e) for e in system.Device.get_all_devices() if e.index != d.index]
        system.get_p2p_status(d, d, "x")
        system.get_p2p_status(d, None, "read")
        system.register_events("x")
        kind(lambda: system.register_events("bind"))
        kind(lambda: system.register_events(["bind", T.SystemEventType.UNBIND]).wait(timeout_ms=10))
        system.register_events(1)
        """,
    ),
    "system: which device": (
        COMMON,
        """
        system.Device()
        system.Device(0)
        system.Device(index=0, uuid=d.uuid)
        system.Device(index=99)
        system.Device(index=-1)
        system.Device(index="0")
        system.Device(index=1 << 40)
        system.Device(index=True if system.get_num_devices() > 1 else 0).index
        system.Device(index=0.0)
        system.Device(uuid=d.uuid).uuid == d.uuid
        system.Device(uuid=d.uuid.encode()).uuid == d.uuid
        system.Device(uuid=d.uuid_without_prefix).uuid == d.uuid
        system.Device(uuid="x")
        system.Device(uuid="")
        system.Device(uuid=1)
        system.Device(pci_bus_id=d.pci_bus_id).uuid == d.uuid
        system.Device(pci_bus_id=d.pci_bus_id.encode()).uuid == d.uuid
        system.Device(pci_bus_id="x")
        system.Device(pci_bus_id=1)
        [e.index for e in system.Device.get_all_devices()]
        [e.uuid for e in system.Device.get_all_devices_with_cpu_affinity(0)]
        list(system.Device.get_all_devices_with_cpu_affinity(1 << 20))
        CudaDevice(0).to_system_device().uuid_without_prefix == CudaDevice(0).uuid
        d.to_cuda_device().uuid == d.uuid_without_prefix
        pickle.loads(pickle.dumps(d)).uuid == d.uuid
        """,
    ),
    "system: device": (
        COMMON,
        """
        public(system.Device)
        d.name, d.uuid, d.uuid_without_prefix, d.index, d.pci_bus_id
        d.brand
        d.arch
        d.cuda_compute_capability
        d.minor_number
        d.module_id
        d.serial
        d.numa_node_id
        d.addressing_mode
        d.is_c2c_enabled
        d.is_display_active
        d.is_display_connected
        d.is_persistence_mode_enabled
        d.is_auto_boosted_clocks_enabled
        kind(lambda: d.performance_state)
        d.supported_pstates
        kind(lambda: d.current_clock_event_reasons)
        d.supported_clock_event_reasons
        d.num_fans
        d.get_cpu_affinity()
        d.get_cpu_affinity("socket")
        d.get_cpu_affinity("x")
        d.get_memory_affinity()
        d.get_memory_affinity(T.AffinityScope.SOCKET)
        d.get_memory_affinity(0)
        [e.uuid for e in d.get_topology_nearest_gpus("system")]
        [e.uuid for e in d.get_topology_nearest_gpus("internal")]
        list(d.get_topology_nearest_gpus("x"))
        d.name = "x"
        """,
    ),
    "system: device's parts": (
        COMMON,
        """
        shows(d.memory_info)
        d.memory_info.total, d.memory_info.total == d.memory_info.free + d.memory_info.used + d.memory_info.reserved
        shows(d.bar1_memory_info)
        d.bar1_memory_info.total
        shows(d.utilization)
        shows(d.attributes)
        d.attributes.multiprocessor_count
        shows(d.pci_info)
        d.pci_info.bus_id, d.pci_info.domain, d.pci_info.bus, d.pci_info.device, d.pci_info.vendor_id, d.pci_info.device_id, d.pci_info.subsystem_id
        d.pci_info.base_class, d.pci_info.sub_class
        d.pci_info.link_generation, d.pci_info.max_link_generation, d.pci_info.max_link_width
        shows(d.repair_status)
        shows(d.inforom)
        d.inforom.get_version("ecc")
        d.inforom.get_version("x")
        kind(lambda: d.inforom.validate())
        shows(d.temperature)
        kind(lambda: d.temperature.get_sensor())
        [kind(lambda: d.temperature.get_threshold(t)) for t in T.TemperatureThresholds]
        d.temperature.get_threshold("x")
        kind(lambda: d.temperature.get_thermal_settings("all"))
        shows(d.temperature.get_thermal_settings("gpu")[0])
        len(d.temperature.get_thermal_settings("gpu"))
        d.temperature.get_thermal_settings("x")
        shows(d.cooler)
        kind(lambda: d.get_fan())
        d.get_fan(-1)
        len(d.dynamic_pstates_info)
        shows(d.dynamic_pstates_info[0])
        d.dynamic_pstates_info[8]
        [kind(lambda: d.get_clock(t).get_current_mhz()) for t in T.ClockType]
        [kind(lambda: d.get_clock(t).get_max_mhz()) for t in T.ClockType]
        [kind(lambda: d.get_clock(t).get_max_customer_boost_mhz()) for t in T.ClockType]
        [kind(lambda: d.get_clock(t).get_min_max_clock_of_pstate_mhz(0)) for t in T.ClockType]
        [kind(lambda: d.get_clock(t).get_offsets(0)) for t in T.ClockType]
        [kind(lambda: d.get_clock("sm").get_current_mhz(c)) for c in T.ClockId]
        d.get_clock("sm").get_max_mhz()
        d.get_clock("sm").get_offsets(16)
        d.get_clock("sm").get_min_max_clock_of_pstate_mhz(-1)
        d.get_clock("sm").get_current_mhz("x")
        d.get_clock("x")
        d.get_clock(1)
        """,
    ),
    "system: links and partitions": (
        COMMON,
        """
        d.get_nvlink_count()
        kind(lambda: d.get_nvlink(0))
        shows(d.get_nvlink(0))
        d.get_nvlink(-1)
        d.get_nvlink(1000)
        [link.version for link in d.get_nvlinks()]
        system.NvlinkInfo.max_links
        d.mig.is_mig_device
        d.mig.mode
        d.mig.pending_mode
        d.mig.device_count
        d.mig.parent
        list(d.mig.get_all_devices())
        d.mig.get_device_by_index(0)
        d.mig.get_device_by_index(-1)
        """,
    ),
    "system: fields": (
        COMMON,
        """
        v = d.get_field_values([T.FieldId.DEV_ECC_CURRENT, (T.FieldId.DEV_NVLINK_LINK_COUNT, 0)]); len(v), v[0].field_id, v[1].scope_id
        kind(lambda: v[0].value), kind(lambda: v[1].value)
        type(v[0].timestamp), type(v[0].latency_usec)
        v[2]
        v[-1].field_id
        v[0:1]
        kind(lambda: v.validate())
        kind(lambda: d.get_field_values([T.FieldId.DEV_TOTAL_ENERGY_CONSUMPTION]).get_all_values())
        len(d.get_field_values([]))
        d.get_field_values(["a"])
        d.get_field_values([(1, 2, 3)])
        d.get_field_values(1)
        d.clear_field_values([])
        """,
    ),
    "system: device events": (
        COMMON,
        """
        d.get_supported_event_types()
        kind(lambda: d.register_events("xid_critical_error"))
        d.register_events("xid_critical_error").wait(timeout_ms=20)
        d.register_events("xid_critical_error").wait(-1)
        d.register_events([]).wait(timeout_ms=20)
        d.register_events("x")
        d.register_events(1)
        d.register_events(("xid_critical_error",))
        """,
    ),
    "system: processes": (
        COMMON
        + "CudaDevice(0).set_current(); b = CudaDevice(0).allocate(1 << 20, stream=CudaDevice(0).default_stream)\n",
        """
        [kind(lambda: q) for q in d.compute_running_processes][:1]
        [shows(q) for q in d.compute_running_processes][:1]
        """,
    ),
    "checkpoint: arguments": (
        CHECKPOINT + "c.communicate('x')\n",
        """
        checkpoint.__all__
        public(Process)
        Process()
        Process(0)
        Process(-1)
        Process("1")
        Process(1.0)
        Process(True)
        Process(1 << 31).pid
        p.pid == os.getpid()
        p.pid = 3
        p.lock(-1)
        p.lock("1")
        p.lock(1.5)
        p.lock(True)
        p.lock(1 << 32)
        p.restore(3)
        p.restore([])
        p.restore({1: 2})
        p.restore({"x": "y"})
        """,
    ),
    "checkpoint: another process": (
        CHECKPOINT,
        """
        first, q.pid == c.pid
        q.state
        kind = type(q.restore_thread_id)
        q.unlock()
        q.checkpoint()
        q.restore()
        q.lock(timeout_ms=10000)
        q.state
        q.lock()
        q.restore()
        q.checkpoint()
        q.state
        q.checkpoint()
        q.lock()
        q.unlock()
        q.restore()
        q.state
        q.unlock()
        q.state
        c.communicate("x")[0]
        q.state
        Process(2**31 - 1).state
        """,
    ),
}
