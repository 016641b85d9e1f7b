"""cuda.bindings.cudla without its library, which exists for NVIDIA's systems on a chip only."""

import enum
import pickle

import pytest
from cuda import pathfinder
from cuda.bindings import cudla


def test_enums_of_the_standard_library():
    assert issubclass(cudla.Status, enum.IntEnum) and cudla.Status.__module__ == "cuda.bindings.cudla"
    assert cudla.Status.SUCCESS is cudla.Status.Success is cudla.Status(0)
    assert pickle.loads(pickle.dumps(cudla.Status.ERROR_INVALID_PARAM)) is cudla.Status.ERROR_INVALID_PARAM
    with pytest.raises(ValueError):
        cudla.Status(4711)


def test_error_class():
    error = cudla.CudlaError(1)
    assert str(error) == "ERROR_INVALID_PARAM (1)" and error.status == 1
    assert isinstance(pickle.loads(pickle.dumps(error)), cudla.CudlaError)
    assert cudla.check_status(0) is None
    with pytest.raises(cudla.CudlaError):
        cudla.check_status(cudla.Status.ERROR_INVALID_PARAM)


def test_tasks_copy_assigned_values():
    task, wait, fence = cudla.Task(), cudla.WaitEvents(), cudla.Fence()
    fence.fence, fence.type = 4096, 1
    wait.pre_fences = fence
    del fence
    (held,) = wait.pre_fences
    assert (held.fence, held.type) == (4096, 1)
    task.input_tensor = [10, 20, 30]
    assert memoryview(task.input_tensor).tolist() == [10, 20, 30]
    task.input_tensor = []
    assert len(memoryview(task.input_tensor)) == 0
    for wrong in (None, 5, "x", object()):
        with pytest.raises(TypeError):
            wait.pre_fences = wrong


def test_standalone_mode_is_refused_before_any_call():
    with pytest.raises(cudla.CudlaError) as caught:
        cudla.create_device(0, 1)
    assert caught.value.status == cudla.Status.ERROR_UNSUPPORTED_OPERATION


def test_missing_library_raises():
    try:
        cudla.get_version()
    except pathfinder.DynamicLibNotFoundError as error:
        assert "libcudla.so.1" in str(error)
    else:
        assert cudla.device_get_count() >= 0
