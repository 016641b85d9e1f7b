"""Starts processes that end while their threads are inside a compiler or linker, and counts those that crash.

    exit_storm.py [--processes 1000] [--at-once N] [KIND ...]

KIND: nvrtc, nvjitlink, nvvm, nvfatbin, driver (its compiler of PTX). Each process ends after a random delay, while two daemon
threads make calls in a loop. Prints a line for each kind; exits with 1 if a process crashed, hung or printed an error.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import subprocess
import sys

SETUP = r"""
import sys, threading, time
from cuda.bindings import driver, nvfatbin, nvjitlink, nvrtc, nvvm
body = "".join(f"x = sinf(x * {i}.5f) + tgammaf(x + {i}.0f);" for i in range(6))
code = f'extern "C" __global__ void k(float *p) {{ float x = p[0]; {body} p[0] = x; }}'.encode()
ptx = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\0"
ir = b'''
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
define void @k() { ret void }
!nvvm.annotations = !{!0}
!0 = !{void ()* @k, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0}
'''
inside = threading.Event()
def use_nvrtc():
    program = nvrtc.nvrtcCreateProgram(code, b"x", 0, None, None)[1]
    inside.set()
    nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_80"])
    nvrtc.nvrtcDestroyProgram(program)
def use_nvjitlink():
    handle = nvjitlink.create(1, ["-arch=sm_80"])
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx, len(ptx), "x")
    inside.set()
    nvjitlink.complete(handle)
    nvjitlink.destroy(handle)
def use_nvvm():
    program = nvvm.create_program()
    nvvm.add_module_to_program(program, ir, len(ir), "x")
    inside.set()
    nvvm.compile_program(program, 1, ["-arch=compute_80"])
    nvvm.destroy_program(program)
def use_nvfatbin():
    handle = nvfatbin.create(["-64"], 1)
    inside.set()
    nvfatbin.add_ptx(handle, ptx, len(ptx), "80", "x", "")
    nvfatbin.get(handle, bytearray(nvfatbin.size(handle)))
    nvfatbin.destroy(handle)
def use_driver():
    global ready
    if not ready:
        driver.cuInit(0)
        ready = driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(0)[1])[1]
    driver.cuCtxSetCurrent(ready)
    inside.set()
    status, module = driver.cuModuleLoadData(ptx)
    if status == 0:
        driver.cuModuleUnload(module)
ready = None
def work(use):
    while True:
        use()
for _ in range(2):
    threading.Thread(target=work, args=(globals()["use_" + sys.argv[1]],), daemon=True).start()
assert inside.wait(100)
time.sleep(float(sys.argv[2]))
print("end", flush=True)
"""
KINDS = ("nvrtc", "nvjitlink", "nvvm", "nvfatbin", "driver")


def run(kind, delay):
    """What became of one process: "ok", or its exit status and the end of its output."""
    command = [sys.executable, "-W", "ignore", "-c", SETUP, kind, str(delay)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "hung"
    if (done.returncode, done.stdout, done.stderr) == (0, "end\n", ""):
        return "ok"
    return f"exit status {done.returncode}: {done.stderr.strip()[-200:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1000, help="processes of each kind (1000)")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="processes at a time (one a core)")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"some of {', '.join(KINDS)} (all)")
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"unknown kind {min(unknown)!r}; expected some of: {', '.join(KINDS)}")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        for kind in options.kinds or KINDS:
            delays = [random.uniform(0, 0.05) for _ in range(options.processes)]
            found = collections.Counter(pool.map(lambda delay, kind=kind: run(kind, delay), delays))
            good = found.pop("ok", 0)
            bad += sum(found.values())
            print(f"{kind}: {good} of {options.processes} ended well", *found.items(), sep="\n    ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
