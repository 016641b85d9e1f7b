"""System-wide atomic operations: all threads of a kernel on one set of words, and the host beside them.

Every thread applies every operation to managed memory. The host computes the expected words from the number of threads
alone, because the results do not depend on the order.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, ManagedMemoryResource, Program, launch

SOURCE = r"""
extern "C" __global__ void everything(int *word)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd_system(&word[0], 10);
    atomicExch_system(&word[1], thread);
    atomicMax_system(&word[2], thread);
    atomicMin_system(&word[3], thread);
    atomicInc_system((unsigned *)&word[4], 17);
    atomicDec_system((unsigned *)&word[5], 137);
    atomicCAS_system(&word[6], thread - 1, thread);
    atomicAnd_system(&word[7], 2 * thread + 7);
    atomicOr_system(&word[8], 1 << (thread % 32));
    atomicXor_system(&word[9], thread);
}

// A ticket for each thread, from a counter that the host counts on, too.
extern "C" __global__ void tickets(int *counter, int *taken)
{
    int mine = atomicAdd_system(counter, 1);
    atomicAdd_system(&taken[mine], 1);
}
"""


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def first_device():
    """The first device, made current."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    print(f"on {device.name}")
    return device


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


def expected(threads):
    """The words after `threads` threads where the result is unique; None elsewhere."""
    increment = decrement = 0
    for _ in range(threads):
        increment = 0 if increment >= 17 else increment + 1
        decrement = 137 if decrement == 0 or decrement > 137 else decrement - 1
    together = np.bitwise_and.reduce(2 * np.arange(threads) + 7) & 0xFF
    return [
        10 * threads,
        None,
        threads - 1,
        0,
        increment,
        decrement,
        None,
        together,
        -1,
        int(np.bitwise_xor.reduce(np.arange(threads))),
    ]


def main():
    device = first_device()
    if not device.properties.managed_memory:
        skip("the device does not support managed memory")
    stream = device.create_stream()
    kernels = Program(SOURCE, "c++").compile("cubin")
    config = LaunchConfig(grid=64, block=256)
    threads = 64 * 256
    try:
        memory = ManagedMemoryResource()
    except Exception as reason:
        skip(f"no pool of managed memory: {reason}")

    def integers(count):
        """A buffer of managed memory, and the host's view of it."""
        buffer = memory.allocate(4 * count, stream=stream)
        stream.sync()  # Pool memory is available in stream order.
        return buffer, np.from_dlpack(buffer).view(np.int32)

    shared, words = integers(10)
    words[:] = 0
    words[3], words[7] = threads, 0xFF
    launch(stream, config, kernels.get_kernel("everything"), shared)
    stream.sync()
    for number, (found, wanted) in enumerate(zip(words.tolist(), expected(threads))):
        if wanted is None:
            verify(0 <= found < threads, f"word {number} is {found}, which no thread wrote")
        else:
            verify(found == wanted, f"word {number} is {found}, not {wanted}")

    # The host takes tickets before and after the kernel does: none is given twice, none is lost.
    counter, count = integers(1)
    taken, holders = integers(threads + 2)
    holders[:] = 0
    count[0] = 1
    holders[0] = 1
    launch(stream, config, kernels.get_kernel("tickets"), counter, taken)
    stream.sync()
    holders[count[0]] += 1
    count[0] += 1
    verify(count[0] == threads + 2 and (holders == 1).all(), "a ticket was lost or given twice")
    print(f"{threads} threads and the host agree on every word")
    print("done: the results are right")


if __name__ == "__main__":
    main()
