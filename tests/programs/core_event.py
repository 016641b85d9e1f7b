"""cuda.core: events, with the spelling of the 0.x releases."""

from cuda.core import Device, EventOptions

device = Device()
device.set_current()
stream = device.create_stream()
timed = EventOptions(enable_timing=True)
before = stream.record(options=timed)
after = stream.record(options=timed)
after.sync()
assert after - before >= 0
print("done:", after.is_done)
event = device.create_event(options=EventOptions(enable_timing=True, busy_waited_sync=False, ipc_enabled=False))
event.sync()
stream.wait(event)
if device.properties.ipc_event_supported:
    assert device.create_event(options=EventOptions(ipc_enabled=True)).get_ipc_descriptor() is not None
event.close()
stream.close()
print("closed")
