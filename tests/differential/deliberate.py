"""Differences from NVIDIA's package that are meant, each with its reason.

(pattern of "MODULE SECTION LABEL", pattern of what compare.py says of the difference, reason)
"""

REFUSALS = r"raises builtins\.(TypeError|ValueError|OverflowError|AttributeError|UnicodeEncodeError), ours (builtins\.)?(TypeError|ValueError|OverflowError|UnicodeEncodeError)$"

DELIBERATE = [
    (r"\w+ \w+ .*", REFUSALS, "a refusal of a wrong argument is of another built-in class"),
    (r"\w+ functions \w+ \w+=nul", "returns, ours raises builtins.ValueError", "a NUL inside a string would be cut off silently"),
    (r"\w+ attributes .* = (None|object|str|bytes|1\.5)", "raises builtins.AttributeError, ours builtins.TypeError", "a wrong kind is a TypeError"),
    (r"\w+ attributes .*", r"returns, ours raises builtins\.(TypeError|OverflowError)", "addresses take no floats"),
    (r"\w+ attributes .* = (\[\]|own)", "raises builtins.(TypeError|ValueError), ours returns", "a list can be emptied"),
    (r"\w+ attributes .* = bytes", "raises builtins.ValueError, ours returns", "bytes are numbers too"),
    (r"\w+ attributes .*", "raises builtins.TypeError, ours returns", "integers of NumPy and objects with __index__ are taken"),
    (r"nvml attributes (ConfCompute|Nvlink|PwrModel|PerfMetrics)\w*(\(\d?\)|\.\w+ = .*)", "values differ", "an empty array has its elements' type, not float64"),
    (r"nvml functions device_get_(conf_compute_gpu_\w+|nvlink_\w+) .*", "values differ", "an empty array has its elements' type, not float64"),
    (r"cufile (functions|scripts) .*", "(exceptions of the same class differ|values differ)", "the texts of cuFile's statuses are our own; the peer returns what C left unwritten"),
    (r"cufile functions \w+ error:-\d+", "", "a negative status is an error, not success with unwritten results"),
    (r"\w+ functions \w+ \w+=(2\*\*31|2\*\*32|True|negative|float)", r"returns, ours raises (builtins\.(ValueError|TypeError)|cuda\.bindings\.\w+\.\w*InvalidArgument\w*)", "an address that cannot be one is refused before C sees it"),
    (r"cudla functions submit_task .*", "ours (raises )?builtins.(ValueError|TypeError)", "more tasks than there are"),
    (r"cudla functions module_get_attributes .*", "(C is called differently|values differ)", "an empty list needs no second call; the peer shows memory that C did not write"),
    (r"nvml functions device_get_gsp_firmware_version .*", "values differ", "the version is a text; the peer gives its first character's code"),
    (r"nvjitlink scripts mistakes: log's text", "values differ", "the peer frees a module's name while the library still refers to it"),
    (r"nvml functions \w+_(current_clock_freqs|hostname_v1|performance_modes|power_management_limit_v2|read_write_prm_v1|driver_branch|handle_by_uuidv|supported_placements|field_values|fan_speed_rpm|temperature_v|scheduler_state_v2) .*", "C is called differently", "the peer hands C a struct that it did not clear"),
    (r"nvml functions device_get_(gpu_instances|samples|vgpu_utilization|clock_offsets|temperature_v|vgpu_\w+|\w*placements) .*", "", "the peer drops an argument of the first call, or the recorder's number of elements makes no sense"),
    (r"nvml functions (gpu_instance|device|vgpu_instance)_get_\w+ (two:7|error:7)", "", "a list is asked for again when it has grown"),
    (r"nvml functions device_(clear|get)_field_values .*", "", "an empty list needs no call that fills it"),
    (r"nvml functions (device_set_vgpu_heterogeneous_mode|device_set_power_management_limit_v2|device_get_clock_offsets|device_get_temperature_v) .*", "OverflowError", "the struct's member is narrower or unsigned: what does not fit is refused"),
    (r"nvml functions \w*event\w* .*", "InvalidArgumentError", "a handle that the module did not make is refused"),
    (r"nvml functions (device|gpu_instance|event_set|set)_\w+ \w+=(None|object|tuple|list|2\*\*63|2\*\*64)", "ours raises builtins", "a struct is needed"),
    (r"nvml functions (vgpu_type_get_name|device_get_nvlink_\w+|system_event_set_create) .*", "", "the peer shows memory that C did not write"),
    (r"\w+ functions device_get_(cpu|memory)_affinity\w* \w+=2\*\*31", "hangs", "gigabytes are asked for; both take their time"),
    (r"\w+ facts dtype _py_anon_\w+", "only the peer has it", "private names are there but not listed"),
    (r"cufile functions batch_io_set_up nr=2\*\*31", "crashes", "the recorder writes as many handles as it is told"),
    (r"cufile functions get_parameter_string len=negative", "ours returns", "a length that is no length is left to C"),
    (r"nvml functions gpu_instance_get_(active_vgpus|creatable_vgpus|vgpu_type_creatable_placements) fill", "values differ", "the recorder tells of elements without writing any"),
]
