"""Figures of a device that are read at once: memory, utilisation, attributes, processes, PCI, performance states."""

from cuda.bindings import nvml

from ._nvml import call, handle_of

__all__ = [
    "BAR1MemoryInfo",
    "DeviceAttributes",
    "GpuDynamicPstatesInfo",
    "GpuDynamicPstatesUtilization",
    "MemoryInfo",
    "PciInfo",
    "ProcessInfo",
    "RepairStatus",
    "Utilization",
]


def _field(name, doc):
    """A property that reads the field `name` of the structure that NVML filled."""
    return property(lambda self: int(getattr(self._data, name)), doc=doc)


class _Reading:
    """A structure that NVML filled."""

    __slots__ = ("_data",)

    def __init__(self, data):
        self._data = data

    def __repr__(self):
        kind = type(self)
        names = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
        return f"{kind.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class MemoryInfo(_Reading):
    """Memory of a device, in bytes.

    Parameters
    ----------
    memory_info : cuda.bindings.nvml.Memory_v2
    """

    __slots__ = ()

    def __init__(self, memory_info):
        super().__init__(memory_info)

    total = _field("total", "Physical memory in bytes.")
    free = _field("free", "Unallocated memory in bytes.")
    used = _field("used", "Allocated memory in bytes.")
    reserved = _field("reserved", "Memory reserved by driver and firmware in bytes.")


