"""Struct classes of the modules whose functions raise (nvml, cufile, cudla): attributes, views, arrays, buffers, lifetimes.

What is not marked `ours` holds for NVIDIA's package too.
"""

import copy
import ctypes
import gc
import importlib.util
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from cuda.bindings import cudla, cufile, nvml

OURS = importlib.util.find_spec("cupyrite") is not None
ours = pytest.mark.skipif(not OURS, reason="Cupyrite goes beyond NVIDIA's package here")


def run(program, *, limit=300):
    """The output of a Python program in a process of its own, which must end well."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# ---- one struct


def test_numbers():
    info = nvml.PciInfo()
    assert (info.bus, info.domain) == (0, 0)
    info.bus = 3
    info.domain = np.uint32(7)
    info.device_ = True
    info.pci_device_id = 1.7
    assert (info.bus, info.domain, info.device_, info.pci_device_id) == (3, 7, 1, 1)
    for value, error in ((-1, OverflowError), (2**32, OverflowError), ("1", TypeError), (None, TypeError), ([1], TypeError)):
        with pytest.raises(error):
            info.bus = value
    assert info.bus == 3


def test_text():
    info = nvml.PciInfo()
    assert info.bus_id == ""
    info.bus_id = "0000:01:00.0"
    assert info.bus_id == "0000:01:00.0"
    info.bus_id = "x" * 31
    with pytest.raises(ValueError, match="max length is 31"):
        info.bus_id = "x" * 32
    info.bus_id = "é" * 15
    with pytest.raises(ValueError, match="max length is 31"):
        info.bus_id = "é" * 16
    assert info.bus_id == "é" * 15
    info.bus_id = "a"
    assert info.bus_id == "a"


@ours
@pytest.mark.parametrize("value", [None, 5, b"abc", bytearray(b"x"), ["a"]])
def test_text_takes_str_only(value):
    with pytest.raises(TypeError, match="PciInfo.bus_id"):
        nvml.PciInfo().bus_id = value


@ours
def test_text_with_a_nul_is_refused():
    info = nvml.PciInfo()
    with pytest.raises(ValueError, match="NUL"):
        info.bus_id = "a\0b"
    with pytest.raises(UnicodeEncodeError):
        info.bus_id = "\ud800"


def test_text_behind_a_pointer():
    limits = nvml.GetMemoryLimits_v1()
    assert limits.name_space == ""
    limits.name_space = "a longer name"
    gc.collect()
    assert limits.name_space == "a longer name"
    limits.name_space = "b"
    assert limits.name_space == "b"


def test_address_of_the_struct():
    info = nvml.PciInfo()
    info.bus = 0x1234
    offset = nvml.pci_info_dtype.fields["bus"][1]
    assert info.ptr == int(info) != 0
    assert ctypes.c_uint32.from_address(info.ptr + offset).value == 0x1234
    with pytest.raises(AttributeError):
        info.ptr = 1
    with pytest.raises(AttributeError):
        info.nothing = 1


def test_constructor_arguments():
    for call in (lambda: nvml.PciInfo(1), lambda: nvml.PciInfo(size=2), lambda: nvml.ProcessInfo(1, 2)):
        with pytest.raises(TypeError):
            call()
    for size, error in ((-1, ValueError), ("x", TypeError), (None, TypeError), (1.0, TypeError)):
        with pytest.raises(error):
            nvml.ProcessInfo(size)


@ours
def test_too_many_structs():
    for size in (2**57, 2**62):
        with pytest.raises(MemoryError):
            nvml.ProcessInfo(size)
    with pytest.raises(OverflowError):
        nvml.ProcessInfo(2**70)


def test_comparing_and_hashing():
    a, b = nvml.PciInfo(), nvml.PciInfo()
    assert a == b and not a != b
    a.bus = 1
    assert a != b
    assert a != 1 and a != nvml.Memory() and a is not None
    with pytest.raises(TypeError):
        hash(a)
    with pytest.raises(TypeError):
        a < b
    assert nvml.ProcessInfo(2) == nvml.ProcessInfo(2) != nvml.ProcessInfo(3)


def test_items_of_one_struct():
    a, b = nvml.PciInfo(), nvml.PciInfo()
    b.bus = 3
    a["domain"] = 9
    assert a.domain == 9
    a[0] = b
    assert a == b
    a[0] = bytearray(68)
    assert a == nvml.PciInfo()
    for value, error in ((5, TypeError), (None, TypeError)):
        with pytest.raises(error):
            a[0] = value


@ours
def test_wrong_items_of_one_struct():
    a = nvml.PciInfo()
    with pytest.raises(IndexError, match="index is 0"):
        a[1] = a
    with pytest.raises(ValueError, match="68 bytes"):
        a[0] = bytes(3)
    with pytest.raises(AttributeError):
        a["nothing"] = 1
    with pytest.raises(TypeError):
        del a[0]
    with pytest.raises(AttributeError, match="PciInfo.bus"):
        del a.bus


def test_subclass():
    class Mine(nvml.PciInfo):
        pass

    mine = Mine()
    mine.bus = 1
    mine.extra = [mine]
    assert mine.bus == 1
    watch = weakref.ref(mine)
    del mine
    gc.collect()
    assert watch() is None


# ---- numbers in arrays


def test_fixed_array():
    report = nvml.ConfComputeGpuAttestationReport()
    nonce = report.nonce
    assert type(nonce) is np.ndarray and nonce.dtype == np.uint8 and nonce.shape == (32,)
    nonce[0] = 3
    assert report.nonce[0] == 3
    report.nonce = range(32) if OURS else list(range(32))
    assert list(nonce) == list(range(32))
    report.nonce = np.ones(32, np.int64)
    report.nonce = bytearray(32)
    with pytest.raises(ValueError, match="Expected length 32 for field nonce, got 3"):
        report.nonce = [1, 2, 3]
    for value, error in (([256] * 32, OverflowError), ([-1] * 32, OverflowError), (None, TypeError), (1, TypeError)):
        with pytest.raises(error):
            report.nonce = value
    del report
    gc.collect()
    assert list(nonce) == [0] * 32


@ours
def test_fixed_array_of_bytes_and_text():
    report = nvml.ConfComputeGpuAttestationReport()
    report.nonce = bytes(range(32))
    assert list(report.nonce) == list(range(32))
    with pytest.raises(TypeError, match="nonce"):
        report.nonce = "a" * 32
    with pytest.raises(TypeError, match="nonce"):
        report.nonce = ["1"] * 32


def test_counted_array():
    report = nvml.ConfComputeGpuAttestationReport()
    assert len(report.attestation_report) == 0
    report.attestation_report = [1, 2]
    assert list(report.attestation_report) == [1, 2]
    report.attestation_report[0] = 9
    assert list(report.attestation_report) == [9, 2]
    report.attestation_report = np.arange(8192, dtype=np.uint8)
    assert len(report.attestation_report) == 8192
    with pytest.raises(ValueError, match="Too many elements for field attestation_report, max is 8192, got 8193"):
        report.attestation_report = np.zeros(8193, np.uint8)
    report.attestation_report = []
    assert len(report.attestation_report) == 0
    assert len(report.cec_attestation_report) == 0


def test_pointer_to_numbers():
    info = nvml.VgpuTypeIdInfo_v1()
    assert info.vgpu_type_ids == []
    info.vgpu_type_ids = [3, 4, 5]
    ids = info.vgpu_type_ids
    assert type(ids) is np.ndarray and ids.dtype == np.uint32 and list(ids) == [3, 4, 5]
    ids[0] = 99
    assert info.vgpu_type_ids[0] == 99
    info.vgpu_type_ids = np.array([5, 6], np.uint64)
    assert list(info.vgpu_type_ids) == [5, 6]
    for value, error in (([-1], OverflowError), (None, TypeError), (1, TypeError)):
        with pytest.raises(error):
            info.vgpu_type_ids = value
    assert list(info.vgpu_type_ids) == [5, 6]


@ours
def test_pointer_to_numbers_goes_on():
    info = nvml.VgpuTypeIdInfo_v1()
    info.vgpu_type_ids = [3, 4]
    ids = info.vgpu_type_ids
    info.vgpu_type_ids = bytearray(b"\1\2\3")
    assert list(info.vgpu_type_ids) == [1, 2, 3]
    info.vgpu_type_ids = []
    assert info.vgpu_type_ids == []
    del info
    gc.collect()
    # What was read stays what it was.
    assert list(ids) == [3, 4]


def test_words_of_cudla():
    task = cudla.Task()
    assert type(task.output_tensor).__name__ == "_memoryviewslice" and len(task.output_tensor) == 0
    task.output_tensor = [16, 32]
    words = task.output_tensor
    assert type(words).__name__ == "array" and list(words) == [16, 32] and len(words) == 2
    words[0] = 77
    assert list(task.output_tensor) == [77, 32]
    assert bytes(memoryview(words)) == np.array([77, 32], np.int64).tobytes()
    assert words.memview[1] == 32 and words[-1] == 32
    with pytest.raises(IndexError):
        words[2]
    task.output_tensor = bytearray(b"\1\2")
    assert list(task.output_tensor) == [1, 2]
    task.output_tensor = ()
    assert len(task.output_tensor) == 0
    for value in (None, 1, "a", [1.5], [None]):
        with pytest.raises(TypeError):
            task.output_tensor = value


@ours
def test_counts_of_words_follow():
    task = cudla.Task()
    count = lambda: np.frombuffer(task, cudla.task_dtype)["num_output_tensors"][0]  # noqa: E731
    task.output_tensor = [1, 2]
    assert count() == 2
    task.output_tensor = []
    assert count() == 0
    signals = cudla.SignalEvents()
    signals.dev_ptrs = [1, 2]
    assert list(signals.dev_ptrs) == [1, 2]


# ---- structs in structs


def test_nested_struct():
    info = nvml.ComputeInstanceInfo()
    placement = info.placement
    assert type(placement) is nvml.ComputeInstancePlacement
    placement.start = 5
    assert info.placement.start == 5
    assert info.placement is not placement
    other = nvml.ComputeInstancePlacement()
    other.start = 9
    info.placement = other
    other.start = 1
    assert info.placement.start == placement.start == 9
    for value in (1, "a", [], nvml.PciInfo()):
        with pytest.raises(TypeError):
            info.placement = value
    del info
    gc.collect()
    assert placement.start == 9


def test_array_of_structs_inside():
    speeds = nvml.UnitFanSpeeds()
    fans = speeds.fans
    assert type(fans) is nvml.UnitFanInfo and len(fans) == 24
    fans[1].speed = 44
    assert list(speeds.fans.speed[:3]) == [0, 44, 0]
    with pytest.raises(ValueError, match="Expected length 24 for field fans, got 3"):
        speeds.fans = nvml.UnitFanInfo(3)
    full = nvml.UnitFanInfo(24)
    full.speed = range(24) if OURS else list(range(24))
    speeds.fans = full
    assert fans[23].speed == 23


def test_counted_array_of_structs_inside():
    bridges = nvml.BridgeChipHierarchy()
    assert len(bridges.bridge_chip_info) == 0
    two = nvml.BridgeChipInfo(2)
    two.fw_version = [7, 8]
    bridges.bridge_chip_info = two
    assert list(bridges.bridge_chip_info.fw_version) == [7, 8]
    bridges.bridge_chip_info = nvml.BridgeChipInfo(0)
    assert len(bridges.bridge_chip_info) == 0
    with pytest.raises(ValueError, match="Expected length < 128 for field bridge_chip_info, got 129"):
        bridges.bridge_chip_info = nvml.BridgeChipInfo(129)


def test_pointer_to_structs():
    details = nvml.ProcessDetailList_v1()
    assert details.proc_array == []
    two = nvml.ProcessDetail_v1(2)
    two.pid = [4, 5]
    details.proc_array = two
    assert type(details.proc_array) is nvml.ProcessDetail_v1 and list(details.proc_array.pid) == [4, 5]
    two.pid = [7, 8]
    assert list(details.proc_array.pid) == [7, 8]
    del two
    gc.collect()
    assert list(details.proc_array.pid) == [7, 8]
    view = details.proc_array
    details.proc_array = nvml.ProcessDetail_v1(1)
    assert len(details.proc_array) == 1 and list(view.pid) == [7, 8]
    details.proc_array = nvml.ProcessDetail_v1(0)
    assert details.proc_array == []
    for value in (1, "a", nvml.PciInfo()):
        with pytest.raises(TypeError):
            details.proc_array = value


@ours
def test_pointer_to_structs_from_lists_and_parts():
    details = nvml.ProcessDetailList_v1()
    many = nvml.ProcessDetail_v1(5)
    many.pid = [0, 1, 2, 3, 4]
    details.proc_array = many[::2]
    assert list(details.proc_array.pid) == [0, 2, 4]
    details.proc_array = [many[1], many[4]]
    assert list(details.proc_array.pid) == [1, 4]
    details.proc_array = []
    assert details.proc_array == []
    with pytest.raises(TypeError, match="proc_array"):
        details.proc_array = [1]
    fence = cudla.Fence()
    fence.type = 1
    events = cudla.WaitEvents()
    events.pre_fences = fence
    assert [f.type for f in events.pre_fences] == [1]
    events.pre_fences = [fence, cudla.Fence()]
    assert [f.type for f in events.pre_fences] == [1, 0]


@ours
def test_counts_that_lie_are_found():
    details = nvml.ProcessDetailList_v1()
    details.proc_array = nvml.ProcessDetail_v1(2)
    offset = nvml.process_detail_list_v1_dtype.fields["num_proc_array_entries"][1]
    ctypes.c_uint32.from_address(details.ptr + offset).value = 10**6
    assert len(details.proc_array) == 2
    pointer = nvml.process_detail_list_v1_dtype.fields["proc_array"][1]
    ctypes.c_uint64.from_address(details.ptr + pointer).value = 4096
    with pytest.raises(ValueError, match="not readable"):
        details.proc_array
    repr(details)


# ---- any number of structs


def test_plain_values_for_one_and_arrays_for_more():
    one, three, none = nvml.ProcessInfo(), nvml.ProcessInfo(size=3), nvml.ProcessInfo(0)
    assert (len(one), len(three), len(none)) == (1, 3, 0)
    assert one.pid == 0 and type(one.pid) is int
    assert type(three.pid) is np.ndarray and three.pid.dtype == np.uint32 and list(three.pid) == [0, 0, 0]
    three.pid = [1, 2, 3]
    three.used_gpu_memory = 5
    assert list(three.pid) == [1, 2, 3] and list(three.used_gpu_memory) == [5, 5, 5]
    three.pid = np.array([4, 5, 6])
    three.pid[1] = 9
    assert list(three.pid) == [4, 9, 6]
    three.pid = [7]
    assert list(three.pid) == [7, 7, 7]
    one.pid = 1.5
    assert one.pid == 1
    for value, error in (([1, 2], ValueError), (2**33, OverflowError), (-1, OverflowError), (None, TypeError)):
        with pytest.raises(error):
            three.pid = value
    assert list(three.pid) == [7, 7, 7]


def test_elements():
    three = nvml.ProcessInfo(3)
    three.pid = [1, 2, 3]
    element = three[1]
    assert type(element) is nvml.ProcessInfo and len(element) == 1 and element.pid == 2
    element.pid = 77
    assert list(three.pid) == [1, 77, 3]
    assert element.ptr - three.ptr == nvml.process_info_dtype.itemsize
    assert three[-1].pid == 3
    assert [e.pid for e in three] == [1, 77, 3]
    for index in (3, -4):
        with pytest.raises(IndexError, match="index is out of bounds"):
            three[index]
    del three
    gc.collect()
    assert element.pid == 77


def test_parts():
    five = nvml.ProcessInfo(5)
    five.pid = [0, 1, 2, 3, 4]
    assert list(five[1:3].pid) == [1, 2]
    assert list(five[::2].pid) == [0, 2, 4]
    assert list(five[::-1].pid) == [4, 3, 2, 1, 0]
    assert len(five[3:1]) == 0
    five[::2].pid = [10, 12, 14]
    assert list(five.pid) == [10, 1, 12, 3, 14]
    assert list(five[::-2][1:].pid) == [12, 10]
    assert list(five["pid"]) == [10, 1, 12, 3, 14]
    assert list(five[[0, 4]].pid) == [10, 14]
    assert list(five[five.pid > 9].pid) == [10, 12, 14]
    with pytest.raises(IndexError):
        five[1.0]


def test_assigning_elements():
    four = nvml.ProcessInfo(4)
    four.pid = [1, 2, 3, 4]
    four[0:2] = four[2:4]
    assert list(four.pid) == [3, 4, 3, 4]
    four[1:4] = four[0:3]
    assert list(four.pid) == [3, 3, 4, 3]
    four[0] = (1, 2, 3, 4)
    assert (four[0].pid, four[0].used_gpu_memory, four[0].compute_instance_id) == (1, 2, 4)
    four["pid"] = 8
    assert list(four.pid) == [8] * 4
    four[1] = np.zeros(1, nvml.process_info_dtype)[0]
    assert list(four.pid) == [8, 0, 8, 8]
    with pytest.raises(IndexError):
        four[9] = (1, 2, 3, 4)


@ours
def test_assigning_elements_goes_on():
    four, other = nvml.ProcessInfo(4), nvml.ProcessInfo(1)
    other.pid = 6
    four[2] = other
    assert list(four.pid) == [0, 0, 6, 0]
    four[:2] = other
    assert list(four.pid) == [6, 6, 6, 0]
    for value in (nvml.PciInfo(), None, "x"):
        with pytest.raises(TypeError):
            four[0] = value
    with pytest.raises(ValueError, match="could not broadcast 3 structs to 4"):
        four[:] = nvml.ProcessInfo(3)
    with pytest.raises(ValueError, match="no member nothing"):
        four["nothing"]
    with pytest.raises(TypeError):
        del four[0]


def test_text_and_arrays_of_many():
    stats = cufile.PerGpuStats(2)
    uuid = stats.uuid
    assert type(uuid) is np.ndarray and uuid.shape == (2, 16) and uuid.dtype == np.int8
    uuid[1, 3] = 5
    assert stats[1].uuid[0, 3] == 5
    stats.uuid = 1
    assert stats.uuid.sum() == 32


def test_records_of_many():
    values = nvml.FieldValue(2)
    assert type(values.value).__name__ == "recarray" and values.value.shape == (2,)
    values[0].value["ui_val"] = 3
    assert list(values.value.ui_val) == [3, 0]
    values.value = 1
    assert list(values.value.ull_val != 0) == [True, True]
    with pytest.raises(TypeError):
        values.value = None


@ours
def test_records_from_objects():
    values, value = nvml.FieldValue(2), nvml.Value()
    value.ull_val = 12
    values.value = value
    assert list(values.value.ull_val) == [12, 12]
    with pytest.raises(TypeError, match="FieldValue.value"):
        values.value = nvml.PciInfo()


def test_structs_in_each_of_many():
    one, two = nvml.PerfMetricsSample(), nvml.PerfMetricsSample(2)
    assert type(one.controller_data) is nvml.PerfMetricControllerSample
    assert type(two.controller_data) is tuple and len(two.controller_data) == 2
    with pytest.raises(AttributeError):
        one.controller_data = one.controller_data


def test_pickling():
    three = nvml.ProcessInfo(3)
    three.pid = [1, 2, 3]
    back = pickle.loads(pickle.dumps(three))
    assert type(back) is nvml.ProcessInfo and back == three and list(back.pid) == [1, 2, 3]
    twin = copy.deepcopy(three)
    twin.pid = 0
    assert list(three.pid) == [1, 2, 3]
    for f in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            f(nvml.PciInfo())


@ours
def test_copies_have_memory_of_their_own():
    three = nvml.ProcessInfo(3)
    twin = copy.copy(three)
    twin.pid = 5
    assert list(three.pid) == [0, 0, 0]
    with pytest.raises(ValueError, match="another layout"):
        three.__setstate__(b"x")


# ---- buffers and memory of others


def test_buffer_of_one():
    info = nvml.PciInfo()
    info.bus = 3
    view = memoryview(info)
    assert (view.format, view.shape, view.itemsize, view.nbytes, view.readonly) == ("b", (68,), 1, 68, False)
    assert np.frombuffer(info, nvml.pci_info_dtype)["bus"][0] == 3
    view[20] = 7
    assert info.bus == 7


def test_buffer_of_many():
    three = nvml.ProcessInfo(3)
    three.pid = [1, 2, 3]
    view = memoryview(three)
    assert (view.shape, view.strides, view.itemsize, view.nbytes) == ((3,), (24,), 24, 72)
    assert view.format == "T{I:pid:xxxxL:used_gpu_memory:I:gpu_instance_id:I:compute_instance_id:}"
    array = np.asarray(three)
    assert array.dtype == nvml.process_info_dtype
    array["pid"][0] = 8
    assert list(three.pid) == [8, 2, 3]
    assert list(np.asarray(three[::-1])["pid"]) == [3, 2, 8]


@ours
def test_every_layout_that_can_be_a_buffer():
    for module in (nvml, cufile, cudla):
        for name in dir(module):
            cls = getattr(module, name)
            if not (isinstance(cls, type) and hasattr(cls, "from_data") and hasattr(cls, "_data")):
                continue
            value = cls(2)
            dtype = value._data.dtype
            assert len(bytes(value)) == 2 * dtype.itemsize
            view = memoryview(value)
            assert view.nbytes == 2 * dtype.itemsize and len(view) == 2
            # Members that overlap have no format: rows of bytes.
            array = np.asarray(value)
            assert array.dtype == dtype or (array.dtype == np.uint8 and array.shape == (2, dtype.itemsize)), name


def test_layouts():
    dtype = nvml.process_info_dtype
    assert dtype.names == ("pid", "used_gpu_memory", "gpu_instance_id", "compute_instance_id")
    assert [dtype.fields[n][1] for n in dtype.names] == [0, 8, 16, 20] and dtype.itemsize == 24
    assert nvml.process_info_dtype is dtype


def test_from_data():
    array = np.zeros(4, nvml.process_info_dtype)
    many = nvml.ProcessInfo.from_data(array)
    many.pid = 3
    assert list(array["pid"]) == [3] * 4
    array["pid"][1] = 4
    assert many[1].pid == 4
    every_second = nvml.ProcessInfo.from_data(array[::2])
    every_second.pid = [8, 9]
    assert list(array["pid"]) == [8, 4, 9, 3]
    del array
    gc.collect()
    assert list(every_second.pid) == [8, 9]
    one = nvml.PciInfo.from_data(np.zeros(1, nvml.pci_info_dtype))
    one.bus = 1
    assert nvml.PciInfo.from_data(np.zeros((1, 1), nvml.pci_info_dtype)).bus == 0
    frozen = np.zeros(1, nvml.pci_info_dtype)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="This PciInfo instance is read-only"):
        nvml.PciInfo.from_data(frozen).bus = 1
    wrong = [
        (nvml.PciInfo, np.zeros(2, nvml.pci_info_dtype), ValueError, "must have a size of 1"),
        (nvml.PciInfo, np.zeros(1, np.uint8), ValueError, "must be of dtype pci_info_dtype"),
        (nvml.PciInfo, [1], TypeError, "must be a NumPy ndarray"),
        (nvml.PciInfo, None, TypeError, "must be a NumPy ndarray"),
        (nvml.ProcessInfo, np.zeros((2, 2), nvml.process_info_dtype), ValueError, "must be 1D"),
        (nvml.ProcessInfo, np.zeros((), nvml.process_info_dtype), ValueError, "must be 1D"),
        (nvml.ProcessInfo, bytes(24), TypeError, "must be a NumPy ndarray"),
    ]
    for cls, data, error, text in wrong:
        with pytest.raises(error, match=text):
            cls.from_data(data)


def test_from_buffer():
    memory = bytearray(68)
    info = nvml.PciInfo.from_buffer(memory)
    info.bus = 0x41
    assert memory[20] == 0x41
    memory[20] = 0x42
    assert info.bus == 0x42
    with pytest.raises(ValueError, match="read-only"):
        nvml.PciInfo.from_buffer(bytes(68)).bus = 1
    for length in (3, 69):
        with pytest.raises(ValueError, match="buffer length must be 68 bytes"):
            nvml.PciInfo.from_buffer(bytearray(length))
    for value in (None, "x", 5):
        with pytest.raises(TypeError, match="bytes-like object is required"):
            nvml.PciInfo.from_buffer(value)
    assert len(nvml.ProcessInfo.from_buffer(bytearray(48))) == 2
    assert len(nvml.ProcessInfo.from_buffer(b"")) == 0
    with pytest.raises(ValueError, match="multiple of element size"):
        nvml.ProcessInfo.from_buffer(bytearray(25))


@ours
def test_a_bytearray_cannot_move_while_looked_at():
    memory = bytearray(68)
    info = nvml.PciInfo.from_buffer(memory)
    with pytest.raises(BufferError):
        memory.extend(bytes(10**6))
    del info
    gc.collect()
    memory.extend(b"x")


def test_from_ptr():
    memory = ctypes.create_string_buffer(72)
    address = ctypes.addressof(memory)
    copied = nvml.PciInfo.from_ptr(address)
    copied.bus = 7
    assert copied.ptr != address and memory.raw == bytes(72)
    with pytest.raises(ValueError, match="read-only"):
        nvml.PciInfo.from_ptr(address, True).bus = 8

    class Owner:
        pass

    owner = Owner()
    looking = nvml.PciInfo.from_ptr(address, owner=owner)
    looking.bus = 3
    assert looking.ptr == address and memory.raw[20] == 3
    watch = weakref.ref(owner)
    del owner
    gc.collect()
    assert watch() is not None
    del looking
    gc.collect()
    assert watch() is None
    many = nvml.ProcessInfo.from_ptr(address, 3)
    many.pid = [1, 2, 3]
    assert (many.ptr, len(many), memory.raw[24]) == (address, 3, 2)
    with pytest.raises(ValueError, match="read-only"):
        nvml.ProcessInfo.from_ptr(address, size=3, readonly=True).pid = 1
    for ptr, error in ((0, ValueError), (None, TypeError), ("x", TypeError)):
        with pytest.raises(error):
            nvml.PciInfo.from_ptr(ptr)


@ours
def test_from_ptr_of_no_memory():
    for address in (8, 4096, 2**63, 2**64 - 8):
        with pytest.raises(ValueError, match="not readable"):
            nvml.PciInfo.from_ptr(address)
        with pytest.raises(ValueError, match="not readable"):
            nvml.ProcessInfo.from_ptr(address, 3)
    with pytest.raises(ValueError, match="not readable"):
        memory = ctypes.create_string_buffer(72)
        nvml.ProcessInfo.from_ptr(ctypes.addressof(memory), 2**40)
    with pytest.raises(OverflowError):
        nvml.PciInfo.from_ptr(-1)
    with pytest.raises(TypeError):
        nvml.PciInfo.from_ptr()


@ours
def test_memory_that_goes_away():
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    one, many = nvml.PciInfo.from_ptr(address, owner=object()), nvml.ProcessInfo.from_ptr(address, 3)
    one.bus, many.pid = 5, [1, 2, 3]
    libc.munmap(address, 4096)
    for f in (
        lambda: one.bus,
        lambda: one.bus_id,
        lambda: setattr(one, "bus", 1),
        lambda: repr(one),
        lambda: one == nvml.PciInfo(),
        lambda: memoryview(one),
        lambda: many.pid,
        lambda: many[0].pid,
        lambda: setattr(many, "pid", 1),
        lambda: pickle.dumps(many),
        lambda: many._data,
    ):
        with pytest.raises(ValueError, match="cannot be|not readable"):
            f()


def test_read_only_covers_what_is_inside():
    memory = ctypes.create_string_buffer(256)
    info = nvml.ComputeInstanceInfo.from_ptr(ctypes.addressof(memory), True)
    with pytest.raises(ValueError, match="read-only"):
        info.placement.start = 1
    assert memoryview(nvml.PciInfo.from_ptr(ctypes.addressof(memory), True)).readonly


@ours
def test_read_only_covers_arrays():
    report = nvml.ConfComputeGpuAttestationReport.from_buffer(bytes(nvml.conf_compute_gpu_attestation_report_dtype.itemsize))
    assert not report.nonce.flags.writeable
    many = nvml.ProcessInfo.from_buffer(bytes(72))
    assert not many.pid.flags.writeable and not many[1:]._data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        many[0] = (1, 2, 3, 4)


@ours
def test_owner_cycles_are_collected():
    class Owner:
        pass

    memory = ctypes.create_string_buffer(72)
    owner = Owner()
    owner.memory = memory
    owner.view = nvml.ProcessInfo.from_ptr(ctypes.addressof(memory), 3, owner=owner)
    owner.part = owner.view[1]
    watch = weakref.ref(owner)
    del owner
    gc.collect()
    assert watch() is None


@ours
def test_long_chains_of_owners():
    run(
        """if True:
        import ctypes
        from cuda.bindings import nvml
        memory = ctypes.create_string_buffer(68)
        address = ctypes.addressof(memory)
        x = nvml.PciInfo()
        for i in range(300_000):
            x = nvml.PciInfo.from_ptr(address, owner=x)
        del x
        x = nvml.PciInfo()
        for i in range(300_000):
            x = nvml.PciInfo.from_buffer(x)
        del x
        x = nvml.ProcessInfo(2)
        for i in range(100_000):
            x = nvml.ProcessInfo.from_data(x._data)
        del x
        """
    )


# ---- showing


@ours
def test_repr():
    info = nvml.PciInfo()
    info.bus, info.bus_id = 3, "it's"
    assert repr(info).startswith("PciInfo(bus_id_legacy='', domain=0, bus=3, ") and 'bus_id="it\'s")' in repr(info)
    three = nvml.ProcessInfo(3)
    three.pid = [1, 2, 3]
    lines = repr(three).splitlines()
    assert lines[0] == "ProcessInfo(size=3):" and lines[2].startswith("    [1] pid=2, used_gpu_memory=0")
    assert repr(nvml.ProcessInfo(0)) == "ProcessInfo(size=0)"
    assert len(repr(nvml.ProcessInfo(1000)).splitlines()) == 10
    assert "placement=ComputeInstancePlacement(start=0, size_=0)" in repr(nvml.ComputeInstanceInfo())


@ours
def test_every_class_shows_itself():
    for module in (nvml, cufile, cudla):
        for name in dir(module):
            cls = getattr(module, name)
            if isinstance(cls, type) and hasattr(cls, "from_ptr"):
                assert repr(cls()).startswith(name + "(")
                assert len(repr(cls())) < 20000
                assert cls.__doc__


# ---- names


def test_standard_enums():
    import enum

    assert issubclass(cudla.Status, enum.IntEnum)
    assert cudla.Status(0) is cudla.Status["SUCCESS"] is cudla.Status.SUCCESS
    assert cudla.Status.SUCCESS == 0 and cudla.Status.__module__ == "cuda.bindings.cudla"
    assert pickle.loads(pickle.dumps(cudla.Status.SUCCESS)) is cudla.Status.SUCCESS
    assert len(cudla.Status.__members__) > len(cudla.Status)


def test_enum_values_beyond_63_bits():
    assert nvml.RUSD.POLL_ALL == 2**64 - 1 and nvml.RUSD(2**64 - 1) is nvml.RUSD.POLL_ALL


def test_names_of_other_modules():
    from cuda.bindings import driver

    assert cufile.pyCUresult is driver.CUresult


# ---- NumPy, and without it


@ours
def test_numpy_is_imported_when_it_is_needed():
    out = run(
        """if True:
        import sys
        from cuda.bindings import cudla, cufile, nvml
        one, three = nvml.PciInfo(), nvml.ProcessInfo(3)
        one.bus, one.bus_id, three.pid = 1, "x", [1, 2, 3]
        nvml.VgpuTypeIdInfo_v1().vgpu_type_ids = [1]
        report = nvml.ConfComputeGpuAttestationReport()
        report.nonce = bytes(32)
        cudla.Task().output_tensor = [1]
        repr(three), [e.pid for e in three], bytes(three), memoryview(three), three == three[::-1]
        nvml.ComputeInstanceInfo().placement.start = 1
        dir(nvml)
        print("numpy" in sys.modules)
        three.pid
        print("numpy" in sys.modules)
        """
    )
    assert out.split() == ["False", "True"]


@ours
def test_without_numpy():
    out = run(
        """if True:
        import sys
        sys.modules["numpy"] = None
        from cuda.bindings import cufile, nvml
        three = nvml.ProcessInfo(3)
        three.pid = [1, 2, 3]
        assert three.pid.tolist() == [1, 2, 3], three.pid
        three.pid[1] = 9
        assert three[1].pid == 9
        assert three[::-1].pid.tolist() == [3, 9, 1]
        assert nvml.ConfComputeGpuAttestationReport().nonce.tolist() == [0] * 32
        assert cufile.PerGpuStats(2).uuid.shape == (2, 16)
        assert nvml.FieldValue(2).value.shape == (2, 8)
        for f in (lambda: nvml.pci_info_dtype, lambda: three._data, lambda: three[[0]], lambda: setattr(nvml.FieldValue(2), "value", 1)):
            try:
                f()
            except ImportError as error:
                assert "numpy" in str(error)
            else:
                raise AssertionError("no ImportError")
        try:
            nvml.PciInfo.from_data([1])
        except TypeError:
            pass
        everything = {}
        exec("from cuda.bindings.nvml import *", everything)
        assert everything["PciInfo"] is nvml.PciInfo and "pci_info_dtype" not in everything
        assert "PciInfo" in vars(nvml) and "pci_info_dtype" in dir(nvml)
        print("fine")
        """
    )
    assert out.strip() == "fine"


# ---- lifetimes


CYCLES = """if True:
    import gc, resource
    from cuda.bindings import cudla, nvml
    def rss():
        gc.collect()
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
    def cycles(n):
        {body}
    cycles(20000)
    before = rss()
    cycles({n})
    print(rss() - before)
