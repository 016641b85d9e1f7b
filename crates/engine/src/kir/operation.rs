//! The operands and modifiers of actions that are more than arithmetic.

use std::fmt;

use cupyrite_ptx::ir::{AtomOp, Scope, Semantics, Type};
use cupyrite_ptx::textures::Query;

use super::function::ConstantLoad;
use super::register::Reg;
use crate::runtime_calls::RuntimeFunction;
pub use crate::semantics::collective::ReduxOp;
use crate::semantics::lane::Slot;
use crate::semantics::warp::{Detail, WarpFn};
use crate::tensor_map::TensorMapField;
use crate::texture::{BoundaryMode, View};

/// State space of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemSpace {
    /// Generic address.
    Generic,
    /// Global or constant memory, or the parameter bank; a host address.
    Global,
    /// Offset in the block's shared memory.
    Shared,
    /// Offset in the thread's local memory.
    Local,
}

/// An address: in a lane, the element of `base` plus `offset` plus the element of `uniform`.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// A 64-bit register, or a 32-bit one if the space is shared or local.
    pub base: Reg,
    /// Constant offset.
    pub offset: i64,
    /// A 64-bit register with the same element in every lane.
    pub uniform: Option<Reg>,
    /// State space.
    pub space: MemSpace,
}

impl Address {
    /// Whether the base is 32 bits wide.
    pub fn is_narrow(&self) -> bool {
        self.base.slot == Slot::R32
    }
}

/// A warp function with its operands.
#[derive(Clone)]
pub struct WarpOp {
    /// The function.
    pub run: WarpFn,
    /// Destinations.
    pub dst: Vec<Reg>,
    /// Sources.
    pub src: Vec<Reg>,
    /// The memory that it accesses.
    pub address: Option<Address>,
    /// What the function knows beyond the operands.
    pub detail: Detail,
}

impl fmt::Debug for WarpOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarpOp")
            .field("dst", &self.dst)
            .field("src", &self.src)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A load or store.
#[derive(Clone, Debug)]
pub struct MemOp {
    /// Address of the first element.
    pub address: Address,
    /// Bytes of an element: 1 to 16.
    pub size: u32,
    /// Whether a load sign-extends.
    pub signed: bool,
    /// Destinations of a load or sources of a store, one per vector element.
    pub regs: Vec<Reg>,
    /// Whether the registers have 16 bits: the upper half of their slots stays zero.
    pub narrow: bool,
    /// Memory order.
    pub order: Semantics,
    /// Scope of the order, if it is written.
    pub scope: Option<Scope>,
    /// Whether each lane's access is one atomic access: it is volatile or ordered.
    pub atomic: bool,
    /// Whether this is a store.
    pub store: bool,
    /// The address of a load that may run before the launch.
    pub constant: Option<Box<ConstantLoad>>,
}

/// An atomic operation.
#[derive(Clone, Debug)]
pub struct AtomicOp {
    /// Address of the first element.
    pub address: Address,
    /// Operation.
    pub op: AtomOp,
    /// Type.
    pub ty: Type,
    /// Memory order.
    pub order: Semantics,
    /// Scope of the order, if it is written.
    pub scope: Option<Scope>,
    /// Destinations, one per vector element; empty for `red`.
    pub dst: Vec<Reg>,
    /// Sources, one per vector element.
    pub src: Vec<Reg>,
    /// Second source, of `cas`.
    pub src2: Option<Reg>,
}

/// What a `multimem` instruction does at the address in the memory of each device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultimemKind {
    /// `multimem.ld_reduce`: combines the values; `wide` if in `f32` (`.acc::f32`).
    LoadReduce {
        /// The operation.
        op: AtomOp,
        /// Whether halves are combined in `f32`.
        wide: bool,
    },
    /// `multimem.st`.
    Store,
    /// `multimem.red`.
    Reduce(AtomOp),
}

/// `multimem.ld_reduce`, `multimem.st`, `multimem.red`.
#[derive(Clone, Debug)]
pub struct MultimemOp {
    /// What it does.
    pub kind: MultimemKind,
    /// Address of the first element, in a mapping of a multicast object.
    pub address: Address,
    /// Type of an element.
    pub ty: Type,
    /// Memory order.
    pub order: Semantics,
    /// Scope of the order, if it is written.
    pub scope: Option<Scope>,
    /// Destinations of a load or sources, one per vector element.
    pub regs: Vec<Reg>,
}

/// `cp.async`: a copy to shared memory that completes at once.
#[derive(Clone, Debug)]
pub struct CopyOp {
    /// Destination in shared memory.
    pub to: Address,
    /// Source in global memory.
    pub from: Address,
    /// Bytes that are written: 4, 8 or 16.
    pub size: u32,
    /// Number of bytes that are read; the rest of the destination becomes zero. `None` is all.
    pub read: Option<Reg>,
    /// A predicate, and whether it is negated: where it is true, nothing is read.
    pub ignore: Option<(Reg, bool)>,
}

