"""Graph builders, definitions, nodes, conditions and instantiated graphs."""

from .devices import CURRENT

GRAPHS = (
    CURRENT
    + r'''
from cuda.core.graph import *
s = d.create_stream()
code = r"""
extern "C" __global__ void add(int *x, int value) { x[0] += value; }
extern "C" __global__ void twice(int *x) { x[0] *= 2; }
"""
try:
    c = Program(code, "c++", ProgramOptions(arch=f"sm_{d.arch}")).compile("ptx")
    add, twice = c.get_kernel("add"), c.get_kernel("twice")
except Exception:
    add = twice = None
one = LaunchConfig(grid=1, block=1)
x = d.memory_resource.allocate(64, stream=s)
x.fill(0, stream=s)
def value():
    s.sync()
    out = np.zeros(1, np.int32)
    driver.cuMemcpyDtoH(out.ctypes.data, int(x.handle), 4)
    return int(out[0])
calls = []
g = GraphDefinition()
'''
)

GROUPS = {
    "graph: builder": (
        GRAPHS,
        """
        GraphBuilder()
        b = d.create_graph_builder(); type(b).__name__
        b.is_building, b.is_join_required
        b.end_building()
        b.complete()
        b.split(2)
        b.begin_building("x")
        b.begin_building(None)
        b.begin_building("GLOBAL")
        b.begin_building(5)
        b.graph_definition
        b.begin_building() is b
        b.is_building
        b.graph_definition
        b.begin_building()
        b.split(1)
        b.split("2")
        b.complete()
        b.callback(5)
        b.callback(lambda: calls.append(1))
        x.fill(1, stream=b)
        b.end_building() is b
        b.is_building
        len(b.graph_definition.nodes())
        b.begin_building()
        q = b.complete(); type(q).__name__
        q.launch(s); s.sync(); calls, value()
        q.upload(s)
        q.launch()
        q.launch(None)
        q.launch(5)
        q.update(b)
        q.update(5)
        q.update(None)
        q.update(d.create_graph_builder())
        w = d.create_graph_builder().begin_building(); q.update(w)
        w.embed(w)
        w.end_building() is w
        b.close(); b.close()
        q.update(b)
        b.is_building
        b.begin_building()
        q.launch(s); s.sync(); len(calls)
        q.close(); q.close()
        q.launch(s)
        s.create_graph_builder().stream == s
        d.create_graph_builder().stream == s
        """,
    ),
    "graph: split and join": (
        GRAPHS,
        """
        b = s.create_graph_builder().begin_building("thread_local"); b.is_building
        parts = b.split(3); len(parts), parts[0] is b
        [p.is_join_required for p in parts]
        [p.callback(lambda: calls.append(2)) for p in parts]
        j = GraphBuilder.join(*parts); j.is_join_required
        j.end_building().complete().launch(s); s.sync(); calls
        """,
    ),
    "graph: allocations": (
        GRAPHS + "m = DeviceMemoryResource(d); b = d.create_graph_builder().begin_building('global')\n",
        """
        m.allocate(64, stream=b).size
        d.allocate(64, stream=b).size
        GraphMemoryResource(d).allocate(64, stream=b).size
        b.end_building() is b
        b.close(); b = d.create_graph_builder().begin_building("global"); m.allocate(64, stream=s).size
        b.end_building()
        b = None; m.allocate(64, stream=s).size
        """,
    ),
    "graph: wrong joins": (
        GRAPHS,
        """
        parts = s.create_graph_builder().begin_building().split(2); len(parts)
        GraphBuilder.join()
        GraphBuilder.join(parts[0])
        GraphBuilder.join(5, 6)
        parts[1].end_building()
        """,
    ),
    "graph: launches": (
        GRAPHS,
        """
        b = d.create_graph_builder().begin_building(); b.is_building
        launch(b, one, add, x, np.int32(3))
        launch(b, one, twice, x)
        q = b.end_building().complete(); type(q).__name__
        q.launch(s); value()
        q.launch(s); value()
        n = g.launch(one, add, x, np.int32(3)); type(n).__name__
        n.config == one, n.grid, n.block, n.shmem_size, type(n.kernel).__name__
        m = n.launch(one, twice, x); m.pred == {n}, n.succ == {m}
        g.launch(one, add)
        g.launch(one, 5)
        g.launch(5, add, x, np.int32(1))
        r = g.instantiate(); r.launch(s); value()
        """,
    ),
    "graph: definition": (
        GRAPHS,
        """
        len(g.nodes()), len(g.edges())
        a = g.empty(); type(a).__name__, a.is_valid, len(a.pred), len(a.succ)
        b = a.empty(); b.pred == {a}, a.succ == {b}
        c = g.join(a, b); type(c).__name__, c.pred == {a, b}
        a.join(b).pred == {a, b}
        a.graph == g, a == b, hash(a) == hash(b), a == 5
        len(g.nodes()), len(g.edges())
        a.succ <= g.nodes()
        a.pred = {b}
        b.pred = set()
        b.pred, a.succ == {c}
        GraphNode().is_valid
        GraphDefinition() == g, g == g
        h = GraphDefinition().empty(); a.join(h)
        a.pred.add(h)
        a.pred.add(5)
        k = g.callback(lambda: calls.append(3)); type(k).__name__, callable(k.callback)
        g.callback(5)
        g.callback(lambda: None, user_data=b"1")
        q = g.instantiate(); q.launch(s); s.sync(); calls
        k.destroy(); k.is_valid, k in g.nodes()
        k.destroy()
        k.handle
        k.pred
        k.empty()
        q.launch(s); s.sync(); calls
        """,
    ),
    "graph: edges": (
        GRAPHS + "a = g.empty(); b = a.join(); z = GraphDefinition().empty()\n",
        """
        a.succ.add(a)
        a.pred.add(a)
        a.succ = {a, b}
        a.succ.update([a])
        b in a.succ, len(g.edges())
        a.join(a)
        g.join(b, b)
        a.succ.add(z)
        a.pred.add(z)
        a.succ = {z}
        a.succ.update([z])
        a.join(z)
        g.join(a, z)
        a.succ.add(3)
        a.succ.add(None)
        a.succ = 3
        a.join(3)
        z in a.succ, a in a.succ, 3 in a.succ
        a.succ.discard(z), a.succ.discard(a)
        a.succ.remove(z)
        k = g.empty(); k.destroy(); a.succ.add(k)
        k.succ.add(a)
        a.join(k)
        """,
    ),
    "graph: memory nodes": (
        GRAPHS,
        """
        n = g.memset(x, 7, 4); type(n).__name__, n.value, n.element_size, n.width, n.height
        g.memset(int(x.handle), 7, 4).dptr == int(x.handle)
        y = int(x.handle) + 32
        g.memset(y, 256, 4).element_size
        g.memset(y, -1, 4)
        g.memset(y + 8, b"ab", 4).element_size
        g.memset(x, b"abc", 4)
        g.memset(x, "a", 4)
        g.memset("a", 1, 4)
        g.memset(y, 1, -1)
        g.memset(y + 16, 1, 4.5)
        p = n.memcpy(int(x.handle) + 8, x, 4); type(p).__name__, p.size, p.src == int(x.handle)
        g.memcpy(x, x, "4")
        g.memcpy(None, x, 4)
        v = g.allocate(1024); type(v).__name__, v.bytesize, v.device_id, v.peer_access
        g.allocate(-1)
        g.allocate("1")
        v.deallocate(v.dptr).dptr == v.dptr
        g.deallocate(5)
        q = g.instantiate(); q.launch(s); s.sync(); value()
        """,
    ),
    "graph: events and children": (
        GRAPHS,
        """
        e = d.create_event(); type(e).__name__
        n = g.record(e); type(n).__name__, n.event == e
        w = n.wait(e); type(w).__name__, w.pred == {n}
        g.record(5)
        g.wait(None)
        o = GraphDefinition(); o.empty() in o.nodes()
        m = g.embed(o); type(m).__name__, len(m.child_graph.nodes()), m.child_graph == o
        g.embed(g)
        g.embed(5)
        g.instantiate().launch(s); s.sync()
        """,
    ),
    "graph: conditions": (
        GRAPHS,
        """
        k = g.create_condition(1); type(k).__name__, type(k.handle).__name__
        u = GraphDefinition(); type(u.create_condition()).__name__
        u.create_condition("1")
        u.instantiate()
        GraphCondition()
        n = g.if_then(k); type(n).__name__, type(n.then).__name__
        n.then.callback(lambda: calls.append(1)) in n.then.nodes()
        i = g.if_else(g.create_condition(0)); type(i).__name__, len(i.branches)
        i.else_.callback(lambda: calls.append(2)) in i.else_.nodes()
        w = g.switch(g.create_condition(1), 3); type(w).__name__, len(w.branches)
        w.branches[1].callback(lambda: calls.append(3)) in w.branches[1].nodes()
        weakref.ref(k)() is k
        m = g.if_else(g.create_condition(0)); t, e = m.branches; v = t.callback(calls.clear); v in t.nodes()
        m.destroy(); m.is_valid, t.is_valid, e.is_valid, v.is_valid, int(t.handle), int(e.handle), v.handle
        v.destroy(), m.destroy()
        t.nodes()
        g.switch(5, 2)
        g.while_loop(5)
        g.instantiate().launch(s); s.sync(); sorted(calls)
        """,
    ),
    "graph: options": (
        GRAPHS,
        """
        GraphCompleteOptions()
        GraphCompleteOptions(auto_free_on_launch=True)
        GraphCompleteOptions(foo=1)
        [f.name for f in dataclasses.fields(GraphCompleteOptions)]
        [f.name for f in dataclasses.fields(GraphDebugPrintOptions)]
        g.instantiate(5)
        g.instantiate(GraphCompleteOptions(auto_free_on_launch=True)).launch(s); s.sync()
        GraphMemoryResource(d).attributes.used_mem_current
        GraphMemoryResource(d) is GraphMemoryResource(d)
        GraphMemoryResource(d).attributes.used_mem_high = 0
        GraphMemoryResource(d).attributes.used_mem_high = 1
        GraphMemoryResource(d).attributes.reserved_mem_high = 1
        GraphMemoryResource(d).attributes.used_mem_high = "0"
        GraphMemoryResource(d).attributes.used_mem_current = 0
        GraphMemoryResource(d).allocate(64, stream=s)
        GraphMemoryResource(d).trim()
        GraphMemoryResource(99)
        """,
    ),
}
