"""Timed loops for the Python sides.

The loops call `function(a, b)` as programs do: unpacking an argument tuple per call costs as much as some of the calls that
are measured.
"""

import itertools
import time


def mean(one, count):
    """Nanoseconds an iteration of `one(loop)`, which runs through an iterator of `count` items."""
    loop = itertools.repeat(None, count)
    start = time.perf_counter_ns()
    one(loop)
    return (time.perf_counter_ns() - start) / count


def smallest_mean(rounds, count, one, between=lambda: None):
    """The smallest mean of some rounds. `between` runs after each round, untimed."""
    best = float("inf")
    for _ in range(rounds):
        best = min(best, mean(one, count))
        between()
    return best


def empty(loop):
    """The loop alone."""
    for _ in loop:
        pass


def calling(function, *arguments):
    """A function that takes an iterator and calls `function(*arguments)` once per item."""
    names = ", ".join(f"a{number}" for number in range(len(arguments)))
    source = f"def one(loop, function, arguments):\n    {names + ', = arguments' if names else ''}\n"
    source += f"    for _ in loop:\n        function({names})\n"
    return _closure(source, function, arguments)


def pairing(create, destroy, *arguments, also=()):
    """As `calling`, for a pair: `create(*arguments)` returns (status, object), then `destroy(object, *also)`."""
    names = ", ".join(f"a{number}" for number in range(len(arguments)))
    more = "".join(f", b{number}" for number in range(len(also)))
    source = "def one(loop, functions, arguments):\n    create, destroy = functions\n"
    every = ", ".join(filter(None, (names, more.lstrip(", "))))
    source += f"    {every + ', = arguments' if every else ''}\n"
    source += f"    for _ in loop:\n        destroy(create({names})[1]{more})\n"
    return _closure(source, (create, destroy), (*arguments, *also))


def _closure(source, functions, arguments):
    space = {}
    exec(source, space)  # the source is built above, from numbers only
    one = space["one"]
    return lambda loop: one(loop, functions, arguments)
