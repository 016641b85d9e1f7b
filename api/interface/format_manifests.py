"""Writes the interface manifests with one record a line, so that a change of one function changes one line.

    format_manifests.py             rewrites the manifests beside this file
    format_manifests.py --check     only lists those that would change; exits 1 if there are any

A manifest recorded from a new version of NVIDIA's package goes through this before it is committed.
"""

import argparse
import json
import pathlib
import sys

LONGEST = 300
"""A value that takes more characters is spread over lines."""


def formatted(value, depth=0):
    """`value` as JSON: a container whose text is at most `LONGEST` characters long is one line, apart from the two outermost."""
    compact = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or (depth > 1 and len(compact) <= LONGEST):
        return compact
    indent = " " * (depth + 1)
    if isinstance(value, dict):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {formatted(item, depth + 1)}" for key, item in value.items()]
        opening, closing = "{}"
    else:
        rows = [formatted(item, depth + 1) for item in value]
        opening, closing = "[]"
    lines = ",\n".join(indent + row for row in rows)
    return f"{opening}\n{lines}\n{' ' * depth}{closing}"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="rewrite nothing; exit 1 if a manifest would change")
    check = parser.parse_args(argv).check
    changed = []
    for path in sorted(pathlib.Path(__file__).parent.glob("*.json")):
        before = path.read_text(encoding="utf-8")
        after = formatted(json.loads(before)) + "\n"
        if before != after:
            changed.append(path.name)
            if not check:
                path.write_text(after, encoding="utf-8")
    for name in changed:
        print(f"{name}: {'would change' if check else 'rewritten'}")
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
