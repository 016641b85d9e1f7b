"""cuda.core under a short name: a device, streams, memory."""

import cuda.core as cuda

device = cuda.Device()
capability = device.compute_capability
print("capability known:", capability.major >= 5)
print("memory known:", device.total_memory > 0)
with cuda.Stream() as stream:
    stream.sync()
buffer = device.allocate(1 << 16)
print("allocated:", buffer.size)
stream = cuda.Stream()
stream.sync()
