//! The warp functions: instructions whose results in a lane depend on the registers of other lanes, or on memory, and that
//! all lanes of a warp execute together.
//!
//! Belongs here: what such an instruction computes. Does not belong here: when the lanes of a warp have come together, and
//! which memory they may access (the caller's [`Warp`] knows both).

mod matrix;

use std::fmt;
use std::sync::Arc;

use cupyrite_ptx::ir::Instr;

use super::lane::{OperandSlot, Slot};
use crate::fault::LaneFault;
use matrix::{Multiply, QuadPairs, Tile, Warpgroup};

/// The warp that executes a warp function.
pub trait Warp {
    /// The register file.
    fn registers(&mut self) -> *mut u8;

    /// The lanes that execute the instruction: all that have not exited, unless the kernel violates `.aligned`.
    fn active(&self) -> u32;

    /// Its index in the block.
    fn rank(&self) -> u32;

    /// The address operand in each lane.
    fn addresses(&self) -> &[u64; 32];

    /// Loads 1, 2, 4, 8 or 16 bytes from an address that is a multiple of their number. The state space is that of the address
    /// operand; without one, it is shared memory.
    ///
    /// # Errors
    /// The fault of a refused access.
    fn load(&mut self, lane: usize, address: u64, bytes: u32) -> Result<u128, Box<LaneFault>>;

    /// Loads 16 bytes from each address, as [`Self::load`] does. Returns `false`, with any `lines`, unless all lie in the shared
    /// memory of the block and need no check but that: then [`Self::load`] loads them, or returns the fault of one.
    fn load_shared(&mut self, addresses: &[u64], lines: &mut [u128]) -> bool;

    /// Stores the low `bytes` bytes of `value`, as [`Self::load`] loads them.
    ///
    /// # Errors
    /// The fault of a refused access.
    fn store(
        &mut self,
        lane: usize,
        address: u64,
        bytes: u32,
        value: u128,
    ) -> Result<(), Box<LaneFault>>;
}

/// Computes one instruction for the active lanes of a warp.
///
/// # Safety
/// The offsets in `operands` are slots of the warp's register file, of the shapes that the [`Selected`] has. Nothing else accesses the
/// register file during the call.
pub type WarpFn = unsafe fn(warp: &mut dyn Warp, operands: &Operands) -> Result<(), Box<LaneFault>>;

/// Operands of a [`WarpFn`], as byte offsets into the register file. The address operand is not among them: [`Warp::addresses`] returns its elements.
#[derive(Clone, Debug, Default)]
pub struct Operands {
    /// Offsets of the destination slots, parallel to [`Selected::dsts`].
    pub dst: Vec<u32>,
    /// Offsets of the source slots, parallel to [`Selected::srcs`].
    pub src: Vec<u32>,
    /// See [`Selected::detail`].
    pub detail: Detail,
}

/// What a warp function knows of its instruction beyond the operands.
#[derive(Clone, Debug, Default)]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// `mma`, `wmma.mma`.
    Multiply(Arc<Multiply>),
    /// `mma.m8n8k4` of half-precision matrices.
    QuadPairs(QuadPairs),
    /// `wmma.load`, `wmma.store`.
    Tile(Arc<Tile>),
    /// `wgmma.mma_async`.
    Warpgroup(Arc<Warpgroup>),
}

/// The warp function selected for an instruction.
#[derive(Clone)]
pub struct Selected {
    /// The function.
    pub run: WarpFn,
    /// Destinations.
    pub dsts: Vec<OperandSlot>,
    /// Sources.
    pub srcs: Vec<OperandSlot>,
    /// Index of the PTX operand that is an address; `None` if the instruction has none.
    pub address: Option<u8>,
    /// What the function knows beyond the operands.
    pub detail: Detail,
}

impl fmt::Debug for Selected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selected")
            .field("dsts", &self.dsts)
            .field("srcs", &self.srcs)
            .finish_non_exhaustive()
    }
}

/// Selects the warp function of an instruction; `None` if it has none.
pub fn select(i: &Instr) -> Option<Selected> {
    matrix::select(i)
}

/// Reads a 32-bit slot of a warp's register file.
///
/// # Safety
/// `at` is such a slot.
pub unsafe fn row(warp: &mut dyn Warp, at: u32) -> [u32; 32] {
    const { assert!(Slot::R32.bytes() as usize == size_of::<[u32; 32]>()) };
    // SAFETY: upheld by the caller; register files are aligned to 64 bytes, and slots of this shape too.
    unsafe { *warp.registers().add(at as usize).cast() }
}

/// Writes the active lanes of a 32-bit slot of a warp's register file.
///
/// # Safety
/// `at` is such a slot, and nothing else accesses the register file during the call.
pub unsafe fn set_row(warp: &mut dyn Warp, at: u32, values: &[u32; 32]) {
    let active = warp.active();
    // SAFETY: as for `row`.
    let slot: &mut [u32; 32] = unsafe { &mut *warp.registers().add(at as usize).cast() };
    if active == u32::MAX {
        *slot = *values;
        return;
    }
    for (l, (to, from)) in slot.iter_mut().zip(values).enumerate() {
        if active >> l & 1 != 0 {
            *to = *from;
        }
    }
}

/// Reads a predicate slot of a warp's register file: a mask of lanes.
///
/// # Safety
/// `at` is such a slot.
pub unsafe fn mask(warp: &mut dyn Warp, at: u32) -> u32 {
    // SAFETY: upheld by the caller; predicate slots have four bytes and are aligned to them.
    unsafe { *warp.registers().add(at as usize).cast() }
}

/// Reads a 64-bit slot of a warp's register file.
///
/// # Safety
/// `at` is such a slot.
pub unsafe fn row_64(warp: &mut dyn Warp, at: u32) -> [u64; 32] {
    const { assert!(Slot::R64.bytes() as usize == size_of::<[u64; 32]>()) };
    // SAFETY: as for `row`.
    unsafe { *warp.registers().add(at as usize).cast() }
}

/// Writes the active lanes of a 64-bit slot of a warp's register file.
///
/// # Safety
/// `at` is such a slot, and nothing else accesses the register file during the call.
pub unsafe fn set_row_64(warp: &mut dyn Warp, at: u32, values: &[u64; 32]) {
    let active = warp.active();
    // SAFETY: as for `row`.
    let slot: &mut [u64; 32] = unsafe { &mut *warp.registers().add(at as usize).cast() };
    for (l, (to, from)) in slot.iter_mut().zip(values).enumerate() {
        if active >> l & 1 != 0 {
            *to = *from;
        }
    }
}
