"""A process that ends while a daemon thread compiles or links: exit waits for the compiler, which would crash otherwise."""

import pytest

from helpers.programs import python

SETUP = """
import sys, threading, time
from cuda.bindings import nvrtc
from cuda.core import *
body = "".join(f"x = sinf(x * {i}.5f) + tgammaf(x + {i}.0f);" for i in range(12))
code = "\\n".join(f'extern "C" __global__ void k{i}(float *p) {{ float x = p[0]; {body} p[0] = x; }}' for i in range(3))
ptx = ".version 7.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }"
options = ProgramOptions(arch="sm_80")
inside = threading.Event()
def with_core():
    while True:
        program = Program(code, "c++", options)
        inside.set()
        program.compile("ptx")
def with_bindings():
    while True:
        program = nvrtc.nvrtcCreateProgram(code.encode(), b"x", 0, None, None)[1]
        inside.set()
        nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_80"])
        nvrtc.nvrtcDestroyProgram(program)
def with_linker():
    while True:
        linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=LinkerOptions(arch="sm_80"))
        inside.set()
        linker.link("cubin")
"""


@pytest.mark.parametrize("kind", ["with_core", "with_bindings", "with_linker"])
def test_a_process_ends_while_threads_compile(kind):
    body = f"""
for _ in range(2):
    threading.Thread(target={kind}, daemon=True).start()
assert inside.wait(60)
time.sleep(float(sys.argv[1]))
print("end", flush=True)
"""
    for delay in (0.0, 0.03, 0.1):
        done = python(SETUP + body, delay, timeout=90)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", ""), (delay, done)
