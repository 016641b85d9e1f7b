//! Graph descriptions in the DOT language, for Graphviz.

use std::fmt::Write as _;
use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::{Code, Graph, Payload, find};
use crate::driver::entry::caller_memory::get_name;
use crate::driver::entry::driver_entry_points;
use crate::driver::memory::copy_job::{self, CopyOperand};

/// `CUgraphDebugDot_flags`.
const VERBOSE: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0;
const KERNEL: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS.0;
const MEMCPY: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS.0;
const MEMSET: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS.0;
const HOST: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS.0;
const EVENT: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS.0;
const ATTRIBUTES: u32 =
    sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES.0;
const HANDLES: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES.0;
const MEM_ALLOC: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS.0;
const MEM_FREE: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS.0;
const MEM_OPS: u32 =
    sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS.0;
const SIGNAL: u32 =
    sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS.0;
const WAIT: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS.0;
const CONDITIONAL: u32 =
    sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS.0;
const EXTRA_TOPOLOGY: u32 = sys::CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO.0;

/// The shape and title of a node's box.
fn title(payload: &Payload) -> (&'static str, String) {
    match payload {
        Payload::Kernel(k) => (
            "octagon",
            format!("KERNEL\n{}", k.launch.function.kernel.name),
        ),
        Payload::Memcpy(_) => ("invtrapezium", "MEMCPY".into()),
        Payload::Memset(_) => ("invtrapezium", "MEMSET".into()),
        Payload::Host(_) => ("rectangle", "HOST".into()),
        Payload::Graph(_) => ("rectangle", "GRAPH".into()),
        Payload::Empty => ("circle", "EMPTY".into()),
        Payload::EventWait(_) => ("rectangle", "EVENT_WAIT".into()),
        Payload::EventRecord(_) => ("rectangle", "EVENT_RECORD".into()),
        Payload::MemAlloc(_) => ("trapezium", "MEM_ALLOC".into()),
        Payload::MemFree(_) => ("trapezium", "MEM_FREE".into()),
        Payload::MemOps(_) => ("rectangle", "BATCH_MEM_OP".into()),
        Payload::SignalSemaphores(_) => ("rectangle", "EXT_SEMAS_SIGNAL".into()),
        Payload::WaitSemaphores(_) => ("rectangle", "EXT_SEMAS_WAIT".into()),
        Payload::Conditional(c) => ("diamond", c.title()),
    }
}

/// Further lines of a node's box.
fn details(payload: &Payload, flags: u32) -> Vec<String> {
    let wanted = |flag: u32| flags & (flag | VERBOSE) != 0;
    let mut lines = Vec::new();
    match payload {
        Payload::Kernel(k) => {
            let config = &k.launch.config;
            if wanted(KERNEL) {
                let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
                lines.push(format!("grid {gx} x {gy} x {gz}, block {bx} x {by} x {bz}"));
                lines.push(format!("dynamic shared {} bytes", config.dynamic_shared));
                lines.push(format!(
                    "arguments {} bytes",
                    k.launch.arguments.bytes().len()
                ));
            }
            if wanted(ATTRIBUTES) {
                lines.push(format!("cooperative {}", u32::from(config.cooperative)));
                lines.extend(
                    k.attributes
                        .iter()
                        .map(|(id, v)| format!("attribute {id}: {:#x}", first_word(&v.0))),
                );
            }
        }
        Payload::Memcpy(m) if wanted(MEMCPY) => {
            let copy = &m.copy;
            let side = |side: &CopyOperand| match side.kind {
                copy_job::HOST => format!("host {:#x}", side.host),
                copy_job::ARRAY => format!("array {:#x}", side.array),
                _ => format!("device {:#x}", side.device),
            };
            lines.push(format!("{} to {}", side(&copy.from), side(&copy.to)));
            let [width, height, depth] = copy.extent;
            lines.push(format!("{width} x {height} x {depth}"));
        }
        Payload::Memset(m) if wanted(MEMSET) => {
            let f = &m.fill;
            lines.push(format!("{:#x} at {:#x}", f.value, f.to));
            lines.push(format!(
                "{} x {} elements of {} bytes, pitch {}",
                f.width, f.height, f.unit, f.pitch
            ));
        }
        Payload::Host(call) if wanted(HOST) => {
            lines.push(format!(
                "function {:#x}, data {:#x}",
                call.address(),
                call.data
            ));
        }
        Payload::EventWait(e) | Payload::EventRecord(e) if wanted(EVENT) => {
            lines.push(format!("event {:#x}", e.handle));
        }
        Payload::MemAlloc(a) if wanted(MEM_ALLOC) => {
            lines.push(format!("{} bytes at {:#x}", a.size(), a.address()));
        }
        Payload::Conditional(c) if wanted(CONDITIONAL) => {
            lines.push(format!("condition {:#x}", c.params().handle));
        }
        Payload::MemOps(m) if wanted(MEM_OPS) => lines.push(format!("{} operations", m.len())),
        Payload::SignalSemaphores(s) if wanted(SIGNAL) => lines.extend(s.lines()),
        Payload::WaitSemaphores(s) if wanted(WAIT) => lines.extend(s.lines()),
        Payload::MemFree(f) if wanted(MEM_FREE) => lines.push(format!("{:#x}", f.address())),
        _ => {}
    }
    lines
}

