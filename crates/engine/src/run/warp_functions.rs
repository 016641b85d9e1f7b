//! Calls of warp functions.

use super::context::{Context, ExecResult, fault};
use super::lanes::LANES;
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{
    ResolvedAddress, addresses, host, local_base, local_read, local_write, resolve,
};
use super::warp::{Collective, FragmentState, Warp};
use crate::address_windows::windows;
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::MemSpace;
use crate::semantics::warp;

/// Whether the lanes of the warp have come together at `inst`. If some may still come, parks the lanes `active` at it.
///
/// The instruction is `.aligned`: a kernel that executes it with some lanes only is undefined (PTX ISA, "mma"). Those lanes then
/// execute it once no other can run.
pub fn come_together(w: &mut Warp, inst: &Inst, pc: u32, active: u32) -> bool {
    let forced = std::mem::take(&mut w.force_collective);
    if forced || active == w.live {
        return true;
    }
    let collective = Collective {
        kind: inst.kind,
        qualifiers: 0,
        redux: inst.target,
        members: u32::MAX,
    };
    w.park(pc, active, FragmentState::Sync(collective));
    false
}

/// Executes a warp function for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn run(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let call = &program.warps[inst.target as usize];
    let (space, at) = match &call.address {
        // SAFETY: the address is a slot of the register file.
        Some(a) => (a.space, unsafe { addresses(regs, a) }),
        None => (MemSpace::Shared, [0; LANES]),
    };
    let mut state = Caller {
        cx,
        w,
        regs,
        active,
        space,
        inst,
        at,
    };
    // SAFETY: the compiler has chosen slots of the shapes that the function has.
    unsafe { (call.run)(&mut state, &call.operands) }
}

/// The warp that a warp function sees.
struct Caller<'c, 'l, M: MemoryModel> {
    cx: &'c mut Context<'l, M>,
    w: &'c mut Warp,
    regs: *mut u8,
    active: u32,
    space: MemSpace,
    /// The instruction.
    inst: &'c Inst,
    at: [u64; LANES],
}

impl<M: MemoryModel> Caller<'_, '_, M> {
    /// Checks an access of one lane.
    fn resolve(
        &mut self,
        lane: usize,
        address: u64,
        bytes: u32,
        kind: AccessKind,
    ) -> Result<ResolvedAddress, Box<LaneFault>> {
        if !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            let text = "internal error: a warp function accesses another number of bytes";
            return Err(fault(FaultKind::IllegalInstruction, 1 << lane, text));
        }
        let (space, entry, l) = (self.space, self.inst.aux, lane as u32);
        let admitted = admit(self.cx, self.inst, 1 << lane, || {
            AccessRequest::of_lane(space, address, bytes, kind)
        })?;
        let write = kind == AccessKind::Store;
        resolve(
            self.cx, admitted, space, entry, l, address, bytes, bytes, write,
        )
    }
}

impl<M: MemoryModel> warp::Warp for Caller<'_, '_, M> {
    fn registers(&mut self) -> *mut u8 {
        self.regs
    }

    fn active(&self) -> u32 {
        self.active
    }

    fn rank(&self) -> u32 {
        self.cx.warp
    }

    fn addresses(&self) -> &[u64; LANES] {
        &self.at
    }

    fn load(&mut self, lane: usize, address: u64, bytes: u32) -> Result<u128, Box<LaneFault>> {
        match self.resolve(lane, address, bytes, AccessKind::Load)? {
            // SAFETY: `resolve` has checked the access.
            ResolvedAddress::Host(p) => Ok(unsafe { host::read(p, bytes) }),
            ResolvedAddress::Local(at) => {
                let base = local_base(self.cx, self.w);
                // SAFETY: `resolve` has checked the access.
                Ok(unsafe { local_read(base, at, lane, bytes) })
            }
        }
    }

    fn load_shared(&mut self, addresses: &[u64], lines: &mut [u128]) -> bool {
        const SIZE: u64 = size_of::<u128>() as u64;
        let window = match self.space {
            MemSpace::Shared => 0,
            MemSpace::Generic => windows().shared,
            _ => return false,
        };
        let block = &self.cx.block;
        let Some(last) = u64::from(block.shared_bytes).checked_sub(SIZE) else {
            return false;
        };
        let offset = |address: &u64| address.wrapping_sub(window);
        let refused = |at: u64| at > last || !at.is_multiple_of(SIZE);
        let any_refused = addresses
            .iter()
            .fold(false, |any, a| any | refused(offset(a)));
        if M::CHECKS || any_refused {
            return false;
        }
        let base = block.shared() as u64;
        for (address, line) in addresses.iter().zip(lines) {
            // SAFETY: the line lies in shared memory, and is aligned to its size.
            *line = unsafe { host::read(base + offset(address), SIZE as u32) };
        }
        true
    }

    fn store(
        &mut self,
        lane: usize,
        address: u64,
        bytes: u32,
        value: u128,
    ) -> Result<(), Box<LaneFault>> {
        match self.resolve(lane, address, bytes, AccessKind::Store)? {
            // SAFETY: `resolve` has checked the access.
            ResolvedAddress::Host(p) => unsafe { host::write(p, bytes, value) },
            ResolvedAddress::Local(at) => {
                let base = local_base(self.cx, self.w);
                // SAFETY: `resolve` has checked the access.
                unsafe { local_write(base, at, lane, bytes, value) };
            }
        }
        Ok(())
    }
}
