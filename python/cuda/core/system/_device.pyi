"""Devices as NVML sees them."""

from collections.abc import Iterator
from typing import Any, SupportsIndex, SupportsInt

from cuda.bindings import nvml
from cuda.core._device import Device as _CudaDevice
from cuda.core.system.typing import AddressingMode, AffinityScope, ClockId, ClockType, ClocksEventReasons, CoolerControl, CoolerTarget, DeviceArch, EventType, FanControlPolicy, FieldId, GpuP2PCapsIndex, GpuP2PStatus, GpuTopologyLevel, InforomObject, TemperatureThresholds, ThermalController, ThermalTarget

__all__ = ["Device", "NvlinkInfo", "get_p2p_status", "get_topology_common_ancestor"]


class MemoryInfo:
    """Memory of a device, in bytes.

    Parameters
    ----------
    memory_info : cuda.bindings.nvml.Memory_v2
    """

    def __init__(self, memory_info: nvml.Memory_v2) -> None: ...
    @property
    def total(self) -> int:
        """Physical memory in bytes."""
    @property
    def free(self) -> int:
        """Unallocated memory in bytes."""
    @property
    def used(self) -> int:
        """Allocated memory in bytes."""
    @property
    def reserved(self) -> int:
        """Memory reserved by driver and firmware in bytes."""

class BAR1MemoryInfo(MemoryInfo):
    """Memory that is mapped for access over PCIe (BAR1), in bytes.

    Parameters
    ----------
    memory_info : cuda.bindings.nvml.BAR1Memory
    """

    @property
    def total(self) -> int:
        """Total BAR1 memory in bytes."""
    @property
    def free(self) -> int:
        """Unallocated BAR1 memory in bytes."""
    @property
    def used(self) -> int:
        """Allocated BAR1 memory in bytes."""
    @property
    def reserved(self) -> int:
        """NVML reports no reserved BAR1 memory.

        Raises
        ------
        AttributeError
            Always.
        """

class Utilization:
    """Utilisation during the last sample period, in percent.

    Parameters
    ----------
    utilization : cuda.bindings.nvml.Utilization
    """

    def __init__(self, utilization: nvml.Utilization) -> None: ...
    @property
    def gpu(self) -> int:
        """Percent of the time in which a kernel was running."""
    @property
    def memory(self) -> int:
        """Percent of the time in which device memory was read or written."""

class DeviceAttributes:
    """Resources of a device or a MIG device.

    Parameters
    ----------
    attributes : cuda.bindings.nvml.DeviceAttributes
    """

    def __init__(self, attributes: nvml.DeviceAttributes) -> None: ...
    @property
    def multiprocessor_count(self) -> int:
        """Number of streaming multiprocessors."""
    @property
    def shared_copy_engine_count(self) -> int:
        """Number of shared copy engines."""
    @property
    def shared_decoder_count(self) -> int:
        """Number of shared video decoders."""
    @property
    def shared_encoder_count(self) -> int:
        """Number of shared video encoders."""
    @property
    def shared_jpeg_count(self) -> int:
        """Number of shared JPEG engines."""
    @property
    def shared_ofa_count(self) -> int:
        """Number of shared optical flow accelerators."""
    @property
    def gpu_instance_slice_count(self) -> int:
        """Number of slices of the GPU instance."""
    @property
    def compute_instance_slice_count(self) -> int:
        """Number of slices of the compute instance."""
    @property
    def memory_size_mb(self) -> int:
        """Memory in MiB."""

class RepairStatus:
    """Pending repairs of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    """

    def __init__(self, handle: SupportsInt) -> None: ...
    @property
    def channel_repair_pending(self) -> bool:
        """Whether the repair of a memory channel is pending."""
    @property
    def tpc_repair_pending(self) -> bool:
        """Whether the repair of a texture processing cluster is pending."""

class ProcessInfo:
    """A process with a compute context on a device.

    Parameters
    ----------
    device : Device
    process_info : cuda.bindings.nvml.ProcessInfo
    """

    def __init__(self, device: Device, process_info: nvml.ProcessInfo) -> None: ...
    @property
    def pid(self) -> int:
        """Process ID."""
    @property
    def used_gpu_memory(self) -> int:
        """Device memory of the process in bytes."""
    @property
    def gpu_instance_id(self) -> int:
        """GPU instance on which the process runs.

        Raises
        ------
        NotSupportedError
            If the device is not partitioned (MIG).
        """
    @property
    def compute_instance_id(self) -> int:
        """Compute instance on which the process runs.

        Raises
        ------
        NotSupportedError
            If the device is not partitioned (MIG).
        """

