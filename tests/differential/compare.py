"""Compares two records of record.py: NVIDIA's package and this project.

    python tests/differential/compare.py peer.json ours.json

Prints the number of equal cases, the differences, the deliberate ones (deliberate.py, with reasons), how many of the
module's functions returned equal results, and why the others did not (reasons.py, where the records do not tell). Exit
status 1 if a difference has no rule, if ours crashes or hangs, or if a function has neither a result nor a reason.
"""

import argparse
import collections
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from deliberate import DELIBERATE
from reasons import REASONS


def looks_like_address(word):
    """Above the range of sizes; for an interpreter loaded at low addresses, in the range of malloc."""
    return word >= 1 << 40 or (1 << 24 <= word < 1 << 36 and word % 16 == 0)


def same_bytes(peer, ours, uninitialised):
    """Whether two blocks of memory (hexadecimal) are equal except for addresses and memory that the peer left
    uninitialized.

    `uninitialised`: the peer may pass C memory that it never wrote; ours is zero there. Small values never count as
    uninitialized, because arguments are small.
    """
    if peer == ours:
        return True
    peer, _, peer_rest = peer.partition("+")
    ours, _, ours_rest = ours.partition("+")
    if len(peer) != len(ours) or bool(peer_rest) != bool(ours_rest):
        return False
    if peer_rest != ours_rest and (not uninitialised or peer_rest.split(":")[0] != ours_rest.split(":")[0]):
        return False
    for start in range(0, len(peer), 16):
        a, b = peer[start : start + 16], ours[start : start + 16]
        if a == b:
            continue
        if len(a) == 16 and all(looks_like_address(int.from_bytes(bytes.fromhex(x), "little")) for x in (a, b)):
            continue
        for half in range(0, len(a), 8):
            x, y = (int.from_bytes(bytes.fromhex(s[half : half + 8]), "little") for s in (a, b))
            if x != y and not (uninitialised and y == 0 and x > 64):
                return False
    return True


def same_argument(peer, ours):
    """Whether C received the same argument."""
    if peer == ours:
        return True
    if {peer, ours} == {"in ", "0"}:
        return True  # An empty array.
    if peer.startswith("kernel ") and ours.startswith("kernel "):
        a, b = peer.split(), ours.split()
        return len(a) == len(b) and all(x == y or same_bytes(x, y, False) for x, y in zip(a[1:], b[1:], strict=True))
    for what in ("in ", "out ", "count "):
        if peer.startswith(what) and ours.startswith(what):
            return same_bytes(peer[len(what) :], ours[len(what) :], what == "out ")
    return False


def same_calls(peer, ours):
    if [c["f"] for c in peer] != [c["f"] for c in ours]:
        return False
    return all(
        len(p["a"]) == len(o["a"]) and all(map(same_argument, p["a"], o["a"])) for p, o in zip(peer, ours, strict=True)
    )


def without_addresses(value):
    """A value with all address-like numbers replaced by one."""
    if isinstance(value, dict):
        if set(value) == {"int"} and isinstance(value["int"], int) and 1 << 40 <= value["int"] < 1 << 48:
            return {"int": "address"}
        if "class" in value and isinstance(value.get("int"), int) and value["int"] >= 1 << 20:
            value = {**value, "int": "address"}  # A handle.
        return {k: without_addresses(v) for k, v in value.items()}
    return [without_addresses(v) for v in value] if isinstance(value, list) else value


def shape(value):
    """A value without its content, for values that change from call to call; a status is kept."""
    if isinstance(value, dict) and isinstance(value.get("tuple"), list) and value["tuple"]:
        first, *rest = value["tuple"]
        return [first if isinstance(first, dict) and "enum" in first else shape(first), *map(shape, rest)]
    if isinstance(value, dict):
        if set(value) <= {"int", "float", "str"}:
            return sorted(value)
        return {k: shape(v) for k, v in value.items() if k not in ("len", "shape", "value", "name")}
    if isinstance(value, list):
        return shape(value[0]) if value else None
    return "str" if isinstance(value, str) else type(value).__name__


