"""HTML of objects for notebooks, called by the native methods `_repr_html_`.

Formatters read public properties only, create no context and do not raise: a value that cannot be read is shown as `?`. They
leave `GraphDefinition.handle` and `Graph.handle` alone, because reading those changes how graphs are tracked. Colours are
those of the surrounding text, so that the HTML fits light and dark themes. It has no scripts.
"""

from collections import Counter
from html import escape
from itertools import pairwise

# A graph beyond these sizes becomes a table: a drawing would not be readable.
MOST_NODES = 60
MOST_EDGES = 120

# Pixels of the drawing.
_WIDTH, _HEIGHT, _GAP, _RISE, _MARGIN = 176, 42, 22, 40, 8
# Characters of a line in a node.
_LETTERS = 24


def device(obj):
    """A `Device`."""
    return _table(
        obj,
        [
            ("number", lambda: obj.device_id),
            ("name", lambda: obj.name),
            ("compute capability", lambda: "{}.{}".format(*obj.compute_capability)),
            ("memory", lambda: _size(obj.total_memory)),
            ("multiprocessors", lambda: obj.properties.multiprocessor_count),
            ("PCI bus ID", lambda: obj.pci_bus_id),
            ("UUID", lambda: obj.uuid),
        ],
    )


def buffer(obj):
    """A `Buffer`."""
    if obj.is_closed:
        return _table(obj, [], "closed")
    return _table(
        obj,
        [
            ("address", lambda: f"{obj.handle:#x}"),
            ("size", lambda: _size(obj.size)),
            ("accessible from", lambda: _places(obj.is_device_accessible, obj.is_host_accessible, obj.device_id)),
            ("memory resource", lambda: type(obj.memory_resource).__name__ if obj.memory_resource else "none"),
            ("imported from another process", lambda: "yes" if obj.is_mapped else "no"),
        ],
    )


def view(obj):
    """A `StridedMemoryView`."""
    return _table(
        obj,
        [
            ("shape", lambda: obj.shape),
            ("strides", lambda: "C order" if obj.strides is None else f"{obj.strides} elements"),
            ("element type", lambda: "unknown" if obj.dtype is None else obj.dtype),
            ("address", lambda: f"{obj.ptr:#x}"),
            ("memory", lambda: f"device {obj.device_id}" if obj.device_id >= 0 else "host"),
            ("read-only", lambda: "yes" if obj.readonly else "no"),
            ("exporting object", lambda: type(obj.exporting_obj).__name__),
        ],
    )


def graph_definition(obj):
    """A `GraphDefinition`: its nodes and edges."""
    try:
        if not obj.is_valid:
            return _table(obj, [], "not valid")
        # Handles increase, so that the order is that of creation.
        nodes = sorted(obj.nodes(), key=hash)
        edges = sorted(obj.edges(), key=lambda edge: (hash(edge[0]), hash(edge[1])))
    except Exception:  # another thread may destroy the graph meanwhile
        return _table(obj, [], "cannot be read")
    return _graph(obj, nodes, edges)


def graph(obj, definition):
    """A `Graph`, drawn from the definition it was instantiated from; None if that no longer exists."""
    if obj.is_closed:
        return _table(obj, [], "closed")
    if definition is None:
        return _table(obj, [], "its definition no longer exists")
    drawing = graph_definition(definition)
    return f"<div>{_heading(obj, 'instantiated from')}{drawing}</div>"


def _size(count):
    """Bytes for readers, and exactly."""
    return _rounded_size(count) if count < 1024 else f"{_rounded_size(count)} ({count} bytes)"


