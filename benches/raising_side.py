"""One side of raising.py: times calls of functions that raise in this interpreter and prints JSON. Runs with Cupyrite
and with its peer."""

import itertools
import json
import time

from cuda.bindings import nvjitlink, nvvm


def smallest(function, *arguments, rounds=30, count=20_000):
    """Nanoseconds a call: the smallest mean of some rounds. The loop itself is part of it."""
    best = float("inf")
    clock = time.perf_counter_ns
    for _ in range(rounds):
        loop = itertools.repeat(None, count)
        start = clock()
        for _ in loop:
            function(*arguments)
        best = min(best, (clock() - start) / count)
    return best


def main():
    program = nvvm.create_program()
    linker = nvjitlink.create(1, ["-arch=sm_80"])
    python = [
        smallest(nvvm.version),
        smallest(nvvm.get_program_log_size, program),
        smallest(nvjitlink.version),
        smallest(nvjitlink.get_error_log_size, linker),
    ]
    paths = []
    try:
        from cupyrite import _native

        paths = [str(_native.library_path(name)) for name in ("nvvm", "nvJitLink")]
    except ImportError:
        pass
    print(json.dumps({"python": python, "nothing": smallest(id, None), "paths": paths}))


if __name__ == "__main__":
    main()