/// The first eight bytes of an attribute's value.
fn first_word(value: &sys::CUlaunchAttributeValue) -> u64 {
    // SAFETY: the value was read whole or zeroed, so each of its bytes is set.
    let bytes = unsafe { value.pad };
    u64::from_ne_bytes(std::array::from_fn(|i| bytes[i].to_ne_bytes()[0]))
}

/// Quotes a string.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

/// Writes a graph and its embedded graphs. Accesses no caller memory. The recursion depth is limited by the nesting
/// depth of graphs.
fn draw(graph: &Arc<Graph>, name: &str, flags: u32, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "subgraph {} {{", quoted(&format!("cluster_{name}")));
    let _ = writeln!(out, "label={};", quoted(name));
    let mut inner = Vec::new();
    {
        let state = graph.lock();
        let id = |node: u64| {
            format!(
                "{name}_node_{}",
                state.nodes.get(&node).map_or(0, |n| n.local)
            )
        };
        for (&handle, node) in &state.nodes {
            let (shape, text) = title(&node.payload);
            let mut text = format!("{}\n{text}", node.local);
            for line in details(&node.payload, flags) {
                text.push('\n');
                text.push_str(&line);
            }
            if flags & (HANDLES | VERBOSE) != 0 {
                let _ = write!(text, "\nnode {handle:#x}");
            }
            if flags & EXTRA_TOPOLOGY != 0 {
                let (before, after) = (node.before.len(), node.after.len());
                let _ = write!(text, "\n{before} before, {after} after");
            }
            let _ = writeln!(
                out,
                "{}[shape={} label={}];",
                quoted(&id(handle)),
                quoted(shape),
                quoted(&text)
            );
            for (n, graph) in node.payload.graphs().iter().enumerate() {
                inner.push((graph.clone(), id(handle), n));
            }
        }
        for (&handle, node) in &state.nodes {
            for edge in &node.after {
                let label = if edge.data == [0; 8] {
                    String::new()
                } else {
                    let [from, to, kind, ..] = edge.data;
                    format!("[label=\"type {kind}, ports {from} to {to}\"]")
                };
                let _ = writeln!(
                    out,
                    "{} -> {}{label};",
                    quoted(&id(handle)),
                    quoted(&id(edge.node))
                );
            }
        }
    }
    let _ = writeln!(out, "}}");
    for (graph, node, n) in inner {
        let name = match n {
            0 => format!("{node}_graph"),
            n => format!("{node}_graph_{n}"),
        };
        draw(&graph, &name, flags, out);
        // From the node to the graph it embeds.
        let first = graph.lock().nodes.values().next().map(|n| n.local);
        if let Some(first) = first {
            let target = quoted(&format!("{name}_node_{first}"));
            let _ = writeln!(out, "{} -> {target}[style=\"dashed\"];", quoted(&node));
        }
    }
}

driver_entry_points! {
    fn debug_dot_print "cuGraphDebugDotPrint" (graph: u64, path: u64, flags: u32) {
        if path == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let graph = find(graph)?;
        let path = get_name(path)?;
        let mut text = String::from("digraph dot {\n");
        draw(&graph, &format!("graph_{}", graph.id), flags, &mut text);
        text.push_str("}\n");
        std::fs::write(path, text).map_err(|_| Code::OPERATING_SYSTEM)
    }
}