class PciInfo:
    """PCI attributes of a device.

    Parameters
    ----------
    pci_info_ext : cuda.bindings.nvml.PciInfoExt_v1
    handle : int
        Handle of the device.
    """

    def __init__(self, pci_info_ext: nvml.PciInfoExt_v1, handle: SupportsInt) -> None: ...
    @property
    def bus(self) -> int:
        """Bus, 0 to 255."""
    @property
    def device(self) -> int:
        """Number of the device on the bus, 0 to 31."""
    @property
    def domain(self) -> int:
        """Domain, 0 to 0xFFFFFFFF."""
    @property
    def base_class(self) -> int:
        """8-bit base class code."""
    @property
    def sub_class(self) -> int:
        """8-bit sub-class code."""
    @property
    def subsystem_id(self) -> int:
        """Subsystem device ID, 32 bits."""
    @property
    def bus_id(self) -> str:
        """PCI bus ID: ``domain:bus:device.function``."""
    @property
    def vendor_id(self) -> int:
        """16-bit vendor ID."""
    @property
    def device_id(self) -> int:
        """16-bit device ID."""
    @property
    def current_link_generation(self) -> int:
        """Current PCIe generation of the link."""
    @property
    def link_generation(self) -> int:
        """Highest PCIe generation of the device in this system."""
    @property
    def max_link_generation(self) -> int:
        """Highest PCIe generation of the device."""
    @property
    def current_link_width(self) -> int:
        """Current number of PCIe lanes."""
    @property
    def max_link_width(self) -> int:
        """Highest number of PCIe lanes of the device in this system."""
    @property
    def replay_counter(self) -> int:
        """Number of PCIe replays."""
    @property
    def tx_throughput(self) -> int:
        """Bytes sent over PCIe during the last 20 ms, in KB/s."""
    @property
    def rx_throughput(self) -> int:
        """Bytes received over PCIe during the last 20 ms, in KB/s."""

class GpuDynamicPstatesUtilization:
    """Utilisation of one domain of a device.

    Parameters
    ----------
    ptr : int
        Address of NVML's structure of four integers.
    owner : object
        The object whose memory it is.
    """

    def __init__(self, ptr: int, owner: object) -> None: ...
    @property
    def is_present(self) -> bool:
        """Whether the device has the domain."""
    @property
    def percentage(self) -> int:
        """Percent of the last second in which the domain was busy."""
    @property
    def inc_threshold(self) -> int:
        """Utilisation above which the performance state may rise, in percent."""
    @property
    def dec_threshold(self) -> int:
        """Utilisation below which the performance state may fall, in percent."""

class GpuDynamicPstatesInfo:
    """Utilisation by domain (graphics, frame buffer, video, bus): a sequence.

    Parameters
    ----------
    gpu_dynamic_pstates_info : cuda.bindings.nvml.GpuDynamicPstatesInfo
    """

    def __init__(self, gpu_dynamic_pstates_info: nvml.GpuDynamicPstatesInfo) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex) -> GpuDynamicPstatesUtilization: ...

class ClockOffsets:
    """Offsets of a clock, in MHz.

    Parameters
    ----------
    clock_offset : cuda.bindings.nvml.ClockOffset_v1
    """

    def __init__(self, clock_offset: nvml.ClockOffset_v1) -> None: ...
    @property
    def clock_offset_mhz(self) -> int:
        """Current offset in MHz."""
    @property
    def max_offset_mhz(self) -> int:
        """Largest offset in MHz."""
    @property
    def min_offset_mhz(self) -> int:
        """Smallest offset in MHz."""

class ClockInfo:
    """One clock domain of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    clock_type : ClockType or str
    """

    def __init__(self, handle: SupportsInt, clock_type: ClockType | str) -> None: ...
    def get_current_mhz(self, clock_id: ClockId | str = ...) -> int:
        """Frequency in MHz.

        Parameters
        ----------
        clock_id : ClockId or str
            Which value of the clock.
        """
    def get_max_mhz(self) -> int:
        """Highest frequency in MHz."""
    def get_max_customer_boost_mhz(self) -> int:
        """Highest boost frequency that the manufacturer defined, in MHz."""
    def get_min_max_clock_of_pstate_mhz(self, pstate: int) -> tuple[int, int]:
        """Lowest and highest frequency of a performance state (0 to 15), in MHz."""
    def get_offsets(self, pstate: int) -> ClockOffsets:
        """`ClockOffsets` of a performance state (0 to 15)."""

