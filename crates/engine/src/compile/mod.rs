//! The compiler: from a parsed module to the [`Program`] of one kernel.
//!
//! [`compile_kernel`] runs the stages in this order: the functions that the kernel reaches ([`call_graph`]), the layout
//! of their variables ([`layout`]), simplification and the analysis of uniform values ([`uniform`]), register allocation
//! ([`register_allocation`]), and the lowering of each function ([`lower`]).

mod accessed_variable;
mod builder;
mod call_graph;
pub mod layout;
mod lower;
mod register_allocation;
mod uniform;
mod unit;

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_ptx::ir::{FuncId, Op, OpClass, Special};

use accessed_variable::accessed_variables;
use builder::ProgramBuilder;
use call_graph::CallGraph;
pub use call_graph::ModuleCalls;
use lower::{lower_function, simplify};
use register_allocation::reads_special;
use uniform::{analyze, split_addresses};
pub use unit::{CompileError, PlacedModule};
use unit::{FunctionUnit, KernelLayout, register_parameters};

use super::address_windows::function_address;
use super::program::{IndirectTarget, Program, SaveSet, fixed};
use super::semantics::lane::{self, Slot};

/// Largest register file of a warp in bytes.
const MAX_REGISTER_FILE: u32 = 16 << 20;

/// Simplifies and analyzes one function.
fn prepare<'m>(
    placed: &'m PlacedModule,
    id: FuncId,
    layout: &KernelLayout,
) -> Result<FunctionUnit<'m>, CompileError> {
    let function = &placed.module.functions[id.0 as usize];
    let Some(body) = function.body.as_ref() else {
        return Err(CompileError {
            line: function.pos.line,
            message: format!("`{}` has no body", function.name),
        });
    };
    let (frame, _) = layout::frame(function, body)?;
    let mut instrs = body.instrs.clone();
    for i in &mut instrs {
        simplify(i, placed, id, layout, &frame);
    }
    let selected: Vec<_> = instrs
        .iter()
        .map(|i| match i.op.class() {
            OpClass::Arithmetic | OpClass::Video => lane::select(i, &body.regs),
            _ => None,
        })
        .collect();
    let mut uniformity = analyze(
        body,
        &instrs,
        &selected,
        function.is_entry,
        register_parameters(function).len(),
    );
    let split_addresses = split_addresses(body, &instrs, &mut uniformity);
    let accessed = accessed_variables(body)
        .into_iter()
        .map(|variable| placed.variable_index(id, variable?))
        .collect();
    Ok(FunctionUnit {
        id,
        function,
        body,
        instrs,
        selected,
        uniformity,
        split_addresses,
        accessed,
        regs: vec![None; body.regs.len()],
        frame,
        recursive: false,
        save: SaveSet::default(),
    })
}

