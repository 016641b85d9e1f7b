"""Build backend (PEP 517, PEP 660) of this stand-in: `distributions/stand_in.py` with the name of this folder."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import stand_in  # noqa: E402 (the folder above is on the path only from here on)

globals().update(stand_in.hooks(HERE.name))
