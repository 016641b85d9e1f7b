//! Bytecode: instructions whose operands are locations in the register file. The interpreter executes it, and the functions in
//! `run` read their operands from it.
//!
//! Belongs here: plain data. A [`Program`] holds one kernel and every function that the kernel can reach, because all
//! their registers share one register file. The operations of KIR are the same here, with the byte offset of a slot in
//! place of the index of a virtual register.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use cupyrite_ptx::ir::{ShflMode, VoteMode};

use crate::build::{PaddedVariable, PlacedVariable};
use crate::executable_memory::ExecutableMemory;
use crate::kir::{
    Address, ArgCopy, AtomicOp, BarrierOp, BuiltinOp, BulkOp, CopyOp, MbarrierOp, MemOp,
    MultimemOp, Origin, ReduxOp, TensorMapOp, TexOp,
};
use crate::register_file::{RegisterFile, SaveSet, fixed};
use crate::semantics::lane::{OpArgs, OpFn, Slot, VectorOp};
use crate::semantics::warp::{Operands, WarpFn};

/// The action of the interpreter for an instruction. A bracketed type describes the operation further; [`Inst::target`]
/// is its index in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InstKind {
    /// Calls the lane function [`Inst::run`].
    Lanes,
    /// Branches to position [`Inst::target`].
    Bra,
    /// Loads one 4-byte element from global or generic memory, 64-bit address.
    LdGlobal4,
    /// Loads one 8-byte element from global or generic memory.
    LdGlobal8,
    /// Stores one 4-byte element to global or generic memory, 64-bit address.
    StGlobal4,
    /// Stores one 8-byte element to global or generic memory.
    StGlobal8,
    /// Loads one 4-byte element from shared memory, 32-bit address.
    LdShared4,
    /// Stores one 4-byte element to shared memory, 32-bit address.
    StShared4,
    /// Calls a warp function ([`WarpCall`]).
    Warp,
    /// Any other load ([`MemOp`]).
    Ld,
    /// Any other store ([`MemOp`]).
    St,
    /// `atom`, `red` ([`AtomicOp`]).
    Atom,
    /// `multimem.ld_reduce`, `multimem.st`, `multimem.red` ([`MultimemOp`]).
    Multimem,
    /// `tex`, `tld4`, `txq`, `suld`, `sust`, `sured`, `suq` ([`TexOp`]).
    Texture,
    /// `mbarrier` ([`MbarrierOp`]).
    Mbarrier,
    /// `mbarrier.pending_count`: pending arrivals of the state in `src[0]`.
    PendingCount,
    /// `cp.async` ([`CopyOp`]).
    CpAsync,
    /// `cp.async.bulk`, `cp.reduce.async.bulk` ([`BulkOp`]).
    Bulk,
    /// `tensormap` ([`TensorMapOp`]).
    TensorMap,
    /// `brx.idx`: `target` indexes [`Program::tables`].
    BrxIdx,
    /// Direct call ([`CallOp`]).
    Call,
    /// Indirect call ([`CallOp`]); the callee's address is in `src[0]`.
    CallIndirect,
    /// Follows a call: restores registers and copies the results ([`CallOp`]).
    AfterCall,
    /// Calls a function that the device provides ([`BuiltinOp`]).
    Builtin,
    /// `ret`.
    Ret,
    /// `exit`.
    Exit,
    /// `trap`, or `brkpt` if the target is 1.
    Trap,
    /// `bar`, `barrier` ([`BarrierOp`]).
    Bar,
    /// `barrier.cluster.arrive`.
    ClusterArrive,
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// `bar.warp.sync`: member mask in `src[0]`.
    BarWarp,
    /// `shfl`. [`Inst::aux`] holds [`shfl_code`]; bit 7 is set without `.sync`.
    Shfl,
    /// `vote`. [`Inst::aux`] holds [`vote_code`]; [`VOTE_NOT`] negates the predicate, bit 7 is set without `.sync`.
    Vote,
    /// `match`. In [`Inst::aux`], bit 0 is set for `.all`, bit 1 for 64-bit values.
    Match,
    /// `redux.sync` ([`ReduxOp`] by `target`).
    Redux,
    /// `activemask`.
    ActiveMask,
    /// `elect.sync`.
    Elect,
    /// `fence`, `membar`.
    Fence,
    /// Reads a special register that changes while a warp runs; [`Inst::aux`] is its code.
    Special,
    /// Computes the address of a local variable: `dst[0] = frame + imm`.
    FrameAddr,
    /// `isspacep`.
    IsSpace,
    /// `nanosleep`.
    Nanosleep,
    /// `alloca`.
    Alloca,
    /// `stacksave`.
    StackSave,
    /// `stackrestore`.
    StackRestore,
    /// Runs machine code from here on; `target` indexes the entries of the [machine code](NativeCode).
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Native,
}

