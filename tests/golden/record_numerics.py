"""Runs the numeric cases on the GPU of this machine and writes what it computed to tests/golden/gpu.npz.

    python tests/golden/record_numerics.py [OUTPUT.npz]

Any installed `cuda.bindings` will do, NVIDIA's own included. The file holds numbers only.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from cuda.bindings import driver, nvrtc  # noqa: E402
from helpers.device import check, on_cpu_device  # noqa: E402
from helpers.numeric_cases import CASES, run  # noqa: E402


def main():
    if on_cpu_device():
        sys.exit("record_numerics.py: this process runs on the CPU device; golden values come from a GPU")
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuCtxCreate(None, 0, device))
    results = {case.id: run(case) for case in CASES}
    name = check(driver.cuDeviceGetName(256, device)).split(b"\0")[0].decode()
    version = "%d.%d" % check(nvrtc.nvrtcVersion())
    results["made_by"] = np.array(f"{name}, driver {check(driver.cuDriverGetVersion())}, NVRTC {version}")
    target = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).with_name("gpu.npz")
    target.parent.mkdir(exist_ok=True)
    np.savez_compressed(target, **results)
    check(driver.cuCtxDestroy(context))
    print(f"{target}: {len(results) - 1} cases, {target.stat().st_size} bytes, {results['made_by']}")


if __name__ == "__main__":
    main()
