"""Streams, events, their options, and objects with the stream protocol."""

from .devices import COMMON, CURRENT

STREAM = CURRENT + "s = d.create_stream()\nh = int(s.handle)\n"

GROUPS = {
    "stream: default ones": (
        COMMON,
        """
        repr(LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.handle
        int(LEGACY_DEFAULT_STREAM.handle), int(PER_THREAD_DEFAULT_STREAM.handle)
        LEGACY_DEFAULT_STREAM.__cuda_stream__(), PER_THREAD_DEFAULT_STREAM.__cuda_stream__()
        LEGACY_DEFAULT_STREAM.is_closed
        LEGACY_DEFAULT_STREAM == PER_THREAD_DEFAULT_STREAM
        LEGACY_DEFAULT_STREAM.device
        d = Device(); d.set_current()
        LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM
        LEGACY_DEFAULT_STREAM.sync(), PER_THREAD_DEFAULT_STREAM.sync()
        LEGACY_DEFAULT_STREAM.is_nonblocking, PER_THREAD_DEFAULT_STREAM.is_nonblocking
        LEGACY_DEFAULT_STREAM.priority, PER_THREAD_DEFAULT_STREAM.priority
        LEGACY_DEFAULT_STREAM.device is d, LEGACY_DEFAULT_STREAM.context == d.context
        LEGACY_DEFAULT_STREAM.record().is_done in (True, False)
        Stream.from_handle(1) == LEGACY_DEFAULT_STREAM, Stream.from_handle(1) is LEGACY_DEFAULT_STREAM
        Stream.from_handle(2) == PER_THREAD_DEFAULT_STREAM
        Stream.from_handle(0)
        Stream.from_handle(0) == LEGACY_DEFAULT_STREAM
        Stream.from_handle(0).sync()
        hash(Stream.from_handle(1)) == hash(LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.close()
        LEGACY_DEFAULT_STREAM.is_closed
        LEGACY_DEFAULT_STREAM.sync()
        d.default_stream.is_closed
        """,
    ),
    "stream: object": (
        STREAM,
        """
        public(Stream)
        s
        str(s) == repr(s)
        s.handle
        s.handle is s.handle, int(s.handle) == s.__cuda_stream__()[1], s.__cuda_stream__()[0]
        s.is_nonblocking, s.priority, s.is_closed
        s.device is d, s.context == d.context
        s.sync()
        s.sync(1)
        s.handle = 3
        s.foo = 3
        hash(s) == hash(Stream.from_handle(h)), s == Stream.from_handle(h), s == 3, s != None, s == h
        s < s
        copy.copy(s)
        copy.deepcopy(s)
        pickle.dumps(s)
        weakref.ref(s)() is s
        s.resources
        Stream.__new__(Stream)
        class Sub(Stream): pass
        Stream(1)
        Stream(foo=1)
        Stream(1, 2)
        """,
    ),
    "stream: more than the peer": (
        CURRENT,
        """
        Stream()
        t = Stream(); t.sync()
        with Stream() as t: t.sync()
        with d.create_stream() as t: t.sync()
        t.is_closed
        d.allocate(16).size
        """,
    ),
    "stream: from_handle": (
        STREAM,
        """
        f = Stream.from_handle(h); f
        f.is_nonblocking, f.priority, f.device is d, f.context == d.context
        Stream.from_handle(s.handle) == s
        Stream.from_handle(handle=h) == s
        Stream.from_handle(s)
        Stream.from_handle("x")
        Stream.from_handle(None)
        Stream.from_handle(1.5)
        Stream.from_handle()
        Stream.from_handle(-1)
        Stream.from_handle(1 << 64)
        f.close(); f.is_closed
        f.handle
        f == s
        s.sync()
        r, raw = driver.cuStreamCreate(1); g = Stream.from_handle(int(raw)); g.is_nonblocking
        del g; driver.cuStreamQuery(raw)
        driver.cuStreamDestroy(raw)
        """,
    ),
    "stream: options": (
        CURRENT,
        """
        StreamOptions()
        StreamOptions(False), StreamOptions(True, -1)
        StreamOptions(nonblocking=None), StreamOptions(nonblocking="x"), StreamOptions(nonblocking=0)
        StreamOptions(priority="x")
        StreamOptions(foo=1)
        StreamOptions(1, 2, 3)
        StreamOptions() == StreamOptions(), StreamOptions(priority=1) == StreamOptions(), StreamOptions() == 3
        hash(StreamOptions())
        pickle.loads(pickle.dumps(StreamOptions(priority=-1)))
        copy.copy(StreamOptions(False)), copy.deepcopy(StreamOptions(False))
        dataclasses.is_dataclass(StreamOptions), [(f.name, f.default) for f in dataclasses.fields(StreamOptions)]
        dataclasses.asdict(StreamOptions()), dataclasses.replace(StreamOptions(), priority=3)
        StreamOptions().foo
        o = StreamOptions(); o.priority = -5; o.nonblocking = False; o
        o.foo = 3
        o.priority = "x"
        o.priority = None; o
        StreamOptions.__match_args__
        class Sub(StreamOptions): pass
        d.create_stream(options=Sub()).is_nonblocking
        d.create_stream(options=StreamOptions(nonblocking=False)).is_nonblocking
        d.create_stream(options=StreamOptions(priority=-1)).priority
        d.create_stream(options=StreamOptions(priority=0)).priority
        d.create_stream(options=StreamOptions(priority=-100))
        d.create_stream(options=StreamOptions(priority=100))
        d.create_stream(options=StreamOptions(priority=1 << 40))
        """,
    ),
    "stream: protocol": (
        STREAM
        + """
class Attribute:
    def __init__(self, result):
        self.__cuda_stream__ = result
class Raises:
    def __cuda_stream__(self):
        raise KeyError("mine")
""",
        """
        d.create_stream(Streamlike((0, h))) == s
        d.create_stream(Streamlike([0, h])) == s
        d.create_stream(Streamlike((0, s.handle))) == s
        d.create_stream(Streamlike((0, 1)))
        d.create_stream(Streamlike((1, h)))
        d.create_stream(Streamlike((0,)))
        d.create_stream(Streamlike((0, h, 3)))
        d.create_stream(Streamlike(h))
        d.create_stream(Streamlike("ab"))
        d.create_stream(Streamlike((0, "x")))
        d.create_stream(Streamlike((0, None)))
        d.create_stream(Streamlike(None))
        d.create_stream(Attribute((0, h))) == s
        d.create_stream(Attribute(lambda: (0, h))) == s
        d.create_stream(Raises())
        d.create_stream(s.handle) == s
        d.create_stream(s) == s
        w = Streamlike((0, h)); r = weakref.ref(w); y = d.create_stream(w); del w; r() is None
        y.close(); r() is None
        del y; r() is None
        s.wait(Streamlike((0, h)))
        s.wait(Streamlike((1, h)))
        s.wait(Attribute((0, 1)))
        """,
    ),
    "stream: waiting and recording": (
        STREAM,
        """
        s.wait(3)
        s.wait(None)
        s.wait(d)
        s.wait(s)
        s.wait(d.create_stream())
        s.wait(LEGACY_DEFAULT_STREAM)
        s.wait()
        e = s.record(); e
        s.wait(e)
        s.wait(event_or_stream=e)
        s.record(e) is e
        s.record(3)
        s.record(None)
        s.record(options={"timing_enabled": True}).is_timing_enabled
        s.record(event=None, options=EventOptions(timing_enabled=True)).is_timing_enabled
        s.record(e, options=EventOptions(timing_enabled=True)).is_timing_enabled
        s.record(options={"foo": 1})
        s.record(options=3)
        s.record(options=EventOptions(ipc_enabled=True, timing_enabled=True))
        s.record(options=EventOptions(blocking_sync=True)).is_blocking_sync
        e.sync(), e.is_done
        """,
    ),
    "stream: closed": (
        STREAM + "e = d.create_event()\nother = d.create_stream()\n",
        """
        s.close()
        s.close()
        s.is_closed
        s
        s.handle
        s.__cuda_stream__()
        s.sync()
        s.record()
        s.record(e)
        s.wait(e)
        s.wait(other)
        other.wait(s)
        s.priority
        s.is_nonblocking
        s.device
        s.context
        s.resources
        hash(s), s == s
        d.create_stream(s)
        d.allocate(4, stream=s)
        e2 = other.record(); other.close(); e2.sync(), e2.is_done, e2.device is d
        """,
    ),
    "event: object": (
        STREAM,
        """
        public(Event)
        Event()
        Event(1)
        e = d.create_event(); e
        e.handle
        e.handle is e.handle, int(e.handle) != 0
        e.is_done, e.sync(), e.is_closed
        e.is_timing_enabled, e.is_blocking_sync, e.is_ipc_enabled
        e.device is d, e.context == d.context
        e.ipc_descriptor
        Event.from_ipc_descriptor(3)
        d.create_event(options=EventOptions(blocking_sync=True)).is_blocking_sync
        hash(e) == hash(e), e == e, e == d.create_event(), e == 3, e != None
        e < e
        copy.copy(e)
        pickle.dumps(e)
        weakref.ref(e)() is e
        e.foo = 1
        e.is_done = 1
        with d.create_event() as q: pass
        class Sub(Event): pass
        """,
    ),
    "event: timing": (
        STREAM + "t = EventOptions(timing_enabled=True)\na, b, c, n = (d.create_event(o) for o in (t, t, t, None))\n",
        """
        b - a
        s.record(a); s.sync(); s.record(b); s.sync(); type(b - a)
        b - a >= 0, a - a
        c - a
        s.record(n); s.sync(); n - a
        a - n
        a - 3
        3 - a
        a - None
        a - s
        a + b
        """,
    ),
    "event: closed": (
        STREAM + "t = EventOptions(timing_enabled=True)\ne = s.record(options=t)\nf = s.record(options=t)\n",
        """
        e.close()
        e.close()
        e.is_closed
        e
        e.handle
        hash(e), e == e, e == f
        e.is_done
        e.sync()
        e.device
        e.context
        e.is_timing_enabled
        e.is_blocking_sync
        e.is_ipc_enabled
        e.ipc_descriptor
        f - e
        e - f
        s.record(e)
        s.wait(e)
        """,
    ),
    "event: options": (
        COMMON,
        """
        EventOptions()
        EventOptions(True), EventOptions(True, True, True)
        EventOptions(timing_enabled="x")
        EventOptions(timing_enabled=1)
        EventOptions(ipc_enabled=None)
        EventOptions(foo=1)
        EventOptions() == EventOptions(False)
        hash(EventOptions())
        pickle.loads(pickle.dumps(EventOptions(True)))
        dataclasses.asdict(EventOptions()), [(f.name, f.default) for f in dataclasses.fields(EventOptions)]
        o = EventOptions(); o.timing_enabled = True; o
        o.foo = 3
        o.timing_enabled = "x"
        """,
    ),
    "event: spellings before 1.0": (
        STREAM,
        """
        d.create_event(EventOptions(enable_timing=True)).is_timing_enabled
        d.create_event(EventOptions(busy_waited_sync=True)).is_blocking_sync
        EventOptions(enable_timing=True, busy_waited_sync=False, ipc_enabled=False)
        d.create_event().is_sync_busy_waited
        d.create_event().get_ipc_descriptor()
        """,
    ),
}
