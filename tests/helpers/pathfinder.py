"""Shared objects written without a compiler, fresh environments, and questions to fresh processes, for the tests of
cuda.pathfinder.

Everything here works with any implementation of `cuda.pathfinder`: the tests can be validated against NVIDIA's own
package. Tests of what only Cupyrite does carry the marker `ours`.
"""

import atexit
import functools
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import textwrap

import pytest

OURS = importlib.util.find_spec("cupyrite") is not None
ours = pytest.mark.skipif(not OURS, reason="behaviour of Cupyrite only")
# Libraries missing in a made-up environment are found in an installed toolkit, which no variable hides.
bare = pytest.mark.skipif(
    any(map(os.path.exists, ("/usr/local/cuda", "/opt/cuda"))),
    reason="this machine has a CUDA toolkit, which is searched too",
)

MACHINES = {"x86_64": 62, "aarch64": 183, "arm64": 183}
MACHINE = MACHINES.get(os.uname().machine, 62) if hasattr(os, "uname") else 62

# Variables that influence a search. The machine's own are removed.
STEERING = ("CUDA_", "CUDNN_", "NCCL_", "CONDA_", "CUPYRITE_", "LD_", "PYTHON", "VIRTUAL_ENV")

# Runs in the fresh process: answers a list of questions as JSON, on the line after a marker.
ASK = r"""
import ctypes, json, os, sys, warnings
def same(path):
    return None if path is None else path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
def described(value):
    if value is None or isinstance(value, (bool, int, str, list, dict)):
        return value
    names = ("name", "abs_path", "filename", "found_via", "was_already_loaded_from_elsewhere")
    return {n: getattr(value, n) for n in names if hasattr(value, n)}
def usable(value):
    # Whether a path, as text in this process's locale, leads to something.
    path = value if isinstance(value, str) else getattr(value, "abs_path", None)
    try:
        return os.path.lexists(path) and bool(os.lstat(path))
    except (OSError, ValueError, TypeError):
        return False
def maps():
    with open("/proc/self/maps", "rb") as file:
        lines = file.read().decode("utf-8", "surrogateescape").splitlines()
    return sorted({line.split(None, 5)[5] for line in lines if len(line.split(None, 5)) == 6 and ".so" in line})
def number(function, *symbol):
    # A version function of a library that is loaded: int f(int*) or f(int*, int*).
    handle = load(function)._handle_uint
    values = [ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()]
    status = getattr(ctypes.CDLL(None, handle=handle), symbol[0])(*map(ctypes.byref, values))
    return [status, *(v.value for v in values)]
def compiled(library):
    # Compiles a kernel with the NVRTC found: its builtins library must be found too.
    nvrtc = ctypes.CDLL(None, handle=load(library)._handle_uint)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = b"extern \"C\" __global__ void f(double* x) { x[threadIdx.x] = sqrt(x[threadIdx.x]); }"
    first = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"f.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
    second = nvrtc.nvrtcCompileProgram(program, 1, options)
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    return [first, second, size.value > 100]
def load(name):
    from cuda.pathfinder import load_nvidia_dynamic_lib
    return load_nvidia_dynamic_lib(name)
def clear():
    import cuda.pathfinder as p
    for name in dir(p):
        if hasattr(getattr(p, name), "cache_clear"):
            getattr(p, name).cache_clear()
OWN = {
    "maps": maps, "number": number, "compiled": compiled, "clear": clear,
    "dlopen": lambda path: bool(ctypes.CDLL(path)), "chdir": os.chdir, "setenv": os.environ.__setitem__,
    "run": lambda code: exec(code, globals()),
}
answers = []
for function, *arguments in json.loads(sys.argv[1]):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if function in OWN:
                answer = {"value": OWN[function](*arguments)}
            else:
                import cuda.pathfinder
                value = getattr(cuda.pathfinder, function)(*arguments)
                answer = {"value": described(value), "usable": usable(value)}
        except Exception as error:
            answer = {
                "error": type(error).__name__, "text": str(error),
                "bases": [b.__name__ for b in type(error).__mro__],
                "cause": None if error.__cause__ is None else str(error.__cause__),
            }
    ignored = (ResourceWarning, DeprecationWarning)
    answer["warnings"] = [str(w.message) for w in caught if not issubclass(w.category, ignored)]
    answers.append(answer)
print("\n@@@" + json.dumps(answers))
"""


def align(data, to=8):
    """`data` padded with zeros to a multiple of `to` bytes."""
    return data + b"\0" * (-len(data) % to)


