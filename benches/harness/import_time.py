"""Import time over the bare interpreter."""

import statistics
import subprocess
import time


def once(side, statement):
    """Milliseconds of one interpreter that runs one statement."""
    start = time.perf_counter()
    subprocess.run([side.python, "-c", statement], env=side.environment, check=True)
    return (time.perf_counter() - start) * 1e3


def over_bare(side, statement, runs):
    """(median, smallest) milliseconds of a statement over the bare interpreter.

    Each run of the statement is paired with a bare run right before or after it, in alternating order, and counts as the
    difference of the two: other load on the machine affects both. `smallest` is the smallest time with the statement
    less the smallest bare time.
    """
    statements = ("pass", statement)
    for statement in statements:
        once(side, statement)  # fills the byte-code and page caches
    pairs = []
    for number in range(runs):
        order = statements if number % 2 == 0 else statements[::-1]
        took = {statement: once(side, statement) for statement in order}
        pairs.append(tuple(took[statement] for statement in statements))
    smallest = min(full for _, full in pairs) - min(bare for bare, _ in pairs)
    return statistics.median(full - bare for bare, full in pairs), smallest
