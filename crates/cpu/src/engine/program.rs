//! The decoded form of a kernel: what the interpreter runs.
//!
//! Belongs here: plain data. One [`Program`] holds one kernel with every device function it can reach, because each
//! register of each function has a fixed place in the kernel's register file.

use std::sync::Arc;

use cupyrite_ptx::ir::{AtomOp, Semantics, ShflMode, SourceLoc, Special, Type, VoteMode};
use cupyrite_ptx::textures::Query;

use crate::engine::ops::{OpArgs, OpFn, Slot};
use crate::engine::run::mbarrier::MbarOp;
use crate::texture::{Outside, View};

/// Fixed places of the register file, in bytes.
pub mod fixed {
    /// The carry flag.
    pub const CARRY: u32 = 0;
    /// A predicate that is true in every lane.
    pub const ONES: u32 = 4;
    /// Where predicate results nobody wants go.
    pub const SINK_PRED: u32 = 8;
    /// Byte offset of the current function's frame in local memory, per lane.
    pub const FRAME: u32 = 64;
    /// Bytes that `alloca` added to the current frame, per lane.
    pub const DYNAMIC: u32 = 192;
    /// Where results nobody wants go (512 bytes).
    pub const SINK: u32 = 320;
    /// `%tid.x`, `.y`, `.z`.
    pub const TID: [u32; 3] = [832, 960, 1088];
    /// `%warpid`.
    pub const WARP_ID: u32 = 1216;
    /// 64-bit zeros.
    pub const ZERO: u32 = 1344;
    /// The first free byte.
    pub const END: u32 = 1600;
}

/// What the interpreter does with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Lane arithmetic: calls [`Inst::run`].
    Alu,
    /// Branch to [`Inst::target`] for the lanes of the guard.
    Bra,
    /// Load of one 4-byte element from global or generic memory, 64-bit address.
    LdGlobal4,
    /// The same, 8 bytes.
    LdGlobal8,
    /// Store of one 4-byte element to global or generic memory, 64-bit address.
    StGlobal4,
    /// The same, 8 bytes.
    StGlobal8,
    /// Load of one 4-byte element from shared memory, 32-bit address.
    LdShared4,
    /// Store of one 4-byte element to shared memory, 32-bit address.
    StShared4,
    /// Any other load ([`MemOp`]).
    Ld,
    /// Any other store ([`MemOp`]).
    St,
    /// `atom`, `red` ([`AtomicOp`]).
    Atom,
    /// `tex`, `tld4`, `txq`, `suld`, `sust`, `sured`, `suq` ([`TexOp`]).
    Texture,
    /// `mbarrier` ([`MbarOp`]).
    Mbarrier,
    /// `mbarrier.pending_count`: arrivals that the state in `src[0]` waits for.
    PendingCount,
    /// `cp.async`: copies `args.imm` bytes from global `src[1]` to shared `src[0]`.
    CpAsync,
    /// `brx.idx`: `target` indexes [`Program::tables`].
    BrxIdx,
    /// Direct call ([`CallOp`]).
    Call,
    /// Indirect call ([`CallOp`]); the callee's address is in `src[0]`.
    CallIndirect,
    /// What a return continues with: copies results out ([`CallOp`]).
    AfterCall,
    /// Call of something the device itself provides; `target` indexes [`Program::builtins`].
    Builtin,
    /// `ret`.
    Ret,
    /// `exit`.
    Exit,
    /// `trap`.
    Trap,
    /// `bar`, `barrier` ([`BarOp`]).
    Bar,
    /// `bar.warp.sync`: members in `src[0]`.
    BarWarp,
    /// `shfl` ([`Inst::aux`] is the mode, bit 7: without `.sync`).
    Shfl,
    /// `vote`.
    Vote,
    /// `match.any`, `match.all`.
    Match,
    /// `redux.sync` ([`ReduxOp`] by `target`).
    Redux,
    /// `activemask`.
    ActiveMask,
    /// `elect.sync`.
    Elect,
    /// `fence`, `membar`.
    Fence,
    /// A special register that changes while a warp runs.
    Special,
    /// `dst[0] = frame + imm`: the address of a local variable.
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
    /// Ran past the last instruction of a function.
    End,
}

