"""Tells two records of core.py apart: NVIDIA's `cuda.core` and this project's.

    python tests/differential/core_compare.py peer.json ours.json [--full]

Prints how many lines gave the same, what differs, and which differences are meant (core_deliberate.py, with reasons).
Exit status 1 if a difference is not meant, if a line of ours ends the process, or if a rule no longer meets a difference.
"""

import argparse
import collections
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from core_deliberate import BELOW, DELIBERATE  # noqa: E402


def judge(peer, ours):
    """(verdict, what) of two outcomes: "same", "peer crashes" or "differs"."""
    if "crash" in ours:
        return "differs", f"ours {ours['crash']}" + (", as does the peer" if "crash" in peer else "")
    if "crash" in peer:
        return "peer crashes", ""
    if "raises" in peer and "raises" in ours:
        if peer["raises"] != ours["raises"]:
            return "differs", f"raises {peer['raises']}, ours {ours['raises']}"
        if peer.get("status") != ours.get("status"):
            return "differs", f"status {peer.get('status')}, ours {ours.get('status')}"
        if not ours["text"].strip():
            return "differs", "ours has no message"
    elif "raises" in peer:
        return "differs", f"raises {peer['raises']}, ours returns"
    elif "raises" in ours:
        return "differs", f"returns, ours raises {ours['raises']}"
    elif peer["value"] != ours["value"]:
        return "differs", "values differ"
    if peer.get("warns") != ours.get("warns"):
        return "differs", f"warns {peer.get('warns')}, ours {ours.get('warns')}"
    return "same", ""


def meant(rules, group, line, what, peer, ours):
    """The index and reason of the first rule that meets this difference, or None."""
    for index, (groups, lines, difference, reason, *test) in enumerate(rules):
        if re.match(groups, group) and re.search(lines, line) and re.search(difference, what) and (not test or test[0](peer, ours)):
            return index, reason
    return None


def compare(peer, ours):
    """(counts, differing, reasons, unused rules) of two records."""
    counts, differing = collections.Counter(), []
    reasons, used = collections.Counter(), set()
    for group in sorted({*peer, *ours}):
        a, b = peer.get(group), ours.get(group)
        if a is None or b is None:
            differing.append((group, "", "recorded on one side only", {}, {}))
            continue
        if "(setup)" in b:
            differing.append((group, "(setup)", "fails: " + "".join(b["(setup)"]["text"].strip().splitlines()[-1:]), {}, {}))
            continue
        for line in [*a, *(x for x in b if x not in a)]:
            # The end of the process is there only where it was a bad one.
            x, y = (side.get(line, {"value": None}) for side in (a, b))
            verdict, what = judge(x, y)
            if verdict == "differs" and (found := meant(BELOW, group, line, what, x, y)):
                verdict = "cannot be told here"
                reasons[found[1]] += 1
            elif verdict == "differs" and (found := meant(DELIBERATE, group, line, what, x, y)):
                verdict = "on purpose"
                used.add(found[0])
                reasons[found[1]] += 1
            counts[verdict] += 1
            if verdict == "differs":
                differing.append((group, line, what, x, y))
    unused = [rule for index, rule in enumerate(DELIBERATE) if index not in used and any(re.match(rule[0], g) for g in peer)]
    return counts, differing, reasons, unused


def show(outcome):
    return json.dumps(outcome.get("value", {k: v for k, v in outcome.items() if k != "value"}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", type=pathlib.Path)
    parser.add_argument("ours", type=pathlib.Path)
    parser.add_argument("--full", action="store_true", help="show both outcomes")
    options = parser.parse_args()
    counts, differing, reasons, unused = compare(*(json.loads(p.read_text()) for p in (options.peer, options.ours)))
    print(f"cuda.core: {sum(counts.values())} lines: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    for reason, count in sorted(reasons.items()):
        print(f"  {count:4} {reason}")
    for group, line, what, peer, ours in differing:
        print(f"  DIFFERS {group}: {line}\n      {what}")
        if options.full:
            print(f"      peer {show(peer)[:600]}\n      ours {show(ours)[:600]}")
    for rule in unused:
        print(f"  note: no difference any more for {rule[:2]}: {rule[3]}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
