"""Time to move device memory from one Dask worker to another: by IPC, through the host, and as a NumPy array.

    python benches/scaling/dask_transfer.py [--sizes MIB ...] [--turns N] [--devices N ...]

Both workers are on this machine and share its first device, or have one each (`--devices 0 1`). The time is that of a task that
needs the memory and does nothing.
"""

import argparse
import time

import numpy as np
from cuda.core import Device
from cupyrite.dask import DevicePlugin
from distributed import Client, LocalCluster, wait


def on_device(size):
    device = Device()
    stream = device.create_stream()
    buffer = device.allocate(size, stream=stream)
    buffer.fill(1, stream=stream)
    stream.sync()
    return buffer


def on_host(size):
    return np.ones(size, np.uint8)


def touch(memory):
    return None


def seconds(client, make, size, turns):
    first, second = list(client.scheduler_info()["workers"])
    smallest = float("inf")
    for turn in range(turns):
        name = f"{make.__name__}-{size}-{turn}-{time.time()}"
        memory = client.submit(make, size, key=name, workers=[first])
        wait(memory)
        start = time.perf_counter()
        client.submit(touch, memory, key=f"touch {name}", workers=[second]).result(timeout=120)
        smallest = min(smallest, time.perf_counter() - start)
        del memory
    return smallest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 1, 16, 128, 512], help="MiB")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--devices", type=int, nargs="+", default=[0], help="one for both workers, or two")
    options = parser.parse_args()
    if len(options.devices) > 2:
        parser.error(f"--devices {options.devices}: expected one or two")
    table = {}
    for label, ipc in (("IPC", True), ("host", False)):
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
            Client(cluster) as client,
        ):
            client.register_plugin(
                DevicePlugin(workers_per_device=2 // len(options.devices), devices=options.devices, ipc=ipc)
            )
            for size in options.sizes:
                table[label, size] = seconds(client, on_device, size << 20 or 1024, options.turns)
                if ipc:
                    table["NumPy", size] = seconds(client, on_host, size << 20 or 1024, options.turns)
    print(f"{Device().name}: milliseconds, smallest of {options.turns}")
    print(f"{'MiB':>6} {'IPC':>9} {'host':>9} {'NumPy':>9}")
    for size in options.sizes:
        row = [1e3 * table[label, size] for label in ("IPC", "host", "NumPy")]
        print(f"{size:6} " + " ".join(f"{value:9.1f}" for value in row))


if __name__ == "__main__":
    main()