/// The instruction is guarded.
pub const GUARDED: u8 = 1;
/// The guard is negated.
pub const GUARD_NOT: u8 = 2;
/// A branch to itself or backwards.
pub const BACKWARD: u8 = 4;
/// A backward branch around something that waits for others: an atomic operation, a volatile or acquiring load.
pub const SPIN: u8 = 8;

/// One decoded instruction; a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Inst {
    /// The lane function of [`RegionKind::Alu`].
    pub run: OpFn,
    /// An immediate: address offset, frame offset.
    pub imm: i64,
    /// Operand places.
    pub args: OpArgs,
    /// Place of the guard predicate.
    pub guard: u32,
    /// Branch target, or an index into a side table of the program.
    pub target: u32,
    /// What to do.
    pub kind: Kind,
    /// [`GUARDED`] and its neighbours.
    pub flags: u8,
    /// Small operand of the kind: a mode, or the number of the region cache entry.
    pub aux: u16,
}

unsafe fn no_op(_: *mut u8, _: &OpArgs, _: u32) {}

impl Inst {
    /// An instruction of this kind that does nothing yet.
    pub fn new(kind: Kind) -> Self {
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

/// State space as the memory unit sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemSpace {
    /// An address of any space.
    Generic,
    /// Global or constant memory, or the parameter bank: host addresses.
    Global,
    /// Offsets into the block's shared memory.
    Shared,
    /// Offsets into the thread's local memory.
    Local,
}

/// A load or store in full.
#[derive(Clone, Debug)]
pub struct MemOp {
    /// Where.
    pub space: MemSpace,
    /// Bytes of an element in memory: 1 to 16.
    pub size: u32,
    /// Sign-extend on load.
    pub signed: bool,
    /// Destination (source) registers; the count is the vector width.
    pub regs: Vec<(u32, Slot)>,
    /// 16-bit registers keep their upper half clear.
    pub narrow: bool,
    /// Memory order; weak means none.
    pub order: Semantics,
    /// Volatile or ordered: every lane's access is one atomic access.
    pub atomic: bool,
    /// The address register is 32 bits wide.
    pub addr32: bool,
    /// A store into constant memory or through `.param` of a kernel is refused.
    pub store: bool,
}

/// An atomic operation in full.
#[derive(Clone, Debug)]
pub struct AtomicOp {
    /// Where.
    pub space: MemSpace,
    /// What.
    pub op: AtomOp,
    /// On which type.
    pub ty: Type,
    /// Memory order.
    pub order: Semantics,
    /// The address register is 32 bits wide.
    pub addr32: bool,
    /// Destinations and their slots; empty for `red`; several for vector forms.
    pub dst: Vec<(u32, Slot)>,
    /// First sources, one per vector element.
    pub src: Vec<(u32, Slot)>,
    /// Second source (cas), if any.
    pub src2: Option<(u32, Slot)>,
}

/// What a texture or surface instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexKind {
    /// `tex`, with texel numbers or positions.
    Fetch {
        /// Coordinates are texel numbers.
        texels: bool,
        /// Level of detail.
        detail: TexDetail,
    },
    /// `tld4` of this component.
    Gather(u8),
    /// `txq`, with a level of detail or not.
    TextureQuery(Query, bool),
    /// `suq`.
    SurfaceQuery(Query),
    /// `suld`.
    Load,
    /// `sust`.
    Store,
    /// `sured`.
    Reduce(AtomOp),
}

/// Where a fetch's level of detail comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexDetail {
    /// None is given.
    Base,
    /// [`TexOp::lod`].
    Level,
    /// [`TexOp::gradient`].
    Gradient,
}

/// A texture or surface instruction in full.
#[derive(Clone, Debug)]
pub struct TexOp {
    /// What it does.
    pub kind: TexKind,
    /// Slot of the handle.
    pub object: u32,
    /// The shape that it names.
    pub view: View,
    /// Slots of the coordinates.
    pub coordinates: [u32; 3],
    /// Slot of the layer.
    pub layer: u32,
    /// Slot of the level of detail.
    pub lod: u32,
    /// Slots of the gradients.
    pub gradient: [[u32; 3]; 2],
    /// Texels to add to the position.
    pub offset: [i32; 3],
    /// Destinations, or sources of a store.
    pub values: Vec<(u32, Slot)>,
    /// Type of the values.
    pub ty: Type,
    /// Where the predicate goes that says whether texels are resident.
    pub resident: u32,
    /// The first coordinate of a surface access counts elements, and values are converted.
    pub formatted: bool,
    /// What a surface access does outside.
    pub outside: Outside,
}

