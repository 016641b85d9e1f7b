"""Linker, LinkerOptions, ObjectCode, Kernel with its attributes and occupancy."""

from .programs import SOURCES

PARTS = (
    SOURCES
    + """
rdc = ProgramOptions(relocatable_device_code=True)
lto = ProgramOptions(relocatable_device_code=True, link_time_optimization=True)
helper = 'extern "C" __device__ float helper(float x) { return x * x; }'
user = 'extern "C" __device__ float helper(float x); extern "C" __global__ void m(float *d) { d[0] = helper(d[0]); }'
a, b = (Program(text, "c++", rdc).compile("cubin") for text in (helper, user))
pa, pb = (Program(text, "c++", rdc).compile("ptx") for text in (helper, user))
la, lb = (Program(text, "c++", lto).compile("ltoir") for text in (helper, user))
arch = "sm_" + d.arch
"""
)

KERNELS = (
    SOURCES
    + """
source = 'extern "C" __global__ void k(float *a, int n, double x) { a[threadIdx.x] += n * x; } extern "C" __global__ void none() {}'
program = Program(source, "c++")
oc = program.compile("ptx")
bare = oc.code
s = d.create_stream()
file = tempfile.NamedTemporaryFile(suffix=".ptx")
file.write(bare); file.flush()
k = oc.get_kernel("k")
"""
)

FLAGS = "time verbose link_time_optimization ptx debug lineinfo ftz prec_div prec_sqrt fma optimize_unused_variables no_cache".split()

VALUES = {
    "max_register_count": ("32", "0"),
    "optimization_level": ("0", "3"),
    "kernels_used": ("'a'", "['a', 'b']", "('a',)", "3"),
    "variables_used": ("'a'", "['a', 'b']", "('a',)", "3"),
    "ptxas_options": ("'-v'", "['-v', '-O1']", "('-v',)", "3"),
    "split_compile": ("0", "4"),
    "split_compile_extended": ("0", "4"),
    "arch": ("'sm_90a'", "'compute_80'"),
    "name": ("'n'", "None", "3"),
}

