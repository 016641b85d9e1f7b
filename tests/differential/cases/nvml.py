"""NVML: every function with the recorder; on a GPU every function that only reads."""

import ctypes
import inspect
import os
import re

MODULE = "cuda.bindings.nvml"

ROOM = ctypes.create_string_buffer(1 << 16)


def _event_set(create):
    """An event set created by the module; the recorder returns one when it fills its outputs."""

    def make(m):
        mode = os.environ.get("RECORDER_MODE")
        if mode is None:
            return 0
        os.environ["RECORDER_MODE"] = "fill"
        try:
            return getattr(m, create)()
        finally:
            os.environ["RECORDER_MODE"] = mode

    return make


ARGUMENTS = {
    ("*", "uuid"): "abc",
    ("*", "serial"): "abc",
    ("*", "pci_bus_id"): "abc",
    ("*", "hostname"): "abc",
    ("*", "pci_info"): lambda m: m.PciInfo(),
    ("device_clear_field_values", "values"): lambda m: m.FieldValue(2),
    ("device_get_field_values", "values"): lambda m: [1, (2, 3)],
    ("device_create_gpu_instance_with_placement", "placement"): lambda m: m.GpuInstancePlacement(),
    ("gpu_instance_create_compute_instance_with_placement", "placement"): lambda m: m.ComputeInstancePlacement(),
    ("device_get_conf_compute_gpu_attestation_report", "nonce"): b"0123456789abcdef0123456789abcdef",
    ("device_get_handle_by_uuidv", "type"): 1,
    ("device_get_handle_by_uuidv", "uuid"): b"GPU-01234567-0123-0123-0123-0123456789ab",
    ("device_lock_nvlink_remap_table_v1", "remap_table_lock_info"): lambda m: m.NvlinkLockRemapTable_v1(),
    ("device_read_prm_counters_v1", "counters"): lambda m: m.PRMCounter_v1(2),
    ("device_read_write_prm_v1", "in_data"): b"abc",
    ("device_set_clock_offsets", "info"): lambda m: m.ClockOffset_v1(),
    ("device_set_memory_limits_v1", "limits"): lambda m: m.SetMemoryLimits_v1(),
    ("device_set_nvlink_bw_mode", "set_bw_mode"): lambda m: m.NvlinkSetBwMode_v1(),
    ("device_set_nvlink_nvle_ready_v1", "set_nvle_ready"): lambda m: m.NvlinkSetNvleReady_v1(),
    ("device_set_power_mizer_mode_v1", "power_mizer_mode"): lambda m: m.DevicePowerMizerModes_v1(),
    ("device_set_vgpu_scheduler_state_v2", "p_scheduler_state"): lambda m: ctypes.addressof(ROOM),
    ("device_setup_nvlink_nvle_encryption_key_v1", "encryption_key"): lambda m: m.NvlinkSetupNvleEncryptionKey_v1(),
    ("event_set_register_gpu_operational_events_v1", "config"): lambda m: m.GpuOperationalEventConfig_v1(),
    ("get_vgpu_compatibility", "vgpu_metadata"): lambda m: m.VgpuMetadata(),
    ("get_vgpu_compatibility", "pgpu_metadata"): lambda m: m.VgpuPgpuMetadata(),
    ("gpu_instance_set_vgpu_scheduler_state", "p_scheduler"): lambda m: m.VgpuSchedulerState_v1(),
    ("gpu_instance_set_vgpu_scheduler_state_v2", "p_scheduler_state"): lambda m: m.VgpuSchedulerState_v2(),
    ("set_vgpu_version", "vgpu_version"): lambda m: m.VgpuVersion(),
    # The capacity in CPU sets.
    ("*", "cpu_set_size"): 2,
    ("*", "node_set_size"): 2,
    ("*", "set"): _event_set("event_set_create"),
    ("event_set_register_gpu_operational_events_v1", "event_set"): _event_set("event_set_create"),
    ("*", "event_set"): _event_set("system_event_set_create"),
    ("device_register_events", "set"): _event_set("event_set_create"),
}