/// Compiles a kernel and every function that it can reach.
///
/// # Errors
/// An instruction that the engine does not implement, or a variable that does not fit.
pub fn compile_kernel(placed: &PlacedModule, kernel: FuncId) -> Result<Program, CompileError> {
    let module = &placed.module;
    let graph = CallGraph::new(&placed.calls, kernel);
    let shared = layout::shared(module, &graph.functions)?;
    let entry = &module.functions[kernel.0 as usize];
    let units = graph.functions.iter().enumerate();
    let mut layout = KernelLayout {
        units: units.map(|(n, f)| (f.0, n)).collect(),
        shared: shared.offsets,
        params: layout::kernel_params(entry).0,
        block_specials: Vec::new(),
    };
    let mut units = Vec::with_capacity(graph.functions.len());
    for f in &graph.functions {
        units.push(prepare(placed, *f, &layout)?);
    }
    let mut align = 16;
    for (u, recursive) in units.iter_mut().zip(graph.recursive()) {
        u.recursive = recursive;
        align = align.max(layout::frame(u.function, u.body)?.1);
    }
    for u in &mut units {
        // Where functions call each other, no frame is empty: frame sizes bound the depth of recursion.
        let least = if graph.functions.len() > 1 { 16 } else { 0 };
        u.frame.size = u.frame.size.max(least).next_multiple_of(align);
    }
    let frame_sizes: Vec<u32> = units.iter().map(|u| u.frame.size).collect();
    let depth = graph.deepest_stack(&frame_sizes);
    layout::check_local(entry, depth)?;
    let gpu_frames: Vec<u32> = units.iter().map(|u| layout::gpu_frame(u.body)).collect();
    let recursive_frames = units.iter().filter(|u| u.recursive).map(|u| u.frame.size);
    let largest_recursive_frame = recursive_frames.max().unwrap_or(0);
    let file = register_allocation::allocate(&mut units);
    layout.block_specials = file.block_specials;

    let allocates_stack = units
        .iter()
        .any(|u| u.instrs.iter().any(|i| i.op == Op::Alloca));
    let mut b = ProgramBuilder {
        program: Program {
            name: entry.name.clone(),
            code: Vec::new(),
            origins: Vec::new(),
            opcodes: Vec::new(),
            names: units.iter().map(|u| u.function.name.clone()).collect(),
            files: Arc::clone(&placed.files),
            mem: Vec::new(),
            atomics: Vec::new(),
            textures: Vec::new(),
            mbarriers: Vec::new(),
            bulk: Vec::new(),
            calls: Vec::new(),
            barriers: Vec::new(),
            redux: Vec::new(),
            builtins: Vec::new(),
            tables: Vec::new(),
            targets: Vec::new(),
            file_bytes: 0,
            template: Vec::new(),
            block_from: file.block_from,
            block_to: file.block_to,
            launch_specials: Vec::new(),
            block_specials: layout.block_specials.clone(),
            param_addrs: Vec::new(),
            hoisted_loads: Vec::new(),
            launch_prologue: Vec::new(),
            block_prologue: Vec::new(),
            static_local: depth as u32,
            gpu_stack: u32::try_from(graph.deepest_calls(&gpu_frames)).unwrap_or(u32::MAX),
            largest_recursive_frame,
            uses_local: depth > 0 || allocates_stack,
            uses_tid: [0, 1, 2].map(|axis| reads_special(&units, Special::Tid(axis))),
            uses_warp_id: reads_special(&units, Special::WarpId),
            static_shared: shared.bytes,
            dynamic_shared_at: shared.dynamic_at,
            reserved_shared: shared.reserved,
            const_ranges: placed.const_ranges.clone(),
            padded: placed.padded.clone(),
            variables: Arc::clone(&placed.variables),
        },
        constants: HashMap::new(),
        end: file.end,
        entries: Vec::new(),
        spellings: HashMap::new(),
    };
    for n in 0..units.len() {
        b.entries.push(b.program.code.len() as u32);
        lower_function(&mut b, placed, &layout, &units, n)?;
    }
    finish(b, &units, &graph)
}

/// Resolves call targets and fills the template of the register file.
fn finish(
    mut b: ProgramBuilder,
    units: &[FunctionUnit<'_>],
    graph: &CallGraph,
) -> Result<Program, CompileError> {
    for call in &mut b.program.calls {
        // Lowering leaves the index of the callee's unit in `entry`.
        if let Some(&entry) = b.entries.get(call.entry as usize) {
            let callee = &units[call.entry as usize];
            call.callee_frame = callee.frame.size;
            call.callee_gpu_frame = layout::gpu_frame(callee.body);
            call.entry = entry;
        }
    }
    for (n, u) in units.iter().enumerate() {
        if graph.indirect_targets.contains(&u.id.0) {
            b.program.targets.push(IndirectTarget {
                address: function_address(u.id.0),
                entry: b.entries[n],
                frame: u.frame.size,
                gpu_frame: layout::gpu_frame(u.body),
            });
        }
    }
    b.program.file_bytes = b.end.next_multiple_of(64);
    if b.program.file_bytes > MAX_REGISTER_FILE {
        return Err(CompileError {
            line: 0,
            message: format!(
                "the kernel needs a register file of {} bytes; the limit of the CPU device is {MAX_REGISTER_FILE}",
                b.program.file_bytes
            ),
        });
    }
    let mut template = vec![0u8; b.program.file_bytes as usize];
    Slot::Pred.broadcast(&mut template, fixed::ONES, u128::from(u32::MAX));
    for ((slot, element), at) in &b.constants {
        slot.broadcast(&mut template, *at, *element);
    }
    for s in &b.program.launch_specials {
        let per_lane = |f: &dyn Fn(u32) -> u32, t: &mut [u8]| {
            for lane in 0..32 {
                let at = s.at as usize + 4 * lane as usize;
                t[at..at + 4].copy_from_slice(&f(lane).to_ne_bytes());
            }
        };
        match s.special {
            Special::LaneId => per_lane(&|l| l, &mut template),
            Special::LaneMaskEq => per_lane(&|l| 1 << l, &mut template),
            Special::LaneMaskLe => per_lane(&|l| u32::MAX >> (31 - l), &mut template),
            Special::LaneMaskLt => per_lane(&|l| (1u32 << l) - 1, &mut template),
            Special::LaneMaskGe => per_lane(&|l| u32::MAX << l, &mut template),
            Special::LaneMaskGt => per_lane(&|l| !(u32::MAX >> (31 - l)), &mut template),
            _ => {}
        }
    }
    b.program.template = template;
    Ok(b.program)
}
