"""The CPU device's `ptxas` as a program, and the device that loads its cubins."""

import ctypes
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
from cuda.bindings import driver
from cupyrite.run import FOLDER

from helpers.device import check

pytestmark = pytest.mark.cpu

PTXAS = pathlib.Path(FOLDER) / "ptxas"
PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry square(.param .u64 data) {
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    mul.lo.u32 %r2, %r1, %r1;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


def ptxas(*words, program=PTXAS, text=None):
    return subprocess.run([program, *map(str, words)], input=text, capture_output=True, text=True, timeout=60)


def test_a_cubin_loads_and_its_kernel_runs(shared_context, tmp_path):
    (tmp_path / "square.ptx").write_text(PTX)
    cubin = tmp_path / "square.cubin"
    done = ptxas("-v", "--gpu-name=sm_89", tmp_path / "square.ptx", "-o", cubin)
    assert done.returncode == 0 and not done.stdout
    module = check(driver.cuModuleLoadData(cubin.read_bytes()))
    function = check(driver.cuModuleGetFunction(module, b"square"))
    registers = check(driver.cuFuncGetAttribute(driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function))
    assert f"ptxas info    : Used {registers} registers, used 0 barriers, 360 bytes cmem[0]\n" in done.stderr
    memory = check(driver.cuMemAlloc(4 * 32))
    check(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, ((int(memory),), (ctypes.c_void_p,)), 0))
    out = np.zeros(32, np.uint32)
    check(driver.cuMemcpyDtoH(out, memory, out.nbytes))
    np.testing.assert_array_equal(out, np.arange(32) ** 2)
    check(driver.cuMemFree(memory))
    check(driver.cuModuleUnload(module))


def test_errors_go_to_standard_error():
    done = ptxas("-arch=sm_80", "-", "-o", os.devnull, text=PTX.replace("mul.lo.u32", "mul.low.u32"))
    assert done.returncode == 255 and not done.stdout
    assert done.stderr.startswith("ptxas <stdin>, line 11; error   : ") and ".low" in done.stderr
    assert done.stderr.endswith("\nptxas fatal   : Ptx assembly aborted due to errors\n")


def test_the_program_needs_the_device_beside_it(tmp_path):
    alone = shutil.copy(PTXAS, tmp_path)
    done = ptxas("--version", program=alone)
    assert (
        done.returncode == 127
        and f"ptxas fatal   : {tmp_path}/libcupyrite_cpu_device.so cannot be loaded" in done.stderr
    )
    # A link to it is as good as the program.
    (tmp_path / "link").symlink_to(PTXAS)
    assert "Cupyrite" in ptxas("--version", program=tmp_path / "link").stdout
