"""Deliberate differences from NVIDIA's package, each with its reason.

A rule: (pattern of "MODULE SECTION LABEL", pattern of compare.py's description of the difference, reason[, test]). The
test receives both outcomes, NVIDIA's first, and returns whether the reason applies; a rule has one if its patterns
would match other differences too.
"""

from outcomes import (
    after_nul,
    empty_arrays,
    explained,
    goes_on,
    leftovers,
    no_call,
    not_asked,
    only,
    only_members,
    placements,
    plain_number,
    same_but_integer_arrays,
    same_result,
    shorter_list,
    size_first,
    structs_of_bytes,
    structs_of_numbers,
    unknown_status,
    unwritten,
    unwritten_value,
)

REFUSED = r"builtins\.(TypeError|ValueError|OverflowError|AttributeError|UnicodeEncodeError|IndexError|RuntimeError)"
REFUSALS = rf"raises {REFUSED}, ours ((builtins\.)?(TypeError|ValueError|OverflowError|UnicodeEncodeError|IndexError)|cupyrite\._native\.ListTooSmallError)$"
SHORT = r"ours (raises )?cupyrite\._native\.ListTooSmallError"
# Parameters that take an address of host memory.
ADDRESSES = (
    "userData|nvSciSyncAttrList|code|data|ptr|handle|p|osHandle|addr|dstHost|srcHost|image|fatCubin|buffer|globalAddress|hostPtr|value|"
    "ppExportTable|descriptors|vdpGetProcAddress"
)

