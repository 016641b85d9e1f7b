"""How the sides of a benchmark take turns, and what comes of their figures.

A machine is faster in one minute than in the next, and a core whose other half is busy is up to twice as slow as its
neighbour. So every turn begins with a search for the fastest core of the machine, and all sides run on that one, one after
the other. What disturbs a measurement only ever adds to it: the smallest figure of each side counts, and what a call costs
over C is the difference of two of those. The largest is shown with it: where they are far apart, the machine was busy.

What Python's loop takes by itself is measured on each side, in the same process, and taken off: it is the same whatever
is called.
"""

import dataclasses
import os
import time


def take_turns(turns, sides, one_core=True):
    """Calls the `sides` (name: callable) one after the other, `turns` times, in the opposite order every other time.
    Returns name: what the calls returned, in the order of the turns. Without `one_core` they run wherever the system puts
    them, as the CPU device's threads have to."""
    found = {name: [] for name in sides}
    allowed = os.sched_getaffinity(0)
    try:
        for turn in range(turns):
            if one_core:
                # Processes that are started inherit it.
                os.sched_setaffinity(0, {fastest_core(allowed)})
            names = list(sides) if turn % 2 == 0 else list(reversed(sides))
            for name in names:
                found[name].append(sides[name]())
    finally:
        os.sched_setaffinity(0, allowed)
    return found


def fastest_core(allowed):
    """The one of these on which a short loop takes the least time."""

    def cost(core):
        os.sched_setaffinity(0, {core})
        times = []
        for _ in range(5):
            begin = time.perf_counter_ns()
            for _ in range(20_000):
                pass
            times.append(time.perf_counter_ns() - begin)
        # The middle one: a core that is disturbed now and then is no fast one.
        return sorted(times)[2]

    return min(allowed, key=cost)


@dataclasses.dataclass(frozen=True)
class Figure:
    """The smallest of some figures, and the largest."""

    best: float
    worst: float

    @classmethod
    def of(cls, values):
        values = list(values)
        return cls(min(values), max(values))

    def __str__(self):
        return f"{self.best:,.0f} (to {self.worst:,.0f})"


def alone(runs, row):
    """What a row costs in Python, the loop taken off; None where a side has no such row."""
    if not runs or any(run["python"][row] is None for run in runs):
        return None
    return Figure.of(run["python"][row] - run["loop"] for run in runs)


def over(runs, c, row):
    """What it costs more than in C."""
    figure = alone(runs, row)
    if figure is None:
        return None
    base = min(run[row] for run in c)
    return Figure(figure.best - base, figure.worst - base)