class BAR1MemoryInfo(MemoryInfo):
    """Memory that is mapped for access over PCIe (BAR1), in bytes.

    Parameters
    ----------
    memory_info : cuda.bindings.nvml.BAR1Memory
    """

    __slots__ = ()

    total = _field("bar1_total", "Total BAR1 memory in bytes.")
    free = _field("bar1_free", "Unallocated BAR1 memory in bytes.")
    used = _field("bar1_used", "Allocated BAR1 memory in bytes.")

    @property
    def reserved(self):
        """NVML reports no reserved BAR1 memory.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError("NVML reports total, free and used BAR1 memory, and no reserved memory")

    def __repr__(self):
        return f"BAR1MemoryInfo(free={self.free}, total={self.total}, used={self.used})"


class Utilization(_Reading):
    """Utilisation during the last sample period, in percent.

    Parameters
    ----------
    utilization : cuda.bindings.nvml.Utilization
    """

    __slots__ = ()

    def __init__(self, utilization):
        super().__init__(utilization)

    gpu = _field("gpu", "Percent of the time in which a kernel was running.")
    memory = _field("memory", "Percent of the time in which device memory was read or written.")


class DeviceAttributes(_Reading):
    """Resources of a device or a MIG device.

    Parameters
    ----------
    attributes : cuda.bindings.nvml.DeviceAttributes
    """

    __slots__ = ()

    def __init__(self, attributes):
        super().__init__(attributes)

    multiprocessor_count = _field("multiprocessor_count", "Number of streaming multiprocessors.")
    shared_copy_engine_count = _field("shared_copy_engine_count", "Number of shared copy engines.")
    shared_decoder_count = _field("shared_decoder_count", "Number of shared video decoders.")
    shared_encoder_count = _field("shared_encoder_count", "Number of shared video encoders.")
    shared_jpeg_count = _field("shared_jpeg_count", "Number of shared JPEG engines.")
    shared_ofa_count = _field("shared_ofa_count", "Number of shared optical flow accelerators.")
    gpu_instance_slice_count = _field("gpu_instance_slice_count", "Number of slices of the GPU instance.")
    compute_instance_slice_count = _field("compute_instance_slice_count", "Number of slices of the compute instance.")
    memory_size_mb = _field("memory_size_mb", "Memory in MiB.")


class RepairStatus(_Reading):
    """Pending repairs of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    """

    __slots__ = ()

    def __init__(self, handle):
        super().__init__(call("device_get_repair_status", handle_of(handle)))

    @property
    def channel_repair_pending(self):
        """Whether the repair of a memory channel is pending."""
        return bool(self._data.b_channel_repair_pending)

    @property
    def tpc_repair_pending(self):
        """Whether the repair of a texture processing cluster is pending."""
        return bool(self._data.b_tpc_repair_pending)


class ProcessInfo:
    """A process with a compute context on a device.

    Parameters
    ----------
    device : Device
    process_info : cuda.bindings.nvml.ProcessInfo
    """

    __slots__ = ("_data", "_device")

    def __init__(self, device, process_info):
        self._device, self._data = device, process_info

    @property
    def pid(self):
        """Process ID."""
        return int(self._data.pid)

    @property
    def used_gpu_memory(self):
        """Device memory of the process in bytes."""
        return int(self._data.used_gpu_memory)

    def _instance(self, name):
        number = int(getattr(self._data, name))
        if number == 0xFFFFFFFF:
            error = nvml.NotSupportedError(3)  # NVML_ERROR_NOT_SUPPORTED
            error.args = (f"process {self.pid} has no {name}: the device is not partitioned (MIG)",)
            raise error
        return number

    @property
    def gpu_instance_id(self):
        """GPU instance on which the process runs.

        Raises
        ------
        NotSupportedError
            If the device is not partitioned (MIG).
        """
        return self._instance("gpu_instance_id")

    @property
    def compute_instance_id(self):
        """Compute instance on which the process runs.

        Raises
        ------
        NotSupportedError
            If the device is not partitioned (MIG).
        """
        return self._instance("compute_instance_id")

    def __repr__(self):
        return f"ProcessInfo(pid={self.pid}, used_gpu_memory={self.used_gpu_memory})"


class PciInfo:
    """PCI attributes of a device.

    Parameters
    ----------
    pci_info_ext : cuda.bindings.nvml.PciInfoExt_v1
    handle : int
        Handle of the device.
    """

    __slots__ = ("_data", "_handle")

    def __init__(self, pci_info_ext, handle):
        self._data, self._handle = pci_info_ext, handle_of(handle)

    bus = _field("bus", "Bus, 0 to 255.")
    device = _field("device_", "Number of the device on the bus, 0 to 31.")
    domain = _field("domain", "Domain, 0 to 0xFFFFFFFF.")
    base_class = _field("base_class", "8-bit base class code.")
    sub_class = _field("sub_class", "8-bit sub-class code.")
    subsystem_id = _field("pci_sub_system_id", "Subsystem device ID, 32 bits.")

    @property
    def bus_id(self):
        """PCI bus ID: ``domain:bus:device.function``."""
        return self._data.bus_id

    @property
    def vendor_id(self):
        """16-bit vendor ID."""
        return int(self._data.pci_device_id) & 0xFFFF

    @property
    def device_id(self):
        """16-bit device ID."""
        return int(self._data.pci_device_id) >> 16

    @property
    def current_link_generation(self):
        """Current PCIe generation of the link."""
        return call("device_get_curr_pcie_link_generation", self._handle)

    @property
    def link_generation(self):
        """Highest PCIe generation of the device in this system."""
        return call("device_get_max_pcie_link_generation", self._handle)

    @property
    def max_link_generation(self):
        """Highest PCIe generation of the device."""
        return call("device_get_gpu_max_pcie_link_generation", self._handle)

    @property
    def current_link_width(self):
        """Current number of PCIe lanes."""
        return call("device_get_curr_pcie_link_width", self._handle)

    @property
    def max_link_width(self):
        """Highest number of PCIe lanes of the device in this system."""
        return call("device_get_max_pcie_link_width", self._handle)

    @property
    def replay_counter(self):
        """Number of PCIe replays."""
        return call("device_get_pcie_replay_counter", self._handle)

    @property
    def tx_throughput(self):
        """Bytes sent over PCIe during the last 20 ms, in KB/s."""
        counter = nvml.PcieUtilCounter.TX_BYTES
        return call("device_get_pcie_throughput", self._handle, counter)

    @property
    def rx_throughput(self):
        """Bytes received over PCIe during the last 20 ms, in KB/s."""
        counter = nvml.PcieUtilCounter.RX_BYTES
        return call("device_get_pcie_throughput", self._handle, counter)

    def __repr__(self):
        return f"PciInfo(bus_id={self.bus_id!r}, vendor_id={self.vendor_id:#06x}, device_id={self.device_id:#06x})"


class GpuDynamicPstatesUtilization:
    """Utilisation of one domain of a device.

    Parameters
    ----------
    ptr : int
        Address of NVML's structure of four integers.
    owner : object
        The object whose memory it is.
    """

    __slots__ = ("_owner", "_values")

    def __init__(self, ptr, owner):
        import ctypes

        self._owner = owner
        self._values = (ctypes.c_uint * 4).from_address(ptr)

    @property
    def is_present(self):
        """Whether the device has the domain."""
        return bool(self._values[0])

    @property
    def percentage(self):
        """Percent of the last second in which the domain was busy."""
        return self._values[1]

    @property
    def inc_threshold(self):
        """Utilisation above which the performance state may rise, in percent."""
        return self._values[2]

    @property
    def dec_threshold(self):
        """Utilisation below which the performance state may fall, in percent."""
        return self._values[3]


class GpuDynamicPstatesInfo:
    """Utilisation by domain (graphics, frame buffer, video, bus): a sequence.

    Parameters
    ----------
    gpu_dynamic_pstates_info : cuda.bindings.nvml.GpuDynamicPstatesInfo
    """

    __slots__ = ("_data", "_utilization")

    def __init__(self, gpu_dynamic_pstates_info):
        self._data = gpu_dynamic_pstates_info
        self._utilization = gpu_dynamic_pstates_info.utilization

    def __len__(self):
        return len(self._utilization)

    def __getitem__(self, index):
        return element(self._utilization, index, GpuDynamicPstatesUtilization, 16)


def element(array, index, kind, size):
    """Element `index` of an array of structures of `size` bytes, as `kind`; negative indices count from the end."""
    from operator import index as number

    at, length = number(index), len(array)
    if not -length <= at < length:
        raise IndexError(f"index {at} is out of range: there are {length} elements")
    return kind(int(array.ptr) + (at % length) * size, array)
