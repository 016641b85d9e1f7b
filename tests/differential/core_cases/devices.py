"""Devices, their properties, contexts, hosts, and their option classes."""

COMMON = """
import copy, ctypes, dataclasses, pickle, threading, weakref
import numpy as np
from cuda.bindings import driver
from cuda.core import *
"""

CURRENT = (
    COMMON
    + """
d = Device()
d.set_current()
"""
)

GROUPS = {
    "device: which": (
        COMMON,
        """
        driver.cuCtxGetCurrent()[0]
        Device(-1)
        Device(99)
        Device("0")
        Device([])
        Device(1 << 40)
        Device(object())
        Device(Device.get_all_devices().__len__())
        d = Device(); d.device_id
        Device(None) is d
        Device(device_id=0) is d
        Device(0) is d
        Device(d) is d
        Device(np.int64(0)) is d
        Device(False) is d
        Device(0, 1)
        Device(foo=1)
        int(driver.cuCtxGetCurrent()[1])
        type(Device.get_all_devices()), Device.get_all_devices()[0] is d
        Device.get_all_devices() == Device.get_all_devices()
        len(Device.get_all_devices()) == driver.cuDeviceGetCount()[1]
        """,
    ),
    "device: object": (
        COMMON + "d = Device(0)\n",
        """
        public(Device)
        repr(d) == f"<Device 0 ({d.name})>", str(d) == repr(d)
        type(d.name), d.name == driver.cuDeviceGetName(256, 0)[1].split(b"\\0")[0].decode()
        type(d.uuid), len(d.uuid), d.uuid == d.uuid
        [len(part) for part in d.uuid.split("-")]
        d.uuid.replace("-", "") == bytes(driver.cuDeviceGetUuid(0)[1].bytes).hex()
        type(d.pci_bus_id), len(d.pci_bus_id)
        type(d.arch), d.arch == "%d%d" % d.compute_capability
        d.compute_capability
        d.compute_capability is d.compute_capability
        d.compute_capability == tuple(d.compute_capability), d.compute_capability >= (1, 0), hash(d.compute_capability) == hash(tuple(d.compute_capability))
        pickle.loads(pickle.dumps(d.compute_capability)) == d.compute_capability
        type(d.compute_capability)(9, 0), type(d.compute_capability)(major=9, minor=0).minor
        type(d.compute_capability)(9)
        d.compute_capability._asdict()
        int(d), hash(d) == hash(Device(0)), d == Device(0), d == 0, d != None, bool(d)
        d < d
        d.__reduce__()
        pickle.loads(pickle.dumps(d)) is d, copy.copy(d) is d, copy.deepcopy(d) is d
        weakref.ref(d)() is d
        d.foo = 1
        d.device_id = 1
        d.name = "x"
        d.__dict__
        d.nonsense
        class Sub(Device): pass
        Sub(0) is d, type(Sub(0)) is Device
        d.can_access_peer(0), d.can_access_peer(d)
        d.can_access_peer(99)
        d.can_access_peer("x")
        d.total_memory == driver.cuDeviceTotalMem(0)[1]
        with d: pass
        """,
    ),
    "device: without a context": (
        COMMON + "d = Device(0)\n",
        """
        d.context
        d.sync()
        d.create_stream()
        d.create_stream(options=StreamOptions())
        d.create_event()
        d.allocate(16, stream=None)
        d.allocate(16, stream=LEGACY_DEFAULT_STREAM)
        d.default_stream
        d.memory_resource
        d.resources
        d.properties.warp_size
        d.can_access_peer(d)
        d.create_context()
        int(driver.cuCtxGetCurrent()[1])
        """,
    ),
    "device: current": (
        COMMON + "d = Device(0)\n",
        """
        d.set_current(5)
        d.set_current(d)
        d.set_current("x")
        d.set_current(ctx=None)
        int(driver.cuCtxGetCurrent()[1]) != 0
        d.set_current()
        d.set_current(1, 2)
        d.context
        d.context is d.context, d.context == d.context
        int(d.context.handle) == int(driver.cuCtxGetCurrent()[1])
        ctx = d.context; d.set_current(ctx) == ctx
        Device() is d
        d.default_stream
        d.default_stream is LEGACY_DEFAULT_STREAM, d.default_stream is d.default_stream
        d.sync()
        d.sync(1)
        driver.cuCtxSetCurrent(driver.CUcontext(0))
        d.create_stream()
        d.create_event()
        d.allocate(4, stream=LEGACY_DEFAULT_STREAM)
        d.context == ctx
        d.set_current()
        d.create_stream().is_closed
        """,
    ),
    "device: threads": (
        CURRENT,
        """
        in_thread(lambda: Device(0) == d), in_thread(lambda: hash(Device(0)) == hash(d))
        in_thread(lambda: Device(0) is Device(0))
        in_thread(lambda: Device(0).create_stream())
        in_thread(lambda: Device(0).create_event())
        in_thread(lambda: Device(0).context)
        in_thread(lambda: Device(0).default_stream)
        in_thread(lambda: Device(0).name == d.name)
        in_thread(lambda: int(driver.cuCtxGetCurrent()[1]))
        in_thread(lambda: (Device(0).set_current(), Device(0).create_stream().device == d))
        in_thread(lambda: (Device(0).set_current(), Device(0).context == d.context))
        in_thread(lambda: (Device().set_current(), Device().allocate(4, stream=Device().default_stream).size))
        """,
    ),
    "device: properties": (
        COMMON + "d = Device(0)\np = d.properties\n",
        """
        p is d.properties
        public(p)
        type(p)()
        type(p)(0)
        p.nonsense
        p.warp_size = 3
        p.foo = 3
        {n: getattr(p, n) for n in public(type(p)) if n not in ("clock_rate", "memory_clock_rate")}
        {n: type(getattr(p, n)).__name__ for n in public(type(p))}
        hash(p) == hash(p), p == p
        weakref.ref(p)() is p
        pickle.dumps(p)
        """,
    ),
    "device: allocate": (
        CURRENT + "s = d.create_stream()\n",
        """
        d.allocate(16, stream=s)
        d.allocate(size=16, stream=s).size
        d.allocate(16, stream=None).size
        d.allocate(16)
        d.allocate(16, s)
        d.allocate(16, stream=0)
        d.allocate(16, stream="x")
        d.allocate(0, stream=s).handle
        d.allocate(-1, stream=s)
        d.allocate("4", stream=s)
        d.allocate(None, stream=s)
        d.allocate(True, stream=s).size
        d.allocate(np.int64(8), stream=s).size
        d.allocate(1 << 62, stream=s)
        d.allocate(1 << 70, stream=s)
        d.allocate(4, stream=s).memory_resource is d.memory_resource
        d.memory_resource is d.memory_resource
        d.memory_resource
        d.memory_resource = 3
        d.memory_resource = None
        old = d.memory_resource; d.memory_resource = DeviceMemoryResource(d, {"max_size": 1 << 25}); d.memory_resource
        d.allocate(4, stream=s).memory_resource is old
        d.memory_resource = old; d.memory_resource is old
        del d.memory_resource
        """,
    ),
    "device: streams and events": (
        CURRENT,
        """
        d.create_stream(3)
        d.create_stream(obj=3)
        d.create_stream(options=3)
        d.create_stream(options="x")
        d.create_stream(options={"nonblocking": False}).is_nonblocking
        d.create_stream(options={"foo": False})
        d.create_stream(options={})
        d.create_stream(options=EventOptions())
        d.create_stream(Streamlike((0, 1)), options=StreamOptions())
        d.create_stream(d.default_stream) == d.default_stream
        d.create_stream(d.default_stream) is d.default_stream
        d.create_event(3)
        d.create_event(options={"timing_enabled": True}).is_timing_enabled
        d.create_event({"timing_enabled": True}).is_timing_enabled
        d.create_event(options=None).is_timing_enabled
        d.create_event(options={"foo": 1})
        d.create_event(options=StreamOptions())
        d.create_event(options=EventOptions(ipc_enabled=True))
        d.create_event(options=EventOptions(ipc_enabled=True, timing_enabled=True))
        d.create_context()
        d.create_context(3)
        d.create_context(ContextOptions(resources=None))
        d.create_context(ContextOptions(resources=[]))
        d.create_context(ContextOptions(resources=[3]))
        """,
    ),
    "context": (
        CURRENT + "ctx = d.context\n",
        """
        public(Context)
        Context()
        Context(1)
        ctx
        ctx.handle
        type(ctx.handle).__name__, ctx.handle is ctx.handle
        ctx.is_closed, ctx.is_green
        hash(ctx) == hash(d.context), ctx == d.context, ctx == 3, ctx != None
        ctx < ctx
        ctx.create_stream()
        ctx.create_stream(StreamOptions())
        ctx.create_stream(options={"priority": -1})
        ctx.close()
        ctx.is_closed
        ctx.foo = 1
        ctx.handle = 1
        pickle.dumps(ctx)
        copy.copy(ctx)
        weakref.ref(ctx)() is ctx
        d.create_stream().context == ctx
        d.create_event().context == ctx
        d.set_current(ctx) == ctx
        """,
    ),
    "context: options": (
        COMMON,
        """
        ContextOptions()
        ContextOptions(1)
        ContextOptions(resources=None)
        ContextOptions(foo=1)
        ContextOptions(resources=[1]) == ContextOptions(resources=[1])
        [f.name for f in dataclasses.fields(ContextOptions)]
        """,
    ),
    "host": (
        COMMON,
        """
        public(Host)
        Host()
        Host(0), Host(5), Host(numa_id=3)
        Host.numa_current()
        Host(is_numa_current=True), Host(is_numa_current=1)
        Host() is Host(), Host(0) is Host(numa_id=0), Host.numa_current() is Host(is_numa_current=True), Host(None) is Host()
        Host(-1)
        Host("x")
        Host(1.0)
        Host(True)
        Host(0, is_numa_current=True)
        Host(0, True)
        Host(foo=1)
        Host().numa_id, Host(3).numa_id, Host.numa_current().numa_id
        Host().is_numa_current, Host(3).is_numa_current, Host.numa_current().is_numa_current
        Host(3) == Host(3), hash(Host(3)) == hash(Host(3)), Host(3) == 3, Host(3) == Host(4), Host() == Host.numa_current()
        pickle.loads(pickle.dumps(Host(3))) is Host(3)
        pickle.loads(pickle.dumps(Host.numa_current())) is Host.numa_current()
        copy.copy(Host()) is Host(), copy.deepcopy(Host.numa_current()) is Host.numa_current()
        in_thread(Host) is Host()
        Host().foo = 1
        Host().numa_id = 1
        weakref.ref(Host())() is Host()
        Host() < Host(1)
        Host(1 << 80)
        """,
    ),
    "private names": (
        COMMON,
        """
        from cuda.core._utils.cuda_utils import CUDAError, NVRTCError, handle_return
        CUDAError.__mro__, NVRTCError.__mro__
        from cuda.core._kernel_arg_handler import ParamHolder
        from cuda.core._context import ContextOptions as C; C is ContextOptions
        from cuda.core._device_resources import SMResourceOptions
        from cuda.core._utils.cuda_utils import ComputeCapability; ComputeCapability(9, 0)
        from cuda.core._utils import cuda_utils as cu; cu.handle_return((driver.CUresult.CUDA_SUCCESS,))
        cu.handle_return((driver.CUresult.CUDA_SUCCESS, 1)), cu.handle_return((driver.CUresult.CUDA_SUCCESS, 1, 2))
        cu.handle_return((driver.CUresult.CUDA_ERROR_INVALID_VALUE,))
        cu.handle_return((driver.CUresult.CUDA_ERROR_INVALID_VALUE, 1))
        from cuda.bindings import runtime, nvrtc; cu.handle_return((runtime.cudaError_t.cudaErrorInvalidValue,))
        cu.handle_return((nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION,))
        cu.handle_return((nvrtc.nvrtcResult.NVRTC_SUCCESS, 7), handle=None)
        isinstance(cu.NVRTCError("x"), cu.CUDAError), cu.CUDAError("x").args
        cu.check_or_create_options(StreamOptions, None, "x")
        cu.check_or_create_options(StreamOptions, {"priority": 1}, "x")
        cu.check_or_create_options(StreamOptions, 3, "x")
        cu.check_or_create_options(StreamOptions, None, "x", keep_none=True)
        cu.cast_to_3_tuple("x", 1), cu.cast_to_3_tuple("x", (1, 2))
        cu.cast_to_3_tuple("x", (1, 2, 3, 4))
        cu.is_sequence([1]), cu.is_sequence((1,)), cu.is_sequence(3), cu.is_sequence(range(3))
        cu.is_nested_sequence([[1]]), cu.is_nested_sequence([1])
        import cuda.core; cuda.core.__version__
        sorted(set(cuda.core.__all__))
        [n for n in cuda.core.__all__ if not hasattr(cuda.core, n)]
        """,
    ),
    "environment": (
        COMMON
        + """
which = "from cuda.core import *; d = Device(); d.set_current(); print(int(d.default_stream.handle))"
each = "from cuda.core import *; d = Device(); d.set_current(); s = d.default_stream; e = s.record(); e.sync(); print(e.is_done, s.device == d)"
complete = "import rlcompleter; old = vars(rlcompleter).copy(); import cuda.core; print([n for n in vars(rlcompleter) if old.get(n) is not vars(rlcompleter)[n]])"
""",
        """
        python(which)
        python(which, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="0")
        python(which, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")
        python(each, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")
        python(complete)
        python(complete, CUDA_CORE_DONT_FIX_TAB_COMPLETION="1")
        python("import sys, cuda.core; print('numpy' in sys.modules)")
        python("import cuda.core; from cuda.bindings import driver; print(driver.cuCtxGetCurrent()[0])")
        """,
    ),
    "typing": (
        COMMON + "import cuda.core.typing as T\n",
        """
        sorted(T.__all__)
        {n: [[m.name, m.value] for m in getattr(T, n)] for n in sorted(T.__all__) if hasattr(getattr(T, n), "__members__")}
        T.CompilerBackendType.NVRTC == "NVRTC", str(T.CompilerBackendType.NVRTC), repr(T.CompilerBackendType.NVRTC)
        T.CompilerBackendType("NVRTC") is T.CompilerBackendType.NVRTC
        T.CompilerBackendType("nvrtc")
        T.SourceCodeType("x")
        isinstance(3, T.IsStreamType)
        str(T.DevicePointerType)
        [T.SourceCodeType.__mro__[n].__name__ for n in range(3)]
        pickle.loads(pickle.dumps(T.SourceCodeType.CXX)) is T.SourceCodeType.CXX
        hash(T.SourceCodeType.PTX) == hash("ptx"), f"{T.SourceCodeType.PTX}"
        """,
    ),
}
