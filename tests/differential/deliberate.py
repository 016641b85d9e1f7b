"""Differences from NVIDIA's package that are meant, each with its reason.

(pattern of "MODULE SECTION LABEL", pattern of what compare.py says of the difference, reason)
"""

REFUSALS = r"raises builtins\.(TypeError|ValueError|OverflowError|AttributeError|UnicodeEncodeError), ours (builtins\.)?(TypeError|ValueError|OverflowError|UnicodeEncodeError)$"

DELIBERATE = [
    (r"\w+ \w+ .*", REFUSALS, "a refusal of a wrong argument is of another built-in class"),
    (r"\w+ functions \w+ \w+=nul", "returns, ours raises builtins.ValueError", "a NUL inside a string would be cut off silently"),
    (r"\w+ attributes .* = (None|object|str|bytes|1\.5)", "raises builtins.AttributeError, ours builtins.TypeError", "a wrong kind is a TypeError"),
]
