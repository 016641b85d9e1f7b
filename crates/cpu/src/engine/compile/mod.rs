//! From a parsed module to the decoded program of one kernel: which functions it reaches, where their variables and
//! registers live, and the pieces that [`lower`] produces for each function.

pub mod lower;
pub mod uniform;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cupyrite_ptx::ir::{
    Base, Body, FuncId, Function, InitElem, Instr, Module, Op, Operand, RegId, Space, VarId,
    Variable,
};

use self::lower::lower_function;
use self::lower::normalise;
use self::uniform::{Class, Classes, classify, fuse_addresses, read, writes};
use crate::engine::address_windows::function_address;
use crate::engine::ops::{self, Selected, Slot};
use crate::engine::program::{BuiltinKind, Program, SaveSet, SpecialSlot, Target, fixed};
use cupyrite_ptx::ir::Special;

/// Why a kernel cannot be decoded.
#[derive(Clone, Debug)]
pub struct DecodeError {
    /// Line of the PTX, or zero.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

/// A module with its module-level variables placed in memory.
pub struct Linked<'m> {
    /// The module.
    pub module: &'m Module,
    /// Address of each module-level variable; `None` for those in shared memory.
    pub globals: Vec<Option<u64>>,
    /// Address of `.global` and `.const` variables declared in a body, by function and variable.
    pub body_globals: HashMap<(u32, u32), u64>,
    /// Constant memory: base and size.
    pub const_ranges: Vec<(u64, u64)>,
    /// Names of source files.
    pub files: Arc<Vec<(u32, String)>>,
}

/// A register's place.
#[derive(Clone, Copy, Debug)]
pub struct Loc {
    /// Byte offset of the (first) slot.
    pub at: u32,
    /// Shape.
    pub slot: Slot,
}

/// Offsets in a function's frame, and its size.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Of [`Function::returns`].
    pub returns: Vec<u32>,
    /// Of [`Function::params`] (functions, not kernels).
    pub params: Vec<u32>,
    /// Of [`Body::vars`] in local and parameter space.
    pub vars: Vec<u32>,
    /// Size, a multiple of the alignment of all frames.
    pub size: u32,
}

/// One function on its way.
pub struct Unit<'m> {
    /// Its number in the module.
    pub id: FuncId,
    /// It.
    pub function: &'m Function,
    /// Its body.
    pub body: &'m Body,
    /// Instructions after [`normalise`].
    pub instrs: Vec<Instr>,
    /// Lane functions.
    pub selected: Vec<Option<Selected>>,
    /// Why an instruction has none, if it needs one.
    pub unsupported: Vec<Option<String>>,
    /// Register classes.
    pub classes: Classes,
    /// Addresses taken apart into a varying and a uniform register.
    pub fused: Vec<Option<(RegId, RegId)>>,
    /// Register places.
    pub regs: Vec<Option<Loc>>,
    /// Frame layout.
    pub frame: Frame,
    /// Whether it can be entered again before it returns.
    pub recursive: bool,
    /// Its varying registers.
    pub save: SaveSet,
}

/// Kernel-wide layout shared by the lowering of all functions.
pub struct Layout {
    /// Offset of each shared variable: module-level by index, body-level by function and index.
    pub shared: HashMap<(Option<u32>, u32), u32>,
    /// Kernel parameter offsets.
    pub params: Vec<u32>,
    /// Place of each block-wide special register.
    pub block_specials: Vec<SpecialSlot>,
}

/// The functions of the module that the device itself provides.
pub fn builtin(name: &str) -> Option<BuiltinKind> {
    Some(match name {
        "vprintf" => BuiltinKind::Vprintf,
        "__assertfail" => BuiltinKind::AssertFail,
        "malloc" => BuiltinKind::Malloc,
        "free" => BuiltinKind::Free,
        _ => return None,
    })
}

fn functions_in(o: &Operand, out: &mut Vec<FuncId>) {
    match o {
        Operand::Func(f) => out.push(*f),
        Operand::Vector(v) | Operand::Args(v) => v.iter().for_each(|o| functions_in(o, out)),
        _ => {}
    }
}