def judge(peer, ours):
    """(verdict, description) of two outcomes: "same", "both impossible", "peer crashes" or "differs"."""
    if "crash" in ours or "hangs" in ours:
        both = "crash" in peer or "hangs" in peer
        return ("differs", "ours crashes or hangs" + (", as does the peer" if both else ""))
    if "crash" in peer or "hangs" in peer:
        return "peer crashes", ""
    if "impossible" in peer or "impossible" in ours:
        return (
            ("both impossible", "")
            if "impossible" in peer and "impossible" in ours
            else ("differs", "arguments cannot be made")
        )
    if "raises" in peer and "raises" in ours:
        a, b = peer["raises"], ours["raises"]
        if a["exception"] != b["exception"]:
            return "differs", f"raises {a['exception']}, ours {b['exception']}"
        if a != b:
            return "differs", "exceptions of the same class differ"
        # Calls before a refused argument do not matter; an error of C includes its calls.
        if "status" in a and not same_calls(peer.get("calls", []), ours.get("calls", [])):
            return "differs", "C is called differently (error)"
        return "same", ""
    if "raises" in peer:
        return "differs", f"raises {peer['raises']['exception']}, ours returns"
    if "raises" in ours:
        return "differs", f"returns, ours raises {ours['raises']['exception']}"
    a, b = peer["value"], ours["value"]
    if peer.get("volatile") or ours.get("volatile"):
        a, b = shape(without_addresses(a)), shape(without_addresses(b))
    if a != b and without_addresses(a) != without_addresses(b):
        return "differs", "values differ"
    if not same_calls(peer.get("calls", []), ours.get("calls", [])):
        return "differs", "C is called differently"
    if peer.get("bytes") and ours.get("bytes") and not same_bytes(peer["bytes"], ours["bytes"], False):
        return "differs", "bytes of the object differ"
    return "same", ""


def meant(module, section, label, what, peer, ours):
    """The reason of the first rule that matches this difference, or None."""
    for pattern, difference, reason, *test in DELIBERATE:
        if not re.fullmatch(pattern, f"{module} {section} {label}") or not re.search(difference, what):
            continue
        if not test or (peer is not None and ours is not None and test[0](peer, ours)):
            return reason
    return None


def flat(record):
    """{(section, label): outcome}"""
    found = {}
    for label, value in record["facts"].items():
        found["facts", label] = {"value": value}
    for section in ("attributes", "functions"):
        for label, value in record.get(section, {}).items():
            found[section, label] = value
    for script, entries in record.get("scripts", {}).items():
        for label, value in entries.items():
            found["scripts", f"{script}: {label}"] = value
    return {k: v for k, v in found.items() if v is not None}


def name_of(module):
    """The name of a module in the tables of rules and reasons: `driver`, `driver_v2`."""
    name = module.rpartition(".")[2]
    return f"{name}_v2" if "._v2." in module else name


# Results of a function from worst to best; the records give the reason for the worse ones.
NOT_CALLED, RECORDED_ERROR, PEER_CRASHES, ON_PURPOSE, SAME_ERROR, SAME_VALUE = range(6)


