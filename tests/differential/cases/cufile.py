"""cuFile: every function with the recorder; the real library as far as a machine without GPUDirect Storage supports it."""

import ctypes

MODULE = "cuda.bindings.cufile"
# The status is the low half of a word, a CUDA error the high half: 5011 is "the CUDA driver failed", here with 2.
MODES = ("ok", "fill", "error:5001", "error:5022", "error:0x200001393", "error:-1", "error:-5022", "error:9999")

ROOM = ctypes.create_string_buffer(1 << 16)


def address(_):
    return ctypes.addressof(ROOM)


KEPT = []


def fresh():
    """The address of memory that was never written."""
    KEPT.append(ctypes.create_string_buffer(64))
    return ctypes.addressof(KEPT[-1])


ARGUMENTS = {
    ("batch_io_get_status", "iocbp"): lambda m: m.IOEvents(64),
    ("batch_io_submit", "iocbp"): lambda m: m.IOParams(4),
    ("driver_set_poll_mode", "poll"): True,
    ("get_stats_l1", "stats"): lambda m: m.StatsLevel1(),
    ("get_stats_l2", "stats"): lambda m: m.StatsLevel2(),
    ("get_stats_l3", "stats"): lambda m: m.StatsLevel3(),
    ("handle_register", "descr"): lambda m: m.Descr(),
    ("readv", "iov"): lambda m: m.IOVec(2),
    ("writev", "iov"): lambda m: m.IOVec(2),
    ("set_parameter_bool", "value"): True,
    ("get_parameter_string", "len"): 64,
    ("set_parameter_string", "desc_str"): address,
    ("batch_io_get_status", "nr"): lambda m: fresh(),
    ("*", "timeout"): address,
}
# Every address that C would read or write.
for _name in (
    "size_p",
    "file_offset_p",
    "buf_ptr_offset_p",
    "bytes_read_p",
    "bytes_written_p",
    "buf_ptr_base",
    "size_values",
    "count_values",
):
    ARGUMENTS["*", _name] = address


# ----------------------------------------------------------------------------------------------------------
# The real library: calls that need neither a GPU nor the nvidia-fs module


def without_a_driver(m):
    """(label, function's name, call, volatile)"""

    def plain(name, *args):
        return lambda: getattr(m, name)(*args)

    yield "get_version", "get_version", plain("get_version"), False
    yield "use_count", "use_count", plain("use_count"), False
    for value in m.SizeTConfigParameter:
        yield f"size_t {value.name}", "get_parameter_size_t", plain("get_parameter_size_t", int(value)), False
        yield (
            f"min_max {value.name}",
            "get_parameter_min_max_value",
            plain("get_parameter_min_max_value", int(value)),
            False,
        )
    for value in m.BoolConfigParameter:
        yield f"bool {value.name}", "get_parameter_bool", plain("get_parameter_bool", int(value)), False
    for value in m.StringConfigParameter:
        yield f"string {value.name}", "get_parameter_string", plain("get_parameter_string", int(value), 256), False
    for status in (5000, 5001, 5011, 5022, 5026, 1, -1):
        yield f"op_status_error {status}", "op_status_error", plain("op_status_error", status), False
    yield "no such size_t", "get_parameter_size_t", plain("get_parameter_size_t", 1000), False
    yield "get_stats_level", "get_stats_level", plain("get_stats_level"), False


TASKS = (without_a_driver,)