class FanInfo:
    """One fan of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    fan : int
        Number of the fan, counted from 0.
    """

    def __init__(self, handle: SupportsInt, fan: int) -> None: ...
    @property
    def speed(self) -> int:
        """Intended speed in percent of the maximum; setting it switches to manual control and requires root."""
    @speed.setter
    def speed(self, percent: int) -> None: ...
    @property
    def speed_rpm(self) -> int:
        """Intended speed in rotations per minute."""
    @property
    def target_speed(self) -> int:
        """Speed that the driver aims at, in percent of the maximum."""
    @property
    def min_max_speed(self) -> tuple[int, int]:
        """Lowest and highest speed of the device's fans, in percent."""
    @property
    def control_policy(self) -> FanControlPolicy:
        """What controls the fan: a `FanControlPolicy`."""
    def set_default_speed(self) -> None:
        """Let the device control the fan again. Requires root."""

class CoolerInfo:
    """How a cooler is controlled and what it cools.

    Parameters
    ----------
    cooler_info : cuda.bindings.nvml.CoolerInfo_v1
    """

    def __init__(self, cooler_info: nvml.CoolerInfo_v1) -> None: ...
    @property
    def signal_type(self) -> CoolerControl | None:
        """A `CoolerControl`; None if the driver reports another one."""
    @property
    def target(self) -> list[CoolerTarget]:
        """List of `CoolerTarget`."""

class Temperature:
    """Temperatures of a device, in degrees Celsius.

    Parameters
    ----------
    handle : int
        Handle of the device.
    """

    def __init__(self, handle: SupportsInt) -> None: ...
    def get_sensor(self) -> int:
        """Temperature of the GPU in degrees Celsius."""
    @property
    def margin(self) -> int:
        """Distance to the nearest slowdown threshold in degrees Celsius."""
    def get_threshold(self, threshold_type: TemperatureThresholds | str) -> int:
        """A threshold in degrees Celsius.

        Parameters
        ----------
        threshold_type : TemperatureThresholds or str
            On Ada and later GPUs, SHUTDOWN, SLOWDOWN, MEM_MAX and GPU_MAX are deprecated: use the fields
            ``DEV_TEMPERATURE_*`` of `Device.get_field_values`.
        """
    def get_thermal_settings(self, sensor_index: ThermalTarget | str) -> ThermalSettings:
        """`ThermalSettings` of the sensors of a target.

        Parameters
        ----------
        sensor_index : ThermalTarget or str
        """

class ThermalSensor:
    """One thermal sensor; temperatures in degrees Celsius.

    Parameters
    ----------
    ptr : int
        Address of NVML's structure of five integers.
    owner : object
        The object whose memory it is.
    """

    def __init__(self, ptr: int, owner: object) -> None: ...
    @property
    def controller(self) -> ThermalController:
        """A `ThermalController`."""
    @property
    def default_min_temp(self) -> int:
        """Lowest temperature that the sensor measures by default."""
    @property
    def default_max_temp(self) -> int:
        """Highest temperature that the sensor measures by default."""
    @property
    def current_temp(self) -> int:
        """Current temperature."""
    @property
    def target(self) -> ThermalTarget:
        """What the sensor measures: a `ThermalTarget`; None if the driver reports another one."""

class ThermalSettings:
    """Thermal sensors: a sequence.

    Parameters
    ----------
    thermal_settings : cuda.bindings.nvml.GpuThermalSettings
    """

    def __init__(self, thermal_settings: nvml.GpuThermalSettings) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex) -> ThermalSensor: ...

class FieldValue:
    """One field value.

    Parameters
    ----------
    field_value : cuda.bindings.nvml.FieldValue
        An array of one element.
    """

    def __init__(self, field_value: nvml.FieldValue) -> None: ...
    @property
    def field_id(self) -> FieldId:
        """The `FieldId`; an int if this package does not have it."""
    @property
    def scope_id(self) -> int:
        """Scope of the field, for example a link."""
    @property
    def timestamp(self) -> int:
        """When the value was sampled, in microseconds since 1970."""
    @property
    def latency_usec(self) -> int:
        """How long NVML took to update the value, in microseconds."""
    @property
    def value(self) -> int | float:
        """The value.

        Raises
        ------
        NvmlError
            The error with which NVML answered this field.
        """

