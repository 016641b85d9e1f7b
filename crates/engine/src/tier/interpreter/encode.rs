//! Encodes the KIR of a kernel as bytecode.

use std::sync::Arc;

use cupyrite_ptx::ir::{Space, Special};

use crate::address_windows::function_address;
use crate::build::{CompileError, PlacedModule};
use crate::bytecode::{
    BACKWARD, CallOp, FunctionEntry, GUARD_NOT, GUARDED, IndirectTarget, Inst, InstKind,
    NativeSlot, OperandTable, PlacedOperand, Program, SPIN, VOTE_NOT, WarpCall, shfl_code,
    vote_code,
};
use crate::kir::{
    Action, Address, ArgCopy, BlockId, Callee, Function, HoistedLoad, Instruction, Kernel, LaneOp,
    MemOp, MemSpace, ReduxOp, Reg, Role, Source,
};
use crate::passes::register_allocation::{Allocation, NONE};
use crate::register_file::{PrologueOp, RegisterFile, SpecialSlot, fixed};
use crate::semantics::lane::{OpArgs, Slot};
use crate::semantics::warp::Operands;

/// Largest register file of a warp in bytes.
const MAX_REGISTER_FILE: u32 = 16 << 20;

/// Encodes a kernel.
///
/// # Errors
/// A register file that is too large.
pub fn encode(
    kernel: Kernel,
    allocation: &Allocation,
    placed: &PlacedModule,
) -> Result<Program, CompileError> {
    let file_bytes = allocation.end;
    if file_bytes > MAX_REGISTER_FILE {
        return Err(CompileError {
            line: 0,
            message: format!(
                "the kernel needs a register file of {file_bytes} bytes; the limit of the CPU device is {MAX_REGISTER_FILE}"
            ),
        });
    }
    let mut encoder = Encoder {
        kernel: &kernel,
        program: empty(&kernel, placed),
        locations: &[],
        function: 0,
        first_origin: 0,
        starts: Vec::new(),
        branches: Vec::new(),
        tables: Vec::new(),
        calls: Vec::new(),
        operands: Vec::new(),
    };
    for (n, f) in kernel.functions.iter().enumerate() {
        encoder.locations = &allocation.locations[n];
        encoder.function = n;
        encoder.function(f, allocation)?;
        encoder.first_origin += f.origins.len() as u32;
    }
    encoder.resolve_calls();
    let mut program = encoder.program;
    let functions = kernel.functions.into_iter();
    program.origins = functions.flat_map(|f| f.origins).collect();
    program.writes_carry = program.operands.writes(fixed::CARRY);
    program.file.bytes = file_bytes.next_multiple_of(64);
    program.file.block_from = allocation.block_from;
    program.file.block_to = allocation.block_to;
    set_values(&mut program.file, allocation);
    Ok(program)
}

/// A program without code.
fn empty(kernel: &Kernel, placed: &PlacedModule) -> Program {
    let registers = kernel.functions.iter().flat_map(|f| &f.registers);
    let reads = |special| {
        registers
            .clone()
            .any(|r| r.source == Source::Special(special))
    };
    Program {
        name: kernel.functions[0].name.clone(),
        code: Vec::new(),
        vector_ops: Vec::new(),
        operands: OperandTable::default(),
        native: NativeSlot::default(),
        origin_of: Vec::new(),
        origins: Vec::new(),
        functions: Vec::new(),
        files: Arc::clone(&placed.files),
        warps: Vec::new(),
        mem: Vec::new(),
        atomics: Vec::new(),
        multimem: Vec::new(),
        textures: Vec::new(),
        mbarriers: Vec::new(),
        copies: Vec::new(),
        bulk: Vec::new(),
        tensor_maps: Vec::new(),
        calls: Vec::new(),
        barriers: Vec::new(),
        redux: Vec::new(),
        builtins: Vec::new(),
        tables: Vec::new(),
        targets: Vec::new(),
        file: RegisterFile::default(),
        static_local: kernel.static_local,
        gpu_stack: kernel.gpu_stack,
        largest_recursive_frame: kernel.largest_recursive_frame(),
        uses_local: kernel.uses_local,
        uses_references: kernel.uses_references,
        uses_tid: [0, 1, 2].map(|axis| reads(Special::Tid(axis))),
        uses_warp_id: reads(Special::WarpId),
        writes_carry: false,
        uses_cluster_barrier: false,
        has_clusters: placed.has_clusters(),
        static_shared: kernel.static_shared,
        dynamic_shared_at: kernel.dynamic_shared_at,
        reserved_shared: kernel.reserved_shared,
        const_ranges: placed.const_ranges.clone(),
        padded: placed.padded.clone(),
        variables: Arc::clone(&placed.variables),
    }
}