fn variables_in(o: &Operand, out: &mut Vec<VarId>) {
    match o {
        Operand::Var(v, _) | Operand::Addr(Base::Var(v), _) => out.push(*v),
        Operand::Vector(v) | Operand::Args(v) => v.iter().for_each(|o| variables_in(o, out)),
        _ => {}
    }
}

/// Functions whose address is taken anywhere in the module.
fn address_taken(m: &Module) -> BTreeSet<u32> {
    let mut set = BTreeSet::new();
    for g in &m.globals {
        for e in &g.init {
            if let InitElem::Func { func, .. } = e {
                set.insert(func.0);
            }
        }
    }
    let mut list = Vec::new();
    for body in m.functions.iter().filter_map(|f| f.body.as_ref()) {
        for i in &body.instrs {
            list.clear();
            for o in &i.operands {
                // The target of a direct call is not an address taken; its arguments may be.
                if i.op == Op::Call && matches!(o, Operand::Func(_)) {
                    continue;
                }
                functions_in(o, &mut list);
            }
            set.extend(list.iter().map(|f| f.0));
        }
        for v in &body.vars {
            for e in &v.init {
                if let InitElem::Func { func, .. } = e {
                    set.insert(func.0);
                }
            }
        }
    }
    set
}

fn is_indirect(i: &Instr) -> bool {
    i.op == Op::Call && !i.operands.iter().any(|o| matches!(o, Operand::Func(_)))
}

/// Call graph below a kernel: the functions in order of discovery and, for each, those it may call.
fn reach(m: &Module, kernel: FuncId) -> (Vec<FuncId>, Vec<Vec<FuncId>>, BTreeSet<u32>) {
    let taken: BTreeSet<u32> = address_taken(m)
        .into_iter()
        .filter(|&f| m.functions[f as usize].body.is_some() && !m.functions[f as usize].is_entry)
        .collect();
    let mut order = vec![kernel];
    let mut edges = Vec::new();
    let mut used_taken = BTreeSet::new();
    let mut n = 0;
    while n < order.len() {
        let mut out = Vec::new();
        if let Some(body) = &m.functions[order[n].0 as usize].body {
            for i in body.instrs.iter().filter(|i| i.op == Op::Call) {
                if is_indirect(i) {
                    out.extend(taken.iter().map(|&f| FuncId(f)));
                    used_taken.extend(taken.iter().copied());
                } else {
                    for o in &i.operands {
                        if let Operand::Func(f) = o {
                            out.push(*f);
                        }
                    }
                }
            }
        }
        out.sort_by_key(|f| f.0);
        out.dedup();
        out.retain(|f| m.functions[f.0 as usize].body.is_some());
        for f in &out {
            if !order.contains(f) {
                order.push(*f);
            }
        }
        edges.push(out);
        n += 1;
    }
    (order, edges, used_taken)
}

/// Which of the functions lie on a cycle of the call graph.
fn cycles(order: &[FuncId], edges: &[Vec<FuncId>]) -> Vec<bool> {
    let index: HashMap<u32, usize> = order.iter().enumerate().map(|(n, f)| (f.0, n)).collect();
    (0..order.len())
        .map(|start| {
            let mut seen = vec![false; order.len()];
            let mut stack: Vec<usize> = edges[start].iter().map(|f| index[&f.0]).collect();
            while let Some(n) = stack.pop() {
                if n == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[n], true) {
                    stack.extend(edges[n].iter().map(|f| index[&f.0]));
                }
            }
            false
        })
        .collect()
}