DELIBERATE = [
    (r"\w+ \w+ .*", REFUSALS, "a refusal of a wrong argument is of another built-in class", no_call),
    (
        r"\w+ functions \w+ \w+=nul",
        "returns, ours raises builtins.ValueError",
        "a NUL inside a string would truncate it",
        no_call,
    ),
    (
        r"\w+ attributes .* = (None|object|str|bytes|1\.5)",
        "raises builtins.AttributeError, ours builtins.TypeError",
        "a wrong type is a TypeError",
    ),
    (r"\w+ attributes .* = 1\.5", r"returns, ours raises builtins\.TypeError", "addresses take no floats"),
    (
        r"\w+ attributes .* = (-1|2\*\*\d\d)",
        r"returns, ours raises builtins\.OverflowError",
        "a number out of the member's range is refused",
    ),
    (
        r"\w+ attributes .* = (\[\]|own)",
        "raises builtins.(TypeError|ValueError), ours returns",
        "a list member accepts an empty list",
    ),
    (r"\w+ attributes .* = bytes", "raises builtins.ValueError, ours returns", "bytes are numbers too"),
    (
        r"\w+ attributes .* = (1\.5|0|1|7|2\*\*\d\d|None|own|-1)",
        "raises builtins.TypeError, ours returns",
        "NumPy integers and objects with __index__ are accepted",
    ),
    (
        r"nvml attributes \w+\.\w+ = (\(1, 2\)|\[1, 2, 3\])",
        "raises builtins.TypeError, ours returns",
        "any sequence of numbers is accepted",
    ),
    (
        r"nvml attributes (ConfCompute|Nvlink|PwrModel|PerfMetrics)\w*(\(\d?\)|\.\w+ = .*)",
        "values differ",
        "an empty array has its elements' type, not float64",
        empty_arrays,
    ),
    (
        r"nvml functions device_get_(conf_compute_gpu_\w+|nvlink_\w+) .*",
        "values differ",
        "an empty array has its elements' type, not float64",
        empty_arrays,
    ),
    (
        r"cufile (functions|scripts) .*",
        "exceptions of the same class differ",
        "the texts of cuFile's statuses are Cupyrite's own",
    ),
    (r"cufile (functions|scripts) .*", "values differ", "the peer returns what C left unwritten", unwritten),
    (r"cufile scripts .*op_status_error.*", "values differ", "the texts of cuFile's statuses are Cupyrite's own"),
    (r"cufile functions op_status_error .*", "values differ", "the texts of cuFile's statuses are Cupyrite's own"),
    (
        r"cufile functions \w+ error:-\d+",
        "returns, ours raises",
        "a negative status is an error, not success with unwritten results",
    ),
    (
        r"cufile functions (read|write)v? error:-1",
        "raises builtins.ValueError, ours builtins.OSError",
        "-1 means errno",
    ),
    (
        r"cufile functions use_count error:-1",
        "raises builtins.ValueError, ours returns",
        "a function without a status returns nothing",
    ),
    (r"cufile functions get_parameter_string len=negative", "ours returns", "a length that is no length is left to C"),
    (r"cufile functions batch_io_set_up nr=2\*\*31", "crashes", "the recorder writes as many handles as requested"),
    (
        rf"\w+ functions \w+ ({ADDRESSES}|\w+)=(2\*\*31|2\*\*32|True|negative|float)",
        r"returns, ours raises (builtins\.(ValueError|TypeError)|cuda\.bindings\.\w+\.\w*InvalidArgument\w*)",
        "an impossible address is refused before the C call",
        no_call,
    ),
    (
        r"cudla functions submit_task .*",
        "ours (raises )?builtins.(ValueError|TypeError)",
        "more tasks than exist",
        no_call,
    ),
    (
        r"cudla functions module_get_attributes .*",
        "C is called differently",
        "an empty list needs no second call",
        not_asked,
    ),
    (
        r"cudla functions module_get_attributes .*",
        "values differ",
        "NVIDIA's exposes memory that C did not write",
        unwritten,
    ),
    (
        r"nvml functions device_get_gsp_firmware_version .*",
        "values differ",
        "the version is a string; NVIDIA's returns its first character's code",
        lambda p, o: "int" in p["value"] and "str" in o["value"],
    ),
    (
        r"nvjitlink scripts mistakes: log's text",
        "values differ",
        "NVIDIA's frees a module's name while the library still refers to it",
    ),
    (r"\w+ facts dtype _py_anon_\w+", "only the peer has it", "private names are there but not listed"),
    (
        r"\w+ functions device_get_(cpu|memory)_affinity\w* \w+=2\*\*31",
        "hangs",
        "gigabytes are allocated; both take long",
    ),
    # ------------------------------------------------------------------------------------------------------
    # NVML
    (
        r"nvml functions \w+_(current_clock_freqs|hostname_v1|performance_modes|power_management_limit_v2|read_write_prm_v1|driver_branch|handle_by_uuidv|field_values|fan_speed_rpm|temperature_v|scheduler_state_v2) .*",
        "C is called differently",
        "NVIDIA's passes C an uninitialised struct",
        leftovers,
    ),
    (
        r"nvml functions device_get_vgpu_type_supported_placements .*",
        "(C is called differently|values differ)",
        "NVIDIA's ignores the mode in the first call",
        placements,
    ),
    (
        r"nvml functions event_set_get_context_data_v1 .*",
        "C is called differently",
        "without a size there is no second call",
        not_asked,
    ),
    (
        r"nvml functions (device_get_(samples|vgpu_utilization|vgpu_type_(supported|creatable)_placements)|gpu_instance_get_\w*vgpu\w*|system_event_set_create|vgpu_type_get_name|device_get_nvlink_\w+) .*",
        "values differ",
        "NVIDIA's exposes memory that C did not write",
        unwritten_value,
    ),
    (
        r"nvml functions vgpu_type_get_name .*",
        "raises builtins.UnicodeDecodeError, ours returns",
        "NVIDIA's exposes memory that C did not write",
    ),
    (
        r"nvml functions system_event_set_create .*",
        "C is called differently",
        "NVIDIA's passes C an uninitialised struct",
        leftovers,
    ),
    (
        r"nvml functions (gpu_instance|device|vgpu_instance)_get_\w+ (two:7|error:7)",
        "(C is called differently|raises cuda.bindings.nvml.InsufficientSizeError, ours returns)",
        "the size is queried, and again if the list has grown",
        goes_on,
    ),
    (
        r"nvml functions device_get_vgpu_metadata error:7",
        "returns, ours raises cuda.bindings.nvml.InsufficientSizeError",
        "status 7 without a size is an error",
    ),
    (
        r"nvml functions event_set_get_context_data_v1 error:7",
        "raises cuda.bindings.nvml.InsufficientSizeError, ours returns",
        "without a size there is no data",
    ),
    (
        r"nvml functions device_(clear|get)_field_values values=(list|tuple|bytes)",
        "",
        "an empty list needs no call; bytes are not a list",
        no_call,
    ),
    (
        r"nvml functions (\w*event\w*|\w*mig_device\w*) .*",
        "ours (raises )?cuda.bindings.nvml.InvalidArgumentError",
        "a handle that the module did not create is refused",
        no_call,
    ),
    (
        r"nvml functions (device|gpu_instance|event_set|set|system)_\w+ \w+=(None|object|tuple|list|bytes|2\*\*63|2\*\*64)",
        "returns, ours raises builtins.(TypeError|ValueError)",
        "a struct is required",
        no_call,
    ),
    (
        r"nvml functions event_set_register_gpu_operational_events_v1 .*",
        "ours (raises )?builtins.ValueError",
        "an empty struct is refused",
        no_call,
    ),
    (
        r"nvml functions (device_set_vgpu_heterogeneous_mode|device_set_power_management_limit_v2|device_get_clock_offsets|device_get_temperature_v|device_get_vgpu_processes_utilization_info) .*",
        "OverflowError",
        "the struct's member is narrower or unsigned: values out of range are refused",
    ),
    # ------------------------------------------------------------------------------------------------------
    # The driver
    (
        r"(driver|runtime|nvrtc) functions \w+ error:12345",
        "raises builtins.ValueError, ours returns",
        "a status that the enum lacks is returned as a number",
        unknown_status,
    ),
    (
        r"(driver|runtime) functions \w+ .*",
        rf"returns, {SHORT}",
        "C would read past a list that is shorter than its count",
        no_call,
    ),
    (
        r"(driver|runtime) functions \w+ error:12345",
        rf"raises builtins.ValueError, {SHORT}",
        "C would read past a list that is shorter than its count",
        no_call,
    ),
    (
        r"driver functions cu(Device(GetName|GetPCIBusId)) length=(0|negative)",
        "C is called differently",
        "a buffer has room for the terminating NUL",
        only(1),
    ),
    (r"driver functions cuDeviceGetName .*", "values differ", "bytes behind the end of a string are zero", after_nul),
    (
        r"(driver|runtime) scripts .*cu(da)?Device(GetName|GetPCIBusId).*",
        "values differ",
        "bytes behind the end of a string are zero",
        after_nul,
    ),
    (
        r"driver (functions|scripts) .*cuDeviceGetLuid.*",
        "values differ",
        "a LUID is eight bytes, not a zero-terminated string",
        after_nul,
    ),
    (
        r"driver functions cuDeviceGetCliqueInfo fill",
        "values differ",
        "as many elements as the buffer has room for",
        shorter_list,
    ),
    (
        r"driver functions (cuStreamAddCallback|cuDeviceRegisterAsyncNotification|cuLogsRegisterCallback|cuLaunchHostFunc\w*|cuUserObjectCreate) .*",
        "C is called differently",
        "NVIDIA's inserts a function between the driver and the callback",
        only(0, 1, 2),
    ),
    (
        r"driver functions cuVDPAU(GetDevice|CtxCreate) .*",
        "C is called differently",
        "C takes the function itself; the peer passes the address of the object that holds it",
        only(2, 4),
    ),
    (
        r"(driver|nvrtc) functions (cuEGLStream\w+|cuGraphics(Un)?[mM]apResources|nvrtcDestroyProgram) (conn|pStream|pCudaResource|resources|prog)=(1|99|True|2\*\*31|2\*\*32|2\*\*63)",
        "C is called differently",
        "a number is the handle, as everywhere; NVIDIA's takes it as the handle's address",
        only(0, 1, 2),
    ),
    (
        r"(driver|runtime|nvrtc) functions (cu(da)?EGLStream\w+|cu(da)?Graphics(Un)?[mM]apResources|nvrtcDestroyProgram) (conn|pStream|pCudaResource|resources|prog)=(float|another class)",
        "raises builtins.TypeError, ours returns",
        "a number is the handle, as everywhere",
    ),
    (
        r"driver functions cuPointerSetAttribute CU_\w+ = \w+",
        "raises builtins.AttributeError, ours returns",
        "C is asked: it refuses what cannot be set",
    ),
    (
        r"driver functions cuLinkCreate CU_JIT_WALL_TIME = .*",
        "C is called differently",
        "the option's word holds a float; NVIDIA's passes the address of one",
        only(2),
    ),
    (
        r"driver functions cu(LinkCreate|ModuleLoadDataEx) CU_JIT_WALL_TIME = .*",
        "C is called differently",
        "the option's word holds a float; NVIDIA's passes the address of one",
        only(2, 3, 4),
    ),
    (
        r"driver functions cu(LinkCreate|ModuleLoadDataEx) CU_JIT_(GLOBAL|REFERENCED)_\w+ = .*",
        "raises builtins.TypeError, ours returns",
        "an address or None is accepted too",
    ),
    (
        r"nvrtc functions nvrtcGetSupportedArchs (ok|keywords)",
        "C is called differently",
        "an empty buffer has an address, not NULL",
        only(0),
    ),
    (
        r"nvrtc functions nvrtcGetSupportedArchs error:\d+",
        "raises builtins.TypeError, ours returns",
        "a failed call returns its status and None",
    ),
    (
        r"(driver|runtime) functions (cuCoredump\w+|cu(da)?Device[GS]etGraphMemAttribute|cu(da)?MemPool\w+|cudaMem\w*Export\w+|cudaMemRangeGet\w+|cuMem\w*Export\w+|cuLogicalEndpointExport|cuMemRangeGet\w+|cuPointer\w+) \w+=(0|1|99|True|float|first|last|of another enum|negative|2\*\*31)",
        "raises builtins.(AttributeError|TypeError), ours returns",
        "an attribute may be a number",
    ),
    (
        r"(driver|runtime) (functions|scripts) .*(cu(da)?MemPoolSetAttribute|cu(da)?DeviceSetGraphMemAttribute).*",
        "raises builtins.AttributeError, ours returns",
        "a number is accepted where NVIDIA's needs a cuuint64_t",
    ),
    (
        r"(driver|runtime|nvrtc) functions \w+ \w+=negative",
        "raises builtins.OverflowError, ours returns",
        "an enum's number is passed to C unchanged; C refuses unknown ones",
        lambda p, o: not o.get("calls") or any("ffffffff" in a for c in o.get("calls", []) for a in c["a"]),
    ),
    (
        r"(driver|runtime) functions cu(da)?EGLStreamProducerConnect (height|width)=negative",
        "raises builtins.OverflowError, ours returns",
        "an EGLint is signed",
    ),
    (
        r"(driver|runtime) functions cu(da)?EGLStreamProducerConnect (height|width)=2\*\*31",
        "returns, ours raises builtins.OverflowError",
        "an EGLint is signed",
        no_call,
    ),
    (
        r"driver functions cu(Link|ModuleLoad|LibraryLoad)\w+ CU_\w+ = (int|bool|float) [017]?",
        "raises builtins.AttributeError, ours returns",
        "an option's enum may be a number",
    ),
    (
        r"driver functions cuLaunch(Cooperative)?Kernel(Ex)? ctypes value",
        "raises builtins.TypeError, ours returns",
        "a ctypes value has its own type",
    ),
    (
        r"driver functions cuLaunch(Cooperative)?Kernel(Ex)? list",
        "raises builtins.TypeError, ours returns",
        "a list is accepted like a tuple",
    ),
    (
        r"nvrtc functions nvrtcGet\w+ .*",
        "C is called differently",
        "the size is queried first: a buffer that is too short is refused",
        size_first,
    ),
    (
        r"nvrtc functions nvrtcGet\w+ \w+=ctypes int",
        "raises builtins.TypeError, ours returns",
        "any writable buffer is accepted",
    ),
    (
        r"nvrtc functions nvrtc(CompileProgram numOptions|CreateProgram numHeaders)=negative",
        "C is called differently",
        "the recorder reads past the lists",
        only(2, 4, 5),
    ),
    (
        r"(driver|runtime) attributes cudaBindings\w+Global\(-?\d\)",
        "returns, ours raises builtins.TypeError",
        "the value cannot be constructed from its content",
    ),
    (r"driver functions cuLaunchKernel(Ex)? extra=None", "raises builtins.TypeError, ours returns", "None is no extra"),
    (
        r"(driver|runtime) functions cu(da)?LogsDumpTo(File|Memory) iterator=(0|1|99|True|float|2\*\*31|another class)",
        "raises builtins.TypeError, ours returns",
        "an iterator may be a number",
    ),
    (
        r"(driver|runtime) functions cu(da)?LogsDumpToMemory buffer=ctypes int",
        "raises builtins.TypeError, ours returns",
        "any writable buffer is accepted",
    ),
    (
        r"(driver|runtime) functions cu(da)?VDPAU\w+ vdpGetProcAddress=float",
        "raises builtins.TypeError, ours returns",
        "a number is the function's address",
    ),
    (
        r"(driver|runtime) functions (cuMemcpy\w*H\w*|cuMemHostRegister|cuParamSetv|cuLinkAddData|cudaMem(cpy|set)\w*|cudaGraph\w*Memcpy\w+|cudaHostRegister) \w+=(bytes|ctypes int)",
        "returns, ours raises builtins.ValueError",
        "C would read or write past the buffer, or write into bytes",
        no_call,
    ),
    (
        r"(driver|runtime) functions cu(da)?LogsDumpToMemory (size=(99|2\*\*\d\d)|buffer=bytes)",
        "returns, ours raises builtins.(ValueError|TypeError)",
        "C would write past the buffer, or into bytes",
        no_call,
    ),
    (
        r"runtime functions cudaVDPAUSetVDPAUDevice .*",
        "values differ",
        "NVIDIA's module has no VDPAU in its runtime and says so first",
        lambda p, o: p["value"]["tuple"][0]["name"] == "cudaErrorNotSupported",
    ),
    (
        r"driver functions cuLogicalEndpointExport handleType=(99|2\*\*31)",
        "returns, ours raises builtins.(TypeError|ValueError)",
        "a handle of an unknown type has an unknown size",
        no_call,
    ),
    (
        r"driver functions (cuDeviceGetCliqueInfo|cuGLGetDevices|cuGraph\w+|cu(Library|Module)Enumerate\w+|cuMemRangeGetAttribute|cuStreamGetCaptureInfo) \w+=2\*\*3[12]",
        "ours crashes or hangs, as does the peer",
        "gigabytes are allocated; both take long",
    ),
    (
        r"(driver|runtime) attributes (CU|cuda|anon_)\w+\(\d\)",
        "returns, ours raises builtins.ValueError",
        "an address that cannot be read is refused",
    ),
    (
        r"(driver|runtime) attributes \w+\.\w+ = bytes",
        "values differ",
        "NVIDIA's takes the elements of bytes as structs and reads past them",
        structs_of_bytes,
    ),
    (
        r"(driver|runtime) attributes \w+\.\w+ = (bytes|\(1, 2\)|\[1, 2, 3\]|str|long str)",
        "returns, ours raises builtins.TypeError",
        "NVIDIA's takes numbers as structs and reads invalid memory",
        structs_of_numbers,
    ),
    (
        r"(driver|runtime) attributes \w+\.\w+ = (-1|2\*\*31)",
        "(raises builtins.OverflowError, ours returns|arguments cannot be made)",
        "an enum's number is passed to C unchanged; reading one that is no member raises",
    ),
    (
        r"(driver|runtime) attributes (CUdevWorkqueueConfigResource\w*\.device = -1|EGLint\(-1\))",
        "raises builtins.OverflowError, ours returns",
        "a device and an EGLint are signed",
    ),
    (
        r"(driver|runtime) scripts graphs: cu(da)?GraphBatchMemOpNodeGetParams",
        "values differ",
        "a list that C wrote into a struct is visible; NVIDIA's stays empty",
        lambda p, o: p["value"]["tuple"][1][".paramArray"]["list"] == [],
    ),
    (
        r"runtime scripts arrays: cudaGetTextureObject(ResourceView|Texture)Desc.*",
        "values differ",
        "both runtimes leave an absent view and a border colour unwritten",
        only_members(
            "borderColor",
            "cudaResourceViewDesc",
            "depth",
            "height",
            "width",
            "format",
            "firstLayer",
            "lastLayer",
            "firstMipmapLevel",
            "lastMipmapLevel",
        ),
    ),
    (
        r"runtime scripts \w+: cuda(FuncGetAttributes|PointerGetAttributes).*",
        "values differ",
        "the installed, older runtime does not write a member",
        only_members("sharedMemoryMode", "localityDomainOrdinal"),
    ),
    (
        r"runtime scripts without_a_device: cudaGetError(Name|String) .*",
        "values differ",
        "an error that the installed, older runtime lacks",
        lambda p, o: o["value"]["tuple"][1]["bytes"] == b"unrecognized error code".hex(),
    ),
    (
        r"runtime scripts devices: cudaGetDriverEntryPoint.*",
        "values differ",
        "the runtime inside NVIDIA's module requests its own, newer version of the entry point",
        lambda p, o: p["value"]["tuple"][0]["name"] == "cudaErrorInvalidValue",
    ),
    (
        r"runtime scripts memory: cudaPeekAtLastError.*",
        "values differ",
        "the preceding call needs a newer driver",
        lambda p, o: p["value"]["tuple"][0]["name"] == "cudaErrorCallRequiresNewerDriver",
    ),
    (
        r"runtime scripts .*",
        r"returns, ours raises (builtins\.RuntimeError|cuda\.bindings\._internal\.utils\.FunctionNotFoundError)",
        "the installed runtime is older than the one inside NVIDIA's module",
    ),
    (
        r"(driver|runtime) (functions|scripts) .*",
        "raises builtins.ValueError, ours returns",
        "a number that is no member of an enum is returned unchanged",
        plain_number,
    ),
    # ------------------------------------------------------------------------------------------------------
    # The second modules
    (
        r"(driver|nvrtc)_v2 (scripts|functions) .*",
        r"exceptions of the same class differ|C is called differently \(error\)",
        "the text has the library's description and the number, and the exception has the library's log",
        explained,
    ),
    (
        r"driver_v2 attributes (TensorMap|TextureDesc_v1)(\(\)|\.(opaque|address_mode)).*",
        "values differ",
        "NVIDIA's reads and writes 64-bit signed numbers, also where the member has 32 bits",
    ),
    (
        r"driver_v2 functions (tensor_map_encode_\w+|tex_object_get_texture_desc) .*",
        "values differ",
        "NVIDIA's reads and writes 64-bit signed numbers, also where the member has 32 bits",
        same_but_integer_arrays,
    ),
    (
        r"driver_v2 functions \w+ .*",
        r"(returns|_ArrayMemoryError), ours (raises )?cupyrite\._native\.ListTooSmallError",
        "C would read past a list that is shorter than its count",
        no_call,
    ),
    (
        r"driver_v2 functions mem(cpy|_host_register)_\w+ (byte_count|bytesize|src_host)=(99|2\*\*63|bytes)",
        r"returns, ours raises builtins\.ValueError",
        "C would use memory past the end of the buffer",
        no_call,
    ),
    (
        r"driver_v2 functions \w+ \w+=(1|99|2\*\*31|2\*\*32|True)",
        r"(returns|TypeError), ours (raises )?builtins\.ValueError",
        "an address without readable memory is refused",
        no_call,
    ),
    (
        r"driver_v2 functions \w+ \w+=another class",
        r"returns, ours raises builtins\.TypeError",
        "an object of another struct class is refused",
        no_call,
    ),
    (
        r"driver_v2 functions \w+ \w+=(bytes|bytearray)",
        r"returns, ours raises builtins\.TypeError",
        "bytes are not a list of handles",
        no_call,
    ),
    (
        r"driver_v2 functions \w+ \w+=2\*\*63",
        r"raises builtins\.OverflowError, ours returns",
        "an address has 64 bits, unsigned",
    ),
    (
        r"driver_v2 functions (launch_\w+ kernel_params|memcpy_hto\w+ src_host)=negative",
        r"returns, ours raises builtins\.OverflowError",
        "an address is not negative",
        no_call,
    ),
    (
        r"driver_v2 functions egl_stream_producer_connect (width|height)=(2\*\*31|negative)",
        r"returns, ours raises builtins\.OverflowError|raises builtins\.OverflowError, ours returns",
        "an EGLint is signed",
    ),
    (
        r"driver_v2 functions \w+ (from_|to|dependencies)=None",
        r"raises builtins\.TypeError, ours returns",
        "None is null, as in the other functions that take handles",
    ),
    (
        r"(driver_v2 functions logs_dump_to_file path_to_file|nvrtc_v2 functions create_program (src|name))=.*",
        r"raises builtins\.TypeError, ours (returns|builtins\.ValueError)",
        "text may be None, an address or any buffer, as in the other functions that take text",
    ),
    (
        r"nvrtc_v2 functions create_program name=None",
        "C is called differently",
        "None is null, and NVRTC chooses the name",
        only(2),
    ),
    (
        r"driver_v2 functions mem_range_get_attribute attribute=.*",
        r"raises builtins\.(Type|Overflow)Error, ours returns",
        "C is asked: it refuses what is no attribute",
    ),
    (
        r"driver_v2 functions device_get_(name|pci_bus_id) len=(0|negative)",
        r"C is called differently|raises builtins\.ValueError, ours returns",
        "a buffer has room for the terminating NUL",
    ),
    (
        r"driver_v2 functions device_get_p2p_atomic_capabilities .*",
        r"ours (raises )?builtins\.ValueError|values differ",
        "NVIDIA's writes more numbers than its result has room for, and reads operations at any address",
    ),
    (
        r"driver_v2 functions device_get_host_atomic_capabilities operations=.*",
        r"raises builtins\.ValueError, ours returns",
        "any contiguous buffer is accepted",
    ),
    (
        r"driver_v2 functions device_get_clique_info .*",
        "values differ|C is called differently|exceptions of the same class differ",
        "the number of cliques is queried first; NVIDIA's has room for 64",
    ),
    (
        r"driver_v2 functions dev_sm_resource_split nb_groups=0",
        "C is called differently",
        "an empty array is null",
        only(0),
    ),
    (
        r"driver_v2 functions device_primary_ctx_reset_v2 .*",
        "C is called differently",
        "objects of the context are invalidated if it was active",
        lambda peer, ours: (
            {c["f"] for c in ours["calls"]} - {c["f"] for c in peer["calls"]}
            <= {"cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"}
        ),
    ),
    (
        r"driver_v2 functions (mem_get_handle_for_address_range|stream_get_capture_info_v2|egl_stream_consumer_acquire_frame) .*",
        "values differ|C is called differently",
        "NVIDIA's exposes memory that C did not write",
        unwritten_value,
    ),
    (
        r"driver_v2 functions memcpy_batch_async .*",
        r"C is called differently",
        "the first version of the function, which drivers of CUDA 12 have too",
        same_result,
    ),
    (
        r"driver_v2 functions memcpy_batch_async error:.*",
        r"C is called differently|exceptions of the same class differ",
        "the first version of the function, which drivers of CUDA 12 have too",
    ),
    (
        r"driver_v2 functions (memcpy_batch_async|mem_range_get_attributes) .*=(tuple|bytes|bytearray|bytes of 64)",
        r"raises builtins\.(Type|Value)Error, ours returns",
        "any sequence of numbers is accepted",
    ),
    (
        r"driver_v2 functions memcpy_batch_async .*=ctypes pointer",
        r"returns, ours raises builtins\.TypeError",
        "a pointer is not a list",
        no_call,
    ),
    (
        r"driver_v2 functions logical_endpoint_export handle_type=0",
        "values differ",
        "the room for an unknown kind of handle is that of the largest",
    ),
    (
        r"driver_v2 functions (link_complete fill|get_proc_address_v2 symbol=(None|0))",
        "ours crashes or hangs, as does the peer",
        "the recording library returns a number as an address, or reads null",
    ),
]
