"""Names that other packages import from `cuda.core` besides the public ones, `cuda.core.typing`, and error messages."""

import enum
import pickle
import sys
import warnings

import cuda.core.typing as T
import pytest
from cuda.bindings import driver, nvrtc, runtime
from cuda.core import Device, StreamOptions
from cuda.core._device_resources import SMResourceOptions, WorkqueueResourceOptions
from cuda.core._utils import cuda_utils, version
from cuda.core._utils.cuda_utils import CUDAError, NVRTCError, Transaction, handle_return

from helpers.device import check
from helpers.programs import output


class TestHandleReturn:
    def test_outputs(self):
        success = driver.CUresult.CUDA_SUCCESS
        assert handle_return((success,)) is None
        assert handle_return((success, 1)) == 1
        assert handle_return((success, 1, 2)) == (1, 2)
        assert handle_return((success, None)) is None
        assert handle_return((runtime.cudaError_t.cudaSuccess, 5)) == 5
        assert handle_return((nvrtc.nvrtcResult.NVRTC_SUCCESS, 7), handle=None) == 7

    def test_result_of_a_call(self):
        assert handle_return(driver.cuInit(0)) is None
        assert handle_return(driver.cuDeviceGetCount()) >= 1

    @pytest.mark.parametrize(
        "status, says",
        [
            (driver.CUresult.CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: an argument"),
            (driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
            (runtime.cudaError_t.cudaErrorInvalidValue, "cudaErrorInvalidValue: an argument"),
            (runtime.cudaError_t.cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection: "),
        ],
    )
    def test_status_messages(self, status, says):
        for result in ((status,), (status, None), (status, 1, 2)):
            with pytest.raises(CUDAError) as caught:
                handle_return(result)
            assert type(caught.value) is CUDAError
            assert str(caught.value).startswith(says)
            assert len(str(caught.value)) > len(says)

    def test_every_status_has_a_message(self):
        for status in driver.CUresult:
            if int(status) != 0:
                with pytest.raises(CUDAError, match=f"^{status.name}: [a-zA-Z]"):
                    handle_return((status,))

    def test_nvrtc_log_is_included(self):
        failed = nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
        with pytest.raises(NVRTCError, match="NVRTC_ERROR_COMPILATION"):
            handle_return((failed,))
        program = handle_return(nvrtc.nvrtcCreateProgram(b"nonsense;", b"odd.cu", 0, [], []))
        result = nvrtc.nvrtcCompileProgram(program, 0, [])
        with pytest.raises(NVRTCError, match=r"(?s)compilation log:.*odd\.cu") as caught:
            handle_return(result, handle=program)
        assert isinstance(caught.value, CUDAError)
        nvrtc.nvrtcDestroyProgram(program)

    @pytest.mark.parametrize("wrong", [3, None, [driver.CUresult.CUDA_SUCCESS]])
    def test_other_types_than_tuples_raise(self, wrong):
        with pytest.raises(TypeError, match="'result'"):
            handle_return(wrong)

    def test_tuples_without_a_status_raise(self):
        for wrong in ((3,), (0, 1), ("x",), (driver.CUdevice_attribute(1),)):
            with pytest.raises(RuntimeError, match="is not a status"):
                handle_return(wrong)
        with pytest.raises(IndexError):
            handle_return(())


class TestErrors:
    def test_error_classes(self):
        assert issubclass(NVRTCError, CUDAError) and issubclass(CUDAError, Exception)
        for error in (CUDAError("x"), NVRTCError("y")):
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is type(error) and again.args == error.args
            assert type(error).__module__ == "cuda.core._utils.cuda_utils"

    def test_messages_name_the_call(self):
        device = Device(0)
        device.set_current()
        if not device.name.startswith("CPU"):
            pytest.skip("a GPU's driver may crash on a destroyed handle")
        from cuda.core import Stream

        raw = check(driver.cuStreamCreate(0))
        foreign = Stream.from_handle(raw)
        check(driver.cuStreamDestroy(raw))
        with pytest.raises(
            CUDAError, match=r"^CUDA_ERROR_INVALID_HANDLE: a handle is invalid.*\(cuStreamSynchronize\)"
        ):
            foreign.sync()


class TestOptionsHelper:
    def test_accepted_options(self):
        make = cuda_utils.check_or_create_options
        assert make(StreamOptions, None, "x") == StreamOptions()
        assert make(StreamOptions, {"priority": 1}) == StreamOptions(priority=1)
        given = StreamOptions()
        assert make(StreamOptions, given, "x", keep_none=True) is given
        assert make(StreamOptions, None, keep_none=True) is None

    def test_refused_options(self):
        with pytest.raises(TypeError, match="Stream options: expected StreamOptions.*3"):
            cuda_utils.check_or_create_options(StreamOptions, 3, "Stream options")
        with pytest.raises(TypeError):
            cuda_utils.check_or_create_options(StreamOptions, {"foo": 1})


class TestSequences:
    def test_sequence_predicates(self):
        three = cuda_utils.cast_to_3_tuple
        assert [three("n", given) for given in (1, (2,), (1, 2), (1, 2, 3), ())] == [
            (1, 1, 1),
            (2, 1, 1),
            (1, 2, 1),
            (1, 2, 3),
            (1, 1, 1),
        ]
        for wrong in ((1, 2, 3, 4), [1, 2], "abc", (1.5,), None, 0, -1, (0, 1)):
            with pytest.raises(ValueError, match="the grid"):
                three("the grid", wrong)

    def test_sequence_types(self):
        assert all(map(cuda_utils.is_sequence, ([1], "x", (1,), range(3), b"x")))
        assert not any(map(cuda_utils.is_sequence, (3, {1}, {}, iter([]))))
        assert all(map(cuda_utils.is_nested_sequence, ([[1]], [1, [2]], "ab", [(1,)])))
        assert not any(map(cuda_utils.is_nested_sequence, ([1], [], 3, [{1}])))


class TestTransaction:
    def test_rollback_runs_in_reverse_order(self):
        done = []
        with Transaction() as steps:
            steps.append(done.append, 1)
            steps.append(done.append, 2)
        assert done == [2, 1]

    def test_commit(self):
        done = []
        with Transaction() as steps:
            steps.append(done.append, 1)
            steps.commit()
            steps.append(done.append, 2)
        assert done == [2]

    def test_exception_rolls_back(self):
        done = []
        with pytest.raises(KeyError), Transaction() as steps:
            steps.append(done.append, 1)
            raise KeyError
        assert done == [1]

    def test_failing_callback_does_not_stop_the_others(self):
        done = []
        with pytest.raises(ZeroDivisionError), Transaction() as steps:
            steps.append(done.append, 1)
            steps.append(lambda: 1 / 0)
            steps.append(lambda *, value: done.append(value), value=3)
        assert done == [3, 1]

    def test_use_without_enter_raises(self):
        with pytest.raises(RuntimeError, match="with statement"):
            Transaction().append(print)
        Transaction().commit()
        with Transaction() as steps, pytest.raises(RuntimeError, match="already"):
            steps.__enter__()


def test_precondition_decorator():
    seen = []

    def checker(self, *args, what="", **kwargs):
        seen.append((args, kwargs, what))
        if args == (0,):
            raise RuntimeError(f"needs {what}")

    class Thing:
        @cuda_utils.precondition(checker, what="luck")
        def work(self, number, more=2):
            """Works."""
            return number + more

    assert Thing().work(1) == 3
    assert Thing().work(1, more=5) == 6
    with pytest.raises(RuntimeError, match="needs luck"):
        Thing().work(0)
    assert seen == [((1,), {}, "luck"), ((1,), {"more": 5}, "luck"), ((0,), {}, "luck")]
    assert Thing.work.__doc__ == "Works."


def test_fork_warning():
    program = """
import multiprocessing, warnings
from cuda.core._utils.cuda_utils import check_multiprocessing_start_method, reset_fork_warning
multiprocessing.set_start_method({method!r})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    check_multiprocessing_start_method()
    check_multiprocessing_start_method()
    reset_fork_warning()
    check_multiprocessing_start_method()
print(len(caught), *{{w.category.__name__ for w in caught}})
"""
    for method, text in (("fork", "2 UserWarning"), ("spawn", "0")):
        assert output(program.format(method=method), timeout=60).strip() == text


def test_version_functions():
    import cuda.bindings

    assert ".".join(map(str, version.binding_version())) == cuda.bindings.__version__
    major, minor, _ = version.driver_version()
    assert 1000 * major + 10 * minor == check(driver.cuDriverGetVersion()) // 10 * 10


class TestTyping:
    def test_typing_names(self):
        assert len(T.__all__) == 21
        for name in T.__all__:
            assert getattr(T, name) is getattr(T, name)
            assert name in dir(T)
        with pytest.raises(AttributeError):
            T.Nonsense

    def test_enumerations_are_strings(self):
        for name in T.__all__:
            kind = getattr(T, name)
            if isinstance(kind, type) and issubclass(kind, enum.Enum):
                for member in kind:
                    assert isinstance(member, str) and str(member) == member.value
                    assert kind(member.value) is member
                    assert pickle.loads(pickle.dumps(member)) is member
                assert kind.__doc__
        assert T.CompilerBackendType.NVJITLINK == "nvJitLink"
        with pytest.raises(ValueError):
            T.CompilerBackendType("nvrtc")

    def test_type_aliases(self):
        assert str(T.DevicePointerType) == "cuda.bindings.driver.CUdeviceptr | int | None"
        assert "SMResource" in str(T.DeviceResourcesType)
        assert T.ProcessStateType.__args__ == ("running", "locked", "checkpointed", "failed")


def test_resource_options():
    assert repr(SMResourceOptions(count=[4, 8])) == (
        "SMResourceOptions(count=[4, 8], coscheduled_sm_count=None, preferred_coscheduled_sm_count=None, backfill=False)"
    )
    assert WorkqueueResourceOptions() == WorkqueueResourceOptions(None, None)


def test_import_loads_nothing_heavy():
    program = """
import sys
before = set(sys.modules)
from cuda.core import Device, Stream, Event, EventOptions, StreamOptions, Context, Host, LEGACY_DEFAULT_STREAM
heavy = {"numpy", "typing", "dataclasses", "inspect", "enum", "re", "pathlib", "tempfile", "hashlib"}
print(sorted((set(sys.modules) - before) & heavy))
"""
    assert output(f"import sys; sys.path[:] = {sys.path!r}\n{program}", options=("-S",), timeout=60).strip() == "[]"


def test_import_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Device(0).create_stream().close()


def test_stub_names_match_the_module():
    import ast
    import pathlib

    import cuda.core

    stub = pathlib.Path(cuda.core.__file__).with_suffix(".pyi")
    tree = ast.parse(stub.read_text())
    named = {
        f"{node.module}.{alias.name}" for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert named == {f"cuda.core.{home}.{name}" for name, home in cuda.core._HOMES.items()}
    assert sorted(cuda.core.__all__) == cuda.core.__all__
    assert all(hasattr(cuda.core, name) for name in cuda.core.__all__)
