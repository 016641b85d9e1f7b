//! Actions, and the one function that visits their operands.

use std::fmt;

use cupyrite_ptx::ir::{Op, ShflMode, Space, Special, Type, VoteMode};

use super::function::BlockId;
use super::operation::{
    Address, ArgCopy, AtomicOp, BarrierOp, BuiltinArg, BuiltinOp, BulkOp, BulkSide, CallOp, Callee,
    CopyOp, MbarrierOp, MemOp, MultimemKind, MultimemOp, ReduxOp, TensorMapOp, TexOp, WarpOp,
};
use super::register::Reg;
use crate::semantics::lane::{OpFn, VectorOp};

/// Whether an instruction reads or writes an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads the operand.
    Read,
    /// It writes the operand, in the lanes that execute it.
    Write,
}

/// A lane function with its operands.
#[derive(Clone, Copy)]
pub struct LaneOp {
    /// The function.
    pub run: OpFn,
    /// Destinations, then `None`.
    pub dst: [Option<Reg>; 4],
    /// Sources, then `None`.
    pub src: [Option<Reg>; 4],
    /// Immediate.
    pub imm: u32,
    /// The opcode that it stands for, and the first type of the instruction; `None` for a copy between slots of different
    /// shape.
    pub op: Option<(Op, Type)>,
    /// The function as data, if compilers know it.
    pub vector: Option<VectorOp>,
}

impl fmt::Debug for LaneOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneOp")
            .field("op", &self.op)
            .field("dst", &self.dst)
            .field("src", &self.src)
            .field("imm", &self.imm)
            .finish_non_exhaustive()
    }
}

/// What an instruction does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Calls a lane function.
    Lanes(LaneOp),
    /// Calls a warp function when all live lanes of the warp have arrived at it.
    Warp(Box<WarpOp>),
    /// Loads from memory.
    Load(Box<MemOp>),
    /// Stores to memory.
    Store(Box<MemOp>),
    /// `atom`, `red`.
    Atomic(Box<AtomicOp>),
    /// `multimem.ld_reduce`, `multimem.st`, `multimem.red`.
    Multimem(Box<MultimemOp>),
    /// `tex`, `tld4`, `txq`, `suld`, `sust`, `sured`, `suq`.
    Texture(Box<TexOp>),
    /// `mbarrier` on an object in memory.
    Mbarrier(Box<MbarrierOp>),
    /// `mbarrier.pending_count`.
    PendingCount {
        /// Destination.
        dst: Reg,
        /// State of an arrival.
        state: Reg,
    },
    /// `cp.async`.
    Copy(Box<CopyOp>),
    /// `cp.async.bulk`, `cp.reduce.async.bulk`.
    Bulk(Box<BulkOp>),
    /// `tensormap.replace`, `tensormap.cp_fenceproxy`.
    TensorMap(TensorMapOp),
    /// `bra`.
    Branch {
        /// Target.
        target: BlockId,
        /// Whether the branch goes back around an instruction that may wait for another thread.
        spins: bool,
    },
    /// `brx.idx`.
    BranchIndexed {
        /// Index of the target.
        index: Reg,
        /// Targets.
        targets: Box<[BlockId]>,
    },
    /// Calls a function of the module.
    Call(Box<CallOp>),
    /// Calls a function that the device provides.
    Builtin(Box<BuiltinOp>),
    /// `ret`.
    Return,
    /// `exit`.
    Exit,
    /// `trap`, `brkpt`.
    Trap {
        /// Whether it is `brkpt`, which ends a launch without a debugger (observed on an H100).
        breakpoint: bool,
    },
    /// `bar`, `barrier`.
    Barrier(Box<BarrierOp>),
    /// `barrier.cluster.arrive`.
    ClusterArrive,
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// `bar.warp.sync`.
    WarpBarrier {
        /// Member mask.
        members: Reg,
    },
    /// `shfl`.
    Shuffle {
        /// Mode.
        mode: ShflMode,
        /// The value that the lane receives.
        dst: Reg,
        /// Whether the source lane is in range.
        in_range: Reg,
        /// The value that the lane offers.
        value: Reg,
        /// Source lane, or distance to it.
        lane: Reg,
        /// Clamp and segment mask.
        clamp: Reg,
        /// Member mask; `None` without `.sync`.
        members: Option<Reg>,
    },
    /// `vote`.
    Vote {
        /// Mode.
        mode: VoteMode,
        /// Destination.
        dst: Reg,
        /// The predicate.
        predicate: Reg,
        /// Whether it is negated.
        negated: bool,
        /// Member mask; `None` without `.sync`.
        members: Option<Reg>,
    },
    /// `match.sync`.
    Match {
        /// Whether all lanes must have the same value (`.all`).
        all: bool,
        /// Lanes with the same value.
        dst: Reg,
        /// Whether there are any (`.all`).
        found: Reg,
        /// The value.
        value: Reg,
        /// Member mask.
        members: Reg,
    },
    /// `redux.sync`.
    Redux {
        /// Operation.
        op: ReduxOp,
        /// Destination.
        dst: Reg,
        /// The value.
        value: Reg,
        /// Member mask.
        members: Reg,
    },
    /// `elect.sync`.
    Elect {
        /// The elected lane.
        dst: Reg,
        /// Whether it is this one.
        elected: Reg,
        /// Member mask.
        members: Reg,
    },
    /// `activemask`.
    ActiveMask {
        /// Destination.
        dst: Reg,
    },
    /// `fence`, `membar`.
    Fence,
    /// Reads a special register that changes while a warp runs.
    Special {
        /// Destination.
        dst: Reg,
        /// The special register.
        special: Special,
    },
    /// Computes the address in local memory of a byte of the function's frame: the start of the frame plus `offset`.
    FrameAddress {
        /// Destination.
        dst: Reg,
        /// Offset from the start of the frame, in bytes.
        offset: i64,
    },
    /// `isspacep`.
    IsSpace {
        /// Destination.
        dst: Reg,
        /// Generic address.
        address: Reg,
        /// State space.
        space: Space,
    },
    /// `nanosleep`.
    Nanosleep {
        /// Duration in nanoseconds.
        duration: Reg,
    },
    /// `alloca`.
    Alloca {
        /// Destination: the address in local memory.
        dst: Reg,
        /// Size in bytes.
        size: Reg,
        /// Alignment in bytes.
        align: i64,
    },
    /// `stacksave`.
    StackSave {
        /// Destination.
        dst: Reg,
    },
    /// `stackrestore`.
    StackRestore {
        /// The result of a `stacksave`.
        saved: Reg,
    },
}

