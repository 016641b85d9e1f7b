//! The memory model: admits, records or refuses an access of a kernel to memory before it happens.
//!
//! An instruction calls [`admit`] before it accesses memory: once for all active lanes, or once per lane if the lanes access
//! different numbers of bytes or one after the other. Resolving an address requires the [`Admitted`] that it returns, so no
//! such access bypasses the model. The sampler passes the texels of a fetch to it, corner by corner of the filter. The model
//! does not see loads that run once per launch, and arguments on the stack.
//!
//! The checks of [`Bounds`] (regions, sizes of shared and local memory, alignment, access rights, padding) apply under
//! every model: a model can refuse more accesses, but not allow one that would leave the kernel's memory.

use cupyrite_ptx::ir::{Scope, Semantics};

use crate::address_windows::{WINDOW, windows};
use crate::bytecode::{Inst, Program};
use crate::fault::LaneFault;
use crate::kir::MemSpace;
use crate::run::context::Context;
use crate::run::lanes::{LANES, lanes};

/// Admits or refuses the memory accesses of a launch.
///
/// The value is the state of one launch: [`launch_with`](crate::launch_with) borrows it, and all worker threads use it at
/// the same time. An implementation needs no `unsafe` code and cannot compromise the process.
pub trait MemoryModel: Sync {
    /// State of a worker thread during a launch. A block may move from one worker to another while it waits.
    type Worker;

    /// Whether [`Self::check`] can refuse or record anything. If false, the engine does not call it.
    const CHECKS: bool = true;

    /// Creates the state of a worker thread before it runs its first block.
    fn begin(&self) -> Self::Worker;

    /// Admits or refuses an access of a warp. Called before any lane of the access reads or writes memory.
    ///
    /// # Errors
    /// The fault of a refused access. The launch stops with it.
    fn check(
        &self,
        worker: &mut Self::Worker,
        access: &WarpAccess<'_>,
    ) -> Result<(), Box<LaneFault>>;

    /// Receives the state of a worker thread that has run its last block.
    fn end(&self, worker: Self::Worker) {
        drop(worker);
    }
}

/// The model of [`launch`](fn@crate::launch): only the checks that apply under every model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds;

impl MemoryModel for Bounds {
    type Worker = ();
    const CHECKS: bool = false;

    fn begin(&self) {}

    #[inline(always)]
    fn check(&self, _: &mut (), _: &WarpAccess<'_>) -> Result<(), Box<LaneFault>> {
        Ok(())
    }
}

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Atomic read-modify-write: `atom`, `red`, reductions, operations on `mbarrier` objects.
    Atomic,
}

/// The memory that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateSpace {
    /// Global or constant memory, or the parameter bank. The address is the host's.
    Global,
    /// Shared memory. The address is an offset in that of the block. From 512 KiB on, it names a block of the cluster: byte
    /// `offset` of the block with rank `rank` has the address `(rank + 1) * 512 KiB + offset`.
    Shared,
    /// Local memory. The address is an offset in that of the thread.
    Local,
    /// A texel of a texture or an element of a surface; of a compressed format, its block. The address is the host's; arrays
    /// lie outside the address space.
    Texture,
}

/// The access of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAccess {
    /// Lane.
    pub lane: u32,
    /// State space; that of a generic address depends on the address.
    pub space: StateSpace,
    /// Address of the first byte. It can be invalid: the checks of [`Bounds`] may run later.
    pub address: u64,
}

/// An access as its instruction describes it.
#[derive(Clone, Copy, Debug)]
pub struct AccessRequest {
    /// State space of the addresses; `None` for a texture or surface.
    pub space: Option<MemSpace>,
    /// Addresses of all lanes.
    pub addresses: [u64; LANES],
    /// See [`WarpAccess::bytes`].
    pub bytes: u32,
    /// See [`WarpAccess::kind`].
    pub kind: AccessKind,
    /// See [`WarpAccess::order`].
    pub order: Semantics,
    /// Scope of the order.
    pub scope: Scope,
    /// See [`WarpAccess::asynchronous`].
    pub asynchronous: bool,
}

