"""cuda.core: streams of a device, the default streams, and a stream that other code owns."""

from cuda.core import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Device, Stream, StreamOptions

device = Device()
device.set_current()
first = device.create_stream()
second = device.create_stream(options=StreamOptions(nonblocking=True, priority=0))
print("nonblocking:", second.is_nonblocking, "priority:", second.priority)
assert int(second.handle) != 0 and second.device == device
second.wait(first)
event = second.record()
event.sync()
for default in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
    default.sync()
borrowed = Stream.from_handle(int(second.handle))
borrowed.sync()
borrowed.close()
# Closing a borrowed stream leaves its owner's stream usable.
second.sync()
second.close()
print("closed")
