"""Prints the entries in which two outputs of green_contexts.py differ.

compare.py GPU.json CPU.json

Skipped is what the GPU's driver does not have: functions of newer drivers, and the members of groups that driver 580 leaves zero.
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


def is_group(value):
    """Whether it is the description of a group: four numbers."""
    return isinstance(value, list) and len(value) == 4 and all(isinstance(n, int) for n in value)


def same(gpu, cpu):
    if is_group(gpu) and is_group(cpu) and not any(gpu[1:]):
        return gpu[0] == cpu[0]
    if isinstance(gpu, list) and isinstance(cpu, list):
        return len(gpu) == len(cpu) and all(map(same, gpu, cpu))
    return gpu == cpu


def main():
    first, second = (dict(entries(json.loads(pathlib.Path(name).read_text()))) for name in sys.argv[1:3])
    names = sorted({*first, *second})
    names = [name for name in names if not str(first.get(name)).endswith("Error")]
    different = [name for name in names if not same(first.get(name), second.get(name))]
    for name in different:
        print(name, first.get(name), second.get(name))
    print(f"{len(different)} of {len(names)} differ")


main()
