"""NVML: with the recorder every function; on a GPU everything that only reads."""

MODULE = "cuda.bindings.nvml"

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
    ("device_set_vgpu_scheduler_state_v2", "p_scheduler_state"): lambda m: int(m.VgpuSchedulerState_v2()),
    ("device_setup_nvlink_nvle_encryption_key_v1", "encryption_key"): lambda m: m.NvlinkSetupNvleEncryptionKey_v1(),
    ("event_set_register_gpu_operational_events_v1", "config"): 0,
    ("get_vgpu_compatibility", "vgpu_metadata"): lambda m: m.VgpuMetadata(),
    ("get_vgpu_compatibility", "pgpu_metadata"): lambda m: m.VgpuPgpuMetadata(),
    ("gpu_instance_set_vgpu_scheduler_state", "p_scheduler"): lambda m: m.VgpuSchedulerState_v1(),
    ("gpu_instance_set_vgpu_scheduler_state_v2", "p_scheduler_state"): lambda m: m.VgpuSchedulerState_v2(),
    ("set_vgpu_version", "vgpu_version"): lambda m: m.VgpuVersion(),
    # The number of CPU sets that there is room for.
    ("*", "cpu_set_size"): 2,
    ("*", "node_set_size"): 2,
}