/// Lists the values that are set before threads run, and fills the template of the register file with those that are known.
fn set_values(file: &mut RegisterFile, allocation: &Allocation) {
    let mut template = vec![0u8; file.bytes as usize];
    Slot::Pred.broadcast(&mut template, fixed::ONES, u128::from(u32::MAX));
    for &(source, slot, at) in &allocation.values {
        let in_block = (allocation.block_from..allocation.block_to).contains(&at);
        match source {
            Source::Constant(element) => slot.broadcast(&mut template, at, element),
            Source::ParameterAddress(offset) => file.parameter_addresses.push((at, offset)),
            Source::SharedAddress(offset) => file.shared_addresses.push((at, offset)),
            Source::Special(special) => {
                let specials = if in_block {
                    &mut file.block_specials
                } else {
                    &mut file.launch_specials
                };
                specials.push(SpecialSlot { special, at, slot });
                if let Some(of_lane) = lane_value(special) {
                    for lane in 0..32 {
                        let at = at as usize + 4 * lane as usize;
                        template[at..at + 4].copy_from_slice(&of_lane(lane).to_ne_bytes());
                    }
                }
            }
            Source::Declared(..) | Source::Temporary | Source::Fixed(_) => {}
        }
    }
    file.template = template;
}

/// The value of a special register that depends on the lane alone.
fn lane_value(special: Special) -> Option<fn(u32) -> u32> {
    Some(match special {
        Special::LaneId => |l| l,
        Special::LaneMaskEq => |l| 1 << l,
        Special::LaneMaskLe => |l| u32::MAX >> (31 - l),
        Special::LaneMaskLt => |l| (1u32 << l) - 1,
        Special::LaneMaskGe => |l| u32::MAX << l,
        Special::LaneMaskGt => |l| !(u32::MAX >> (31 - l)),
        _ => return None,
    })
}

/// Code ([`Inst::aux`]) of a special register whose value changes while a warp runs.
fn special_code(s: Special) -> u16 {
    match s {
        Special::Clock => 0,
        Special::ClockHi => 1,
        Special::Clock64 => 2,
        Special::GlobalTimer => 3,
        Special::GlobalTimerLo => 4,
        _ => 5,
    }
}

/// Appends an operation to a table of the program and returns its index.
fn add<T>(table: &mut Vec<T>, operation: T) -> u32 {
    table.push(operation);
    table.len() as u32 - 1
}

struct Encoder<'a> {
    kernel: &'a Kernel,
    program: Program,
    /// Locations of the registers of the function that is being encoded.
    locations: &'a [u32],
    /// Its index.
    function: usize,
    /// Index of its first origin in the program.
    first_origin: u32,
    /// Position of each of its blocks.
    starts: Vec<u32>,
    /// Branches to resolve: position and target.
    branches: Vec<(u32, BlockId)>,
    /// Branch tables to resolve: index into the program's tables, and targets.
    tables: Vec<(u32, Box<[BlockId]>)>,
    /// Direct calls to resolve: index into the program's calls, and function.
    calls: Vec<(u32, u32)>,
    /// The registers of the instruction that was encoded last.
    operands: Vec<PlacedOperand>,
}