/// Visits the operands of `$action`, sources before destinations. `$iter` is the method that iterates over a list of
/// operands, and `$reference` the kind of reference to one. Everything that asks which registers an action reads or writes
/// goes through here.
macro_rules! visit {
    ($action:expr, $f:expr, $iter:ident, [$($reference:tt)+]) => {{
        use Role::{Read, Write};
        let f = $f;
        macro_rules! address {
            ($address:expr) => {
                f(Read, $($reference)+ $address.base);
                $address.uniform.$iter().for_each(|r| f(Read, r));
            };
        }
        macro_rules! copies {
            ($list:expr, $role:expr) => {
                for c in $list.$iter() {
                    if let ArgCopy::Register { caller, .. } = c {
                        f($role, caller);
                    }
                }
            };
        }
        match $action {
            Action::Lanes(op) => {
                op.src.$iter().flatten().for_each(|r| f(Read, r));
                op.dst.$iter().flatten().for_each(|r| f(Write, r));
            }
            Action::Warp(op) => {
                for address in op.address.$iter() {
                    address!(address);
                }
                op.src.$iter().for_each(|r| f(Read, r));
                op.dst.$iter().for_each(|r| f(Write, r));
            }
            Action::Load(op) | Action::Store(op) => {
                address!(op.address);
                let role = if op.store { Read } else { Write };
                op.regs.$iter().for_each(|r| f(role, r));
            }
            Action::Atomic(op) => {
                address!(op.address);
                op.src.$iter().chain(op.src2.$iter()).for_each(|r| f(Read, r));
                op.dst.$iter().for_each(|r| f(Write, r));
            }
            Action::Multimem(op) => {
                address!(op.address);
                let loads = matches!(op.kind, MultimemKind::LoadReduce { .. });
                let role = if loads { Write } else { Read };
                op.regs.$iter().for_each(|r| f(role, r));
            }
            Action::Texture(op) => {
                f(Read, $($reference)+ op.object);
                op.sampler.$iter().for_each(|r| f(Read, r));
                op.coordinates.$iter().for_each(|r| f(Read, r));
                f(Read, $($reference)+ op.layer);
                f(Read, $($reference)+ op.lod);
                op.gradient.$iter().flatten().for_each(|r| f(Read, r));
                let role = if op.kind.reads_values() { Read } else { Write };
                op.values.$iter().for_each(|r| f(role, r));
                f(Write, $($reference)+ op.resident);
            }
            Action::Mbarrier(op) => {
                address!(op.address);
                f(Read, $($reference)+ op.operand);
                op.dst.$iter().for_each(|r| f(Write, r));
            }
            Action::PendingCount { dst, state } => {
                f(Read, state);
                f(Write, dst);
            }
            Action::Copy(op) => {
                address!(op.to);
                address!(op.from);
                op.read.$iter().for_each(|r| f(Read, r));
                op.ignore.$iter().for_each(|(r, _)| f(Read, r));
            }
            Action::Bulk(op) => {
                address!(op.shared);
                match $($reference)+ op.other {
                    BulkSide::Memory(address, size) => {
                        address!(address);
                        f(Read, size);
                    }
                    BulkSide::Tensor(map, coordinates, offsets) => {
                        address!(map);
                        coordinates.$iter().for_each(|r| f(Read, r));
                        offsets.$iter().flatten().for_each(|r| f(Read, r));
                    }
                }
                for object in op.mbarrier.$iter() {
                    address!(object);
                }
                op.multicast.$iter().for_each(|r| f(Read, r));
            }
            Action::TensorMap(op) => match $($reference)+ *op {
                TensorMapOp::Replace { map, value, .. } => {
                    address!(map);
                    f(Read, value);
                }
                TensorMapOp::Copy { to, from } => {
                    address!(to);
                    address!(from);
                }
            },
            Action::BranchIndexed { index, .. } => f(Read, index),
            Action::Call(op) => {
                if let Callee::Indirect(address, _) = $($reference)+ op.callee {
                    f(Read, address);
                }
                copies!(op.args, Read);
                copies!(op.returns, Write);
            }
            Action::Builtin(op) => {
                for argument in op.args.$iter() {
                    if let BuiltinArg::Register(r) = argument {
                        f(Read, r);
                    }
                }
                if let Some(BuiltinArg::Register(r)) = $($reference)+ op.result {
                    f(Write, r);
                }
            }
            Action::Barrier(op) => {
                f(Read, $($reference)+ op.id);
                op.count.$iter().for_each(|r| f(Read, r));
                f(Read, $($reference)+ op.predicate);
                op.dst.$iter().for_each(|r| f(Write, r));
            }
            Action::WarpBarrier { members } => f(Read, members),
            Action::Shuffle { dst, in_range, value, lane, clamp, members, .. } => {
                [value, lane, clamp].into_iter().for_each(|r| f(Read, r));
                members.$iter().for_each(|r| f(Read, r));
                f(Write, dst);
                f(Write, in_range);
            }
            Action::Vote { dst, predicate, members, .. } => {
                f(Read, predicate);
                members.$iter().for_each(|r| f(Read, r));
                f(Write, dst);
            }
            Action::Match { dst, found, value, members, .. } => {
                f(Read, value);
                f(Read, members);
                f(Write, dst);
                f(Write, found);
            }
            Action::Redux { dst, value, members, .. } => {
                f(Read, value);
                f(Read, members);
                f(Write, dst);
            }
            Action::Elect { dst, elected, members } => {
                f(Read, members);
                f(Write, dst);
                f(Write, elected);
            }
            Action::IsSpace { dst, address, .. } => {
                f(Read, address);
                f(Write, dst);
            }
            Action::Nanosleep { duration } => f(Read, duration),
            Action::Alloca { dst, size, .. } => {
                f(Read, size);
                f(Write, dst);
            }
            Action::StackRestore { saved } => f(Read, saved),
            Action::ActiveMask { dst }
            | Action::Special { dst, .. }
            | Action::FrameAddress { dst, .. }
            | Action::StackSave { dst } => f(Write, dst),
            Action::Branch { .. }
            | Action::Return
            | Action::Exit
            | Action::Trap { .. }
            | Action::ClusterArrive
            | Action::ClusterWait
            | Action::Fence => {}
        }
    }};
}

