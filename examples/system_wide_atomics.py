"""System-wide atomic operations: all threads of a kernel on one set of words, and the host beside them.

Every thread applies every operation to managed memory. The host computes the expected words from the number of threads
alone, because the results do not depend on the order.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, attribute, check, run, verify, view

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
    if not attribute("MANAGED_MEMORY"):
        raise Skip("the device does not support managed memory")
    blocks, block = 64, 256
    threads = blocks * block
    kernels = Kernels(SOURCE)
    shared = check(driver.cuMemAllocManaged(4 * 10, int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)))
    words = view(shared, 10, np.int32)
    words[:] = 0
    words[3], words[7] = threads, 0xFF
    kernels["everything"](blocks, block, shared)
    check(driver.cuCtxSynchronize())
    for number, (found, wanted) in enumerate(zip(words.tolist(), expected(threads))):
        if wanted is None:
            verify(0 <= found < threads, f"word {number} is {found}, which no thread wrote")
        else:
            verify(found == wanted, f"word {number} is {found}, not {wanted}")

    # The host takes tickets before and after the kernel does: none is given twice, none is lost.
    counter = check(driver.cuMemAllocManaged(4, int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)))
    taken = check(driver.cuMemAllocManaged(4 * (threads + 2), int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)))
    count, holders = view(counter, 1, np.int32), view(taken, threads + 2, np.int32)
    holders[:] = 0
    count[0] = 1
    holders[0] = 1
    kernels["tickets"](blocks, block, counter, taken)
    check(driver.cuCtxSynchronize())
    holders[count[0]] += 1
    count[0] += 1
    verify(count[0] == threads + 2 and (holders == 1).all(), "a ticket was lost or given twice")
    del words, count, holders
    for pointer in (shared, counter, taken):
        check(driver.cuMemFree(pointer))
    print(f"{threads} threads and the host agree on every word")


if __name__ == "__main__":
    run(main)