impl Encoder<'_> {
    fn function(&mut self, f: &Function, allocation: &Allocation) -> Result<(), CompileError> {
        let entry = self.program.code.len() as u32;
        self.program.functions.push(FunctionEntry {
            entry,
            name: f.name.clone(),
        });
        if f.address_taken {
            self.program.targets.push(IndirectTarget {
                address: function_address(f.id.0),
                entry,
                frame: f.frame,
                gpu_frame: f.gpu_frame,
            });
        }
        for l in &f.hoisted_loads {
            let to = self.located(l.to)?;
            self.program
                .file
                .hoisted_loads
                .push(HoistedLoad { to, ..*l });
        }
        for i in &f.launch_prologue {
            let Inst { run, args, .. } = self.instruction(i)?;
            self.program
                .file
                .launch_prologue
                .push(PrologueOp { run, args });
        }
        for i in &f.block_prologue {
            let Inst { run, args, .. } = self.instruction(i)?;
            self.program
                .file
                .block_prologue
                .push(PrologueOp { run, args });
        }
        self.starts.clear();
        for b in &f.blocks {
            self.starts.push(self.program.code.len() as u32);
            for i in &b.instructions {
                let at = self.program.code.len() as u32;
                let inst = self.instruction(i)?;
                self.push(inst, i);
                match &i.action {
                    Action::Branch { target, .. } => self.branches.push((at, *target)),
                    Action::BranchIndexed { targets, .. } => {
                        self.tables.push((inst.target, targets.clone()));
                    }
                    Action::Call(_) => {
                        let save = f.recursive.then_some(allocation.varying[self.function]);
                        self.program.calls[inst.target as usize].save = save;
                        // Only lanes that have called execute this, so that it needs no guard.
                        let mut after = Inst::new(InstKind::AfterCall);
                        after.target = inst.target;
                        self.push(after, i);
                    }
                    _ => {}
                }
            }
        }
        for (at, target) in std::mem::take(&mut self.branches) {
            let inst = &mut self.program.code[at as usize];
            inst.target = self.starts[target.0 as usize];
            if inst.target <= at {
                inst.flags |= BACKWARD;
            }
        }
        for (table, targets) in std::mem::take(&mut self.tables) {
            let positions = targets.iter().map(|t| self.starts[t.0 as usize]);
            self.program.tables[table as usize] = positions.collect();
        }
        Ok(())
    }

    /// Appends an instruction to the code.
    fn push(&mut self, inst: Inst, i: &Instruction) {
        let vector = match &i.action {
            Action::Lanes(op) => op.vector,
            _ => None,
        };
        self.program.code.push(inst);
        self.program.vector_ops.push(vector);
        self.program.operands.push(&self.operands);
        self.program.origin_of.push(self.first_origin + i.origin);
    }

    /// The register with its location in place of its index.
    fn located(&self, r: Reg) -> Result<Reg, CompileError> {
        match self.locations.get(r.at as usize) {
            Some(&at) if at != NONE => Ok(Reg { at, slot: r.slot }),
            _ => Err(CompileError {
                line: self.kernel.functions[self.function].line,
                message: "internal error: a register has no location".into(),
            }),
        }
    }

    /// Encodes one instruction, without the target of a branch.
    fn instruction(&mut self, i: &Instruction) -> Result<Inst, CompileError> {
        let mut action = i.action.clone();
        let mut failed = None;
        let mut operands = std::mem::take(&mut self.operands);
        operands.clear();
        action.for_each_mut(&mut |role, r| match self.located(*r) {
            Ok(located) => {
                *r = located;
                operands.push(PlacedOperand {
                    at: located.at,
                    slot: located.slot,
                    written: role == Role::Write,
                });
            }
            Err(e) => failed = Some(e),
        });
        self.operands = operands;
        if let Some(e) = failed {
            return Err(e);
        }
        let mut inst = self.action(action);
        if let Some(guard) = i.guard {
            inst.guard = self.located(guard.predicate)?.at;
            inst.flags |= GUARDED | if guard.negated { GUARD_NOT } else { 0 };
        }
        Ok(inst)
    }

    /// The entry of the region cache that the next instruction uses.
    fn cache_entry(&self) -> u16 {
        (self.program.code.len() & 0xff) as u16
    }

    /// An instruction that accesses memory at `a`, which is in `src[0]`, `src[2]` and `imm`.
    fn memory(&self, kind: InstKind, a: &Address) -> Inst {
        let mut inst = Inst::new(kind);
        inst.imm = a.offset;
        inst.args.src[0] = a.base.at;
        inst.args.src[2] = a.uniform.map_or(fixed::ZERO, |r| r.at);
        inst.aux = self.cache_entry();
        inst
    }

    /// Encodes an action whose operands are locations.
    fn action(&mut self, action: Action) -> Inst {
        let with = |kind, dst: &[Reg], src: &[Reg]| {
            let mut inst = Inst::new(kind);
            for (to, r) in inst.args.dst.iter_mut().zip(dst) {
                *to = r.at;
            }
            for (to, r) in inst.args.src.iter_mut().zip(src) {
                *to = r.at;
            }
            inst
        };
        let table = |kind, target| {
            let mut inst = Inst::new(kind);
            inst.target = target;
            inst
        };
        let p = &mut self.program;
        match action {
            Action::Lanes(op) => lane_instruction(&op),
            Action::Warp(op) => {
                let locations = |list: &[Reg]| list.iter().map(|r| r.at).collect();
                let call = WarpCall {
                    run: op.run,
                    operands: Operands {
                        dst: locations(&op.dst),
                        src: locations(&op.src),
                        detail: op.detail,
                    },
                    address: op.address,
                };
                let mut inst = table(InstKind::Warp, add(&mut p.warps, call));
                inst.aux = self.cache_entry();
                inst
            }
            Action::Load(op) | Action::Store(op) => {
                let mut inst = self.memory(memory_kind(&op), &op.address);
                let first = op.regs.first().map_or(fixed::SINK, |r| r.at);
                if op.store {
                    inst.args.src[1] = first;
                } else {
                    inst.args.dst[0] = first;
                }
                inst.target = add(&mut self.program.mem, *op);
                inst
            }
            Action::Atomic(op) => {
                let mut inst = self.memory(InstKind::Atom, &op.address);
                inst.target = add(&mut self.program.atomics, *op);
                inst
            }
            Action::Multimem(op) => table(InstKind::Multimem, add(&mut p.multimem, *op)),
            Action::Texture(op) => table(InstKind::Texture, add(&mut p.textures, *op)),
            Action::Mbarrier(op) => {
                let mut inst = self.memory(InstKind::Mbarrier, &op.address);
                inst.args.src[1] = op.operand.at;
                inst.args.dst[0] = op.dst.map_or(fixed::SINK, |r| r.at);
                inst.target = add(&mut self.program.mbarriers, *op);
                inst
            }
            Action::PendingCount { dst, state } => with(InstKind::PendingCount, &[dst], &[state]),
            Action::Copy(op) => {
                let mut inst = table(InstKind::CpAsync, add(&mut p.copies, *op));
                inst.aux = self.cache_entry();
                inst
            }
            Action::Bulk(op) => {
                let mut inst = table(InstKind::Bulk, add(&mut p.bulk, *op));
                inst.aux = self.cache_entry();
                inst
            }
            Action::TensorMap(op) => {
                let mut inst = table(InstKind::TensorMap, add(&mut p.tensor_maps, op));
                inst.aux = self.cache_entry();
                inst
            }
            Action::Branch { spins, .. } => {
                let mut inst = Inst::new(InstKind::Bra);
                inst.flags = if spins { SPIN } else { 0 };
                inst
            }
            Action::BranchIndexed { index, .. } => {
                let mut inst = with(InstKind::BrxIdx, &[], &[index]);
                inst.target = add(&mut p.tables, Vec::new());
                inst
            }
            Action::Call(op) => self.call(op.callee, op.args, op.returns),
            Action::Builtin(op) => table(InstKind::Builtin, add(&mut p.builtins, *op)),
            Action::Return => Inst::new(InstKind::Ret),
            Action::Exit => Inst::new(InstKind::Exit),
            Action::Trap { breakpoint } => Inst {
                target: breakpoint.into(),
                ..Inst::new(InstKind::Trap)
            },
            Action::Barrier(op) => table(InstKind::Bar, add(&mut p.barriers, *op)),
            Action::ClusterArrive | Action::ClusterWait => {
                p.uses_cluster_barrier = true;
                Inst::new(match action {
                    Action::ClusterArrive => InstKind::ClusterArrive,
                    _ => InstKind::ClusterWait,
                })
            }
            Action::WarpBarrier { members } => with(InstKind::BarWarp, &[], &[members]),
            Action::Shuffle {
                mode,
                dst,
                in_range,
                value,
                lane,
                clamp,
                members,
            } => {
                let src = [value, lane, clamp, members.unwrap_or(clamp)];
                let mut inst = with(InstKind::Shfl, &[dst, in_range], &src);
                inst.aux = shfl_code(mode) | without_members(members);
                inst
            }
            Action::Vote {
                mode,
                dst,
                predicate,
                negated,
                members,
            } => {
                let src = [predicate, members.unwrap_or(predicate)];
                let mut inst = with(InstKind::Vote, &[dst], &src);
                inst.aux = vote_code(mode) | without_members(members);
                inst.aux |= if negated { VOTE_NOT } else { 0 };
                inst
            }
            Action::Match {
                all,
                dst,
                found,
                value,
                members,
            } => {
                let mut inst = with(InstKind::Match, &[dst, found], &[value, members]);
                inst.aux = u16::from(all) | if value.slot == Slot::R64 { 2 } else { 0 };
                inst
            }
            Action::Redux {
                op,
                dst,
                value,
                members,
            } => {
                let mut inst = with(InstKind::Redux, &[dst], &[value, members]);
                inst.target = redux_index(&mut p.redux, op);
                inst
            }
            Action::Elect {
                dst,
                elected,
                members,
            } => {
                let mut inst = with(InstKind::Elect, &[dst, elected], &[]);
                inst.args.src[1] = members.at;
                inst
            }
            Action::ActiveMask { dst } => with(InstKind::ActiveMask, &[dst], &[]),
            Action::Fence => Inst::new(InstKind::Fence),
            Action::Special { dst, special } => {
                let mut inst = with(InstKind::Special, &[dst], &[]);
                inst.aux = special_code(special);
                inst
            }
            Action::FrameAddress { dst, offset } => {
                let mut inst = with(InstKind::FrameAddr, &[dst], &[]);
                inst.imm = offset;
                inst
            }
            Action::IsSpace {
                dst,
                address,
                space,
            } => {
                let mut inst = with(InstKind::IsSpace, &[dst], &[address]);
                inst.aux = match space {
                    Space::Shared => 1,
                    Space::Local => 2,
                    Space::Const => 3,
                    Space::Param => 4,
                    Space::SharedCluster => 5,
                    _ => 0,
                };
                inst
            }
            Action::Nanosleep { duration } => with(InstKind::Nanosleep, &[], &[duration]),
            Action::Alloca { dst, size, align } => {
                let mut inst = with(InstKind::Alloca, &[dst], &[size]);
                inst.args.src[1] = self.kernel.functions[self.function].frame;
                inst.imm = align;
                inst
            }
            Action::StackSave { dst } => with(InstKind::StackSave, &[dst], &[]),
            Action::StackRestore { saved } => with(InstKind::StackRestore, &[], &[saved]),
        }
    }

    fn call(&mut self, callee: Callee, args: Vec<ArgCopy>, returns: Vec<ArgCopy>) -> Inst {
        let mut op = CallOp {
            frame: self.kernel.functions[self.function].frame,
            args,
            returns,
            ..CallOp::default()
        };
        let index = self.program.calls.len() as u32;
        let mut inst = Inst::new(InstKind::Call);
        match callee {
            Callee::Direct(n) => {
                let of = &self.kernel.functions[n as usize];
                op.callee_frame = of.frame;
                op.callee_gpu_frame = of.gpu_frame;
                self.calls.push((index, n));
            }
            Callee::Indirect(address, frame) => {
                op.callee_frame = frame;
                inst.kind = InstKind::CallIndirect;
                inst.args.src[0] = address.at;
            }
        }
        inst.target = add(&mut self.program.calls, op);
        inst
    }

    /// Resolves the entry points of direct calls.
    fn resolve_calls(&mut self) {
        for (index, callee) in std::mem::take(&mut self.calls) {
            self.program.calls[index as usize].entry =
                self.program.functions[callee as usize].entry;
        }
    }
}

