"""Tests of the two outcomes of a case, NVIDIA's first: whether they differ in one particular way."""

import re


def leaves(value, path=""):
    """(path, leaf) of a described value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{i}]")
    else:
        yield path, value


def unwritten(peer, ours):
    """Whether the values differ only where ours is zero or empty: the peer shows uninitialized memory."""
    a, b = dict(leaves(peer.get("value"))), dict(leaves(ours.get("value")))
    different = {k for k in a.keys() | b.keys() if a.get(k) != b.get(k)}
    # An unknown number for an enum raises; zero is a member or raises too.
    return all(
        b.get(k) in (0, "", None, "0.0") or ".exception" in k or ".enum" in k or ".name" in k for k in different
    ) and same_calls(peer, ours)


def unwritten_value(peer, ours):
    """As `unwritten`, whatever the calls were."""
    return unwritten({**peer, "calls": []}, {**ours, "calls": []})


EXPLAINING = {
    "cuGetErrorString", "cuLogsDumpToMemory", "cuLogsCurrent", "cuDevicePrimaryCtxGetState", "nvrtcGetErrorString", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"
}  # fmt: skip


def explained(peer, ours):
    """Whether ours says more than the peer, about the same status."""
    a, b = peer["raises"], ours["raises"]
    if a.get("status") != b.get("status") or str(a["status"]) not in b["text"]:
        return False
    # Ours asks the library for descriptions and logs of a failed call.
    a, b = ([c for c in x.get("calls", []) if c["f"] not in EXPLAINING] for x in (peer, ours))
    return same_calls({"calls": a}, {"calls": b})


def same_but_integer_arrays(peer, ours):
    """Only arrays of integers differ, in the width or sign of their elements."""

    def plain(value):
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if "ndarray" not in value or "f" in value["dtype"]}
        return [plain(v) for v in value] if isinstance(value, list) else value

    return plain(peer.get("value")) == plain(ours.get("value")) and same_calls(peer, ours)


def placements(peer, ours):
    """Only the struct of the first call, the mode returned with it, and uninitialized memory differ."""
    a, b = dict(leaves(peer.get("value"))), dict(leaves(ours.get("value")))
    values = all(k.endswith(".mode.int") for k in a.keys() | b.keys() if a.get(k) != b.get(k)) or unwritten_value(
        peer, ours
    )
    return values and peer.get("raises") == ours.get("raises") and same_calls(peer, ours, (2,))


def goes_on(peer, ours):
    """Ours makes the peer's calls (apart from the error text), and possibly more."""
    a, b = ([c["f"] for c in x.get("calls", []) if not c["f"].endswith("ErrorString")] for x in (peer, ours))
    return b[: len(a)] == a


def same_calls(peer, ours, but=()):
    """Whether C received the same arguments, except those at the positions `but`."""
    from compare import same_argument

    if [c["f"] for c in peer.get("calls", [])] != [c["f"] for c in ours.get("calls", [])]:
        return False
    return all(
        len(p["a"]) == len(o["a"])
        and all(i in but or same_argument(x, y) for i, (x, y) in enumerate(zip(p["a"], o["a"], strict=True)))
        for p, o in zip(peer.get("calls", []), ours.get("calls", []), strict=True)
    )


def same_result(peer, ours):
    """Whether the value or the exception is the same."""
    return peer.get("value") == ours.get("value") and peer.get("raises") == ours.get("raises")


def only(*positions):
    """Only the arguments at these positions of the C function differ; the result is the same."""
    return lambda peer, ours: same_result(peer, ours) and same_calls(peer, ours, positions)


def empty_arrays(peer, ours):
    """Only the types of empty arrays differ."""

    def plain(value):
        if isinstance(value, dict):
            if value.get("ndarray") == [] and "dtype" in value:
                return {k: v for k, v in value.items() if k != "dtype"}
            return {k: plain(v) for k, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, list) else value

    return plain(peer.get("value")) == plain(ours.get("value"))


def not_asked(peer, ours):
    """Ours makes the first of the peer's calls and stops, because there is nothing to query."""
    a, b = ([c["f"] for c in x.get("calls", []) if not c["f"].endswith("ErrorString")] for x in (peer, ours))
    return len(b) < len(a) and a[: len(b)] == b


def leftovers(peer, ours):
    """The same C calls in the same order; structs differ only where ours are zero."""
    a, b = peer.get("calls", []), ours.get("calls", [])
    if [c["f"] for c in a] != [c["f"] for c in b]:
        return False
    for p, o in zip(a, b, strict=True):
        for x, y in zip(p["a"], o["a"], strict=True):
            if x == y:
                continue
            kind = x.partition(" ")[0]
            if kind not in ("in", "out", "count") or kind != y.partition(" ")[0]:
                return False
            x, y = x.partition(" ")[2].partition("+")[0], y.partition(" ")[2].partition("+")[0]
            if len(x) != len(y) or any(
                x[i : i + 2] != y[i : i + 2] and y[i : i + 2] not in ("00", "ee") for i in range(0, len(x), 2)
            ):
                return False
    return True


def unknown_status(peer, ours):
    """Ours returns the status as a number."""
    value = ours.get("value", {}).get("tuple", [{}])
    return value[0] == {"int": 12345}


def size_first(peer, ours):
    """Ours queries the size and then makes the peer's call."""
    a, b = peer.get("calls", []), ours.get("calls", [])
    if len(b) == len(a) == 1 and peer.get("value") == ours.get("value"):
        return b[0]["f"] == a[0]["f"] + "Size"  # Which fails like the call itself.
    return len(b) == len(a) + 1 and b[0]["f"] == a[0]["f"] + "Size" and [c["f"] for c in a] == [c["f"] for c in b[1:]]


def plain_number(peer, ours):
    """The same C calls; ours returns a number where the peer has no enum member."""
    value = ours.get("value", {}).get("tuple", [])
    return same_calls(peer, ours) and any(isinstance(v, dict) and set(v) == {"int"} for v in value[1:])


def no_call(peer, ours):
    """Ours refuses before C is called (apart from the error text)."""
    return all(c["f"].endswith("ErrorString") for c in ours.get("calls", []))


def only_members(*names):
    """Only these struct members differ."""

    def test(peer, ours):
        a, b = dict(leaves(peer.get("value"))), dict(leaves(ours.get("value")))
        return all(
            any(f"..{n}." in k or f"..{n}[" in k for n in names) for k in a.keys() | b.keys() if a.get(k) != b.get(k)
        )

    return test


def after_nul(peer, ours):
    """Texts in buffers differ only behind their NUL."""

    def cut(value):
        if isinstance(value, dict):
            if "bytes" in value:
                return {"bytes": re.sub(r"^((?:..)*?)00.*$", r"\1", value["bytes"])}
            return {k: cut(v) for k, v in value.items()}
        return [cut(v) for v in value] if isinstance(value, list) else value

    return cut(peer.get("value")) == cut(ours.get("value"))


def structs_of_numbers(peer, ours):
    """The peer returns a list of structs."""
    value = peer.get("value")
    return isinstance(value, dict) and bool(value.get("list")) and all("class" in v for v in value["list"])


def structs_of_bytes(peer, ours):
    """Both return lists of structs; the peer's contain uninitialized memory."""
    return structs_of_numbers(peer, ours) and structs_of_numbers(ours, peer)


def shorter_list(peer, ours):
    """Ours returns as many elements as the array had room for; the peer as many as C reports."""
    a, b = (
        next((v["list"] for v in x["value"]["tuple"] if isinstance(v, dict) and "list" in v), []) for x in (peer, ours)
    )
    return len(b) < len(a) and a[: len(b)] == b
