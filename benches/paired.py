"""How the sides of a benchmark take turns, and what comes of their figures.

A machine is faster in one minute than in the next. So the figures of one turn are compared with each other, and what is
shown is the median over the turns, with the smallest and the largest: where these are far apart, the row says little.

What Python's loop takes by itself is measured on each side, in the same process, and taken off: it is the same whatever
is called.
"""

import dataclasses
import statistics


def take_turns(turns, sides):
    """Calls the `sides` (name: callable) one after the other, `turns` times, in the opposite order every other time.
    Returns name: what the calls returned, in the order of the turns."""
    found = {name: [] for name in sides}
    for turn in range(turns):
        names = list(sides) if turn % 2 == 0 else list(reversed(sides))
        for name in names:
            found[name].append(sides[name]())
    return found


@dataclasses.dataclass(frozen=True)
class Figure:
    """The median of some figures, and the smallest and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values):
        values = sorted(values)
        return cls(statistics.median(values), values[0], values[-1])

    def __str__(self):
        return f"{self.median:,.0f} ({self.low:,.0f} to {self.high:,.0f})"


def alone(runs, row):
    """What a row costs in Python, the loop taken off; None where a side has no such row."""
    if not runs or any(run["python"][row] is None for run in runs):
        return None
    return Figure.of(run["python"][row] - run["loop"] for run in runs)


def over(runs, c, row):
    """What it costs more than in C, turn by turn."""
    if not runs or any(run["python"][row] is None for run in runs):
        return None
    return Figure.of(run["python"][row] - run["loop"] - base[row] for run, base in zip(runs, c))
