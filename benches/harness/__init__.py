"""What the benchmarks share.

`sides` finds the interpreters to compare and prints tables, `turns` schedules them, `c_code` compiles the C counterparts,
`timing` holds the timed loops of the Python sides, `lower_bound` builds an extension module that does the minimum.
"""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BENCHES = HERE.parent
