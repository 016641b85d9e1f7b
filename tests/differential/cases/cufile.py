"""cuFile: with the recorder every function; the real library as far as a machine without GPUDirect Storage goes."""

import ctypes

MODULE = "cuda.bindings.cufile"
# The status is the low half of a word, a CUDA error the high half: 5011 is "the CUDA driver failed", here with 2.
MODES = ("ok", "fill", "error:5001", "error:5022", "error:0x200001393", "error:-1", "error:-5022", "error:9999")

ROOM = ctypes.create_string_buffer(1 << 16)


def address(_):
    return ctypes.addressof(ROOM)


ARGUMENTS = {
    ("batch_io_get_status", "iocbp"): lambda m: m.IOEvents(1),
    ("batch_io_submit", "iocbp"): lambda m: m.IOParams(1),
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
    ("batch_io_get_status", "nr"): address,
    ("*", "timeout"): address,
}
# Every address that C would write to or read from.
for _name in ("size_p", "file_offset_p", "buf_ptr_offset_p", "bytes_read_p", "bytes_written_p", "buf_ptr_base", "size_values", "count_values"):
    ARGUMENTS["*", _name] = address