def shared_object(path, soname=None, needed=(), runpath=None, machine=MACHINE, bits=64):
    """Writes a shared object that the dynamic loader accepts: a name and its dependencies, without code and symbols.

    Written byte by byte, so that tests need no compiler and can use foreign architectures.
    """
    path = pathlib.Path(path)
    strings, offsets = b"\0", {}
    for text in filter(None, (soname, runpath, *needed)):
        offsets[text] = len(strings)
        strings += os.fsencode(text) + b"\0"
    header, segment, symbol = 64, 56, 24
    symbols_at = header + 3 * segment
    hash_at = symbols_at + symbol
    strings_at = hash_at + 24
    dynamic_at = strings_at + len(align(strings))
    entries = [(1, offsets[name]) for name in needed]
    entries += [(14, offsets[soname])] if soname else []
    entries += [(29, offsets[runpath])] if runpath else []
    entries += [(4, hash_at), (5, strings_at), (6, symbols_at), (10, len(strings)), (11, symbol), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    total = dynamic_at + len(dynamic)
    ident = b"\x7fELF" + bytes([1 if bits == 32 else 2, 1, 1]) + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, header, 0, 0, header, segment, 3, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, total, total, 0x10000)
    where = struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    # Without this segment the loader requests an executable stack, which newer systems refuse.
    stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    table = align(struct.pack("<IIII", 1, 1, 0, 0), 24)
    data = head + load + where + stack + bytes(symbol) + table + align(strings) + dynamic
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def touch(path, data=b"", mode=0o644):
    """Writes a file and creates its parent folders."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def clean_environment(**changes):
    """This process's environment without the variables that influence a search, plus `changes` (None removes)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(STEERING)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8:surrogateescape"}
    environment |= {"PYTHONNOUSERSITE": "1"}
    for name, value in changes.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = os.fspath(value)
    return environment


class Place:
    """A fresh virtual environment with nothing but the package under test."""

    def __init__(self, folder, system_site=False, packages=None):
        self.folder = pathlib.Path(folder)
        base = pathlib.Path(sys.executable).resolve()
        # What the module venv does; venv itself fails in a folder whose name is not UTF-8.
        settings = f"home = {base.parent}\ninclude-system-site-packages = {str(system_site).lower()}\n"
        touch(self.folder / "pyvenv.cfg", settings.encode())
        self.python = self.folder / "bin" / "python"
        self.python.parent.mkdir()
        self.python.symlink_to(base)
        self.site = self.folder / f"lib/python3.{sys.version_info.minor}/site-packages"
        self.site.mkdir(parents=True)
        self.cwd = self.folder / "empty"
        self.cwd.mkdir()
        self.script = touch(self.folder / "script" / "ask.py", ASK.encode())
        for package in installed() if packages is None else packages:
            (self.site / package.name).symlink_to(package)

    def start(self, *questions, env=None, options=(), cwd=None, timeout=120, script=None, python=None):
        """The completed fresh process; a time limit turns a hang into an error."""
        return subprocess.run(
            [python or self.python, *options, script or self.script, json.dumps(questions)],
            env=clean_environment(**(env or {})),
            cwd=cwd or self.cwd,
            capture_output=True,
            timeout=timeout,
        )

    def ask(self, *questions, **how):
        """The answers of a fresh process to (function, argument, ...) questions, in order."""
        done = self.start(*questions, **how)
        return answers(done)

    def load(self, name, **how):
        """The answer to a single `load_nvidia_dynamic_lib`."""
        return self.ask(("load_nvidia_dynamic_lib", name), **how)[0]


def answers(done):
    """The answers of a completed process; fails with its output where it crashed or printed none."""
    out, err = (s.decode("utf-8", "replace") for s in (done.stdout, done.stderr))
    assert done.returncode == 0 and "\n@@@" in out, f"exit status {done.returncode}\n{out}\n{err}"
    return json.loads(out.rsplit("\n@@@", 1)[1])


def installed():
    """The folders of the package under test: `cuda`, and Cupyrite's `cupyrite`."""
    import cuda.pathfinder

    folders = [pathlib.Path(cuda.pathfinder.__file__).parents[1]]
    if OURS:
        folders.append(pathlib.Path(importlib.util.find_spec("cupyrite").origin).parent)
    return folders


@functools.cache
def alone():
    """A folder with the package under test alone: where it is installed, wheels may lie beside it."""
    folder = tempfile.TemporaryDirectory(prefix="cupyrite-alone-")
    atexit.register(folder.cleanup)
    for package in installed():
        (pathlib.Path(folder.name) / package.name).symlink_to(package)
    return folder.name


def run(code, options=(), cwd=None, **env):
    """The output of a fresh process that finds the package under test through PYTHONPATH."""
    root = os.pathsep.join(filter(None, (alone(), env.pop("PYTHONPATH", None))))
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env=clean_environment(**{"PYTHONPATH": root, "CUPYRITE_DEVICE": "cpu", **env}),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def path_of(answer):
    """The path in an answer; fails with the answer where there is none."""
    assert "value" in answer, answer
    value = answer["value"]
    assert value is not None, answer
    assert answer.get("usable", True), f"no usable path: {answer}"
    return value if isinstance(value, str) else value["abs_path"]
