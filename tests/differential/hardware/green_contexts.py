"""Prints as JSON what cuDevSmResourceSplitByCount and cuDevSmResourceSplit do for every count."""

import json
import sys

from cuda.bindings import driver as d


def ok(r):
    assert int(r[0]) == 0, r
    return r[1] if len(r) == 2 else r[1:]


ok((d.cuInit(0)[0], 0))
dev = ok(d.cuDeviceGet(0))
ctx = ok(d.cuDevicePrimaryCtxRetain(dev))
d.cuCtxSetCurrent(ctx)
T = d.CUdevResourceType
out = {"driver": ok(d.cuDriverGetVersion())}


def desc(r):
    if int(r.type) != int(T.CU_DEV_RESOURCE_TYPE_SM):
        return f"type {int(r.type)}"
    values = [r.sm.smCount]
    for name in ("minSmPartitionSize", "smCoscheduledAlignment", "flags"):
        values.append(getattr(r.sm, name, None))
    return values


sm = ok(d.cuDeviceGetDevResource(dev, T.CU_DEV_RESOURCE_TYPE_SM))
total = sm.sm.smCount
out["device"] = desc(sm)
for kind in (T.CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG, T.CU_DEV_RESOURCE_TYPE_WORKQUEUE):
    r = d.cuDeviceGetDevResource(dev, kind)
    out[f"device {kind.name}"] = int(r[0]) or (
        [r[1].wqConfig.wqConcurrencyLimit, int(r[1].wqConfig.sharingScope)] if "CONFIG" in kind.name else "found"
    )
    r = d.cuCtxGetDevResource(ctx, kind)
    out[f"context {kind.name}"] = int(r[0])
out["cuCtxGetDevResource(0)"] = int(d.cuCtxGetDevResource(0, T.CU_DEV_RESOURCE_TYPE_SM)[0])

by_count = out["by count"] = {}
for flags in range(5):
    for count in [*range(total + 2), 2**32 - 1]:
        for groups in (1, 2, 3, total):
            r = d.cuDevSmResourceSplitByCount(groups, sm, flags, count)
            key = f"flags {flags} count {count} groups {groups}"
            if int(r[0]):
                by_count[key] = int(r[0])
                continue
            _, made, number, rest = r
            by_count[key] = [int(number), [desc(g) for g in made[: int(number)]][:3], desc(rest)]
    r = d.cuDevSmResourceSplitByCount(0, sm, flags, 8)
    out[f"query flags {flags}"] = [int(r[0]), *(int(x) for x in r[2:3] if x is not None)]

first = d.cuDevSmResourceSplitByCount(2, sm, 0, out["device"][1] or 8)
if int(first[0]) == 0:
    _, made, _, rest = first
    out["split a result by count"] = int(d.cuDevSmResourceSplitByCount(1, made[0], 0, 2)[0])
    out["split a remainder by count"] = int(d.cuDevSmResourceSplitByCount(1, rest, 0, 2)[0])
    for name, list_ in {
        "one": made[:1],
        "two": made[:2],
        "same twice": [made[0]] * 2,
        "group and rest": [made[0], rest],
        "device and group": [sm, made[0]],
        "rest": [rest],
        "device": [sm],
    }.items():
        r = d.cuDevResourceGenerateDesc(list_, len(list_))
        out[f"descriptor of {name}"] = int(r[0])
        if int(r[0]) == 0:
            g = d.cuGreenCtxCreate(r[1], dev, 1)
            out[f"green context of {name}"] = int(g[0])
            if int(g[0]) == 0:
                got = d.cuGreenCtxGetDevResource(g[1], T.CU_DEV_RESOURCE_TYPE_SM)
                out[f"resources of {name}"] = desc(got[1])
                c = ok(d.cuCtxFromGreenCtx(g[1]))
                d.cuCtxPushCurrent(c)
                out[f"null stream's green context of {name}"] = int(ok(d.cuStreamGetGreenCtx(0))) == int(g[1])
                s = d.cuStreamCreate(1)
                out[f"cuStreamCreate in {name}"] = int(s[0])
                out[f"its green context in {name}"] = int(ok(d.cuStreamGetGreenCtx(s[1]))) == int(g[1])
                out[f"its cuStreamGetCtx in {name}"] = int(
                    ok(d.cuStreamGetCtx(s[1]))[0]
                    if isinstance(ok(d.cuStreamGetCtx(s[1])), tuple)
                    else ok(d.cuStreamGetCtx(s[1]))
                ) == int(c)
                out[f"blocking stream in {name}"] = int(d.cuStreamCreate(0)[0])
                d.cuCtxPopCurrent()
                for f in (0, 1, 2):
                    out[f"cuGreenCtxStreamCreate flags {f} in {name}"] = int(d.cuGreenCtxStreamCreate(g[1], f, 0)[0])
                out[f"cuGreenCtxStreamCreate priority 100 in {name}"] = int(d.cuGreenCtxStreamCreate(g[1], 1, 100)[0])
                green_stream = ok(d.cuGreenCtxStreamCreate(g[1], 1, 0))
                out[f"destroy {name}"] = int(d.cuGreenCtxDestroy(g[1])[0])
                out[f"sync after destroy {name}"] = int(d.cuStreamSynchronize(green_stream)[0])
                out[f"stream destroy after destroy {name}"] = int(d.cuStreamDestroy(green_stream)[0])
    r = d.cuDevResourceGenerateDesc([made[0]], 1)
    for f in (0, 2):
        g = d.cuGreenCtxCreate(r[1], dev, f)
        out[f"cuGreenCtxCreate flags {f}"] = int(g[0])

groups = out["by groups"] = {}
G = getattr(d, "CU_DEV_SM_RESOURCE_GROUP_PARAMS", None)


def group(count, co=0, preferred=0, flags=0):
    g = G()
    g.smCount, g.coscheduledSmCount, g.preferredCoscheduledSmCount, g.flags = count, co, preferred, flags
    return g


def split(key, *params):
    try:
        r = d.cuDevSmResourceSplit(len(params), sm, 0, [group(*p) for p in params])
    except Exception as e:  # the function is missing in older drivers
        groups[key] = type(e).__name__
        return
    groups[key] = int(r[0]) or [[desc(g) for g in r[1]], desc(r[2])]


if G is not None and hasattr(d, "cuDevSmResourceSplit"):
    for count in [*range(0, total + 3), 2**32 - 1]:
        for co in (0, 1, 2, 3, 4, 8, 16, 32, 64):
            for flags in (0, 1):
                split(f"{count} {co} flags {flags}", (count, co, 0, flags))
    for preferred in (1, 2, 4, 8, 12, 16, 32, 64):
        split(f"preferred {preferred}", (16, 8, preferred))
    for flags in (2, 4, 6, 8):
        split(f"flags {flags}", (16, 8, 0, flags))
    for a in (8, 16, 64, total // 8 * 8):
        split(f"{a} then all", (a,), (0,))
        split(f"{a} then backfill", (a,), (0, 0, 0, 1))
        split(f"{a} then 2", (a,), (0, 2))
json.dump(out, sys.stdout, indent=0)