/// The action of a texture or surface instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexKind {
    /// `tex`.
    Fetch {
        /// Whether coordinates are texel numbers (integers).
        texels: bool,
        /// Level of detail.
        detail: TexDetail,
    },
    /// `tld4` of this component.
    Gather(u8),
    /// `txq`, and whether a level of detail is given.
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

impl TexKind {
    /// Whether [`TexOp::values`] are sources.
    pub fn reads_values(self) -> bool {
        matches!(self, TexKind::Store | TexKind::Reduce(_))
    }
}

/// Source of the level of detail of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexDetail {
    /// The base level.
    Base,
    /// [`TexOp::lod`].
    Level,
    /// [`TexOp::gradient`].
    Gradient,
}

/// A texture or surface instruction.
#[derive(Clone, Debug)]
pub struct TexOp {
    /// Action.
    pub kind: TexKind,
    /// The object handle.
    pub object: Reg,
    /// The handle of a separate sampler (`.texmode_independent`).
    pub sampler: Option<Reg>,
    /// Geometry that the instruction names.
    pub view: View,
    /// Coordinates.
    pub coordinates: [Reg; 3],
    /// The layer.
    pub layer: Reg,
    /// Level of detail.
    pub lod: Reg,
    /// Gradients.
    pub gradient: [[Reg; 3]; 2],
    /// Offset in texels.
    pub offset: [i32; 3],
    /// Destinations, or the sources of a store or reduction.
    pub values: Vec<Reg>,
    /// Type of the values.
    pub ty: Type,
    /// Destination of the predicate that tells whether the texels are resident.
    pub resident: Reg,
    /// Whether a surface access is formatted: x counts elements, and values are converted.
    pub formatted: bool,
    /// Behaviour of an access outside the surface.
    pub outside: BoundaryMode,
}

/// The action of an `mbarrier` instruction on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierAction {
    /// `init`, and whether the layout is `layout::v1`.
    Init(bool),
    /// `inval`.
    Inval,
    /// `expect_tx`: adds to the transaction count.
    ExpectTransactions,
    /// `complete_tx`: subtracts from the transaction count.
    CompleteTransactions,
    /// `arrive`, `arrive_drop`, `cp.async.mbarrier.arrive.noinc`.
    Arrive {
        /// The operand is added to the transaction count, and one thread arrives (`.expect_tx`).
        expect: bool,
        /// The thread leaves the barrier after this phase.
        drop: bool,
        /// The arrival must not complete the phase (`.noComplete`).
        open: bool,
    },
    /// `test_wait`, `try_wait` with the state of an arrival.
    Wait,
    /// `test_wait`, `try_wait` with the parity of a phase.
    WaitParity,
    /// `check_layout`: whether the object has `layout::v1`, or has `layout::v0`.
    CheckLayout(bool),
}

/// An `mbarrier` instruction on an object in memory.
#[derive(Clone, Debug)]
pub struct MbarrierOp {
    /// Action.
    pub kind: MbarrierAction,
    /// Address of the object.
    pub address: Address,
    /// Scope of the order, if it is written.
    pub scope: Option<Scope>,
    /// The count, or the state of a wait.
    pub operand: Reg,
    /// The state of an arrival, or the predicate of a wait.
    pub dst: Option<Reg>,
}

/// Direction of a bulk copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkDirection {
    /// Global to shared memory.
    Load,
    /// Shared to global memory.
    Store,
    /// Shared to shared memory.
    Shared,
}

/// The other side of a bulk copy.
#[derive(Clone, Debug)]
pub enum BulkSide {
    /// Memory, and the number of bytes.
    Memory(Address, Reg),
    /// A box of a tensor: the address of the tensor map, the first coordinates, and the offsets if the mode is im2col.
    Tensor(Address, Vec<Reg>, Option<Vec<Reg>>),
}

/// A bulk copy.
#[derive(Clone, Debug)]
pub struct BulkOp {
    /// Direction.
    pub direction: BulkDirection,
    /// The shared memory of the executing block: destination of a load, else the source.
    pub shared: Address,
    /// The other side.
    pub other: BulkSide,
    /// The `mbarrier` object whose transaction count falls by the bytes.
    pub mbarrier: Option<Address>,
    /// Mask of the ranks of the blocks whose shared memory and object are meant (`.multicast::cluster`).
    pub multicast: Option<Reg>,
    /// The operation of a reduction, and the type if the instruction names one.
    pub reduce: Option<(AtomOp, Option<Type>)>,
    /// Whether the other side is an address of a multicast object (`multimem.cp.async.bulk`).
    pub multimem: bool,
}

