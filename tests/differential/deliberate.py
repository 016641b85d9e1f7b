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
]