/// In [`Inst::aux`] of a collective: it has no member mask.
fn without_members(members: Option<Reg>) -> u16 {
    if members.is_none() { 0x80 } else { 0 }
}

/// The index of an operation. Equal ones share an entry: lanes at different instructions execute them together.
fn redux_index(table: &mut Vec<ReduxOp>, op: ReduxOp) -> u32 {
    let found = table.iter().position(|o| *o == op);
    found.map_or_else(|| add(table, op), |n| n as u32)
}

fn lane_instruction(op: &LaneOp) -> Inst {
    let locations = |list: [Option<Reg>; 4]| list.map(|r| r.map_or(0, |r| r.at));
    let mut inst = Inst::new(InstKind::Lanes);
    inst.run = op.run;
    inst.args = OpArgs {
        dst: locations(op.dst),
        src: locations(op.src),
        imm: op.imm,
    };
    inst
}

/// The kind of a load or store: one with a fast path, or the general one.
fn memory_kind(op: &MemOp) -> InstKind {
    let global = matches!(op.address.space, MemSpace::Global | MemSpace::Generic);
    let shared = op.address.space == MemSpace::Shared && op.address.is_narrow();
    let single = match op.regs.as_slice() {
        [r] if !op.atomic => Some((r.slot, op.size)),
        _ => None,
    };
    match (single, op.store) {
        (Some((Slot::R32, 4)), false) if global => InstKind::LdGlobal4,
        (Some((Slot::R64, 8)), false) if global => InstKind::LdGlobal8,
        (Some((Slot::R32, 4)), false) if shared => InstKind::LdShared4,
        (Some((Slot::R32, 4)), true) if global => InstKind::StGlobal4,
        (Some((Slot::R64, 8)), true) if global => InstKind::StGlobal8,
        (Some((Slot::R32, 4)), true) if shared => InstKind::StShared4,
        (_, false) => InstKind::Ld,
        (_, true) => InstKind::St,
    }
}