/// Longest path of frames below function `n`; functions on cycles count once.
fn deepest(
    n: usize,
    sizes: &[u32],
    edges: &[Vec<FuncId>],
    order: &[FuncId],
    path: &mut Vec<usize>,
    memo: &mut [Option<u64>],
) -> u64 {
    if let Some(d) = memo[n] {
        return d;
    }
    if path.len() > 500 {
        // Longer than any stack: refused as too large.
        return u64::from(u32::MAX);
    }
    path.push(n);
    let mut below = 0;
    for f in &edges[n] {
        if let Some(k) = order.iter().position(|o| o == f)
            && !path.contains(&k)
        {
            below = below.max(deepest(k, sizes, edges, order, path, memo));
        }
    }
    path.pop();
    let d = u64::from(sizes[n]) + below;
    memo[n] = Some(d);
    d
}

fn place(at: &mut u64, size: u64, align: u32) -> u64 {
    *at = at.next_multiple_of(u64::from(align.max(1)));
    let here = *at;
    *at = at.saturating_add(size);
    here
}

/// Largest frame a function may have; local memory is limited to 512 KiB a thread as on a GPU.
const MAX_LOCAL: u64 = 512 << 10;

fn frame_of(f: &Function, body: &Body) -> Result<(Frame, u32), DecodeError> {
    let mut at = 0u64;
    let mut align = 16;
    let mut put = |v: &Variable, at: &mut u64| {
        align = align.max(v.align);
        place(at, v.size(), v.align) as u32
    };
    let returns = f.returns.iter().map(|v| put(v, &mut at)).collect();
    let params = if f.is_entry {
        Vec::new()
    } else {
        f.params.iter().map(|v| put(v, &mut at)).collect()
    };
    let vars = body
        .vars
        .iter()
        .map(|v| {
            if matches!(v.space, Space::Local | Space::Param) {
                put(v, &mut at)
            } else {
                0
            }
        })
        .collect();
    if at > MAX_LOCAL {
        return Err(DecodeError {
            line: f.pos.line,
            message: format!(
                "`{}` needs {at} bytes of local memory a thread; the limit is {MAX_LOCAL}",
                f.name
            ),
        });
    }
    Ok((
        Frame {
            returns,
            params,
            vars,
            size: at as u32,
        },
        align,
    ))
}

/// Offsets of a kernel's parameters and the size of all.
pub fn kernel_params(f: &Function) -> (Vec<u32>, u32) {
    let mut at = 0u64;
    let offsets = f
        .params
        .iter()
        .map(|v| place(&mut at, v.size(), v.align) as u32)
        .collect();
    (offsets, u32::try_from(at).unwrap_or(u32::MAX))
}

struct Shared {
    offsets: HashMap<(Option<u32>, u32), u32>,
    bytes: u32,
    dynamic_at: u32,
}

fn shared_layout(m: &Module, order: &[FuncId]) -> Result<Shared, DecodeError> {
    let mut sized: Vec<((Option<u32>, u32), &Variable)> = Vec::new();
    let mut list = Vec::new();
    for f in order {
        let Some(body) = &m.functions[f.0 as usize].body else {
            continue;
        };
        for (n, v) in body.vars.iter().enumerate() {
            if v.space == Space::Shared {
                sized.push(((Some(f.0), n as u32), v));
            }
        }
        for i in &body.instrs {
            list.clear();
            i.operands.iter().for_each(|o| variables_in(o, &mut list));
            for v in &list {
                if let VarId::Module(n) = v {
                    let var = &m.globals[*n as usize];
                    if var.space == Space::Shared && !sized.iter().any(|(k, _)| *k == (None, *n)) {
                        sized.push(((None, *n), var));
                    }
                }
            }
        }
    }
    let mut offsets = HashMap::new();
    let mut at = 0u64;
    let mut dynamic_align = 16;
    for (key, v) in sized.iter().filter(|(_, v)| !v.is_unsized()) {
        offsets.insert(*key, place(&mut at, v.size(), v.align) as u32);
    }
    for (_, v) in sized.iter().filter(|(_, v)| v.is_unsized()) {
        dynamic_align = dynamic_align.max(v.align);
    }
    if at > 227 << 10 {
        return Err(DecodeError {
            line: 0,
            message: format!(
                "{at} bytes of static shared memory; the limit is {}",
                227 << 10
            ),
        });
    }
    let bytes = at as u32;
    let dynamic_at = if sized.iter().any(|(_, v)| v.is_unsized()) {
        at.next_multiple_of(u64::from(dynamic_align)) as u32
    } else {
        bytes
    };
    for (key, _) in sized.iter().filter(|(_, v)| v.is_unsized()) {
        offsets.insert(*key, dynamic_at);
    }
    Ok(Shared {
        offsets,
        bytes,
        dynamic_at,
    })
}

