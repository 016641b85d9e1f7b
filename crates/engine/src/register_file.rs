//! The register file of a warp: its fixed locations, and what it holds before the threads run.
//!
//! All tiers share it: a warp can be at an instruction of one tier now and of another one later. Register allocation
//! (`passes`) gives registers their locations.

use cupyrite_ptx::ir::Special;

use crate::kir::HoistedLoad;
use crate::semantics::lane::{OpArgs, OpFn, Slot};

/// Fixed locations of the register file, as byte offsets.
pub mod fixed {
    /// The carry flag.
    pub const CARRY: u32 = 0;
    /// A predicate that is true in every lane.
    pub const ONES: u32 = 4;
    /// Destination of discarded predicates.
    pub const SINK_PRED: u32 = 8;
    /// Offset of the current function's frame in local memory, per lane.
    pub const FRAME: u32 = 64;
    /// Bytes that `alloca` has added to the current frame, per lane.
    pub const DYNAMIC: u32 = 192;
    /// Destination of other discarded results (512 bytes).
    pub const SINK: u32 = 320;
    /// `%tid.x`, `.y`, `.z`.
    pub const TID: [u32; 3] = [832, 960, 1088];
    /// `%warpid`.
    pub const WARP_ID: u32 = 1216;
    /// 64-bit zeros.
    pub const ZERO: u32 = 1344;
    /// First byte that is free for registers.
    pub const END: u32 = 1600;
}

/// Byte ranges of the register file that hold a function's varying registers, one range per slot shape: start and exclusive
/// end. A recursive function saves them around its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveSet {
    /// Predicates.
    pub preds: (u32, u32),
    /// 32-bit slots.
    pub r32: (u32, u32),
    /// 64-bit slots.
    pub r64: (u32, u32),
    /// 128-bit slots.
    pub r128: (u32, u32),
}

/// A launch- or block-wide special register, written to the register file before warps run.
#[derive(Clone, Copy, Debug)]
pub struct SpecialSlot {
    /// Register.
    pub special: Special,
    /// Location.
    pub at: u32,
    /// Shape.
    pub slot: Slot,
}

/// A lane function that runs before the threads, for all lanes.
#[derive(Clone, Copy, Debug)]
pub struct PrologueOp {
    /// The function.
    pub run: OpFn,
    /// Its operands.
    pub args: OpArgs,
}

/// The register file of a kernel.
#[derive(Debug, Default)]
pub struct RegisterFile {
    /// Size in bytes, a multiple of 64.
    pub bytes: u32,
    /// Initial contents: constants.
    pub template: Vec<u8>,
    /// Start of the values that change once per block; varying registers lie before it.
    pub block_from: u32,
    /// Their end; the rest of the register file does not change during a launch.
    pub block_to: u32,
    /// Launch-wide special registers.
    pub launch_specials: Vec<SpecialSlot>,
    /// Block-wide special registers.
    pub block_specials: Vec<SpecialSlot>,
    /// Slots that hold the address of the parameter bank plus an offset.
    pub parameter_addresses: Vec<(u32, u64)>,
    /// Slots that hold the address of a byte of the block's shared memory, and its offset there.
    pub shared_addresses: Vec<(u32, u32)>,
    /// Loads that run once per launch. Their destinations are locations.
    pub hoisted_loads: Vec<HoistedLoad>,
    /// Lane functions that run once per launch, in order.
    pub launch_prologue: Vec<PrologueOp>,
    /// Lane functions that run once per block, in order.
    pub block_prologue: Vec<PrologueOp>,
}

impl RegisterFile {
    /// Writes the addresses of shared memory, which begins at `window`, to a register file of this layout.
    pub fn fill_shared_addresses(&self, regs: *mut u8, window: u32) {
        for &(at, offset) in &self.shared_addresses {
            // SAFETY: the location is a 32-bit slot of the register file.
            let lanes =
                unsafe { std::slice::from_raw_parts_mut(regs.add(at as usize).cast::<u32>(), 32) };
            lanes.fill(window + offset);
        }
    }
}

/// Runs a prologue.
///
/// # Safety
/// `regs` is a register file of the kernel that the prologue belongs to.
pub unsafe fn run_prologue(list: &[PrologueOp], regs: *mut u8) {
    for op in list {
        // SAFETY: upheld by the caller.
        unsafe { (op.run)(regs, &op.args, u32::MAX) };
    }
}