/// Flag: the instruction is guarded.
pub const GUARDED: u8 = 1;
/// Flag: the guard is negated.
pub const GUARD_NOT: u8 = 2;
/// Flag: a branch to itself or backwards.
pub const BACKWARD: u8 = 4;
/// Flag: a backward branch around an instruction that may wait for another thread, such as an atomic or a volatile load.
pub const SPIN: u8 = 8;

/// One decoded instruction, the size of a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Inst {
    /// Lane function of [`InstKind::Lanes`].
    pub run: OpFn,
    /// Immediate: an address or frame offset.
    pub imm: i64,
    /// Operand locations.
    pub args: OpArgs,
    /// Location of the guard predicate.
    pub guard: u32,
    /// Branch target, or index into a table of the program.
    pub target: u32,
    /// The action of the interpreter.
    pub kind: InstKind,
    /// [`GUARDED`], [`GUARD_NOT`], [`BACKWARD`], [`SPIN`].
    pub flags: u8,
    /// Small operand: a mode, or an index into the region cache.
    pub aux: u16,
}

unsafe fn no_op(_: *mut u8, _: &OpArgs, _: u32) {}

impl Inst {
    /// An instruction of this kind without operands.
    pub fn new(kind: InstKind) -> Self {
        Self {
            run: no_op,
            imm: 0,
            args: OpArgs::default(),
            guard: fixed::ONES,
            target: 0,
            kind,
            flags: 0,
            aux: 0,
        }
    }
}

/// A call.
#[derive(Clone, Debug, Default)]
pub struct CallOp {
    /// Entry point of the callee of a direct call.
    pub entry: u32,
    /// Frame size of the callee, or of the prototype of an indirect call.
    pub callee_frame: u32,
    /// Frame size of the caller.
    pub frame: u32,
    /// Bytes that the callee's frame has on a GPU at least, if the call is direct.
    pub callee_gpu_frame: u32,
    /// Copies before the call.
    pub args: Vec<ArgCopy>,
    /// Copies after the return.
    pub returns: Vec<ArgCopy>,
    /// Registers to save around the call, if the caller can be entered again before it returns.
    pub save: Option<SaveSet>,
}

/// A call of a warp function.
#[derive(Clone, Debug)]
pub struct WarpCall {
    /// The function.
    pub run: WarpFn,
    /// Its operands.
    pub operands: Operands,
    /// The memory that it accesses.
    pub address: Option<Address>,
}

/// A function that an indirect call may reach.
#[derive(Clone, Copy, Debug)]
pub struct IndirectTarget {
    /// Address.
    pub address: u64,
    /// Entry point.
    pub entry: u32,
    /// Frame size.
    pub frame: u32,
    /// Bytes that the frame has on a GPU at least.
    pub gpu_frame: u32,
}

/// A function of the kernel, or the kernel itself.
#[derive(Clone, Debug)]
pub struct FunctionEntry {
    /// Position of its first instruction.
    pub entry: u32,
    /// Name in the PTX.
    pub name: String,
}

/// A register that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedOperand {
    /// Location of its slot.
    pub at: u32,
    /// Shape of the slot.
    pub slot: Slot,
    /// Whether the instruction writes it.
    pub written: bool,
}

