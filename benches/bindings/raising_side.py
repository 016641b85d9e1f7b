"""One side of raising.py: times the calls in this interpreter and prints JSON. Runs with Cupyrite and with its peer."""

import json

from cuda.bindings import nvjitlink, nvvm

from harness.timing import calling, smallest_mean


def time_of(function, *arguments):
    return smallest_mean(30, 20_000, calling(function, *arguments))


def main():
    program = nvvm.create_program()
    linker = nvjitlink.create(1, ["-arch=sm_80"])
    python = [
        time_of(nvvm.version),
        time_of(nvvm.get_program_log_size, program),
        time_of(nvjitlink.version),
        time_of(nvjitlink.get_error_log_size, linker),
    ]
    paths = []
    try:
        from cupyrite import _native

        paths = [str(_native.library_path(name)) for name in ("nvvm", "nvJitLink")]
    except ImportError:
        pass
    print(json.dumps({"python": python, "id": time_of(id, None), "paths": paths}))


if __name__ == "__main__":
    main()