/// A copy between frames at a call.
#[derive(Clone, Copy, Debug)]
pub enum ArgCopy {
    /// `size` bytes from a frame offset of the caller to one of the callee (or back).
    Memory {
        /// Offset in the caller's frame.
        caller: u32,
        /// Offset in the callee's frame.
        callee: u32,
        /// Bytes.
        size: u32,
    },
    /// A register of the caller to or from the callee's frame.
    Register {
        /// The caller's register.
        caller: u32,
        /// Its slot.
        slot: Slot,
        /// Offset in the callee's frame.
        callee: u32,
        /// Bytes.
        size: u32,
    },
}

/// A call in full.
#[derive(Clone, Debug, Default)]
pub struct CallOp {
    /// Entry point of the callee (direct calls).
    pub entry: u32,
    /// Frame size of the callee (direct calls).
    pub callee_frame: u32,
    /// Frame size of the caller.
    pub frame: u32,
    /// Before the call.
    pub args: Vec<ArgCopy>,
    /// After it.
    pub returns: Vec<ArgCopy>,
    /// Registers to save around the call: the caller can be entered again before it returns.
    pub save: Option<SaveSet>,
}

/// The places of one function's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveSet {
    /// Predicates: first and one past the last byte.
    pub preds: (u32, u32),
    /// 32-bit slots.
    pub r32: (u32, u32),
    /// 64-bit slots.
    pub r64: (u32, u32),
    /// 128-bit slots.
    pub r128: (u32, u32),
}

/// A function that may be called through a pointer.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its address.
    pub address: u64,
    /// Its entry point.
    pub entry: u32,
    /// Its frame size.
    pub frame: u32,
}

/// What the device provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinKind {
    /// `vprintf(format, arguments) -> int`.
    Vprintf,
    /// `__assertfail(expression, file, line, function, char size)`.
    AssertFail,
    /// `malloc(size) -> pointer`.
    Malloc,
    /// `free(pointer)`.
    Free,
}

/// A call of a builtin: arguments and result as places.
#[derive(Clone, Debug)]
pub struct BuiltinOp {
    /// Which.
    pub kind: BuiltinKind,
    /// Where the arguments are: (frame offset, bytes), or a register.
    pub args: Vec<BuiltinArg>,
    /// Where the result goes.
    pub result: Option<BuiltinArg>,
}

/// An argument of a builtin.
#[derive(Clone, Copy, Debug)]
pub enum BuiltinArg {
    /// In the caller's frame: offset and bytes.
    Memory(u32, u32),
    /// A register.
    Register(u32, Slot),
}

/// How a block barrier is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarMode {
    /// Wait.
    Sync,
    /// Be counted, do not wait.
    Arrive,
    /// Wait, and learn whether the predicate held for all.
    RedAnd,
    /// Wait, and learn whether the predicate held for any.
    RedOr,
    /// Wait, and learn for how many threads the predicate held.
    RedPopc,
}

/// A block barrier in full.
#[derive(Clone, Copy, Debug)]
pub struct BarOp {
    /// How it is used.
    pub mode: BarMode,
    /// Slot of the barrier's number.
    pub id: u32,
    /// Slot of the thread count; `None` is every thread of the block.
    pub count: Option<u32>,
    /// Predicate source of a reduction, and whether it is negated.
    pub pred: (u32, bool),
    /// Result of a reduction.
    pub dst: u32,
}

/// `redux.sync`.
#[derive(Clone, Copy, Debug)]
pub struct ReduxOp {
    /// What.
    pub op: AtomOp,
    /// On which type.
    pub ty: Type,
    /// Absolute values (`.abs`, f32).
    pub abs: bool,
    /// NaN propagates (`.NaN`, f32).
    pub nan: bool,
}

/// Value of a launch- or block-wide special register, put into the register file before warps run.
#[derive(Clone, Copy, Debug)]
pub struct SpecialSlot {
    /// Which.
    pub special: Special,
    /// Where it goes.
    pub at: u32,
    /// 32 or 64 bits.
    pub slot: Slot,
}