/// The registers of each instruction, without its guard: sources, then destinations.
#[derive(Debug, Default)]
pub struct OperandTable {
    ends: Vec<u32>,
    list: Vec<PlacedOperand>,
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl OperandTable {
    /// Appends the registers of the next instruction.
    pub fn push(&mut self, operands: &[PlacedOperand]) {
        self.list.extend_from_slice(operands);
        self.ends.push(self.list.len() as u32);
    }

    /// Whether an instruction writes the slot at a location.
    pub fn writes(&self, at: u32) -> bool {
        self.list.iter().any(|o| o.written && o.at == at)
    }

    /// The registers of the instruction at `pc`.
    pub fn of(&self, pc: u32) -> &[PlacedOperand] {
        let start = match pc.checked_sub(1) {
            Some(before) => self.ends[before as usize],
            None => 0,
        };
        &self.list[start as usize..self.ends[pc as usize] as usize]
    }
}

/// Where machine code begins that stands for the instructions from a position on.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy, Debug)]
pub struct NativeEntry {
    /// The function that enters it.
    pub enter: u64,
    /// Address of the entry for whole chunks.
    pub full: u64,
    /// Address of the entry for a part of the lanes; zero if the function has no masked code.
    pub masked: u64,
    /// Index in [`NativeCode::blocks`] of the blocks of its function.
    pub blocks: u32,
    /// Whether the function has warp collectives, at which the chunks of a warp take turns.
    pub pairs: bool,
}

/// Machine code of a kernel.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Debug)]
pub struct NativeCode {
    /// Lanes of a chunk.
    pub lanes: usize,
    /// The bytecode, with [`InstKind::Native`] where machine code begins.
    pub code: Vec<Inst>,
    /// The entries.
    pub entries: Vec<NativeEntry>,
    /// The addresses of the blocks at which lanes can wait, function by function.
    pub blocks: Vec<u64>,
    /// Their positions.
    pub positions: Vec<u32>,
    /// Whether machine code accesses local memory.
    pub accesses_local: bool,
    /// Keeps the machine code.
    #[expect(dead_code, reason = "addresses lead into it")]
    pub memory: ExecutableMemory,
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl NativeCode {
    /// A mask of all lanes of a chunk.
    pub fn all_lanes(&self) -> u32 {
        (1 << self.lanes) - 1
    }
}

/// The machine code of a kernel, once it has been compiled.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Debug, Default)]
pub struct NativeSlot {
    code: OnceLock<Option<NativeCode>>,
    /// Nanoseconds that launches have taken in the interpreter.
    pub interpreted: AtomicU64,
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl NativeSlot {
    /// The machine code; `None` if the kernel has not been compiled, or could not be.
    pub fn get(&self) -> Option<&NativeCode> {
        self.code.get()?.as_ref()
    }

    /// Whether machine code begins at a position.
    pub fn begins_at(&self, pc: u32) -> bool {
        let inst = self.get().and_then(|n| n.code.get(pc as usize));
        inst.is_some_and(|i| i.kind == InstKind::Native)
    }

    /// Whether the kernel has been compiled, with or without success.
    pub fn is_decided(&self) -> bool {
        self.code.get().is_some()
    }

    /// The machine code, which `compile` makes if nothing has tried to before.
    pub fn get_or_compile(
        &self,
        compile: impl FnOnce() -> Option<NativeCode>,
    ) -> Option<&NativeCode> {
        self.code.get_or_init(compile).as_ref()
    }
}

/// A compiled kernel.
#[derive(Debug)]
pub struct Program {
    /// Name of the kernel.
    pub name: String,
    /// Instructions of the kernel and of every function that it can reach.
    pub code: Vec<Inst>,
    /// The lane function of each instruction as data, if it has one and compilers know it.
    pub vector_ops: Vec<Option<VectorOp>>,
    /// The registers of each instruction.
    pub operands: OperandTable,
    /// The machine code of the kernel, if there is any.
    pub native: NativeSlot,
    /// Of each instruction, the index of its origin.
    pub origin_of: Vec<u32>,
    /// The instructions of the PTX.
    pub origins: Vec<Origin>,
    /// The functions, sorted by entry.
    pub functions: Vec<FunctionEntry>,
    /// `.file` table.
    pub files: Arc<Vec<(u32, String)>>,
    /// Warp functions.
    pub warps: Vec<WarpCall>,
    /// Loads and stores.
    pub mem: Vec<MemOp>,
    /// Atomics.
    pub atomics: Vec<AtomicOp>,
    /// `multimem` instructions.
    pub multimem: Vec<MultimemOp>,
    /// Texture and surface instructions.
    pub textures: Vec<TexOp>,
    /// `mbarrier` instructions.
    pub mbarriers: Vec<MbarrierOp>,
    /// `cp.async` instructions.
    pub copies: Vec<CopyOp>,
    /// Bulk copies.
    pub bulk: Vec<BulkOp>,
    /// `tensormap` instructions.
    pub tensor_maps: Vec<TensorMapOp>,
    /// Calls.
    pub calls: Vec<CallOp>,
    /// Block barriers.
    pub barriers: Vec<BarrierOp>,
    /// `redux` operations.
    pub redux: Vec<ReduxOp>,
    /// Calls of functions that the device provides.
    pub builtins: Vec<BuiltinOp>,
    /// `brx.idx` tables.
    pub tables: Vec<Vec<u32>>,
    /// Functions that indirect calls may reach.
    pub targets: Vec<IndirectTarget>,
    /// The register file.
    pub file: RegisterFile,
    /// Bytes of local memory that a thread needs without recursion.
    pub static_local: u32,
    /// Bytes of stack that the calls of a thread need on a GPU without recursion, at least.
    pub gpu_stack: u32,
    /// The largest frame of a function that calls itself, directly or not; zero without recursion.
    pub largest_recursive_frame: u32,
    /// Whether the kernel uses local memory.
    pub uses_local: bool,
    /// Whether an instruction names a texture, sampler or surface reference.
    pub uses_references: bool,
    /// Whether `%tid.x`, `%tid.y`, `%tid.z` are read.
    pub uses_tid: [bool; 3],
    /// Whether `%warpid` is read.
    pub uses_warp_id: bool,
    /// Whether the carry flag is written.
    pub writes_carry: bool,
    /// Whether the barrier of the cluster is used.
    pub uses_cluster_barrier: bool,
    /// Whether the module's architecture has clusters.
    pub has_clusters: bool,
    /// Bytes of static shared memory.
    pub static_shared: u32,
    /// Offset of dynamic shared memory.
    pub dynamic_shared_at: u32,
    /// Bytes at the start of shared memory that are reserved for system software.
    pub reserved_shared: u32,
    /// Constant memory, as base and size of each range, for `isspacep`.
    pub const_ranges: Vec<(u64, u64)>,
    /// The variables of the module that have padding.
    pub padded: Vec<PaddedVariable>,
    /// The variables of the module in device memory.
    pub variables: Arc<Vec<PlacedVariable>>,
}

impl Program {
    /// The value of a 32-bit slot that is a constant in the source; `None` for other slots, and for zero, which the template also
    /// has where a launch computes the value.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub fn constant32(&self, location: u32) -> Option<u32> {
        let (file, from) = (&self.file, location as usize);
        if location < file.block_to {
            return None;
        }
        let mut lanes = file.template.get(from..from + 128)?.chunks_exact(4);
        let first = lanes.next()?;
        let value = u32::from_le_bytes(first.try_into().ok()?);
        (value != 0 && lanes.all(|l| l == first)).then_some(value)
    }

