"""How the sides of a benchmark take turns, and how their figures are evaluated.

Clock rates drift from minute to minute, and a core whose sibling thread is busy is up to twice as slow as its neighbour.
Each turn therefore starts with a search for the fastest core, and all sides run on that core, one after the other.
Disturbances only add time: the smallest figure of each side counts, and the overhead over C is the difference of two
smallest figures. The largest figure is printed beside it: a large spread means a busy machine.

Each side measures the cost of the Python loop itself in the same process; it is subtracted.
"""

import dataclasses
import os
import time


def take_turns(turns, sides, one_core=True):
    """Calls the `sides` ({name: callable}) one after the other, `turns` times, in reverse order every second time.

    Returns {name: results in turn order}. Without `one_core` the system places them, as the threads of the CPU device
    require.
    """
    results = {name: [] for name in sides}
    allowed = os.sched_getaffinity(0)
    try:
        for turn in range(turns):
            if one_core:
                # Child processes inherit the affinity.
                os.sched_setaffinity(0, {fastest_core(allowed)})
            names = list(sides) if turn % 2 == 0 else list(reversed(sides))
            for name in names:
                results[name].append(sides[name]())
    finally:
        os.sched_setaffinity(0, allowed)
    return results


def fastest_core(allowed):
    """The core of this set on which a short loop takes the least time."""

    def cost(core):
        os.sched_setaffinity(0, {core})
        times = []
        for _ in range(5):
            begin = time.perf_counter_ns()
            for _ in range(20_000):
                pass
            times.append(time.perf_counter_ns() - begin)
        # The median: a core that is interrupted now and then is not a fast one.
        return sorted(times)[2]

    return min(allowed, key=cost)


@dataclasses.dataclass(frozen=True)
class Figure:
    """The smallest and the largest of some figures."""

    best: float
    worst: float

    @classmethod
    def of(cls, values):
        values = list(values)
        return cls(min(values), max(values))

    def __str__(self):
        return f"{self.best:,.0f} (to {self.worst:,.0f})"


def smallest_of_columns(runs):
    """The smallest figure of each row over some runs; None for a row that a run lacks."""
    return [min(column) if None not in column else None for column in zip(*runs)] if runs else None


def total(runs, row):
    """The `Figure` of a row in Python, less the loop; None where a side lacks the row."""
    if not runs or any(run["python"][row] is None for run in runs):
        return None
    return Figure.of(run["python"][row] - run["loop"] for run in runs)


def over_c(runs, c, row):
    """The `Figure` of a row's overhead over C; None where a side lacks the row."""
    figure = total(runs, row)
    if figure is None:
        return None
    base = min(run[row] for run in c)
    return Figure(figure.best - base, figure.worst - base)
