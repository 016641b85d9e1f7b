"""Figures of a device that are read at once: memory, utilisation, attributes, processes, PCI, performance states."""

from __future__ import annotations

from cuda.bindings import nvml

from ._nvml import call, handle_of
from ._properties import Integers, Reading, _Queried, element, field, integer, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex, SupportsInt

    from ._device import Device

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


_SENT, _RECEIVED = nvml.PcieUtilCounter.TX_BYTES, nvml.PcieUtilCounter.RX_BYTES


class MemoryInfo(Reading):
    """Memory of a device, in bytes.

    Parameters
    ----------
    memory_info : cuda.bindings.nvml.Memory_v2
    """

    __slots__ = ()

    def __init__(self, memory_info: nvml.Memory_v2) -> None:
        super().__init__(memory_info)

    total = field(int, "total", "Physical memory in bytes.")
    free = field(int, "free", "Unallocated memory in bytes.")
    used = field(int, "used", "Allocated memory in bytes.")
    reserved = field(int, "reserved", "Memory reserved by driver and firmware in bytes.")


class BAR1MemoryInfo(MemoryInfo):
    """Memory that is mapped for access over PCIe (BAR1), in bytes.

    Parameters
    ----------
    memory_info : cuda.bindings.nvml.BAR1Memory
    """

    __slots__ = ()

    total = field(int, "bar1_total", "Total BAR1 memory in bytes.")
    free = field(int, "bar1_free", "Unallocated BAR1 memory in bytes.")
    used = field(int, "bar1_used", "Allocated BAR1 memory in bytes.")

    @property
    def reserved(self) -> int:  # type: ignore[override]
        """NVML reports no reserved BAR1 memory.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError("NVML reports total, free and used BAR1 memory, and no reserved memory")

    def __repr__(self) -> str:
        return f"BAR1MemoryInfo(free={self.free}, total={self.total}, used={self.used})"


class Utilization(Reading):
    """Utilisation during the last sample period, in percent.

    Parameters
    ----------
    utilization : cuda.bindings.nvml.Utilization
    """

    __slots__ = ()

    def __init__(self, utilization: nvml.Utilization) -> None:
        super().__init__(utilization)

    gpu = field(int, "gpu", "Percent of the time in which a kernel was running.")
    memory = field(int, "memory", "Percent of the time in which device memory was read or written.")


class DeviceAttributes(Reading):
    """Resources of a device or a MIG device.

    Parameters
    ----------
    attributes : cuda.bindings.nvml.DeviceAttributes
    """

    __slots__ = ()

    def __init__(self, attributes: nvml.DeviceAttributes) -> None:
        super().__init__(attributes)

    multiprocessor_count = field(int, "multiprocessor_count", "Number of streaming multiprocessors.")
    shared_copy_engine_count = field(int, "shared_copy_engine_count", "Number of shared copy engines.")
    shared_decoder_count = field(int, "shared_decoder_count", "Number of shared video decoders.")
    shared_encoder_count = field(int, "shared_encoder_count", "Number of shared video encoders.")
    shared_jpeg_count = field(int, "shared_jpeg_count", "Number of shared JPEG engines.")
    shared_ofa_count = field(int, "shared_ofa_count", "Number of shared optical flow accelerators.")
    gpu_instance_slice_count = field(int, "gpu_instance_slice_count", "Number of slices of the GPU instance.")
    compute_instance_slice_count = field(
        int, "compute_instance_slice_count", "Number of slices of the compute instance."
    )
    memory_size_mb = field(int, "memory_size_mb", "Memory in MiB.")


class RepairStatus(Reading):
    """Pending repairs of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    """

    __slots__ = ()

    def __init__(self, handle: SupportsInt) -> None:
        super().__init__(call("device_get_repair_status", handle_of(handle)))

    channel_repair_pending = field(
        bool, "b_channel_repair_pending", "Whether the repair of a memory channel is pending."
    )
    tpc_repair_pending = field(
        bool, "b_tpc_repair_pending", "Whether the repair of a texture processing cluster is pending."
    )


class ProcessInfo:
    """A process with a compute context on a device.

    Parameters
    ----------
    device : Device
    process_info : cuda.bindings.nvml.ProcessInfo
    """

    __slots__ = ("_data", "_device")

    def __init__(self, device: Device, process_info: nvml.ProcessInfo) -> None:
        self._device, self._data = device, process_info

    pid = field(int, "pid", "Process ID.")
    used_gpu_memory = field(int, "used_gpu_memory", "Device memory of the process in bytes.")

    def _instance(self, name: str) -> int:
        number = int(getattr(self._data, name))
        if number == 0xFFFFFFFF:
            error = nvml.NotSupportedError(3)  # NVML_ERROR_NOT_SUPPORTED
            error.args = (f"process {self.pid} has no {name}: the device is not partitioned (MIG)",)
            raise error
        return number

    @property
    def gpu_instance_id(self) -> int:
        """GPU instance on which the process runs.

        Raises
        ------
        NotSupportedError
            If the device is not partitioned (MIG).
        """
        return self._instance("gpu_instance_id")

    @property
    def compute_instance_id(self) -> int:
        """Compute instance on which the process runs.

        Raises
        ------
        NotSupportedError
            If the device is not partitioned (MIG).
        """
        return self._instance("compute_instance_id")

    def __repr__(self) -> str:
        return f"ProcessInfo(pid={self.pid}, used_gpu_memory={self.used_gpu_memory})"


class PciInfo(_Queried):
    """PCI attributes of a device.

    Parameters
    ----------
    pci_info_ext : cuda.bindings.nvml.PciInfoExt_v1
    handle : int
        Handle of the device.
    """

    __slots__ = ("_data",)

    def __init__(self, pci_info_ext: nvml.PciInfoExt_v1, handle: SupportsInt) -> None:
        self._data, self._nvml_handle = pci_info_ext, handle_of(handle)

    bus = field(int, "bus", "Bus, 0 to 255.")
    device = field(int, "device_", "Number of the device on the bus, 0 to 31.")
    domain = field(int, "domain", "Domain, 0 to 0xFFFFFFFF.")
    base_class = field(int, "base_class", "8-bit base class code.")
    sub_class = field(int, "sub_class", "8-bit sub-class code.")
    subsystem_id = field(int, "pci_sub_system_id", "Subsystem device ID, 32 bits.")
    bus_id = field(str, "bus_id", "PCI bus ID: ``domain:bus:device.function``.")

    vendor_id = field(int, "pci_device_id", "16-bit vendor ID.", lambda ids: int(ids) & 0xFFFF)
    device_id = field(int, "pci_device_id", "16-bit device ID.", lambda ids: int(ids) >> 16)

    current_link_generation = reading(int, "curr_pcie_link_generation", "Current PCIe generation of the link.")
    link_generation = reading(int, "max_pcie_link_generation", "Highest PCIe generation of the device in this system.")
    max_link_generation = reading(int, "gpu_max_pcie_link_generation", "Highest PCIe generation of the device.")
    current_link_width = reading(int, "curr_pcie_link_width", "Current number of PCIe lanes.")
    max_link_width = reading(int, "max_pcie_link_width", "Highest number of PCIe lanes of the device in this system.")
    replay_counter = reading(int, "pcie_replay_counter", "Number of PCIe replays.")

    tx_throughput = reading(int, "pcie_throughput", "Bytes sent over PCIe during the last 20 ms, in KB/s.", None, _SENT)
    rx_throughput = reading(
        int, "pcie_throughput", "Bytes received over PCIe during the last 20 ms, in KB/s.", None, _RECEIVED
    )

    def __repr__(self) -> str:
        return f"PciInfo(bus_id={self.bus_id!r}, vendor_id={self.vendor_id:#06x}, device_id={self.device_id:#06x})"


class GpuDynamicPstatesUtilization(Integers):
    """Utilisation of one domain of a device.

    Parameters
    ----------
    ptr : int
        Address of NVML's structure of four integers.
    owner : object
        The object whose memory it is.
    """

    __slots__ = ()
    _TYPE, _COUNT = "c_uint", 4

    is_present = integer(bool, 0, "Whether the device has the domain.")
    percentage = integer(int, 1, "Percent of the last second in which the domain was busy.")
    inc_threshold = integer(int, 2, "Utilisation above which the performance state may rise, in percent.")
    dec_threshold = integer(int, 3, "Utilisation below which the performance state may fall, in percent.")


class GpuDynamicPstatesInfo:
    """Utilisation by domain (graphics, frame buffer, video, bus): a sequence.

    Parameters
    ----------
    gpu_dynamic_pstates_info : cuda.bindings.nvml.GpuDynamicPstatesInfo
    """

    __slots__ = ("_data", "_utilization")

    def __init__(self, gpu_dynamic_pstates_info: nvml.GpuDynamicPstatesInfo) -> None:
        self._data = gpu_dynamic_pstates_info
        self._utilization = gpu_dynamic_pstates_info.utilization

    def __len__(self) -> int:
        return len(self._utilization)

    def __getitem__(self, index: SupportsIndex) -> GpuDynamicPstatesUtilization:
        return element(self._utilization, len(self), index, GpuDynamicPstatesUtilization)
