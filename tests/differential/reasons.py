"""Reasons for functions without an equal result, where the records do not give one: the functions were not called.

{"recorder", "typed" or "real": {module: [(pattern of the function's name, reason)]}}. A reason in the records (both
return the same error, the peer crashes, a deliberate difference) needs no entry.
"""

DISPLAY = "needs OpenGL, EGL or VDPAU, which a machine without a display lacks"
EXTERNAL = "needs memory or a semaphore of another API (Vulkan, NvSci)"
PROCESS = "needs a second process that holds the handle"
CHANGES = "changes the machine's configuration"
SUSPENDS = "suspends the process that calls it"
FABRIC = "needs GPUs on one NVLink fabric, and a driver newer than 13.0"
NEWER = "not in driver 13.0"
CIG = "needs a context created for Direct3D or Vulkan work"
WITHOUT = "not called: its arguments cannot be created on the machine"
MIG = "needs a GPU in MIG mode"
VGPU = "needs a virtual GPU"
EVENTS = "waits for events, or needs a handle that only such a wait returns"
FILES = "cuFile opens no file on the machine (it does not support the file system)"

_GRAPHICS = r"cu(da)?(GL|EGL|VDPAU|Graphics)\w+|cu(da)?EventCreateFromEGLSync"
_EXTERNAL = r"cu(da)?(ExternalMemory\w+|\w*ExternalSemaphores\w*|DeviceGetNvSci\w+|ImportExternal\w+)"

REASONS = {
    "recorder": {
        "nvml": [(r"check_status(_size)?", "only raises exceptions, and they are equal")],
        "cudla": [(r"check_status", "only raises exceptions, and they are equal")],
    },
    "typed": {"runtime": [(r"\w+", "returns only that there is no device")]},
    "real": {
        "driver": [
            (_GRAPHICS, DISPLAY),
            (_EXTERNAL, EXTERNAL),
            (r"cuIpc(Open|Close)\w+", PROCESS),
            (
                r"cuCheckpoint\w+(Checkpoint|Lock|Restore|Unlock|OperationComplete)|cuCheckpointOperationComplete",
                SUSPENDS,
            ),
            (
                r"cuCoredump(De)?[rR]egister\w+|cuDevice(Un)?[rR]egisterAsyncNotification|cuLogs(Un)?[rR]egisterCallback",
                "its callback would run while the process terminates or the driver logs",
            ),
            (r"cuLogicalEndpoint\w+|cuMulticast\w+|cuDeviceGet(Clique\w+|FabricClusterUuid)|cuFabric\w+", FABRIC),
            (r"cuStream\w+ToCig", CIG),
            (
                r"cuGraphAddNode_v3|cuGraphNodeSetParams_v2|cuLaunchHostFunc_v2|cuStreamBeginRecaptureToGraph|cuStreamGetDevResource|cuMemGetLocationInfo|"
                r"cuMemcpy3DWithAttributesAsync|cuMemcpyWithAttributesAsync|cuTensorMapSetAllocationClass|cuDevSmResourceSplit",
                NEWER,
            ),
            (
                r"cuMemMapArrayAsync|cuMemBatchDecompressAsync",
                "needs sparse arrays, or a decompression engine, which the machine lacks",
            ),
            (
                r"cuMemcpy3DBatchAsync|cuTensorMapEncodeIm2colWide|cuLaunchCooperativeKernelMultiDevice",
                "compared with the recording library only",
            ),
            (r"cuParamSet\w+|cu(Tex|Surf)Ref\w+", "an API of CUDA 3; compared with the recording library only"),
        ],
        "runtime": [
            (_GRAPHICS, DISPLAY),
            (_EXTERNAL, EXTERNAL),
            (r"cudaIpc(Open|Close)\w+", PROCESS),
            (
                r"cudaDevice(Un)?[rR]egisterAsyncNotification|cudaLogs\w+",
                "its callback would run while the driver logs",
            ),
            (
                r"cudaGreenCtxCreate|cudaExecutionCtx\w+|cudaDev\w*Resource\w*|cudaStreamGetDevResource",
                "newer than the machine's driver",
            ),
            (
                r"cudaLaunchHostFunc_v2|cudaStreamBeginRecaptureToGraph|cudaMemGetLocationInfo|cudaMemcpy3D(With\w+|BatchAsync)|cudaGraphConditionalHandleCreate_v2",
                "newer than the machine's driver",
            ),
            (r"cudaGraphExecGetId", "newer than the machine's driver"),
            (r"cudaGetExportTable|getLocalRuntimeVersion", "returns internals of one side's library"),
        ],
        "nvml": [
            (r"check_status_size", "only raises exceptions, and they are equal"),
            (
                r"device_get_gsp_firmware_version",
                "NVIDIA's package crashes, or returns a character's code instead of the string",
            ),
            (r"vgpu_\w+|\w*_vgpu\w*|set_vgpu_version|\w*_host_vgpu\w*|device_get_pgpu_metadata_string", VGPU),
            (r"(gpu|compute)_instance_\w+|device_create_gpu_instance\w*|\w*_gpu_instance_by_id|\w*mig_device\w*", MIG),
            (r"unit_\w+", "needs an S-class unit"),
            (r"(system_)?event_set_\w+|(device|system)_register_events", EVENTS),
            (r"init_\w+|shutdown", "called by every other test; returns nothing"),
            (
                r"device_(set|reset|clear|modify|remove|lock|setup|power_smoothing|validate|discover|read_write|query_drain)\w*|system_set_\w+",
                CHANGES,
            ),
            (r"device_on_same_board", "needs two devices"),
        ],
        "cufile": [(r"(batch_io|buf|driver|handle|stream)_\w+|(read|write)(v|_async)?|(get|set)_\w+|stats_\w+", FILES)],
        "nvrtc": [
            (
                r"nvrtc(Install|Remove)BundledHeaders",
                "writes into a user's folder; compared with the recording library only",
            ),
            (
                r"nvrtcSetFlowCallback",
                "calls back on the compiler's threads; compared with the recording library only",
            ),
        ],
        "driver_v2": [(r"\w+", "compared with the recording library only")],
        "nvrtc_v2": [
            (
                r"(install|remove)_bundled_headers|set_flow_callback|(get|set)_pch_heap_size\w*",
                "compared with the recording library only",
            ),
        ],
        "nvvm": [
            (r"create_program", "returns an address; every script uses it"),
            (r"llvm_version", "not in libNVVM 13.0"),
        ],
        "nvjitlink": [
            (r"add_file", "reads a file; its error is compared"),
            (r"get_linked_ltoir(_size)?", "not in nvJitLink 13.0"),
        ],
        "nvfatbin": [(r"add_index|add_reloc|add_tile_ir", "takes input that NVRTC does not generate")],
    },
}
