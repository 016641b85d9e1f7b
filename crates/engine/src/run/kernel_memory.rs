//! The memory of a thread that calls the device runtime, and the calls.

use super::builtins::{HEAP_ALIGNMENT, free, malloc, peek};
use super::context::{Context, fault};
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{ResolvedAddress, host, local_base, local_write_bytes, resolve};
use super::warp::Warp;
use crate::bytecode::Inst;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::MemSpace;
use crate::runtime_calls::{KernelMemory, RuntimeCall, RuntimeFault, RuntimeFunction};

/// Generic memory as the lane of an instruction sees it.
struct LaneMemory<'c, 'a, M: MemoryModel> {
    cx: &'c mut Context<'a, M>,
    warp: &'c mut Warp,
    inst: &'c Inst,
    lane: u32,
    /// The fault of the access that was refused.
    refused: Option<Box<LaneFault>>,
}

/// The largest power of two up to 8 that divides `address`, and fits in `left` bytes.
fn chunk(address: u64, left: usize) -> u32 {
    let aligned = 1 << address.trailing_zeros().min(3);
    let fits = 1 << left.max(1).ilog2().min(3);
    aligned.min(fits)
}

impl<M: MemoryModel> KernelMemory for LaneMemory<'_, '_, M> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), RuntimeFault> {
        let mut at = 0;
        while at < bytes.len() {
            let from = address.wrapping_add(at as u64);
            let size = chunk(from, bytes.len() - at);
            let value = peek(self.cx, self.warp, self.inst, self.lane, from, size);
            let value = value.map_err(|f| {
                self.refused = Some(f);
                RuntimeFault::Access
            })?;
            let size = size as usize;
            bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            at += size;
        }
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), RuntimeFault> {
        let mut at = 0;
        while at < bytes.len() {
            let to = address.wrapping_add(at as u64);
            let size = chunk(to, bytes.len() - at);
            let part = &bytes[at..at + size as usize];
            self.poke(to, part).map_err(|f| {
                self.refused = Some(f);
                RuntimeFault::Access
            })?;
            at += size as usize;
        }
        Ok(())
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        malloc(self.cx, bytes, HEAP_ALIGNMENT)
    }

    fn free(&mut self, address: u64) -> bool {
        address == 0 || free(self.cx, address)
    }
}

impl<M: MemoryModel> LaneMemory<'_, '_, M> {
    /// Writes up to 8 bytes to an aligned address.
    fn poke(&mut self, to: u64, bytes: &[u8]) -> Result<(), Box<LaneFault>> {
        let size = bytes.len() as u32;
        let admitted = admit(self.cx, self.inst, 1 << self.lane, || {
            AccessRequest::of_lane(MemSpace::Generic, to, size, AccessKind::Store)
        })?;
        let (lane, space) = (self.lane, MemSpace::Generic);
        match resolve(self.cx, admitted, space, 255, lane, to, size, size, true)? {
            // SAFETY: `resolve` has checked the range.
            ResolvedAddress::Host(p) => unsafe { host::copy_in(bytes, p) },
            ResolvedAddress::Local(o) => {
                let mut word = [0; 16];
                word[..bytes.len()].copy_from_slice(bytes);
                let base = local_base(self.cx, self.warp);
                // SAFETY: `resolve` has checked the range.
                unsafe {
                    local_write_bytes(base, o, lane as usize, size, u128::from_le_bytes(word));
                }
            }
        }
        Ok(())
    }
}

/// Executes a call of the device runtime for one lane.
pub fn call<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    warp: &mut Warp,
    inst: &Inst,
    lane: u32,
    function: RuntimeFunction,
    per_thread_stream: bool,
    args: &[u64],
) -> Result<u64, Box<LaneFault>> {
    let Some(runtime) = cx.launch.runtime else {
        let text = format!("cuda{}: the launch has no device runtime", function.name());
        return Err(fault(FaultKind::IllegalInstruction, 1 << lane, text));
    };
    let launch = cx.launch;
    let at = cx.block.coordinates(launch.block, warp.index, lane).block;
    let blocks = |a: usize| u64::from(launch.clusters[a]) * u64::from(launch.cluster[a]);
    let [x, y, z] = at.map(u64::from);
    let call = RuntimeCall {
        function,
        per_thread_stream,
        block: (z * blocks(1) + y) * blocks(0) + x,
        thread: warp.index * 32 + lane,
        args,
    };
    let mut memory = LaneMemory {
        cx,
        warp,
        inst,
        lane,
        refused: None,
    };
    let outcome = runtime.call(&call, &mut memory);
    let refused = memory.refused;
    match outcome {
        Ok(value) => Ok(value),
        Err(RuntimeFault::Other(kind, text)) => Err(fault(kind, 1 << lane, text)),
        Err(RuntimeFault::Access) => Err(refused.unwrap_or_else(|| {
            let text = format!("cuda{}: an access was refused", function.name());
            fault(FaultKind::IllegalAddress, 1 << lane, text)
        })),
    }
}