/// Gives every used, varying register of a unit its place, from `at` on.
fn place_registers(unit: &mut Unit<'_>, at: &mut u32, want: impl Fn(Class) -> bool, save: bool) {
    let mut used = vec![false; unit.body.regs.len()];
    let mut list = Vec::new();
    for i in &unit.instrs {
        list.clear();
        writes(i, &mut list);
        i.operands.iter().for_each(|o| read(o, &mut list));
        list.extend(i.guard.map(|g| g.0));
        for r in &list {
            used[r.0 as usize] = true;
        }
    }
    let mut ranges = [(0u32, 0u32); 4];
    for (k, slot) in [Slot::Pred, Slot::R32, Slot::R64, Slot::R128]
        .into_iter()
        .enumerate()
    {
        if slot != Slot::Pred {
            *at = at.next_multiple_of(64);
        }
        let from = *at;
        for (n, r) in unit.body.regs.iter().enumerate() {
            if used[n] && Slot::of(r.ty) == slot && want(unit.classes.regs[n]) {
                unit.regs[n] = Some(Loc { at: *at, slot });
                *at += slot.bytes() * r.vector.max(1);
            }
        }
        ranges[k] = (from, *at);
    }
    *at = at.next_multiple_of(64);
    if save {
        unit.save = SaveSet {
            preds: ranges[0],
            r32: ranges[1],
            r64: ranges[2],
            r128: ranges[3],
        };
    }
}

fn prepare<'m>(linked: &Linked<'m>, id: FuncId, layout: &Layout) -> Result<Unit<'m>, DecodeError> {
    let function = &linked.module.functions[id.0 as usize];
    let Some(body) = function.body.as_ref() else {
        return Err(DecodeError {
            line: function.pos.line,
            message: format!("`{}` has no body", function.name),
        });
    };
    let (frame, _) = frame_of(function, body)?;
    let mut instrs = body.instrs.clone();
    for i in &mut instrs {
        normalise(i, linked, id, layout, &frame);
    }
    let mut selected = Vec::with_capacity(instrs.len());
    let mut unsupported = Vec::with_capacity(instrs.len());
    for i in &instrs {
        let (s, u) = if lower::is_ours(i) {
            (None, None)
        } else {
            match ops::select(i, &body.regs) {
                Ok(s) => (Some(s), None),
                Err(e) => (None, Some(e.to_string())),
            }
        };
        selected.push(s);
        unsupported.push(u);
    }
    let mut classes = classify(
        body,
        &instrs,
        &selected,
        function.is_entry,
        register_parameters(function).len(),
    );
    let fused = fuse_addresses(body, &instrs, &mut classes);
    Ok(Unit {
        id,
        function,
        body,
        fused,
        regs: vec![None; body.regs.len()],
        instrs,
        selected,
        unsupported,
        classes,
        frame,
        recursive: false,
        save: SaveSet::default(),
    })
}

/// The part of the program under construction that grows at the end of the register file.
pub struct Builder {
    /// The program.
    pub program: Program,
    /// Constants placed so far.
    pub constants: HashMap<(Slot, u128), u32>,
    /// Next free byte of the register file.
    pub at: u32,
    /// Entry point of each unit, once lowered.
    pub entries: Vec<u32>,
}

impl Builder {
    /// A new slot.
    pub fn fresh(&mut self, slot: Slot) -> u32 {
        if slot != Slot::Pred {
            self.at = self.at.next_multiple_of(64);
        }
        let at = self.at;
        self.at += slot.bytes();
        at
    }