impl Action {
    /// Calls `f` for every operand.
    pub fn for_each(&self, f: &mut impl FnMut(Role, &Reg)) {
        visit!(self, f, iter, [&]);
    }

    /// Calls `f` for every operand, which it may replace.
    pub fn for_each_mut(&mut self, f: &mut impl FnMut(Role, &mut Reg)) {
        visit!(self, f, iter_mut, [&mut]);
    }

    /// Whether control never proceeds to the next instruction in the lanes that execute it.
    pub fn ends_block(&self) -> bool {
        matches!(
            self,
            Action::Branch { .. }
                | Action::BranchIndexed { .. }
                | Action::Return
                | Action::Exit
                | Action::Trap { .. }
        )
    }

    /// Whether a loop around the action may wait for another thread.
    pub fn may_wait(&self) -> bool {
        match self {
            Action::Atomic(_) | Action::Mbarrier(_) | Action::Nanosleep { .. } => true,
            Action::Load(op) => op.atomic,
            Action::Call(op) => op.may_wait,
            Action::Multimem(op) => op.kind != MultimemKind::Store,
            _ => false,
        }
    }

    /// The address of a load, store or atomic.
    pub fn address_mut(&mut self) -> Option<&mut Address> {
        match self {
            Action::Load(op) | Action::Store(op) => Some(&mut op.address),
            Action::Atomic(op) => Some(&mut op.address),
            Action::Multimem(op) => Some(&mut op.address),
            _ => None,
        }
    }
}
