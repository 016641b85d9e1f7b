"""PyTorch's tensors, whose `__cuda_array_interface__` claims version 2. A module of that name stands in for PyTorch."""

import sys
import types

import numpy as np
import pytest
from cuda.core.utils import StridedMemoryView


class Tensor:
    device = "cuda:0"

    def __init__(self, buffer, version=2):
        self.__cuda_array_interface__ = {
            "shape": (4, 2),
            "strides": None,
            "typestr": "<f4",
            "data": (int(buffer.handle), False),
            "version": version,
        }


@pytest.fixture
def torch(monkeypatch, stream):
    asked = []

    def current_stream(device):
        asked.append(device)
        return types.SimpleNamespace(cuda_stream=int(stream.handle))

    torch = types.ModuleType("torch")
    torch.Tensor, torch.cuda, torch.asked = Tensor, types.SimpleNamespace(current_stream=current_stream), asked
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


@pytest.mark.parametrize("make", [StridedMemoryView.from_cuda_array_interface, StridedMemoryView.from_any_interface])
def test_a_tensor_is_viewed(device, stream, torch, make):
    buffer = device.allocate(32, stream=stream)
    view = make(Tensor(buffer), stream_ptr=-1)
    assert (view.shape, view.ptr, view.dtype) == ((4, 2), int(buffer.handle), np.float32)
    assert torch.asked == []


def test_the_view_waits_for_the_current_stream_of_the_tensor(device, stream, torch):
    buffer = device.allocate(32, stream=stream)
    other = device.create_stream()
    StridedMemoryView.from_cuda_array_interface(Tensor(buffer), stream_ptr=int(other.handle))
    assert torch.asked == ["cuda:0"]


def test_version_2_of_other_objects_and_older_versions_are_refused(device, stream, torch):
    buffer = device.allocate(32, stream=stream)
    other = types.SimpleNamespace(__cuda_array_interface__=Tensor(buffer).__cuda_array_interface__)
    for given in (other, Tensor(buffer, version=1)):
        with pytest.raises(BufferError, match="expected 3 or later"):
            StridedMemoryView.from_cuda_array_interface(given, stream_ptr=-1)
