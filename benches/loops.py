"""Loops that call a function as programs do, `function(a, b)`: unpacking a tuple of arguments for each call would cost as
much as some of the calls that are measured.
"""


def calling(function, *arguments):
    """A function that takes an iterator and calls `function` once for each of its items."""
    names = ", ".join(f"a{number}" for number in range(len(arguments)))
    source = f"def one(loop, function, arguments):\n    {names + ', = arguments' if names else ''}\n"
    source += f"    for _ in loop:\n        function({names})\n"
    return _closure(source, function, arguments)


def empty(loop):
    """The loop by itself."""
    for _ in loop:
        pass


def pairing(make, drop, *arguments, also=()):
    """The same for a call that makes something, the second of what it returns, and one that ends it; `also` follows the
    thing as further arguments."""
    names = ", ".join(f"a{number}" for number in range(len(arguments)))
    more = "".join(f", b{number}" for number in range(len(also)))
    source = "def one(loop, functions, arguments):\n    make, drop = functions\n"
    every = ", ".join(filter(None, (names, more.lstrip(", "))))
    source += f"    {every + ', = arguments' if every else ''}\n"
    source += f"    for _ in loop:\n        drop(make({names})[1]{more})\n"
    return _closure(source, (make, drop), (*arguments, *also))


def _closure(source, functions, arguments):
    space = {}
    exec(source, space)  # its text is all ours
    one = space["one"]
    return lambda loop: one(loop, functions, arguments)
