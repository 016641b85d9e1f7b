"""Runs the matrix instructions of helpers/matrix_cases.py on the GPU of this machine, an H100 or H200, and writes digests of their
results to tests/golden/matrices.json.

    python tests/golden/record_matrices.py

Works with any installed `cuda.bindings`, NVIDIA's included.
"""

import json
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from cuda.bindings import driver

from helpers.device import check, on_cpu_device
from helpers.matrix_cases import CASES


def main():
    if on_cpu_device():
        sys.exit("record_matrices.py: this process runs on the CPU device; golden values come from a GPU")
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
    name = check(driver.cuDeviceGetName(256, device)).split(b"\0")[0].decode()
    digests = {case.id: " ".join(case.run()) for case in CASES}
    golden = {"made_by": f"{name}, driver {check(driver.cuDriverGetVersion())}", "digests": digests}
    (TESTS / "golden" / "matrices.json").write_text(json.dumps(golden, indent=0) + "\n")


if __name__ == "__main__":
    main()