# ----------------------------------------------------------------------------------------------------------
# The real library

# Functions that change the machine, wait, or need special hardware.
CHANGES = re.compile(
    r"_set_|_reset_|_clear_|_create_|_destroy|_remove_|_modify_|_freeze_|_register|_inject|_free$|_wait|shutdown|init_|"
    r"_activate_|_update_|_lock_|_setup_|_write_|_on_same_board$|discover_gpus|^set_|_validate_inforom|_trigger|_control$"
)
# Values that differ from call to call; only their types are compared.
CHANGING = re.compile(
    r"temperature|utilization|clock|freq|power(?!_management_(limit|default|mode))|energy|memory_info|bar1|fan|pcie_(throughput|replay)|"
    r"samples|field_values|uptime|process|performance_(state|modes)|pstate|throughput|stats|counter|accounting|handle|time|thermal|"
    r"throttle|metrics|reasons|bbx|violation|nonce|certificate|attestation|event|current|margin|cooler|context|set_create"
)


def _first_device(m):
    m.init_v2()
    return m.device_get_handle_by_index_v2(0)


def reading(m):
    """(label, function's name, call, volatile) of every reading function, with sensible arguments."""
    for name in sorted(n for n in dir(m) if callable(getattr(m, n)) and not isinstance(getattr(m, n), type)):
        if (
            name.startswith("_")
            or CHANGES.search(name)
            or name in ("error_string", "check_status", "check_status_size")
        ):
            continue
        function = getattr(m, name)
        names = list(inspect.signature(function).parameters)
        variants = [None]
        others = [n for n in names if n not in ("device", "device1", "device2")]
        if others:
            variants = [0, 1, 2]
        for variant in variants:

            def call(function=function, names=names, variant=variant, name=name):
                device = _first_device(m)
                values = []
                for n in names:
                    if n in ("device", "device1", "device2", "device_handle"):
                        values.append(device)
                    elif n == "uuid" and name == "device_get_handle_by_uuid":
                        values.append(m.device_get_uuid(device))
                    elif n == "pci_bus_id":
                        values.append(m.device_get_pci_info_v3(device).bus_id)
                    elif n == "pid":
                        values.append(1)
                    elif n == "values":
                        values.append([1, (2, 0), 82])
                    elif n in (
                        "vgpu_instance",
                        "vgpu_type_id",
                        "unit",
                        "gpu_instance",
                        "compute_instance",
                        "set",
                        "event_set",
                    ):
                        # Missing here: the errors are compared.
                        values.append(0)
                    elif ("*", n) in ARGUMENTS or (name, n) in ARGUMENTS:
                        entry = ARGUMENTS.get((name, n), ARGUMENTS.get(("*", n)))
                        values.append(entry(m) if callable(entry) else entry)
                    else:
                        values.append(variant)
                return function(*values)

            label = name if variant is None else f"{name} {variant}"
            yield label, name, call, bool(CHANGING.search(name))


def errors(m):
    """Calls that fail on every machine."""

    def uninitialised():
        return m.device_get_count_v2()

    def wrong(name, *args):
        def call():
            _first_device(m)
            return getattr(m, name)(*args)

        return call

    yield "device_get_count_v2 before init", "device_get_count_v2", uninitialised, False
    yield "no such index", "device_get_handle_by_index_v2", wrong("device_get_handle_by_index_v2", 1000), False
    yield "no such uuid", "device_get_handle_by_uuid", wrong("device_get_handle_by_uuid", "GPU-x"), False
    yield (
        "no such bus id",
        "device_get_handle_by_pci_bus_id_v2",
        wrong("device_get_handle_by_pci_bus_id_v2", "x"),
        False,
    )
    yield "null device", "device_get_name", wrong("device_get_name", 0), False
    for status in (*range(0, 31), 77, 999):
        yield f"error_string {status}", "error_string", wrong("error_string", status), False
        yield f"check_status {status}", "check_status", wrong("check_status", status), False
        yield f"NvmlError {status}", "NvmlError", wrong("NvmlError", status), False


TASKS = (reading, errors)
