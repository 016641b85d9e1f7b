"""`python -m cupyrite`: the command `cupyrite` (command_line.py)."""

import sys

if __name__ == "__main__":
    from .command_line import script

    sys.exit(script())