/// An access to a tensor map in memory.
#[derive(Clone, Copy, Debug)]
pub enum TensorMapOp {
    /// Replaces a field.
    Replace {
        /// Address of the map.
        map: Address,
        /// The field.
        field: TensorMapField,
        /// A register with 64 bits.
        value: Reg,
    },
    /// Copies a map, once for a warp.
    Copy {
        /// Address of the destination.
        to: Address,
        /// Address of the source.
        from: Address,
    },
}

/// A copy between frames at a call.
#[derive(Clone, Copy, Debug)]
pub enum ArgCopy {
    /// Bytes of the caller's frame, to or from the callee's frame.
    Memory {
        /// Offset in the caller's frame.
        caller: u32,
        /// Offset in the callee's frame.
        callee: u32,
        /// Bytes.
        size: u32,
    },
    /// A register of the caller, to or from the callee's frame.
    Register {
        /// The caller's register.
        caller: Reg,
        /// Offset in the callee's frame.
        callee: u32,
        /// Bytes.
        size: u32,
    },
}

/// The target of a call.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// Index into [`Kernel::functions`](super::Kernel::functions).
    Direct(u32),
    /// The function's address, and the frame size of the prototype.
    Indirect(Reg, u32),
}

/// A call.
#[derive(Clone, Debug)]
pub struct CallOp {
    /// Target.
    pub callee: Callee,
    /// Copies before the call.
    pub args: Vec<ArgCopy>,
    /// Copies after the return.
    pub returns: Vec<ArgCopy>,
    /// Whether the callee, or a function that it calls, may wait for another thread.
    pub may_wait: bool,
}

/// A function that the device provides to kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinKind {
    /// `vprintf(format, arguments) -> int`.
    Vprintf,
    /// `__assertfail(expression, file, line, function, char size)`.
    AssertFail,
    /// `malloc(size) -> pointer`.
    Malloc,
    /// `__cuda_syscall_aligned_malloc(size, alignment) -> pointer`, which `__nv_aligned_device_malloc` and `new` of a type with a
    /// larger alignment than 16 bytes call.
    AlignedMalloc,
    /// `free(pointer)`.
    Free,
    /// `cudaGraphSetConditional(handle, value)`.
    SetConditional,
    /// `cudaGraphLaunch(graph, stream) -> cudaError_t`.
    LaunchGraph,
    /// A function of the device runtime; whether its null stream is that of the calling thread.
    Runtime(RuntimeFunction, bool),
}

impl BuiltinKind {
    /// The function of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "vprintf" => Self::Vprintf,
            "__assertfail" => Self::AssertFail,
            "malloc" => Self::Malloc,
            "__cuda_syscall_aligned_malloc" => Self::AlignedMalloc,
            "free" => Self::Free,
            "cudaGraphSetConditional" => Self::SetConditional,
            "cudaGraphLaunch" => Self::LaunchGraph,
            _ => {
                let (function, per_thread) = RuntimeFunction::from_name(name)?;
                Self::Runtime(function, per_thread)
            }
        })
    }
}

/// A call of a function that the device provides.
#[derive(Clone, Debug)]
pub struct BuiltinOp {
    /// Function.
    pub kind: BuiltinKind,
    /// Arguments.
    pub args: Vec<BuiltinArg>,
    /// Destination of the result.
    pub result: Option<BuiltinArg>,
}

/// An argument or result of a builtin.
#[derive(Clone, Copy, Debug)]
pub enum BuiltinArg {
    /// Offset and bytes in the caller's frame.
    Memory(u32, u32),
    /// A register.
    Register(Reg),
}

/// The action of a thread at a block barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierMode {
    /// Wait.
    Sync,
    /// Arrive without waiting.
    Arrive,
    /// Wait; the result is whether the predicate is true in all threads.
    RedAnd,
    /// Wait; the result is whether the predicate is true in any thread.
    RedOr,
    /// Wait; the result is the number of threads whose predicate is true.
    RedPopc,
    /// Wait for the other warps of the warpgroup, at a barrier that programs cannot name: number and count are ignored.
    Warpgroup,
}

/// A block barrier.
#[derive(Clone, Copy, Debug)]
pub struct BarrierOp {
    /// What the thread does.
    pub mode: BarrierMode,
    /// The barrier's number.
    pub id: Reg,
    /// The thread count; `None` is all threads of the block.
    pub count: Option<Reg>,
    /// Predicate of a reduction.
    pub predicate: Reg,
    /// Whether it is negated.
    pub negated: bool,
    /// Result of a reduction.
    pub dst: Option<Reg>,
}