class FieldValues:
    """Field values: a sequence.

    Parameters
    ----------
    field_values : cuda.bindings.nvml.FieldValue
        An array.
    """

    def __init__(self, field_values: nvml.FieldValue) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex) -> FieldValue: ...
    def validate(self) -> None:
        """Raise the error of the first field that has one.

        Raises
        ------
        NvmlError
        """
    def get_all_values(self) -> list[int | float]:
        """All values as a list.

        Raises
        ------
        NvmlError
            If one of the fields has an error.
        """

class EventData:
    """One event of a device.

    Parameters
    ----------
    event_data : cuda.bindings.nvml.EventData
    """

    def __init__(self, event_data: nvml.EventData) -> None: ...
    @property
    def device(self) -> Device:
        """The device on which the event occurred."""
    @property
    def event_type(self) -> EventType:
        """The `EventType`; `EventType.NONE` if the driver reports another one."""
    @property
    def event_data(self) -> int:
        """The Xid error.

        Raises
        ------
        ValueError
            If the event is not `EventType.XID_CRITICAL_ERROR`.
        """
    @property
    def gpu_instance_id(self) -> int:
        """The GPU instance (MIG) of an Xid error.

        Raises
        ------
        ValueError
            If the event is not `EventType.XID_CRITICAL_ERROR`.
        """
    @property
    def compute_instance_id(self) -> int:
        """The compute instance (MIG) of an Xid error.

        Raises
        ------
        ValueError
            If the event is not `EventType.XID_CRITICAL_ERROR`.
        """

class DeviceEvents:
    """Events of a device that are recorded from now on.

    Parameters
    ----------
    device_handle : int
        Handle of the device.
    events : EventType, str, or list of them
    """

    def __init__(self, device_handle: SupportsInt, events: EventType | str | list[EventType | str]) -> None: ...
    def wait(self, timeout_ms: int = 0) -> EventData:
        """Wait for the next event.

        Parameters
        ----------
        timeout_ms : int
            Timeout in milliseconds; 0 waits without a limit. Python's signal handlers run during the wait.

        Returns
        -------
        EventData

        Raises
        ------
        TimeoutError
            NVML's (`cuda.core.system.TimeoutError`): no event occurred in time.
        """

class InforomInfo:
    """The InfoROM, a memory on the board with its configuration.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None: ...
    def get_version(self, inforom: InforomObject | str) -> str:
        """Version of an object of the InfoROM.

        Parameters
        ----------
        inforom : InforomObject or str
        """
    @property
    def image_version(self) -> str:
        """Version of the whole InfoROM."""
    @property
    def configuration_checksum(self) -> int:
        """Checksum of the configuration."""
    @property
    def board_part_number(self) -> str:
        """Part number of the board."""
    @property
    def bbx_flush_time(self) -> tuple[int, int]:
        """Time of the last flush of the black box object, and its duration in microseconds."""
    def validate(self) -> None:
        """Verify the checksums.

        Raises
        ------
        CorruptedInforomError
            If the InfoROM is corrupted.
        """

class MigInfo:
    """Partitions of a GPU (MIG).

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None: ...
    @property
    def is_mig_device(self) -> bool:
        """Whether the device is a partition."""
    @property
    def mode(self) -> bool:
        """Whether the GPU is partitioned. Setting it requires root; where it takes effect only after a reset,
        `pending_mode` shows it.
        """
    @mode.setter
    def mode(self, enabled: bool) -> None: ...
    @property
    def pending_mode(self) -> bool:
        """Whether the GPU will be partitioned after the next reset."""
    @property
    def device_count(self) -> int:
        """Largest number of partitions."""
    @property
    def parent(self) -> Device:
        """The GPU of a partition."""
    def get_device_by_index(self, index: int) -> Device:
        """The partition of that number, counted from 0."""
    def get_all_devices(self) -> Iterator[Device]:
        """Iterator over the partitions that exist."""

class _NvlinkInfo:
    """One NVLink link of a device."""

    def __init__(self, device: Device, link: int) -> None: ...
    @property
    def state(self) -> bool:
        """Whether the link is active."""
    @property
    def version(self) -> tuple[int, int]:
        """NVLink version, ``(major, minor)``.

        Raises
        ------
        RuntimeError
            If the driver reports a version that this package does not know.
        """

class _NvlinkInfoMeta(type):
    @property
    def max_links(cls) -> int:
        """Deprecated: use `Device.get_nvlink_count`."""

class NvlinkInfo(_NvlinkInfo, metaclass=_NvlinkInfoMeta):
    """One NVLink link of a device.

    Parameters
    ----------
    device : Device
    link : int
        Number of the link, counted from 0.
    """


