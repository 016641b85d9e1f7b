//! Functions that the device provides to kernels: `vprintf`, `__assertfail`, `malloc`, aligned `malloc`, `free`,
//! `cudaGraphSetConditional`, `cudaGraphLaunch`, and those of the device runtime.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::context::{Context, ExecResult, fault};
use super::kernel_memory;
use super::lanes::lanes;
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{
    ResolvedAddress, get, host, local_base, local_read_bytes, local_write, resolve, set,
};
use super::printf;
use super::warp::Warp;
use crate::bytecode::Inst;
use crate::conditions;
use crate::fault::{FaultKind, LaneFault};
use crate::kir::{BuiltinArg, BuiltinKind, BuiltinOp, MemSpace, Reg};
use crate::memory::{Reach, Region, RegionKind};
use crate::register_file::fixed;
use crate::runtime_calls::MAX_RUNTIME_WORDS;

/// Owner number of device-side heap blocks.
pub const HEAP_OWNER: u64 = u64::MAX;
/// Alignment of what device-side `malloc` returns, in bytes.
pub(super) const HEAP_ALIGNMENT: u64 = 16;
/// Bytes that device-side `malloc` has allocated in this process.
static HEAP_USED: AtomicU64 = AtomicU64::new(0);
/// Maximum length of a string that a kernel passes, in bytes.
pub(super) const LONGEST: usize = 64 << 10;

/// Executes a call of such a function for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn builtin<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.builtins[inst.target as usize];
    if op.kind == BuiltinKind::AssertFail {
        // SAFETY: upheld by the caller.
        return Err(unsafe { assert_fail(cx, w, regs, inst, op, active) });
    }
    for l in lanes(active) {
        // SAFETY: upheld by the caller.
        let arg = |cx: &Context<'_, M>, w: &mut Warp, n: usize| unsafe {
            argument(cx, w, regs, op, n, l)
        };
        let result = match op.kind {
            BuiltinKind::Vprintf => {
                let (format, list) = (arg(cx, w, 0), arg(cx, w, 1));
                let text = printf::call(cx, w, inst, l as u32, format, list)?;
                match text {
                    Some((bytes, count)) => {
                        cx.launch.printf.emit(&bytes);
                        count as u64
                    }
                    None => u64::from(u32::MAX),
                }
            }
            BuiltinKind::Malloc => malloc(cx, arg(cx, w, 0), HEAP_ALIGNMENT),
            BuiltinKind::AlignedMalloc => {
                let (size, alignment) = (arg(cx, w, 0), arg(cx, w, 1));
                malloc(cx, size, alignment)
            }
            BuiltinKind::Free => {
                let at = arg(cx, w, 0);
                if at != 0 && !free(cx, at) {
                    let text = format!("free of {at:#x}, which device-side malloc did not return");
                    return Err(fault(FaultKind::IllegalAddress, 1 << l, text));
                }
                0
            }
            BuiltinKind::SetConditional => {
                let (handle, value) = (arg(cx, w, 0), arg(cx, w, 1));
                if !conditions::set(handle, value as u32) {
                    let text = format!(
                        "cudaGraphSetConditional: {handle:#x} is not a condition handle, or its graph is destroyed"
                    );
                    return Err(fault(FaultKind::IllegalAddress, 1 << l, text));
                }
                0
            }
            BuiltinKind::LaunchGraph => {
                /// `cudaErrorNotPermitted`: only kernels in graphs launch graphs.
                const NOT_PERMITTED: u64 = 800;
                let (graph, stream) = (arg(cx, w, 0), arg(cx, w, 1));
                cx.launch
                    .graph
                    .map_or(NOT_PERMITTED, |g| g.launch(graph, stream).into())
            }
            BuiltinKind::Runtime(function, per_thread) => {
                let mut words = [0; MAX_RUNTIME_WORDS];
                for (n, word) in words.iter_mut().enumerate().take(op.args.len()) {
                    *word = arg(cx, w, n);
                }
                let args = &words[..op.args.len().min(MAX_RUNTIME_WORDS)];
                kernel_memory::call(cx, w, inst, l as u32, function, per_thread, args)?
            }
            BuiltinKind::AssertFail => 0,
        };
        if let Some(place) = op.result {
            // SAFETY: upheld by the caller; frames lie within the stack limit.
            unsafe {
                match place {
                    BuiltinArg::Memory(at, size) => {
                        let frame = *regs.add(fixed::FRAME as usize).cast::<u32>().add(l);
                        let base = local_base(cx, w);
                        for k in 0..size.min(8) {
                            local_write(
                                base,
                                frame + at + k,
                                l,
                                1,
                                u128::from(result >> (8 * k) & 0xff),
                            );
                        }
                    }
                    BuiltinArg::Register(Reg { at, slot }) => {
                        set(regs, at, slot, l, u128::from(result))
                    }
                }
            }
        }
    }
    Ok(())
}

