"""Struct classes of the modules whose functions raise (nvml, cufile, cudla): attributes, views, arrays.

Tests without the mark `ours` hold for NVIDIA's package too.
"""

import copy
import ctypes
import gc
import importlib.util
import pickle
import weakref

import numpy as np
import pytest
from cuda.bindings import cudla, cufile, nvml

pytestmark = pytest.mark.strict_abi

OURS = importlib.util.find_spec("cupyrite") is not None
ours = pytest.mark.skipif(not OURS, reason="behaviour of Cupyrite only")


# ---- one struct


def test_number_attributes():
    info = nvml.PciInfo()
    assert (info.bus, info.domain) == (0, 0)
    info.bus = 3
    info.domain = np.uint32(7)
    info.device_ = True
    info.pci_device_id = 1.7
    assert (info.bus, info.domain, info.device_, info.pci_device_id) == (3, 7, 1, 1)
    for value, error in (
        (-1, OverflowError),
        (2**32, OverflowError),
        ("1", TypeError),
        (None, TypeError),
        ([1], TypeError),
    ):
        with pytest.raises(error):
            info.bus = value
    assert info.bus == 3


def test_text_attributes():
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
def test_text_accepts_str_only(value):
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
def test_excessive_struct_counts_raise():
    for size in (2**57, 2**62):
        with pytest.raises(MemoryError):
            nvml.ProcessInfo(size)
    with pytest.raises(OverflowError):
        nvml.ProcessInfo(2**70)


def test_comparison_and_hash():
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


def test_indexing_a_single_struct():
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
def test_invalid_index_of_a_single_struct_raises():
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
def test_replaced_pointer_to_numbers():
    info = nvml.VgpuTypeIdInfo_v1()
    info.vgpu_type_ids = [3, 4]
    ids = info.vgpu_type_ids
    info.vgpu_type_ids = bytearray(b"\1\2\3")
    assert list(info.vgpu_type_ids) == [1, 2, 3]
    info.vgpu_type_ids = []
    assert info.vgpu_type_ids == []
    del info
    gc.collect()
    # Arrays read earlier keep their values.
    assert list(ids) == [3, 4]


def test_cudla_word_arrays():
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
def test_word_counts_follow_assignments():
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


def test_array_of_nested_structs():
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


def test_counted_array_of_nested_structs():
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
def test_pointer_to_structs_from_lists_and_slices():
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
def test_forged_counts_are_ignored():
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


def test_scalars_for_one_struct_and_arrays_for_many():
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


def test_element_access():
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


def test_slices():
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


def test_element_assignment():
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
def test_slice_assignment():
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


def test_text_and_arrays_of_many_structs():
    stats = cufile.PerGpuStats(2)
    uuid = stats.uuid
    assert type(uuid) is np.ndarray and uuid.shape == (2, 16) and uuid.dtype == np.int8
    uuid[1, 3] = 5
    assert stats[1].uuid[0, 3] == 5
    stats.uuid = 1
    assert stats.uuid.sum() == 32


def test_numpy_records():
    values = nvml.FieldValue(2)
    assert type(values.value).__name__ == "recarray" and values.value.shape == (2,)
    values[0].value["ui_val"] = 3
    assert list(values.value.ui_val) == [3, 0]
    values.value = 1
    assert list(values.value.ull_val != 0) == [True, True]
    with pytest.raises(TypeError):
        values.value = None


@ours
def test_assigning_a_struct_to_many():
    values, value = nvml.FieldValue(2), nvml.Value()
    value.ull_val = 12
    values.value = value
    assert list(values.value.ull_val) == [12, 12]
    with pytest.raises(TypeError, match="FieldValue.value"):
        values.value = nvml.PciInfo()


def test_nested_structs_of_many():
    one, two = nvml.PerfMetricsSample(), nvml.PerfMetricsSample(2)
    assert type(one.controller_data) is nvml.PerfMetricControllerSample
    assert type(two.controller_data) is tuple and len(two.controller_data) == 2
    with pytest.raises(AttributeError):
        one.controller_data = one.controller_data


# The offset of the count in the struct, in one byte, and the capacity.
COUNTED = [
    (nvml.PerfMetricsSample, "controller_data", 8872, 0, 4),
    (nvml.PwrModelMetricsDlppm1xDramclkEstimates, "estimated_metrics", 520, 512, 8),
    (nvml.PwrModelMetricsPfpp1x, "estimated_metrics", 2204, 0, 32),
]


@pytest.mark.parametrize("cls, name, size, at, room", COUNTED)
def test_hidden_count_per_element(cls, name, size, at, room):
    assert len(getattr(cls(), name)) == 0
    memory = bytearray(3 * size)
    memory[at], memory[size + at] = 2, room
    several = cls.from_buffer(memory)
    assert len(several) == 3 and [len(shown) for shown in getattr(several, name)] == [2, room, 0]
    one = several[1]
    assert len(getattr(one, name)) == room
    memory[size + at] = 1  # A view follows its memory.
    assert len(getattr(one, name)) == 1
    foreign = (ctypes.c_char * size).from_buffer_copy(memory[:size])
    assert len(getattr(cls.from_ptr(ctypes.addressof(foreign)), name)) == 2
    assert f"{name}={type(getattr(one, name)).__name__}(size=1)" in repr(one)


@ours
@pytest.mark.parametrize("cls, name, size, at, room", COUNTED)
def test_hidden_count_beyond_the_capacity_is_refused(cls, name, size, at, room):
    memory = bytearray(size)
    for count in (room + 1, 255):
        memory[at] = count
        assert len(getattr(cls.from_buffer(memory), name)) == room


def test_pickling():
    three = nvml.ProcessInfo(3)
    three.pid = [1, 2, 3]
    back = pickle.loads(pickle.dumps(three))
    assert type(back) is nvml.ProcessInfo and back == three and list(back.pid) == [1, 2, 3]
    duplicate = copy.deepcopy(three)
    duplicate.pid = 0
    assert list(three.pid) == [1, 2, 3]
    for f in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            f(nvml.PciInfo())


@ours
def test_copies_own_their_memory():
    three = nvml.ProcessInfo(3)
    duplicate = copy.copy(three)
    duplicate.pid = 5
    assert list(three.pid) == [0, 0, 0]
    with pytest.raises(ValueError, match="another layout"):
        three.__setstate__(b"x")


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
def test_every_class_has_a_repr():
    for module in (nvml, cufile, cudla):
        for name in dir(module):
            cls = getattr(module, name)
            if isinstance(cls, type) and hasattr(cls, "from_ptr"):
                assert repr(cls()).startswith(name + "(")
                assert len(repr(cls())) < 20000
                assert cls.__doc__


# ---- names


def test_enums_of_the_standard_library():
    import enum

    assert issubclass(cudla.Status, enum.IntEnum)
    assert cudla.Status(0) is cudla.Status["SUCCESS"] is cudla.Status.SUCCESS
    assert cudla.Status.SUCCESS == 0 and cudla.Status.__module__ == "cuda.bindings.cudla"
    assert pickle.loads(pickle.dumps(cudla.Status.SUCCESS)) is cudla.Status.SUCCESS
    assert len(cudla.Status.__members__) > len(cudla.Status)


def test_enum_values_beyond_63_bits():
    assert nvml.RUSD.POLL_ALL == 2**64 - 1 and nvml.RUSD(2**64 - 1) is nvml.RUSD.POLL_ALL


def test_names_shared_with_other_modules():
    from cuda.bindings import driver

    assert cufile.pyCUresult is driver.CUresult
