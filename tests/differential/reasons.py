"""Why functions have no result that is the same on both sides, where the records do not tell: they were not called.

{"recorder" or "real": {module: [(pattern of the function's name, reason)]}}
"""

REASONS = {"recorder": {}, "real": {}}
