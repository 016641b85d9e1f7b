//! From a parsed module to the KIR of one kernel.
//!
//! Belongs here: what an instruction of PTX is in KIR, and the layout of variables. Does not belong here: analyses of KIR and
//! the locations of registers (`passes`).
//!
//! [`kernel`] finds the functions that the kernel reaches ([`call_graph`]), lays out their variables ([`layout`]) and
//! translates each of them ([`function`]). Nothing is inlined. The other files translate one class of instructions each.

mod accessed_variable;
mod bulk_copy;
mod call_graph;
mod calls;
mod collectives;
mod function;
pub mod layout;
mod mbarrier;
mod memory;
mod operands;
mod placed;
mod simplify;
mod tensor_map;
mod texture;

use cupyrite_ptx::ir::{FuncId, Op};

use call_graph::CallGraph;
pub use call_graph::ModuleCalls;
pub use placed::{CompileError, PaddedVariable, PlacedModule, PlacedVariable};
use placed::{FunctionLayout, KernelLayout};

use crate::kir::Kernel;

/// Translates a kernel and every function that it can reach.
///
/// # Errors
/// An instruction that the engine does not implement, or a variable that does not fit.
pub fn kernel(placed: &PlacedModule, kernel: FuncId) -> Result<Kernel, CompileError> {
    let module = &placed.module;
    let graph = CallGraph::new(&placed.calls, kernel);
    let shared = layout::shared(module, &graph.functions)?;
    let entry = &module.functions[kernel.0 as usize];
    let mut functions = Vec::with_capacity(graph.functions.len());
    let mut align = 16;
    for (&id, recursive) in graph.functions.iter().zip(graph.recursive()) {
        let function = &module.functions[id.0 as usize];
        let Some(body) = function.body.as_ref() else {
            return Err(CompileError {
                line: function.pos.line,
                message: format!("`{}` has no body", function.name),
            });
        };
        let (frame, own_align) = layout::frame(function, body)?;
        align = align.max(own_align);
        functions.push(FunctionLayout {
            id,
            function,
            body,
            frame,
            recursive,
            address_taken: graph.indirect_targets.contains(&id.0),
        });
    }
    for f in &mut functions {
        // Where functions call each other, no frame is empty: frame sizes bound the depth of recursion.
        let least = if graph.functions.len() > 1 { 16 } else { 0 };
        f.frame.size = f.frame.size.max(least).next_multiple_of(align);
    }
    let frame_sizes: Vec<u32> = functions.iter().map(|f| f.frame.size).collect();
    let depth = graph.deepest_stack(&frame_sizes);
    layout::check_local(entry, depth)?;
    let gpu_frames: Vec<u32> = functions
        .iter()
        .map(|f| layout::gpu_frame(f.body))
        .collect();
    let layout = KernelLayout {
        indices: graph
            .functions
            .iter()
            .enumerate()
            .map(|(n, f)| (f.0, n))
            .collect(),
        functions,
        shared: shared.offsets,
        params: layout::kernel_params(entry).0,
    };
    let functions = (0..layout.functions.len())
        .map(|n| function::function(placed, &layout, n))
        .collect::<Result<_, _>>()?;
    let allocates_stack = layout
        .functions
        .iter()
        .any(|f| f.body.instrs.iter().any(|i| i.op == Op::Alloca));
    Ok(Kernel {
        functions,
        static_shared: shared.bytes,
        dynamic_shared_at: shared.dynamic_at,
        reserved_shared: shared.reserved,
        static_local: depth as u32,
        gpu_stack: u32::try_from(graph.deepest_calls(&gpu_frames)).unwrap_or(u32::MAX),
        uses_local: depth > 0 || allocates_stack,
        uses_references: layout
            .functions
            .iter()
            .any(|f| texture::names_reference(&placed.module, f.body)),
    })
}
