"""Prints the entries in which two outputs of green_contexts.py differ.

compare.py GPU.json CPU.json
"""

import json
import pathlib
import sys


def entries(table, path=""):
    """The leaves of nested dicts, with the keys that lead to each."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from entries(value, f"{path}{key}: ")
        else:
            yield path + key, value


def main():
    first, second = (dict(entries(json.loads(pathlib.Path(name).read_text()))) for name in sys.argv[1:3])
    names = sorted({*first, *second})
    different = [name for name in names if first.get(name) != second.get(name)]
    for name in different:
        print(name, first.get(name), second.get(name))
    print(f"{len(different)} of {len(names)} differ")


main()
