"""CuPy's side of core.py: times the rows that CuPy has and prints JSON, null for the others.

core_cupy_side.py FILE.ptx ROUNDS
"""

import json
import sys

import cupy
import numpy
from core_side import BYTES

from harness.timing import empty, smallest_mean


def main():
    with open(sys.argv[1], "rb") as file:
        ptx = file.read()
    rounds = int(sys.argv[2])
    module = cupy.cuda.function.Module()
    module.load(ptx + b"\0")
    none, three, sixteen = (module.get_function(name) for name in ("none", "three", "sixteen"))
    stream = cupy.cuda.Stream(non_blocking=True)
    source, target = cupy.zeros(BYTES, numpy.uint8), cupy.zeros(BYTES, numpy.uint8)
    event = cupy.cuda.Event(disable_timing=True)
    arguments3 = (numpy.float32(2), source, numpy.uint64(BYTES))
    arguments16 = (source, numpy.float32(2), numpy.int32(1), numpy.uint64(BYTES)) * 4

    def launches(kernel, arguments):
        def one(loop):
            for _ in loop:
                kernel((1,), (1,), arguments, stream=stream)

        return time_of(256, one)

    def devices(loop):
        for _ in loop:
            cupy.cuda.Device()

    def events(loop):
        for _ in loop:
            cupy.cuda.Event(disable_timing=True)

    def streams(loop):
        for _ in loop:
            cupy.cuda.Stream(non_blocking=True)

    def records(loop):
        for _ in loop:
            event.record(stream)

    def syncs(loop):
        for _ in loop:
            stream.synchronize()

    def buffers(loop):
        for _ in loop:
            cupy.cuda.alloc(BYTES)

    def copies(loop):
        for _ in loop:
            target.data.copy_from_device_async(source.data, BYTES, stream)

    def time_of(count, one):
        one((None,))
        stream.synchronize()
        return smallest_mean(rounds, count, one, stream.synchronize)

    rows = [
        launches(none, ()),
        launches(three, arguments3),
        launches(sixteen, arguments16),
        time_of(2000, devices),
        time_of(500, events),
        time_of(20, streams),
        time_of(200, records),
        time_of(500, syncs),
        time_of(100, buffers),
        time_of(200, copies),
        None,
    ]
    print(json.dumps({"python": rows, "loop": smallest_mean(rounds, 2000, empty)}))


if __name__ == "__main__":
    main()