    /// The slot that holds `element` in every lane.
    pub fn constant(&mut self, slot: Slot, element: u128) -> u32 {
        if let Some(&at) = self.constants.get(&(slot, element)) {
            return at;
        }
        let at = self.fresh(slot);
        self.constants.insert((slot, element), at);
        at
    }
}

/// Writes `element` into all lanes of a slot of `file`.
pub fn splat(file: &mut [u8], at: u32, slot: Slot, element: u128) {
    let at = at as usize;
    match slot {
        Slot::Pred => file[at..at + 4].copy_from_slice(&(element as u32).to_ne_bytes()),
        Slot::R32 => file[at..at + 128]
            .chunks_exact_mut(4)
            .for_each(|c| c.copy_from_slice(&(element as u32).to_ne_bytes())),
        Slot::R64 => file[at..at + 256]
            .chunks_exact_mut(8)
            .for_each(|c| c.copy_from_slice(&(element as u64).to_ne_bytes())),
        Slot::R128 => file[at..at + 512]
            .chunks_exact_mut(16)
            .for_each(|c| c.copy_from_slice(&element.to_ne_bytes())),
    }
}

fn uses_special(units: &[Unit<'_>], s: Special) -> bool {
    fn inside(o: &Operand, s: Special) -> bool {
        match o {
            Operand::Special(x) => *x == s,
            Operand::Vector(v) | Operand::Args(v) => v.iter().any(|o| inside(o, s)),
            _ => false,
        }
    }
    units.iter().any(|u| {
        u.instrs
            .iter()
            .any(|i| i.operands.iter().any(|o| inside(o, s)))
    })
}

/// Decodes the kernel `kernel` of a linked module.
///
/// # Errors
/// An instruction that the engine does not have, or a variable that does not fit.
pub fn decode_kernel(linked: &Linked<'_>, kernel: FuncId) -> Result<Program, DecodeError> {
    let module = linked.module;
    let (order, edges, taken) = reach(module, kernel);
    let shared = shared_layout(module, &order)?;
    let entry = &module.functions[kernel.0 as usize];
    let mut layout = Layout {
        shared: shared.offsets,
        params: kernel_params(entry).0,
        block_specials: Vec::new(),
    };
    let mut units = Vec::with_capacity(order.len());
    for f in &order {
        units.push(prepare(linked, *f, &layout)?);
    }
    let mut align = 16;
    for (u, recursive) in units.iter_mut().zip(cycles(&order, &edges)) {
        u.recursive = recursive;
        align = align.max(frame_of(u.function, u.body)?.1);
    }
    for u in &mut units {
        // A frame is never empty where functions call each other: that is what bounds the depth of recursion.
        let least = if order.len() > 1 { 16 } else { 0 };
        u.frame.size = u.frame.size.max(least).next_multiple_of(align);
    }
    let sizes: Vec<u32> = units.iter().map(|u| u.frame.size).collect();
    let depth = deepest(
        0,
        &sizes,
        &edges,
        &order,
        &mut Vec::new(),
        &mut vec![None; order.len()],
    );
    if depth > MAX_LOCAL {
        return Err(DecodeError {
            line: entry.pos.line,
            message: format!(
                "`{}` needs {depth} bytes of local memory a thread; the limit is {MAX_LOCAL}",
                entry.name
            ),
        });
    }

    // The register file: fixed places, varying registers, what changes once a block, what never changes.
    let mut at = fixed::END;
    for u in &mut units {
        place_registers(u, &mut at, |c| c == Class::Varying, true);
    }
    let block_from = at;
    for u in &mut units {
        place_registers(u, &mut at, |c| c == Class::Block, false);
    }
    for axis in 0..3 {
        for special in [Special::Ctaid(axis), Special::ClusterId(axis)] {
            if uses_special(&units, special) {
                layout.block_specials.push(SpecialSlot {
                    special,
                    at,
                    slot: Slot::R32,
                });
                at += 128;
            }
        }
    }
    if uses_special(&units, Special::SmId) {
        layout.block_specials.push(SpecialSlot {
            special: Special::SmId,
            at,
            slot: Slot::R32,
        });
        at += 128;
    }
    let block_to = at;
    for u in &mut units {
        place_registers(u, &mut at, |c| c == Class::Launch, false);
        for (n, class) in u.classes.regs.iter().enumerate() {
            if let Class::Tid(axis) = class {
                u.regs[n] = Some(Loc {
                    at: fixed::TID[usize::from(*axis) % 3],
                    slot: Slot::R32,
                });
            }
        }
    }

    let mut b = Builder {
        program: Program {
            name: entry.name.clone(),
            code: Vec::new(),
            origins: Vec::new(),
            opcodes: Vec::new(),
            names: units.iter().map(|u| u.function.name.clone()).collect(),
            files: Arc::clone(&linked.files),
            mem: Vec::new(),
            atomics: Vec::new(),
            textures: Vec::new(),
            mbars: Vec::new(),
            calls: Vec::new(),
            bars: Vec::new(),
            redux: Vec::new(),
            builtins: Vec::new(),
            tables: Vec::new(),
            targets: Vec::new(),
            file_bytes: 0,
            template: Vec::new(),
            block_from,
            block_to,
            launch_specials: Vec::new(),
            block_specials: layout.block_specials.clone(),
            param_addrs: Vec::new(),
            early_loads: Vec::new(),
            launch_prologue: Vec::new(),
            block_prologue: Vec::new(),
            static_local: depth as u32,
            uses_local: depth > 0
                || units
                    .iter()
                    .any(|u| u.instrs.iter().any(|i| i.op == Op::Alloca)),
            uses_tid: [0, 1, 2].map(|a| uses_special(&units, Special::Tid(a))),
            uses_warp_id: uses_special(&units, Special::WarpId),
            static_shared: shared.bytes,
            dynamic_shared_at: shared.dynamic_at,
            const_ranges: linked.const_ranges.clone(),
        },
        constants: HashMap::new(),
        at,
        entries: Vec::new(),
    };
    for n in 0..units.len() {
        let entry_point = b.program.code.len() as u32;
        b.entries.push(entry_point);
        lower_function(&mut b, linked, &layout, &units, n)?;
    }
    finish(b, &units, &taken)
}

fn finish(
    mut b: Builder,
    units: &[Unit<'_>],
    taken: &BTreeSet<u32>,
) -> Result<Program, DecodeError> {
    for call in &mut b.program.calls {
        // Until now `entry` is the number of the unit.
        if let Some(&entry) = b.entries.get(call.entry as usize) {
            call.callee_frame = units[call.entry as usize].frame.size;
            call.entry = entry;
        }
    }
    for (n, u) in units.iter().enumerate() {
        if taken.contains(&u.id.0) {
            b.program.targets.push(Target {
                address: function_address(u.id.0),
                entry: b.entries[n],
                frame: u.frame.size,
            });
        }
    }
    b.program.file_bytes = b.at.next_multiple_of(64);
    if b.program.file_bytes > 16 << 20 {
        return Err(DecodeError {
            line: 0,
            message: "more registers than the CPU device has room for".into(),
        });
    }
    let mut template = vec![0u8; b.program.file_bytes as usize];
    splat(&mut template, fixed::ONES, Slot::Pred, u128::from(u32::MAX));
    for ((slot, element), at) in &b.constants {
        splat(&mut template, *at, *slot, *element);
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

/// Results and parameters that an old-style function has in registers, in the order of those registers.
pub fn register_parameters(f: &Function) -> Vec<VarId> {
    let of = |list: &[Variable], make: &dyn Fn(u32) -> VarId| -> Vec<VarId> {
        list.iter()
            .enumerate()
            .filter(|(_, v)| v.space == Space::Reg)
            .map(|(n, _)| make(n as u32))
            .collect()
    };
    let mut all = of(&f.returns, &VarId::Return);
    all.extend(of(&f.params, &VarId::Param));
    all
}