impl AccessRequest {
    /// A weak access of this warp.
    pub fn weak(space: MemSpace, addresses: [u64; LANES], bytes: u32, kind: AccessKind) -> Self {
        Self {
            space: Some(space),
            addresses,
            bytes,
            kind,
            order: Semantics::Weak,
            scope: Scope::Gpu,
            asynchronous: false,
        }
    }

    /// A weak access of one lane.
    pub fn of_lane(space: MemSpace, address: u64, bytes: u32, kind: AccessKind) -> Self {
        Self::weak(space, [address; LANES], bytes, kind)
    }
}

/// An access of the lanes of a warp. An instruction that reads one range and writes another, such as a copy, makes two.
#[derive(Clone, Copy, Debug)]
pub struct WarpAccess<'a> {
    program: &'a Program,
    space: Option<MemSpace>,
    addresses: [u64; LANES],
    scope: Scope,
    /// Position of the instruction in the program of the kernel.
    pub pc: u32,
    /// Index of the block.
    pub block: [u32; 3],
    /// Index of the warp in its block.
    pub warp: u32,
    /// Mask of the lanes that access memory.
    pub active: u32,
    /// Bytes that each of them accesses.
    pub bytes: u32,
    /// What the access does.
    pub kind: AccessKind,
    /// Memory order. A volatile access is relaxed (PTX ISA, "Volatile Operations").
    pub order: Semantics,
    /// Whether it is part of an asynchronous copy: `cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk`.
    pub asynchronous: bool,
}

impl WarpAccess<'_> {
    /// The accesses of the active lanes, lowest lane first.
    pub fn lanes(&self) -> impl Iterator<Item = LaneAccess> + '_ {
        let windows = windows();
        let space_of = move |address: u64| match self.space {
            None => (StateSpace::Texture, address),
            Some(MemSpace::Global) => (StateSpace::Global, address),
            Some(MemSpace::Shared) => (StateSpace::Shared, address),
            Some(MemSpace::Local) => (StateSpace::Local, address),
            Some(MemSpace::Generic) => {
                let shared = address.wrapping_sub(windows.shared);
                let local = address.wrapping_sub(windows.local);
                match (shared < WINDOW, local < WINDOW) {
                    (true, _) => (StateSpace::Shared, shared),
                    (_, true) => (StateSpace::Local, local),
                    _ => (StateSpace::Global, address),
                }
            }
        };
        lanes(self.active).map(move |lane| {
            let (space, address) = space_of(self.addresses[lane]);
            LaneAccess {
                lane: lane as u32,
                space,
                address,
            }
        })
    }

    /// The opcode of the instruction with its modifiers.
    pub fn opcode(&self) -> &str {
        self.program.origin(self.pc).map_or("", |o| &o.opcode)
    }

    /// Scope of the order; `None` for a weak access.
    pub fn scope(&self) -> Option<Scope> {
        if self.order == Semantics::Weak {
            return None;
        }
        Some(self.scope)
    }
}

/// Proof that the model has admitted an access.
#[derive(Clone, Copy, Debug)]
pub struct Admitted(());

/// Asks the model to admit an access of `inst` by the lanes `active`. Without active lanes, there is no access to admit.
///
/// # Errors
/// The fault of a refused access.
#[inline(always)]
pub fn admit<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    inst: &Inst,
    active: u32,
    request: impl FnOnce() -> AccessRequest,
) -> Result<Admitted, Box<LaneFault>> {
    if M::CHECKS && active != 0 {
        let request = request();
        // Handlers receive the instruction itself, not a copy.
        let code = cx.program.code.as_ptr_range();
        debug_assert!(code.contains(&std::ptr::from_ref(inst)));
        let offset = std::ptr::from_ref(inst).addr() - code.start.addr();
        let access = WarpAccess {
            program: cx.program,
            space: request.space,
            addresses: request.addresses,
            scope: request.scope,
            pc: (offset / size_of::<Inst>()) as u32,
            block: cx.block.index,
            warp: cx.warp,
            active,
            bytes: request.bytes,
            kind: request.kind,
            order: request.order,
            asynchronous: request.asynchronous,
        };
        cx.model.check(&mut cx.worker.model, &access)?;
    }
    Ok(Admitted(()))
}