"""

BODIES = {
    "one": """for i in range(n):
            x = nvml.PciInfo(); x.bus = i; x.bus_id = "abc"; x.bus""",
    "many": """for i in range(n):
            x = nvml.ProcessInfo(3); x.pid = i; x[1].pid; x[::-1]""",
    "nested": """for i in range(n):
            x = nvml.ComputeInstanceInfo(); p = x.placement; p.start = 1; x.placement = p""",
    "pointers": """for i in range(n // 4):
            x = nvml.ProcessDetailList_v1(); x.proc_array = nvml.ProcessDetail_v1(2); x.proc_array
            v = nvml.VgpuTypeIdInfo_v1(); v.vgpu_type_ids = [1, 2, 3]; v.vgpu_type_ids
            t = cudla.Task(); t.output_tensor = [1, 2]; t.output_tensor""",
    "arrays": """for i in range(n // 10):
            x = nvml.ProcessInfo(3); x.pid; x._data; memoryview(x)""",
    "memory": """for i in range(n // 4):
            b = bytearray(68); x = nvml.PciInfo.from_buffer(b); y = nvml.PciInfo.from_ptr(x.ptr, owner=x); y.bus = 1
            repr(y); y == x""",
    "errors": """for i in range(n // 4):
            x = nvml.PciInfo()
            for value in (None, -1):
                try: x.bus = value
                except (TypeError, OverflowError): pass
            try: nvml.PciInfo.from_buffer(b"x")
            except ValueError: pass""",
}


@ours
@pytest.mark.parametrize("kind", sorted(BODIES))
def test_memory_stays_flat(kind):
    grown = int(run(CYCLES.format(body=BODIES[kind], n=1_000_000)))
    assert grown < 4 << 20, f"{grown} bytes more after a million rounds"


def test_threads():
    shared = nvml.ProcessInfo(64)
    details = nvml.ProcessDetailList_v1()
    failures = []

    def work(seed):
        try:
            for i in range(2000):
                one = nvml.PciInfo()
                one.bus, one.bus_id = i, f"{seed}:{i}"
                assert (one.bus, one.bus_id) == (i, f"{seed}:{i}")
                shared[seed].pid = i
                assert shared[seed].pid == i
                shared.used_gpu_memory = i
                details.proc_array = nvml.ProcessDetail_v1(seed + 1)
                found = details.proc_array
                assert found == [] or 0 < len(found) <= 8
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [e.pid for e in shared[:8]] == [1999] * 8


def test_exit_with_everything_alive():
    run(
        """if True:
        import numpy
        from cuda.bindings import nvml
        keep = [nvml.ProcessInfo(3) for i in range(100)]
        keep += [k.pid for k in keep] + [k[1] for k in keep] + [memoryview(k) for k in keep]
        cycle = [keep]
        keep.append(cycle)
        """
    )
