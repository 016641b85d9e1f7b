"""`CUPYRITE_STRICT_ABI`: the packages without anything that CPython's limited API does not promise."""

import os
import subprocess
import sys
import textwrap

import pytest
from cupyrite import _native

PROGRAM = """
    import ctypes, gc, struct
    from cupyrite import _native
    from cuda.bindings import driver
    from cuda.core import Device, EventOptions, LaunchConfig, ObjectCode, launch

    print(*_native.private_layouts())

    PTX = b'''.version 7.0
    .target sm_70
    .address_size 64
    .visible .entry add(.param .u64 out, .param .u32 a, .param .f64 b)
    {
        .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .f64 %fd<3>;
        ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.f64 %fd1, [b];
        cvt.rn.f64.u32 %fd2, %r1;
        add.f64 %fd2, %fd2, %fd1;
        st.global.f64 [%rd1], %fd2;
        ret;
    }'''

    def check(result):
        assert result[0] is driver.CUresult.CUDA_SUCCESS, result
        return result[1] if len(result) == 2 else result[1:]

    device = Device()
    device.set_current()
    kernel = ObjectCode.from_ptx(PTX).get_kernel("add")
    kept = []
    for round in range(3):
        # Handles and result tuples that are dropped at once, and others that are kept.
        for number in range(20):
            event = check(driver.cuEventCreate(0))
            check(driver.cuEventRecord(event, 0))
            assert check(driver.cuMemGetInfo())
            pointer = check(driver.cuMemAlloc(64 + number))
            kept.append((int(pointer), pointer))
            check(driver.cuEventDestroy(event))
            assert int(check(driver.cuCtxGetDevice())) == 0
        assert len({address for address, _ in kept}) == len(kept)
        assert all(int(pointer) == address for address, pointer in kept)
        while kept:
            check(driver.cuMemFree(kept.pop()[1]))
        stream = device.create_stream()
        options = EventOptions(timing_enabled=True)
        for number in range(20):
            buffer = device.allocate(8, stream=stream)
            launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, number, ctypes.c_double(0.5))
            event = stream.record(options=options)
            event.sync()
            out = ctypes.create_string_buffer(8)
            check(driver.cuMemcpyDtoH(out, int(buffer.handle), 8))
            assert struct.unpack("d", out.raw) == (number + 0.5,)
            buffer.close()
            event.close()
        buffer = device.allocate(8, stream=stream)
        pair = ((int(buffer.handle), 1, 2.0), (ctypes.c_void_p, ctypes.c_uint, ctypes.c_double))
        check(driver.cuLaunchKernel(driver.CUfunction(int(kernel.handle)), 1, 1, 1, 1, 1, 1, 0, stream.handle, pair, 0))
        stream.sync()
        gc.collect()
    print("done")
"""


def run(program, value):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"CUPYRITE_STRICT_ABI": value},
    )


@pytest.mark.parametrize("value", ["1", "0", "", "tuples,reuse", "scalars, cupy"])
def test_programs_work_with_and_without_private_layouts(value):
    done = run(PROGRAM, value)
    assert done.returncode == 0, done.stderr
    layouts, end = done.stdout.split("\n")[:2]
    assert end == "done"
    off = {"1": set(layouts.split())}.get(value, set(value.replace(" ", "").split(",")))
    assert not off & set(layouts.split())
    assert value != "1" or not layouts


def test_layouts_hold_on_the_versions_they_were_checked_on():
    names = set(run("from cupyrite import _native; print(*_native.private_layouts())", "").stdout.split())
    assert {"scalars", "cupy"} <= names
    if (3, 11) <= sys.version_info < (3, 14) and getattr(sys, "_is_gil_enabled", lambda: True)():
        assert names == {"reuse", "tuples", "scalars", "cupy"}
    assert names >= set(_native.private_layouts())


def test_a_name_that_is_unknown_is_refused():
    done = run("import cuda.bindings.driver", "tuples,yes")
    assert done.returncode != 0
    assert "ValueError: CUPYRITE_STRICT_ABI=" in done.stderr and "unknown name 'yes'" in done.stderr.replace('"', "'")