GROUPS = {
    "linker options": (
        SOURCES,
        "\n".join(
            f"LinkerOptions(**{{'arch': 'sm_80', '{f}': {v}}}).as_bytes()" for f in FLAGS for v in ("True", "False")
        )
        + "\n"
        + "\n".join(
            f"LinkerOptions(**{{'arch': 'sm_80', '{f}': {v}}}).as_bytes()"
            for f, values in VALUES.items()
            for v in values
        )
        + """
        LinkerOptions()
        LinkerOptions().as_bytes() == [b"-arch=sm_" + d.arch.encode()]
        LinkerOptions(arch="sm_80").as_bytes("nvjitlink"), LinkerOptions(arch="sm_80").as_bytes("nvJitLink")
        LinkerOptions(arch="sm_80").as_bytes("driver")
        LinkerOptions(arch="sm_80").as_bytes("nvrtc")
        LinkerOptions(arch="sm_80", numba_debug=True).as_bytes()
        LinkerOptions(foo=3)
        LinkerOptions() == LinkerOptions(), LinkerOptions(arch="x") == LinkerOptions(), LinkerOptions() == 3
        hash(LinkerOptions())
        pickle.loads(pickle.dumps(LinkerOptions(ftz=True))) == LinkerOptions(ftz=True)
        [(f.name, f.default) for f in dataclasses.fields(LinkerOptions)]
        LinkerOptions(arch='sm_80', max_register_count=1, time=True, verbose=True, link_time_optimization=True, ptx=True, optimization_level=2, debug=True, lineinfo=True, ftz=True, prec_div=True, prec_sqrt=False, fma=True, kernels_used='a', variables_used='b', optimize_unused_variables=True, ptxas_options='-v', split_compile=2, split_compile_extended=3, no_cache=True).as_bytes()
        """,
    ),
    "linker: object": (
        PARTS,
        """
        public(Linker)
        Linker.which_backend(), type(Linker.which_backend())
        Linker()
        Linker(options=LinkerOptions())
        Linker(3)
        Linker(a, 3)
        Linker(a.code)
        Linker(a, options=3)
        Linker(a, options={"foo": 1})
        Linker(a, options=ProgramOptions())
        Linker(ObjectCode.from_ptx(b"nonsense"))
        Linker(ObjectCode.from_cubin(b"nonsense"))
        l = Linker(a, b, options={"arch": arch}); l.is_closed
        type(l.handle), l.handle != 0
        l.get_info_log(), l.get_error_log()
        l.link()
        l.link("x")
        l.link(None)
        l.link("ltoir")
        l == l, hash(l) == hash(l)
        copy.copy(l)
        pickle.dumps(l)
        weakref.ref(l)() is l
        l.foo = 3
        l.close(), l.close(), l.is_closed
        l.handle
        l.link("cubin")
        l.get_info_log(), l.get_error_log()
        with Linker(a) as q: pass
        Linker(a).backend
        """,
    ),
    "linker: links": (
        PARTS,
        """
        r = Linker(a, b, options=LinkerOptions(arch=arch)).link("cubin"); r.code_type, r.name, r.code[:4], r.symbol_mapping
        Linker(a, b).link("cubin").code[:4]
        Linker(a, b, options=LinkerOptions(name="mine", arch=arch)).link("cubin").name
        Linker(pa, pb, options=LinkerOptions(arch=arch)).link("cubin").code[:4]
        Linker(pa, b, options=LinkerOptions(arch=arch)).link("cubin").code[:4]
        Linker(la, lb, options=LinkerOptions(arch=arch, link_time_optimization=True)).link("cubin").code[:4]
        Linker(la, lb, options=LinkerOptions(arch=arch, link_time_optimization=True, ptx=True)).link("ptx").code_type
        Linker(la, lb, options=LinkerOptions(arch=arch)).link("cubin")
        Linker(a, b, options=LinkerOptions(arch=arch)).link(ObjectCodeFormatType.CUBIN).code_type
        Linker(b, options=LinkerOptions(arch=arch)).link("cubin")
        x = Linker(b, options=LinkerOptions(arch=arch)); x.link("cubin")
        "helper" in x.get_error_log(), x.get_info_log()
        x.close(); "helper" in x.get_error_log()
        l = Linker(a, b, options=LinkerOptions(arch=arch)); l.link("cubin").code_type
        l.link("cubin")
        Linker(la, lb, options=LinkerOptions(arch=arch, link_time_optimization=True, ptx=True)).link("ptx").get_kernel("m").num_arguments
        Linker(a, b, options=LinkerOptions(arch=arch)).link("cubin").get_kernel("m").num_arguments
        """,
    ),
    "object code": (
        KERNELS,
        """
        public(ObjectCode)
        ObjectCode()
        oc.code_type, type(oc.code_type), oc.name, type(oc.code), oc.symbol_mapping, oc.code is oc.code
        type(oc.handle).__name__, int(oc.handle) != 0
        oc
        oc.code = 3
        oc.foo = 3
        oc.symbol_mapping["x"] = "y"; oc.symbol_mapping
        weakref.ref(oc)() is oc
        oc == oc, hash(oc) == hash(oc), oc == ObjectCode.from_ptx(bare), oc == 3
        q = pickle.loads(pickle.dumps(oc)); q.code == oc.code, q.name, q.code_type, q.symbol_mapping
        q.get_kernel("k").num_arguments
        copy.copy(oc).code == oc.code
        [getattr(ObjectCode, "from_" + n)(b"x").code_type for n in "cubin ptx ltoir fatbin object library".split()]
        ObjectCode.from_ptx(file.name).code_type, ObjectCode.from_ptx(file.name).get_kernel("k").num_arguments
        ObjectCode.from_ptx(pathlib.Path(file.name)).get_kernel("k").num_arguments
        ObjectCode.from_ptx(file.name).code == file.name
        pickle.loads(pickle.dumps(ObjectCode.from_ptx(file.name))).get_kernel("k").num_arguments
        ObjectCode.from_ptx("/nonexistent").code_type
        ObjectCode.from_ptx("/nonexistent").get_kernel("k")
        ObjectCode.from_ptx(3)
        ObjectCode.from_ptx(None)
        ObjectCode.from_ptx()
        ObjectCode.from_ptx(bytearray(bare)).get_kernel("k").num_arguments
        ObjectCode.from_ptx(memoryview(bare))
        ObjectCode.from_ptx(b"").get_kernel("k")
        ObjectCode.from_ptx(bare).name, ObjectCode.from_ptx(bare, name="nn").name
        ObjectCode.from_ptx(bare, "nn")
        ObjectCode.from_ptx(bare, name=3)
        ObjectCode.from_ptx(bare, name=None)
        ObjectCode.from_ptx(bare, symbol_mapping={"z": b"k"}).get_kernel("z").num_arguments
        ObjectCode.from_ptx(bare, symbol_mapping={"z": "k"}).get_kernel("z").num_arguments
        ObjectCode.from_ptx(bare, symbol_mapping={"z": b"k"}).get_kernel("k").num_arguments
        ObjectCode.from_ptx(bare, symbol_mapping={"z": 3}).get_kernel("z")
        ObjectCode.from_ptx(bare, symbol_mapping={"z": b"k"}).symbol_mapping
        ObjectCode.from_ptx(bare, symbol_mapping=3)
        ObjectCode.from_ptx(bare, symbol_mapping=[("z", "k")])
        ObjectCode.from_ptx(bare, symbol_mapping=None).symbol_mapping
        ObjectCode.from_ptx(bare).get_kernel("nope")
        ObjectCode.from_ptx(bare).get_kernel("")
        ObjectCode.from_ptx(bare).get_kernel(b"k").num_arguments
        ObjectCode.from_ptx(bare).get_kernel(3)
        ObjectCode.from_ptx(bare).get_kernel()
        ObjectCode.from_ptx(b"nonsense").get_kernel("k")
        ObjectCode.from_cubin(b"nonsense").get_kernel("k")
        ObjectCode.from_ltoir(b"nonsense").get_kernel("k")
        ObjectCode.from_fatbin(b"nonsense").get_kernel("k")
        ObjectCode.from_object(b"nonsense").get_kernel("k")
        ObjectCode.from_library(b"nonsense").get_kernel("k")
        type(oc.get_module()).__name__
        oc.get_module() == oc.get_module()
        repr(ObjectCode.from_ltoir(b"x"))
        program.compile("cubin").get_kernel("k").num_arguments
        """,
    ),
    "kernel: object": (
        KERNELS,
        """
        public(Kernel)
        Kernel.from_handle(int(k.handle), ObjectCode.from_ptx(bare)) == k
        other = ObjectCode.from_ptx(bare); int(other.handle) != 0
        Kernel.from_handle(int(k.handle), other) == k
        Kernel.from_handle(int(k.handle), mod=other).num_arguments
        Kernel()
        k
        type(k.handle).__name__, k.handle is k.handle, int(k.handle) != 0
        k == oc.get_kernel("k"), hash(k) == hash(oc.get_kernel("k")), k == oc.get_kernel("none"), k == 3, k is oc.get_kernel("k")
        k.num_arguments, oc.get_kernel("none").num_arguments
        k.arguments_info, oc.get_kernel("none").arguments_info
        k.arguments_info[0].offset, k.arguments_info[1].size
        k < k
        k.foo = 1
        weakref.ref(k)() is k
        copy.copy(k)
        pickle.loads(pickle.dumps(k)).num_arguments
        Kernel.from_handle(int(k.handle)) == k, Kernel.from_handle(int(k.handle)).num_arguments
        Kernel.from_handle(k.handle)
        Kernel.from_handle(int(k.handle), oc).num_arguments, Kernel.from_handle(handle=int(k.handle), mod=oc).num_arguments
        Kernel.from_handle(int(k.handle), 3)
        Kernel.from_handle("x")
        Kernel.from_handle(None)
        Kernel.from_handle(-1)
        Kernel.from_handle(0)
        r = weakref.ref(oc); del oc; k.num_arguments
        """,
    ),
    "kernel: attributes": (
        KERNELS + "t = k.attributes\n",
        """
        k.attributes is k.attributes
        public(t)
        type(t)()
        {n: getattr(t, n) for n in public(type(t))}
        {n: type(getattr(t, n)).__name__ for n in public(type(t))}
        t.nonsense
        t.num_regs = 3
        t[d].num_regs == t.num_regs, t[0].num_regs == t.num_regs
        t[99]
        t["x"]
        t.num_regs()
        t.max_threads_per_block()
        t.num_regs(0)
        """,
    ),
    "kernel: occupancy": (
        KERNELS + "o = k.occupancy\nc = LaunchConfig(grid=1, block=128)\n",
        """
        public(o)
        type(o)()
        k.occupancy is k.occupancy
        o.max_active_blocks_per_multiprocessor(256, 0), o.max_active_blocks_per_multiprocessor(block_size=64, dynamic_shared_memory_size=1024)
        o.max_active_blocks_per_multiprocessor(256)
        o.max_active_blocks_per_multiprocessor(0, 0)
        o.max_active_blocks_per_multiprocessor(-1, 0)
        o.max_active_blocks_per_multiprocessor("x", 0)
        o.max_active_blocks_per_multiprocessor(4096, 0)
        o.max_potential_block_size(0, 0)
        o.max_potential_block_size(dynamic_shared_memory_needed=0, block_size_limit=64)
        o.max_potential_block_size(0, 0)._asdict()
        o.max_potential_block_size("x", 0)
        o.max_potential_block_size(lambda block: block * 4, 0)
        o.max_potential_block_size(0)
        o.max_potential_block_size(0, -1)
        o.available_dynamic_shared_memory_per_block(1, 128)
        o.available_dynamic_shared_memory_per_block(0, 128)
        o.available_dynamic_shared_memory_per_block(1)
        o.max_potential_cluster_size(c, stream=s)
        o.max_active_clusters(c, stream=s)
        o.max_active_clusters(3, stream=s)
        o.max_active_clusters(c)
        o.max_active_clusters(c, stream=None)
        o.max_active_clusters(c, stream=3)
        o.max_potential_cluster_size(c)
        """,
    ),
}