/// Argument `n` of a call.
unsafe fn argument(
    cx: &Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    op: &BuiltinOp,
    n: usize,
    lane: usize,
) -> u64 {
    // SAFETY: upheld by the caller; the kernel's frame lies within local memory.
    unsafe {
        match op.args.get(n) {
            Some(&BuiltinArg::Memory(at, size)) => {
                let frame = *regs.add(fixed::FRAME as usize).cast::<u32>().add(lane);
                local_read_bytes(local_base(cx, w), frame + at, lane, size.min(8)) as u64
            }
            Some(&BuiltinArg::Register(Reg { at, slot })) => get(regs, at, slot, lane) as u64,
            None => 0,
        }
    }
}

/// `free`; false for an address that is not that of an allocation on the heap.
pub(super) fn free(cx: &Context<'_, impl MemoryModel>, at: u64) -> bool {
    let is_heap = |r: &Region| r.kind == RegionKind::Internal && r.owner == HEAP_OWNER;
    let freed = cx.launch.space.free_if(at, is_heap);
    if let Ok(r) = &freed {
        HEAP_USED.fetch_sub(r.size, Ordering::Relaxed);
    }
    freed.is_ok()
}

/// `malloc` and aligned `malloc`; zero if the heap is exhausted, and for an alignment that is not a power of two.
pub(super) fn malloc(cx: &Context<'_, impl MemoryModel>, size: u64, alignment: u64) -> u64 {
    if size == 0 || !alignment.is_power_of_two() {
        return 0;
    }
    let fits = HEAP_USED
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(size)
                .filter(|&n| n <= cx.launch.heap_limit)
        })
        .is_ok();
    if !fits {
        return 0;
    }
    match cx.launch.space.alloc_owned(
        size,
        alignment.max(HEAP_ALIGNMENT),
        RegionKind::Internal,
        HEAP_OWNER,
        Reach::ALL,
    ) {
        Ok(r) => r.base,
        Err(_) => {
            HEAP_USED.fetch_sub(size, Ordering::Relaxed);
            0
        }
    }
}

/// Reads up to 8 bytes of generic memory.
pub(super) fn peek(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    inst: &Inst,
    lane: u32,
    at: u64,
    bytes: u32,
) -> Result<u64, Box<LaneFault>> {
    let admitted = admit(cx, inst, 1 << lane, || {
        AccessRequest::of_lane(MemSpace::Generic, at, bytes, AccessKind::Load)
    })?;
    match resolve(
        cx,
        admitted,
        MemSpace::Generic,
        255,
        lane,
        at,
        bytes,
        bytes,
        false,
    )? {
        ResolvedAddress::Host(p) => {
            let mut buffer = [0u8; 8];
            // SAFETY: `resolve` has checked the range.
            unsafe { host::copy_out(p, &mut buffer[..bytes as usize]) };
            Ok(u64::from_le_bytes(buffer))
        }
        ResolvedAddress::Local(o) => {
            let base = local_base(cx, w);
            // SAFETY: `resolve` has checked the range.
            Ok(unsafe { local_read_bytes(base, o, lane as usize, bytes) } as u64)
        }
    }
}

/// Reads a string that ends with a NUL.
pub(super) fn string(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    inst: &Inst,
    lane: u32,
    at: u64,
) -> Result<Vec<u8>, Box<LaneFault>> {
    let mut out = Vec::new();
    while out.len() < LONGEST {
        let c = peek(cx, w, inst, lane, at.wrapping_add(out.len() as u64), 1)? as u8;
        if c == 0 {
            break;
        }
        out.push(c);
    }
    Ok(out)
}

/// The message of a failed assertion, one line per lane, in the format of a GPU.
unsafe fn assert_fail<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    op: &BuiltinOp,
    active: u32,
) -> Box<LaneFault> {
    let mut text = String::new();
    for l in lanes(active) {
        let part = |cx: &mut Context<'_, M>, w: &mut Warp, n: usize| {
            // SAFETY: upheld by the caller.
            let at = unsafe { argument(cx, w, regs, op, n, l) };
            let s = if at == 0 {
                Ok(Vec::new())
            } else {
                string(cx, w, inst, l as u32, at)
            };
            s.map_or_else(|_| "?".into(), |s| String::from_utf8_lossy(&s).into_owned())
        };
        let (expression, file, function) = (part(cx, w, 0), part(cx, w, 1), part(cx, w, 3));
        // SAFETY: upheld by the caller.
        let line = unsafe { argument(cx, w, regs, op, 2, l) } as u32;
        let at = cx.block.coordinates(cx.launch.block, w.index, l as u32);
        let ([bx, by, bz], [tx, ty, tz]) = (at.block, at.thread);
        let _ = writeln!(
            text,
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{expression}` failed."
        );
    }
    fault(FaultKind::Assert, active, text)
}
