"""Runs the numeric cases on the GPU of this machine and writes the results to tests/golden/gpu.npz.

    python tests/golden/record_numerics.py [OUTPUT.npz]

Works with any installed `cuda.bindings`, NVIDIA's included. The file holds numbers only.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from cuda.bindings import driver, nvrtc

from helpers.device import check, on_cpu_device
from helpers.numeric_cases import CASES, run


def main():
    if on_cpu_device():
        sys.exit("record_numerics.py: this process runs on the CPU device; golden values come from a GPU")
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuCtxCreate(None, 0, device))
    results = {case.id: run(case) for case in CASES}
    name = check(driver.cuDeviceGetName(256, device)).split(b"\0")[0].decode()
    major, minor = check(nvrtc.nvrtcVersion())
    version = f"{major}.{minor}"
    results["made_by"] = np.array(f"{name}, driver {check(driver.cuDriverGetVersion())}, NVRTC {version}")
    target = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).with_name("gpu.npz")
    target.parent.mkdir(exist_ok=True)
    np.savez_compressed(target, **results)
    check(driver.cuCtxDestroy(context))
    print(f"{target}: {len(results) - 1} cases, {target.stat().st_size} bytes, {results['made_by']}")


if __name__ == "__main__":
    main()
