"""One measurement of `cuda.pathfinder` in a process of its own; started by pathfinder.py with both interpreters.

Arguments: what to measure, the folder that stands in for site-packages, and operands. Prints JSON: seconds and the result.
"""

import json
import site
import sys
import time


def timed(work):
    """(seconds, result or the exception's name)."""
    start = time.perf_counter()
    try:
        result = work()
    except Exception as error:
        result = type(error).__name__
    return time.perf_counter() - start, result


def main():
    what, folder, *words = sys.argv[1:]
    # The two interpreters have different site-packages folders; this one is common to both.
    installed = site.getsitepackages
    site.getsitepackages = lambda *args: [folder, *installed(*args)]
    sys.path.insert(0, folder)
    if what == "plain":
        import ctypes

        seconds, result = timed(lambda: ctypes.CDLL(words[0], ctypes.RTLD_GLOBAL)._name)
    else:
        from cuda import pathfinder

        load, header = pathfinder.load_nvidia_dynamic_lib, pathfinder.locate_nvidia_header_directory
        if what == "load":
            seconds, result = timed(lambda: load(words[0]))
            result = getattr(result, "abs_path", result)
        elif what == "loaded":
            import ctypes

            ctypes.CDLL(words[1], ctypes.RTLD_GLOBAL)
            seconds, result = timed(lambda: load(words[0]).found_via)
        elif what == "again":
            # Less the cost of the loop.
            load(words[0])
            rounds = range(200_000)
            start = time.perf_counter()
            for _ in rounds:
                pass
            loop = time.perf_counter() - start
            start = time.perf_counter()
            for _ in rounds:
                load("cudart")
            seconds, result = (time.perf_counter() - start - loop) / len(rounds), None
        elif what == "header":
            seconds, result = timed(lambda: header(words[0]))
            result = getattr(result, "abs_path", result)
        else:
            seconds, result = timed(lambda: pathfinder.find_nvidia_binary_utility(words[0]))
    print(json.dumps({"seconds": seconds, "result": result}))


if __name__ == "__main__":
    main()