    /// The instruction of the PTX that the instruction at `pc` comes from.
    pub fn origin(&self, pc: u32) -> Option<&Origin> {
        let n = *self.origin_of.get(pc as usize)?;
        self.origins.get(n as usize)
    }

    /// Name of the function that the instruction at `pc` belongs to.
    pub fn function_at(&self, pc: u32) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.entry <= pc);
        let function = self.functions.get(after.checked_sub(1)?)?;
        Some(&function.name)
    }
}

/// Encoding of a `shfl` mode in [`Inst::aux`].
pub fn shfl_code(mode: ShflMode) -> u16 {
    match mode {
        ShflMode::Up => 0,
        ShflMode::Down => 1,
        ShflMode::Bfly => 2,
        ShflMode::Idx => 3,
    }
}

/// The mode of a `shfl` from [`Inst::aux`].
pub fn shfl_mode(code: u16) -> ShflMode {
    match code & 3 {
        0 => ShflMode::Up,
        1 => ShflMode::Down,
        2 => ShflMode::Bfly,
        _ => ShflMode::Idx,
    }
}

/// In [`Inst::aux`] of a `vote`: the predicate is negated.
pub const VOTE_NOT: u16 = 0x40;

/// Encoding of a `vote` mode in [`Inst::aux`].
pub fn vote_code(mode: VoteMode) -> u16 {
    match mode {
        VoteMode::All => 0,
        VoteMode::Any => 1,
        VoteMode::Uni => 2,
        VoteMode::Ballot => 3,
    }
}

/// The mode of a `vote` from [`Inst::aux`].
pub fn vote_mode(code: u16) -> VoteMode {
    match code & 3 {
        0 => VoteMode::All,
        1 => VoteMode::Any,
        2 => VoteMode::Uni,
        _ => VoteMode::Ballot,
    }
}
