"""cuda.core: buffers of every memory resource, copies from and to host arrays, fills, DLPack."""

import numpy as np
from cuda.core import Buffer, Device, LegacyPinnedMemoryResource, ManagedMemoryResource, PinnedMemoryResource

SIZE = 2048

device = Device()
device.set_current()
stream = device.create_stream()
for resource in (
    device.memory_resource,
    LegacyPinnedMemoryResource(),
    PinnedMemoryResource(),
    ManagedMemoryResource(),
):
    buffer = resource.allocate(SIZE, stream=stream)
    assert int(buffer.handle) != 0 and buffer.size == SIZE
    print(type(resource).__name__, buffer.size)

source, target = (device.allocate(size=SIZE, stream=stream) for _ in range(2))
numbers = np.arange(SIZE // 8, dtype=np.float64)[::-1].copy()
source.copy_from(numbers, stream=stream)
source.copy_to(target, stream=stream)
result = np.zeros_like(numbers)
target.copy_to(result, stream=stream)
stream.sync()
assert np.array_equal(result, numbers)
print("copied", numbers.size, "numbers")

target.fill(value=0, stream=stream)
target.fill(value=b"\x5a", stream=stream)
filled = np.zeros(SIZE, np.uint8)
target.copy_to(filled, stream=stream)
stream.sync()
print("filled with", *np.unique(filled))

pinned = LegacyPinnedMemoryResource().allocate(SIZE, stream=stream)
shared = np.from_dlpack(pinned)
shared[:] = 3
assert shared.nbytes == SIZE
assert Buffer.from_handle(ptr=int(pinned.handle), size=SIZE).size == SIZE
source.close(stream)
with device.allocate(SIZE, stream=stream) as scoped:
    assert scoped.size == SIZE
stream.sync()
stream.close()
print("closed")
