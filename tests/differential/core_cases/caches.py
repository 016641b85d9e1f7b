"""Program caches and their keys."""

from .programs import SOURCES

CACHES = (
    SOURCES
    + """
import time
from cuda.core.utils import *
o = ProgramOptions(arch="sm_80")
folder = tempfile.mkdtemp()
def key(**more):
    return make_program_cache_key(**{**dict(code=code, code_type="c++", options=o, target_type="cubin"), **more})
def option(**more):
    return key(options=ProgramOptions(arch="sm_80", **more))
class Mine(ProgramCacheResource):
    def __init__(self):
        self.store, self.log = {}, []
    def __getitem__(self, k):
        self.log.append(("getitem", type(k).__name__)); return self.store[k]
    def get(self, k, default=None):
        self.log.append(("get", type(k).__name__)); return self.store.get(k, default)
    def __setitem__(self, k, v):
        self.log.append(("set", type(k).__name__, type(v).__name__)); self.store[k] = v
    def __delitem__(self, k):
        del self.store[k]
    def __len__(self):
        return len(self.store)
    def clear(self):
        self.store.clear()
"""
)

GROUPS = {
    "cache key": (
        CACHES,
        """
        type(key()), len(key()), key() == key()
        key(code_type="C++") == key(), key(target_type="CUBIN") == key(), key(code=code + " ") == key(), key(target_type="ptx") == key()
        option(name="z") == key(), option(ftz=False) == key(), option(debug=False) == key(), option(define_macro="A") == key(), option(no_cache=True) == key()
        key(name_expressions=("k",)) == key(), key(name_expressions=("k", "j")) == key(name_expressions=("j", "k")), key(name_expressions=["k"]) == key(name_expressions=("k",))
        key(name_expressions=(b"k",)) == key(name_expressions=("k",))
        key(name_expressions=(3,))
        key(extra_digest=b"x") == key(), key(extra_digest=None) == key()
        key(extra_digest="x")
        key(code=code.encode())
        key(code=3)
        key(code_type="x")
        key(target_type="x")
        key(options=None)
        key(options=3)
        make_program_cache_key(code, "c++", o, "cubin")
        key(code_type="nvvm")
        key(code_type="nvvm", target_type="ptx") == key(code_type="nvvm", target_type="ptx", code=code.encode())
        key(code_type="ptx", target_type="ltoir")
        option(include_path="/tmp")
        option(pre_include="x.h")
        option(pch=True)
        option(create_pch="x")
        option(use_pch="x")
        option(time="x")
        option(fdevice_time_trace="x")
        option(time=False) == key()
        option(fdevice_time_trace=False) == key()
        option(create_pch=False) == key()
        option(use_pch=False) == key()
        option(pch_dir=False) == key()
        option(include_path=False) == key(), option(pre_include=False) == key(), option(pch=False) == key()
        key(code=ptx, code_type="ptx", name_expressions=("x", b"y")) == key(code=ptx, code_type="ptx")
        key(code_type="nvvm", target_type="ptx", name_expressions=("x",)) == key(code_type="nvvm", target_type="ptx")
        len(key(options=ProgramOptions(arch="sm_80", include_path="/tmp"), extra_digest=b"x"))
        key(options=ProgramOptions(arch="sm_80", create_pch="x"), extra_digest=b"x")
        key(code_type="nvvm", target_type="ptx", options=ProgramOptions(arch="sm_80", use_libdevice=True))
        key(code_type="nvvm", target_type="ptx", options=ProgramOptions(arch="sm_80", extra_sources=[("a", "b")])) == key(code_type="nvvm", target_type="ptx")
        """,
    ),
    "cache: in memory": (
        CACHES + "m = InMemoryProgramCache()\nc = Program(code, 'c++').compile('ptx')\n",
        """
        public(InMemoryProgramCache)
        isinstance(m, ProgramCacheResource), len(m), bool(m)
        m["a"] = c
        m[b"a"] == c.code, m["a"] == c.code, type(m["a"]), len(m)
        m["nope"]
        m[b"nope"]
        m.get(b"nope"), m.get(b"nope", 3)
        m[3]
        m[3] = c
        m.get(3)
        m["b"] = 3
        m["b"] = "x"
        m["b"] = b"bytes"; m["b"]
        m["b"] = bytearray(b"x"); m["b"]
        m["b"] = memoryview(b"y"); m["b"]
        m["gone"] = ObjectCode.from_cubin("/nonexistent/x.cubin")
        m.update({"gone": ObjectCode.from_cubin("/nonexistent/x.cubin")})
        m["gone"] = ObjectCode.from_cubin(folder)
        del m["b"]
        del m["b"]
        m.hits, m.misses
        m.lock_timeout, m.compile_lock("a") is None
        m.clear(); len(m)
        m.update({b"x": b"1", "y": b"2"}); len(m), m["x"], m[b"y"]
        m.update([(b"z", b"3")]); len(m)
        m.update(3)
        m.close(); len(m)
        with InMemoryProgramCache() as w: w["a"] = b"1"
        w.get("a")
        pickle.dumps(m)
        InMemoryProgramCache(max_size_bytes=0)
        InMemoryProgramCache(max_size_bytes=-1)
        InMemoryProgramCache(max_size_bytes="x")
        InMemoryProgramCache(10)
        x = InMemoryProgramCache(max_size_bytes=10); x[b"a"] = b"12345"; x[b"b"] = b"12345"; x[b"a"]; x[b"c"] = b"1"; len(x), [x.get(k) for k in (b"a", b"b", b"c")]
        x[b"d"] = b"123456789"; len(x), [x.get(k) for k in (b"a", b"b", b"c", b"d")]
        x[b"big"] = b"x" * 20; x.get(b"big")
        """,
    ),
    "cache: on disk": (
        CACHES + "f = FileStreamProgramCache(folder + '/c')\nc = Program(code, 'c++').compile('ptx')\n",
        """
        public(FileStreamProgramCache)
        isinstance(f, ProgramCacheResource), len(f), bool(f), os.path.isdir(folder + "/c")
        f["a"] = c
        f[b"a"] == c.code, f["a"] == c.code, type(f["a"]), len(f)
        FileStreamProgramCache(folder + "/c")["a"] == c.code
        f["nope"]
        f.get("nope"), f.get("nope", 3)
        f[3]
        f["b"] = 3
        f["b"] = "x"
        f["b"] = b"bytes"; f["b"]
        f["gone"] = ObjectCode.from_cubin("/nonexistent/x.cubin")
        del f["b"]
        del f["b"]
        f.update({"q": b"1"}); len(f)
        f.hits, f.misses
        f.lock_timeout, f.compile_lock("a") is None
        f.clear(); len(f)
        f.close(); len(f)
        f["a"] = b"1"; f["a"]
        with FileStreamProgramCache(folder + "/w") as w: w["a"] = b"1"
        FileStreamProgramCache(folder + "/w").get("a")
        len(FileStreamProgramCache()), os.path.isdir(os.environ["XDG_CACHE_HOME"] + "/cuda-python/program-cache")
        len(FileStreamProgramCache(pathlib.Path(folder) / "p"))
        FileStreamProgramCache(folder, max_size_bytes=0)
        FileStreamProgramCache(folder, max_size_bytes=-1)
        FileStreamProgramCache(folder, max_size_bytes="x")
        FileStreamProgramCache("/proc/nope")
        FileStreamProgramCache(3)
        pickle.dumps(f)
        """,
    ),
    "cache: compile": (
        CACHES + "m = InMemoryProgramCache()\n",
        """
        a = Program(code, "c++", o).compile("ptx", cache=m); len(m)
        b = Program(code, "c++", o).compile("ptx", cache=m); a.code == b.code, b.code_type, b.name, b.symbol_mapping, len(m)
        Program(code, "c++", ProgramOptions(arch="sm_80", name="other")).compile("ptx", cache=m).name, len(m)
        b.get_kernel("k").num_arguments
        Program(code, "c++", o).compile("ptx", cache=m, logs=io.StringIO()).code_type
        Program("nonsense", "c++", o).compile("ptx", cache=m)
        len(m)
        Program(code, "c++", o).compile("ptx", cache={})
        Program(code, "c++", o).compile("ptx", cache=3)
        Program(code, "c++", o).compile("ptx", cache=None).code_type
        Program(code, "c++", ProgramOptions(arch="sm_80", include_path="/tmp")).compile("ptx", cache=m)
        Program(code, "c++", ProgramOptions(arch="sm_80", time="x")).compile("ptx", cache=m)
        Program(template, "c++", o).compile("ptx", name_expressions=("t<float>",), cache=m).symbol_mapping
        Program(template, "c++", o).compile("ptx", name_expressions=("t<float>",), cache=m).symbol_mapping
        n = Mine(); Program(code, "c++", o).compile("ptx", cache=n).code_type, n.log
        n.log.clear(); Program(code, "c++", o).compile("ptx", cache=n).code_type, n.log
        g = FileStreamProgramCache(folder + "/g"); Program(code, "c++", o).compile("ptx", cache=g).code == a.code, len(g)
        Program(code, "c++", o).compile("ptx", cache=FileStreamProgramCache(folder + "/g")).code == a.code, len(g)
        p = Program(code, "c++", o); p.close(); p.compile("ptx", cache=m)
        """,
    ),
    "cache: resource": (
        CACHES,
        """
        public(ProgramCacheResource)
        ProgramCacheResource()
        sorted(ProgramCacheResource.__abstractmethods__)
        class Half(ProgramCacheResource): pass
        Half()
        m = Mine(); m.update({"a": b"1"}); m.log
        m.log.clear(); m.close(); m.log
        with Mine() as q: len(q)
        """,
    ),
}