class Comparison:
    """Compares two records: verdicts, differences, the best result of each function."""

    def __init__(self, peer, ours):
        self.module, self.recorder = name_of(peer["module"]), peer["recorder"]
        self.peer, self.ours = flat(peer), flat(ours)
        self.names = sorted(
            {label.split()[1] for section, label in self.peer if section == "facts" and label.startswith("signature ")}
        )
        # Nothing follows in a script whose process crashed.
        self.ended = {
            label.partition(":")[0]
            for (section, label), v in self.peer.items()
            if section == "scripts" and ("crash" in v or "hangs" in v)
        }
        self.verdicts, self.reasons = collections.Counter(), collections.Counter()
        self.differences = collections.defaultdict(list)
        self.best = {name: (NOT_CALLED, "") for name in self.names}
        for key in sorted(self.peer.keys() | self.ours.keys()):
            self.case(key)

    def case(self, key):
        section, label = key
        peer, ours = self.peer.get(key), self.ours.get(key)
        if peer is None and section == "scripts" and label.partition(":")[0] in self.ended:
            verdict, what = "peer crashes", ""
        elif peer is None or ours is None:
            verdict, what = "differs", "only the peer has it" if ours is None else "only ours has it"
        else:
            verdict, what = judge(peer, ours)
        reached, why = None, ""
        if verdict == "differs":
            why = meant(self.module, section, label, what, peer, ours)
            if why:
                verdict, reached = "differs on purpose", ON_PURPOSE
                self.reasons[why] += 1
            else:
                self.differences[section, what].append(key)
        elif verdict == "peer crashes":
            reached, why = PEER_CRASHES, "NVIDIA's package crashes"
        elif verdict == "same" and "value" in peer:
            reached = SAME_VALUE
            status = peer["value"].get("tuple", [None])[0] if isinstance(peer["value"], dict) else None
            if isinstance(status, dict) and "enum" in status and status["value"]:
                # A tuple with an error status is an error in any form.
                reached, why = SAME_ERROR, f"both return {status['name']}"
        elif verdict == "same" and "raises" in peer and "status" in peer["raises"]:
            reached, why = SAME_ERROR, f"both raise {peer['raises']['exception'].rpartition('.')[2]}"
        elif verdict == "same" and "raises" in peer and "FunctionNotFound" in peer["raises"]["exception"]:
            reached, why = SAME_ERROR, "the installed library lacks it"
        self.verdicts[verdict] += 1
        if reached == SAME_ERROR and self.recorder:
            reached = RECORDED_ERROR
        if reached is not None and section in ("functions", "scripts"):
            name = (peer or ours).get("function") or label.split()[0]
            if name in self.best and reached > self.best[name][0]:
                self.best[name] = reached, why

    @property
    def kind(self):
        """How the record was made: "recorder", "real", or "typed" (only the arguments come from the recorder)."""
        return ("typed" if self.module == "runtime" else "recorder") if self.recorder else "real"

    def without(self):
        """{function: reason or None} of the functions that never returned equal values."""
        out = {}
        for name, (reached, why) in self.best.items():
            if reached == SAME_VALUE:
                continue
            listed = next(
                (r for pattern, r in REASONS[self.kind].get(self.module, ()) if re.fullmatch(pattern, name)), None
            )
            out[name] = listed or why or None
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", type=pathlib.Path)
    parser.add_argument("ours", type=pathlib.Path)
    parser.add_argument("--show", type=int, default=5, help="examples shown of each kind of difference (5)")
    parser.add_argument("--full", action="store_true", help="show both outcomes of each example")
    options = parser.parse_args()
    peer, ours = (json.loads(p.read_text()) for p in (options.peer, options.ours))
    if peer["module"] != ours["module"] or peer["recorder"] != ours["recorder"]:
        parser.error("the two files record different modules or kinds")
    found = Comparison(peer, ours)
    module = found.module
    print(
        f"{module}: {sum(found.verdicts.values())} cases: "
        + ", ".join(f"{n} {v}" for v, n in found.verdicts.most_common())
    )
    for reason, n in found.reasons.most_common():
        print(f"  {n:6} on purpose: {reason}")
    for (section, what), keys in sorted(found.differences.items(), key=lambda item: -len(item[1])):
        print(f"  {len(keys):6} {section}: {what}")
        for key in keys[: options.show]:
            print(f"           {key[1]}")
            if options.full:
                print(f"             peer {json.dumps(found.peer.get(key))[:1500]}")
                print(f"             ours {json.dumps(found.ours.get(key))[:1500]}")
    without = found.without()
    print(
        f"{module}: {len(found.names) - len(without)} of {len(found.names)} functions gave the same results at least once"
    )
    for reason, n in collections.Counter(r for r in without.values() if r).most_common():
        print(f"  {n:6} without one: {reason}")
    unexplained = sorted(name for name, reason in without.items() if not reason)
    if unexplained:
        print("  without one and without a reason: " + ", ".join(unexplained))
    return 1 if found.differences or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
