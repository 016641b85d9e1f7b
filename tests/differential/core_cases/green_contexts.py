"""Device resources, green contexts, and their option classes."""

COMMON = """
import copy, ctypes, dataclasses, pickle, threading, weakref
import numpy as np
from cuda.bindings import driver
from cuda.core import *
d = Device()
d.set_current()
sm = d.resources.sm
unit = sm.min_partition_size
def sizes(split):
    groups, rest = split
    return type(split), type(groups), [g.sm_count == unit for g in groups], sum(g.sm_count for g in groups) + rest.sm_count == sm.sm_count
"""

GROUPS = {
    "green: resources": (
        COMMON,
        """
        public(DeviceResources), public(SMResource)
        d.resources is d.resources
        d.resources.sm is d.resources.sm
        sm == sm, sm == d.resources.sm
        type(sm.handle), type(sm.sm_count), sm.flags
        sm.sm_count == d.properties.multiprocessor_count
        unit <= sm.sm_count, sm.coscheduled_alignment <= sm.sm_count
        DeviceResources()
        SMResource()
        WorkqueueResource()
        sm.sm_count = 3
        [(f.name, f.default) for f in dataclasses.fields(SMResourceOptions)]
        [(f.name, f.default) for f in dataclasses.fields(WorkqueueResourceOptions)]
        WorkqueueResourceOptions(), WorkqueueResourceOptions("green_ctx_balanced", 3), WorkqueueResourceOptions(concurrency_limit=True).concurrency_limit == 1
        WorkqueueResourceOptions(sharing_scope="x")
        WorkqueueResourceOptions(sharing_scope="DEVICE_CTX")
        WorkqueueResourceOptions(sharing_scope="")
        WorkqueueResourceOptions(sharing_scope=3)
        WorkqueueResourceOptions(concurrency_limit=0)
        WorkqueueResourceOptions(concurrency_limit=-1)
        WorkqueueResourceOptions(concurrency_limit="x")
        WorkqueueResourceOptions(concurrency_limit=1.5)
        WorkqueueResourceOptions(concurrency_limit=1 << 40)
        """,
    ),
    "green: split": (
        COMMON,
        """
        sizes(sm.split(SMResourceOptions(count=unit)))
        sizes(sm.split(SMResourceOptions(count=[unit])))
        sizes(sm.split(SMResourceOptions(count=(unit,)), dry_run=True))
        sizes(sm.split(SMResourceOptions(count=unit, backfill=None)))
        sm.split(SMResourceOptions(count=-1))
        sm.split(SMResourceOptions(count=8.0))
        sm.split(SMResourceOptions(count=[]))
        sm.split(SMResourceOptions(count=[unit, unit], coscheduled_sm_count=[2]))
        sm.split(SMResourceOptions(count=unit, coscheduled_sm_count=[2]))
        sm.split(SMResourceOptions(backfill=[True, False]))
        sm.split(None)
        sm.split(SMResourceOptions(), True)
        sm.split(SMResourceOptions(count=100000))
        d.create_context(ContextOptions(resources=sm.split(SMResourceOptions(count=unit), dry_run=True)[0]))
        """,
    ),
    "green: work queues": (
        COMMON,
        """
        queues = d.resources.workqueue; type(queues)
        public(WorkqueueResource)
        queues is d.resources.workqueue
        type(queues.handle), type(queues.concurrency_limit), queues.sharing_scope
        queues.configure(WorkqueueResourceOptions(concurrency_limit=3))
        queues.configure(WorkqueueResourceOptions(sharing_scope="green_ctx_balanced"))
        queues.configure(WorkqueueResourceOptions())
        queues.configure(WorkqueueResourceOptions(concurrency_limit=0))
        queues.configure(WorkqueueResourceOptions(concurrency_limit=-1))
        queues.configure(WorkqueueResourceOptions(concurrency_limit="x"))
        queues.configure(WorkqueueResourceOptions(sharing_scope="x"))
        queues.configure(None)
        queues.configure(3)
        sm.split(SMResourceOptions(count=unit, preferred_coscheduled_sm_count=1 << 20))
        """,
    ),
    "green: contexts": (
        COMMON + "part = sm.split(SMResourceOptions(count=unit))[0][0]\n",
        """
        d.create_context()
        d.create_context(ContextOptions(resources=[]))
        d.create_context(ContextOptions(resources=[3]))
        d.create_context(ContextOptions(resources=part))
        d.create_context(ContextOptions(resources=[part, part]))
        c = d.create_context({"resources": [part]}); type(c), c.is_green, c.is_closed
        c.resources.sm.sm_count == unit
        type(c.handle), c == d.context
        s = c.create_stream(); type(s), s.context == c, s.is_nonblocking, s.priority
        s.resources.sm.sm_count == unit
        c.create_stream(StreamOptions(nonblocking=False))
        c.create_stream(StreamOptions(priority=100))
        d.context.is_green
        d.context.create_stream()
        d.context.resources.sm.sm_count == sm.sm_count
        d.create_stream().resources.sm.sm_count == sm.sm_count
        d.set_current(c).is_green
        d.context.is_green, d.create_stream().context == c
        LEGACY_DEFAULT_STREAM.resources.sm.sm_count == unit
        d.resources.sm.sm_count == sm.sm_count
        c.close()
        d.set_current()
        e = s.record(); d.create_stream().wait(e); s.sync()
        c.close(); c.is_closed, c.is_green
        c.create_stream()
        c.resources
        s.sync(), s.context.is_green
        """,
    ),
}
