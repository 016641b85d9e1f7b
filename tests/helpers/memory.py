"""Memory growth of this process."""

import gc
import os


def resident():
    """Resident memory in bytes, after a collection."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def assert_flat(make, rounds):
    """Fails if repeating `make()` grows the memory of the process."""
    for _ in range(min(rounds, 100)):
        make()
    grown = []
    # A leak grows every time; memory of compilers and linkers varies by megabytes.
    while not grown or (grown[-1] >= (2 << 20) + 16 * rounds and len(grown) < 4):
        before = resident()
        for _ in range(rounds):
            make()
        grown.append(resident() - before)
    assert grown[-1] < (2 << 20) + 16 * rounds, f"grew by {grown} bytes in {rounds} rounds each"