class Device:
    """A device as NVML sees it: its identity, state and topology. `cuda.core.Device` is the device for computing.

    Parameters
    ----------
    index : int, optional
        NVML's number of the device, counted from 0. It may differ from CUDA's, which ``CUDA_VISIBLE_DEVICES`` changes.
    uuid : str or bytes, optional
        UUID, with or without the prefix ``GPU-`` or ``MIG-``.
    pci_bus_id : str or bytes, optional
        PCI bus ID, ``domain:bus:device.function``.

    Raises
    ------
    ValueError
        Unless exactly one of the parameters is given.
    NvmlError
        If there is no such device, or NVML cannot be initialised.
    """

    def __init__(self, *, index: int | None = None, uuid: bytes | str | None = None, pci_bus_id: bytes | str | None = None) -> None: ...
    @classmethod
    def get_device_count(cls) -> int:
        """Number of devices."""
    @classmethod
    def get_all_devices(cls) -> Iterator[Device]:
        """Iterator over all devices, by index."""
    @classmethod
    def get_all_devices_with_cpu_affinity(cls, cpu_index: int) -> Iterator[Device]:
        """Iterator over the devices that are close to a CPU. Linux only.

        Parameters
        ----------
        cpu_index : int
            Number of the CPU.
        """
    def to_cuda_device(self) -> _CudaDevice:
        """The `cuda.core.Device` with the same UUID.

        Raises
        ------
        RuntimeError
            If CUDA does not see the device: ``CUDA_VISIBLE_DEVICES`` hides it, or it is partitioned (MIG) and only its
            partitions can be used.
        """
    @property
    def index(self) -> int:
        """NVML's number of the device."""
    @property
    def name(self) -> str:
        """Name of the product."""
    @property
    def uuid(self) -> str:
        """UUID with its prefix: ``GPU-`` or ``MIG-`` and five groups of hexadecimal digits."""
    @property
    def uuid_without_prefix(self) -> str:
        """UUID as in `cuda.core.Device.uuid`."""
    @property
    def brand(self) -> str:
        """Brand; ``"Unknown"`` if the driver reports none, or one that this package does not know."""
    @property
    def serial(self) -> str:
        """Serial number of the board."""
    @property
    def arch(self) -> DeviceArch:
        """Architecture: a `DeviceArch`."""
    @property
    def cuda_compute_capability(self) -> tuple[int, int]:
        """Compute capability, ``(major, minor)``."""
    @property
    def minor_number(self) -> int:
        """Number of the device node ``/dev/nvidiaX``. Linux only."""
    @property
    def module_id(self) -> int:
        """Number of the module on its baseboard; 0 without a baseboard."""
    @property
    def pci_info(self) -> PciInfo:
        """PCI attributes: `PciInfo`.

        Raises
        ------
        NotSupportedError
            For devices that are not on a PCI bus, for example MIG devices.
        """
    @property
    def pci_bus_id(self) -> str:
        """PCI bus ID: ``domain:bus:device.function``."""
    @property
    def inforom(self) -> InforomInfo:
        """The InfoROM: `InforomInfo`."""
    @property
    def memory_info(self) -> MemoryInfo:
        """`MemoryInfo` of the device memory."""
    @property
    def bar1_memory_info(self) -> BAR1MemoryInfo:
        """`BAR1MemoryInfo` of the memory that is mapped over PCIe."""
    @property
    def utilization(self) -> Utilization:
        """`Utilization` during the last sample period."""
    @property
    def attributes(self) -> DeviceAttributes:
        """`DeviceAttributes`: multiprocessors, engines and slices."""
    @property
    def compute_running_processes(self) -> list[ProcessInfo]:
        """`ProcessInfo` of each process with a compute context on the device."""
    @property
    def repair_status(self) -> RepairStatus:
        """Pending repairs: `RepairStatus`."""
    @property
    def temperature(self) -> Temperature:
        """`Temperature` of the device."""
    @property
    def cooler(self) -> CoolerInfo:
        """`CoolerInfo` of the device."""
    @property
    def num_fans(self) -> int:
        """Number of fans."""
    def get_fan(self, fan: int = 0) -> FanInfo:
        """`FanInfo` of a fan.

        Parameters
        ----------
        fan : int
            Number of the fan, counted from 0.

        Raises
        ------
        ValueError
            If the device has no such fan.
        """
    def get_clock(self, clock_type: ClockType | str) -> ClockInfo:
        """`ClockInfo` of a clock domain.

        Parameters
        ----------
        clock_type : ClockType or str
        """
    @property
    def is_auto_boosted_clocks_enabled(self) -> tuple[bool, bool]:
        """Whether clocks are boosted automatically, now and by default."""
    @property
    def current_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """Why clocks are lower than the maximum: a list of `ClocksEventReasons`."""
    @property
    def supported_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """The `ClocksEventReasons` that the device can report."""
    @property
    def performance_state(self) -> int | None:
        """Performance state, 0 (fastest) to 15 (slowest); None if unknown."""
    @property
    def supported_pstates(self) -> list[int]:
        """Performance states of the device, 0 (fastest) to 15 (slowest)."""
    @property
    def dynamic_pstates_info(self) -> GpuDynamicPstatesInfo:
        """Utilisation by domain: `GpuDynamicPstatesInfo`."""
    @property
    def is_persistence_mode_enabled(self) -> bool:
        """Whether the driver stays loaded without clients. Linux only; setting it requires root."""
    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled: bool) -> None: ...
    @property
    def is_display_connected(self) -> bool:
        """Whether a display is connected."""
    @property
    def is_display_active(self) -> bool:
        """Whether a display is initialised on the device, connected or not."""
    @property
    def is_c2c_enabled(self) -> bool:
        """Whether the chip-to-chip interconnect is enabled."""
    @property
    def addressing_mode(self) -> AddressingMode | None:
        """How the device addresses pageable memory of the host: an `AddressingMode`, or None."""
    @property
    def mig(self) -> MigInfo:
        """Partitions of the GPU: `MigInfo`."""
    def get_field_values(self, field_ids: list[int | tuple[int, int]]) -> FieldValues:
        """Many figures in one call.

        Parameters
        ----------
        field_ids : list
            `FieldId` members, or pairs of a `FieldId` and a scope ID.

        Returns
        -------
        FieldValues
            The error of a field is raised when its value is read.
        """
    def clear_field_values(self, field_ids: list[int | tuple[int, int]]) -> None:
        """Reset counters.

        Parameters
        ----------
        field_ids : list
            As for `get_field_values`.
        """
    def get_supported_event_types(self) -> list[EventType]:
        """The `EventType` members that the device can report."""
    def register_events(self, events: EventType | str | list[EventType | str]) -> DeviceEvents:
        """Record events from now on. Linux only.

        Parameters
        ----------
        events : EventType, str, or list of them

        Returns
        -------
        DeviceEvents
        """
    def get_cpu_affinity(self, scope: AffinityScope | str = ...) -> list[int]:
        """Numbers of the CPUs that are close to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str
        """
    def get_memory_affinity(self, scope: AffinityScope | str = ...) -> list[int]:
        """Numbers of the NUMA nodes that are close to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str
        """
    def set_cpu_affinity(self) -> None:
        """Bind the calling thread to the CPUs that are close to the device. Linux only."""
    def clear_cpu_affinity(self) -> None:
        """Let the calling thread run on all CPUs. Linux only."""
    @property
    def numa_node_id(self) -> int:
        """NUMA node of the device, where GPUs are NUMA nodes."""
    def get_topology_nearest_gpus(self, level: GpuTopologyLevel | str) -> Iterator[Device]:
        """Iterator over the devices with that common ancestor. Linux only.

        Parameters
        ----------
        level : GpuTopologyLevel or str
        """
    def get_nvlink_count(self) -> int:
        """Number of NVLink links."""
    def get_nvlink(self, link: int) -> NvlinkInfo:
        """`NvlinkInfo` of a link.

        Parameters
        ----------
        link : int
            Number of the link, counted from 0.

        Raises
        ------
        ValueError
            If the device has no such link.
        """
    def get_nvlinks(self) -> Iterator[NvlinkInfo]:
        """Iterator over the `NvlinkInfo` of all links."""

def get_topology_common_ancestor(device1: Device, device2: Device) -> GpuTopologyLevel:
    """The closest common ancestor of two devices. Linux only.

    Parameters
    ----------
    device1, device2 : Device

    Returns
    -------
    GpuTopologyLevel
    """

def get_p2p_status(device1: Device, device2: Device, index: GpuP2PCapsIndex | str) -> GpuP2PStatus:
    """Whether two devices have a capability, or why they do not.

    Parameters
    ----------
    device1, device2 : Device
    index : GpuP2PCapsIndex or str
        The capability.

    Returns
    -------
    GpuP2PStatus
    """