def _rounded_size(count):
    if count < 1024:
        return f"{count} bytes"
    value, unit = count / 1024, "KiB"
    for following in ("MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, following
    return f"{value:.4g} {unit}"


def _places(on_device, on_host, number):
    device = f"device {number}" if number >= 0 else "devices"
    return " and ".join([device] * on_device + ["host"] * on_host) or "nowhere"


def _read(value):
    """The value as escaped text."""
    try:
        return escape(str(value()))
    except Exception:
        return "?"


def _heading(obj, remark=""):
    return f"<b>{escape(type(obj).__name__)}</b>{escape(remark and ', ' + remark)}"


def _table(obj, rows, remark=""):
    left = 'style="text-align:left"'
    lines = "".join(f"<tr><th {left}>{escape(name)}</th><td {left}>{_read(value)}</td></tr>" for name, value in rows)
    return f"<div>{_heading(obj, remark)}{lines and f'<table>{lines}</table>'}</div>"


def _graph(obj, nodes, edges):
    remark = f"{_number(nodes, 'node')} and {_number(edges, 'edge')}"
    if not nodes:
        return _table(obj, [], remark)
    if len(nodes) > MOST_NODES or len(edges) > MOST_EDGES:
        kinds = Counter(_kind(node) for node in nodes)
        rows = [(kind, lambda count=count: count) for kind, count in kinds.most_common()]
        return _table(obj, rows, remark)
    return f"<div>{_heading(obj, remark)}<br/>{_drawing(nodes, edges)}</div>"


def _number(items, noun):
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


_KINDS = {
    "AllocNode": "allocation",
    "ChildGraphNode": "child graph",
    "EmptyNode": "empty",
    "EventRecordNode": "event record",
    "EventWaitNode": "event wait",
    "FreeNode": "free",
    "HostCallbackNode": "host callback",
    "IfElseNode": "if-else",
    "IfNode": "if",
    "KernelNode": "kernel",
    "MemcpyNode": "copy",
    "MemsetNode": "fill",
    "SwitchNode": "switch",
    "WhileNode": "while",
}


def _kind(node):
    name = type(node).__name__
    return _KINDS.get(name, name)


def _label(node):
    """The two lines of a node."""
    kind = _kind(node)
    try:
        match kind:
            case "kernel":
                return node.kernel._name or kind, f"grid {_extent(node.grid)}, block {_extent(node.block)}"
            case "copy":
                return kind, _rounded_size(node.size)
            case "fill":
                return kind, f"{node.width} x {node.height} elements"
            case "allocation":
                return kind, _rounded_size(node.bytesize)
            case "host callback":
                return str(getattr(node.callback, "__name__", "C function")), kind
            case "child graph":
                return kind, _number(node.child_graph.nodes(), "node")
            case "if" | "if-else" | "switch" | "while":
                return kind, ", ".join(_number(branch.nodes(), "node") for branch in node.branches)
    except Exception:  # another thread may destroy the node meanwhile, and a callback may be any object
        return kind, "?"
    return kind, ""


def _extent(dimensions):
    while len(dimensions) > 1 and dimensions[-1] == 1:
        dimensions = dimensions[:-1]
    return " x ".join(map(str, dimensions))


def _layers(nodes, edges):
    """Nodes by layer, so that every edge leads to a later layer, and the paths of the edges.

    An edge that crosses layers has a point in each of them, a tuple `(edge, layer)`, so that it does not run through
    nodes. A layer is sorted by the means of the positions before and after it, which avoids most crossings.
    """
    before = {node: [] for node in nodes}
    for start, end in edges:
        before[end].append(start)
    depth, pending = {}, list(nodes)
    while pending:
        # The graph has no cycles, so that each round finds nodes whose predecessors are all known.
        ready = [node for node in pending if all(start in depth for start in before[node])]
        for node in ready:
            depth[node] = 1 + max((depth[start] for start in before[node]), default=-1)
        pending = [node for node in pending if node not in depth]
    layers = [[] for _ in range(1 + max(depth.values()))]
    for node in nodes:
        layers[depth[node]].append(node)
    paths, near = [], {}
    for number, (start, end) in enumerate(edges):
        between = [(number, layer) for layer in range(depth[start] + 1, depth[end])]
        for point in between:
            layers[point[1]].append(point)
        path = [start, *between, end]
        paths.append(path)
        for one, other in pairwise(path):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    for _ in range(4):
        place = {item: k - (len(layer) - 1) / 2 for layer in layers for k, item in enumerate(layer)}
        for layer in layers:
            layer.sort(key=lambda item: sum(place[n] for n in near.get(item, [item])) / len(near.get(item, [item])))
    return layers, paths


def _drawing(nodes, edges):
    layers, paths = _layers(nodes, edges)
    widest = max(map(len, layers))
    width = widest * (_WIDTH + _GAP) - _GAP + 2 * _MARGIN
    height = len(layers) * (_HEIGHT + _RISE) - _RISE + 2 * _MARGIN
    center = {}
    for number, layer in enumerate(layers):
        for k, item in enumerate(layer):
            x = width / 2 + (k - (len(layer) - 1) / 2) * (_WIDTH + _GAP)
            center[item] = x, _MARGIN + number * (_HEIGHT + _RISE) + _HEIGHT / 2
    parts = []
    for path in paths:
        line = f"M{center[path[0]][0]:g} {center[path[0]][1] + _HEIGHT / 2:g}"
        for one, other in pairwise(path):
            # Vertical at both ends; straight through the points of the layers between.
            (x, y), (x2, y2) = center[one], center[other]
            y, y2 = y + _HEIGHT / 2, y2 - _HEIGHT / 2
            middle = (y + y2) / 2
            line += f"C{x:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}"
            if other is not path[-1]:
                line += f"L{x2:g} {y2 + _HEIGHT:g}"
        parts.append(f'<path d="{line}" fill="none" stroke="currentColor" stroke-opacity="0.6"/>')
        x, y = center[path[-1]]
        parts.append(f'<path d="M{x:g} {y - _HEIGHT / 2:g}l-4 -8h8z" fill="currentColor"/>')
    for node in nodes:
        x, y = center[node]
        first, second = _label(node)
        opacity, corner = (0.16, 4) if _kind(node) == "kernel" else (0.05, 14)
        parts.append(
            f"<g><title>{_read(lambda node=node, first=first: f'{first} {node!r}')}</title>"
            f'<rect x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="{corner}" '
            f'fill="currentColor" fill-opacity="{opacity}" stroke="currentColor"/>'
            f'<text x="{x:g}" y="{y - 3 if second else y + 4:g}" font-weight="bold">{_line(first)}</text>'
            f'<text x="{x:g}" y="{y + 13:g}" opacity="0.8">{_line(second)}</text></g>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'style="max-width:100%;height:auto" role="img" font-family="sans-serif" font-size="12" text-anchor="middle" '
        f'fill="currentColor">{"".join(parts)}</svg>'
    )


def _line(text):
    text = str(text)
    return escape(text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…")
