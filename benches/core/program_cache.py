"""Cost of a hit in a program cache: finding, reading and checking a cubin of some ten kB on disk.

    python benches/core/program_cache.py [--no-compile]

Prints the median and the 99th percentile of a `get`, of computing a key, and of `Program.compile` with a hit. The budget of
a hit on disk is 50 us. Runs with any installed `cuda.core`, NVIDIA's included.
"""

import argparse
import statistics
import tempfile
import time

KERNEL = 'extern "C" __global__ void k(int *a) { *a = 1; }'
SIZES = (10_000, 50_000, 200_000)


def measure(call, count=3000):
    """Median and 99th percentile of a call, in microseconds."""
    clock = time.perf_counter_ns
    times = []
    for _ in range(count):
        begin = clock()
        call()
        times.append(clock() - begin)
    times.sort()
    return statistics.median(times) / 1e3, times[int(count * 0.99)] / 1e3


def show(name, call, count=3000):
    median, p99 = measure(call, count)
    print(f"{name:44} {median:9.2f} us   p99 {p99:9.2f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-compile", action="store_true", help="leave out the rows that need NVRTC")
    arguments = parser.parse_args()
    from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache

    with tempfile.TemporaryDirectory() as folder:
        disk, memory = FileStreamProgramCache(folder), InMemoryProgramCache()
        for size in SIZES:
            code = bytes(range(256)) * (size // 256)
            key = size.to_bytes(32, "little")
            disk[key] = memory[key] = code
            assert disk[key] == memory[key] == code
            show(f"hit on disk, {size // 1000} kB", lambda key=key: disk.get(key))
            show(f"hit in memory, {size // 1000} kB", lambda key=key: memory.get(key))
        show("miss on disk", lambda: disk.get(b"nothing"))
        if not arguments.no_compile:
            from cuda.core import Program, ProgramOptions
            from cuda.core.utils import make_program_cache_key

            options = ProgramOptions(arch="sm_80")
            given = {"code": KERNEL, "code_type": "c++", "options": options, "target_type": "cubin"}
            show("make_program_cache_key", lambda: make_program_cache_key(**given), 500)
            program = Program(KERNEL, "c++", options)
            program.compile("cubin", cache=disk)
            show("Program.compile, hit on disk", lambda: program.compile("cubin", cache=disk), 500)


if __name__ == "__main__":
    main()