/// A load whose address is known before the launch: from the parameter bank, or from constant memory.
#[derive(Clone, Copy, Debug)]
pub struct EarlyLoad {
    /// Offset in the parameter bank, or an absolute address.
    pub from: u64,
    /// Whether `from` is absolute.
    pub absolute: bool,
    /// Bytes.
    pub size: u32,
    /// Sign-extend.
    pub signed: bool,
    /// Where it goes.
    pub at: u32,
    /// Its slot.
    pub slot: Slot,
    /// A 16-bit register.
    pub narrow: bool,
}

/// Where an instruction came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Line of the PTX.
    pub line: u32,
    /// `.loc`, if there was one.
    pub loc: Option<SourceLoc>,
    /// Index into [`Program::names`].
    pub function: u32,
}

/// A kernel, ready to run.
#[derive(Debug)]
pub struct Program {
    /// Name of the kernel.
    pub name: String,
    /// Instructions of the kernel and of every function it can reach.
    pub code: Vec<Inst>,
    /// Origin of each instruction.
    pub origins: Vec<Origin>,
    /// Opcode of each instruction, as written (for reports).
    pub opcodes: Vec<Box<str>>,
    /// Names of the functions.
    pub names: Vec<String>,
    /// `.file` table.
    pub files: Arc<Vec<(u32, String)>>,
    /// Loads and stores.
    pub mem: Vec<MemOp>,
    /// Atomics.
    pub atomics: Vec<AtomicOp>,
    /// Texture and surface instructions.
    pub textures: Vec<TexOp>,
    /// Barriers in shared memory.
    pub mbars: Vec<MbarOp>,
    /// Calls.
    pub calls: Vec<CallOp>,
    /// Barriers.
    pub bars: Vec<BarOp>,
    /// `redux` operations.
    pub redux: Vec<ReduxOp>,
    /// Builtin calls.
    pub builtins: Vec<BuiltinOp>,
    /// `brx.idx` tables.
    pub tables: Vec<Vec<u32>>,
    /// Functions whose address is taken.
    pub targets: Vec<Target>,
    /// Registers file size, a multiple of 64.
    pub file_bytes: u32,
    /// The first bytes of a fresh register file: constants.
    pub template: Vec<u8>,
    /// What changes once a block begins here in the register file; varying registers lie before it.
    pub block_from: u32,
    /// And ends here; what follows never changes during a launch.
    pub block_to: u32,
    /// Launch-wide special registers.
    pub launch_specials: Vec<SpecialSlot>,
    /// Block-wide special registers.
    pub block_specials: Vec<SpecialSlot>,
    /// Slots that hold the address of the parameter bank plus an offset.
    pub param_addrs: Vec<(u32, u64)>,
    /// Loads done once a launch.
    pub early_loads: Vec<EarlyLoad>,
    /// Instructions run once a launch.
    pub launch_prologue: Vec<Inst>,
    /// Instructions run once a block.
    pub block_prologue: Vec<Inst>,
    /// Local memory that the kernel needs without recursion.
    pub static_local: u32,
    /// Whether local memory is used at all.
    pub uses_local: bool,
    /// `%tid.y`, `%tid.z` are read.
    pub uses_tid: [bool; 3],
    /// `%warpid` is read.
    pub uses_warp_id: bool,
    /// Static shared memory.
    pub static_shared: u32,
    /// Offset of dynamic shared memory.
    pub dynamic_shared_at: u32,
    /// Constant memory regions a kernel must not write lie here (base, size), for `isspacep`.
    pub const_ranges: Vec<(u64, u64)>,
}

/// The mode of `shfl` as a small number.
pub fn shfl_code(mode: ShflMode) -> u16 {
    match mode {
        ShflMode::Up => 0,
        ShflMode::Down => 1,
        ShflMode::Bfly => 2,
        ShflMode::Idx => 3,
    }
}

/// The mode of `vote` as a small number.
pub fn vote_code(mode: VoteMode) -> u16 {
    match mode {
        VoteMode::All => 0,
        VoteMode::Any => 1,
        VoteMode::Uni => 2,
        VoteMode::Ballot => 3,
    }
}
