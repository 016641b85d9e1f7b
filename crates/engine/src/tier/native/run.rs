//! Runs machine code for the warps of a block.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bytecode::{GUARDED, InstKind, NativeCode, NativeEntry, Program};
use crate::run::atomics;
use crate::run::context::Context;
use crate::run::memory::model::MemoryModel;
use crate::run::memory::{general, local_base};
use crate::run::native_context::{Chunk, NativeContext};
use crate::run::tier::Together;
use crate::run::warp::{FUEL, FragmentState, Warp};
use crate::run::warp_collectives;

/// The type of [`NativeEntry::enter`](crate::bytecode::NativeEntry::enter).
type EnterFn = unsafe extern "sysv64" fn(*mut NativeContext);

/// What [`run`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The warp has a running fragment at an instruction of the interpreter.
    Running,
    /// No fragment of the warp can run.
    Stopped,
    /// The machine code has not executed any instruction.
    Refused,
}

/// Lists the chunks of a warp with lanes of `mask`.
///
/// # Safety
/// The warp has a register file.
unsafe fn list<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    native: &NativeCode,
    w: &mut Warp,
    mask: u32,
) {
    let local = match native.accesses_local {
        true => local_base(cx, w),
        false => std::ptr::null_mut(),
    };
    let chunks = &mut cx.worker.chunks;
    let indices = &cx.launch.thread_indices[w.index as usize];
    for first in (0..32).step_by(native.lanes) {
        let lanes = mask >> first & native.all_lanes();
        if lanes == 0 {
            continue;
        }
        // SAFETY: the offsets lie in the register file, which is larger than its fixed locations.
        let (regs32, regs64, preds) = unsafe {
            (
                w.regs.add(4 * first),
                w.regs.add(8 * first),
                w.regs.add(first / 8),
            )
        };
        chunks.push(Chunk {
            regs32,
            regs64,
            preds,
            indices: &raw const indices[0].0[first],
            local: local.wrapping_add(4 * first),
            warp: std::ptr::from_mut(w).cast(),
            first_lane: first as u32,
            lanes,
            pc: 0,
            there: 0,
            peer: match (w.live & mask, first) {
                _ if native.lanes != 16 => 0,
                (u32::MAX, 0) => size_of::<Chunk>() as i64,
                (u32::MAX, _) => -(size_of::<Chunk>() as i64),
                _ => 0,
            },
            resume: 0,
            waits: u32::MAX,
            left: 0,
        });
    }
}

/// Where the chunks are after a run, and how much fuel the one that took most has left.
struct Ran {
    meeting: Option<u32>,
    left: i32,
    /// Number of chunks that have run.
    count: usize,
}

/// Runs the listed chunks `range` from an entry until each is at an instruction of the interpreter. Lanes that wait at blocks are
/// parked.
///
/// # Safety
/// The chunks belong to warps of the block of `cx`, whose lanes are at the entry. Their warps have no fragments with lower
/// positions than `stop`, if it is given.
unsafe fn run_chunks<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    native: &NativeCode,
    entry: &NativeEntry,
    fuel: i32,
    stop: Option<u32>,
    exclusive: bool,
    range: Range<usize>,
) -> Ran {
    let n: *mut NativeContext = &raw mut **cx.worker.native.get_or_insert_default();
    let chunks = cx.worker.chunks.as_mut_ptr_range();
    let mut together = true;
    // SAFETY: the context is valid, and only this function, the code and `execute` access it. The code accesses the register
    // files of the warps, shared memory, and memory that it has checked with the region cache.
    unsafe {
        (*n).shared = cx.block.shared();
        (*n).shared_bytes = u64::from(cx.block.shared_bytes);
        (*n).local_bytes = u64::from(cx.launch.local_bytes);
        (*n).shared_by_cluster = u32::from(!cx.block.cluster.shared.is_empty());
        (*n).cache = cx.worker.cache.entries().cast();
        (*n).blocks = native.blocks.as_ptr().add(entry.blocks as usize);
        (*n).execute = Some(execute::<M>);
        (*n).stop = stop.unwrap_or(u32::MAX);
        (*n).cx = std::ptr::from_mut(cx).cast();
        (*n).entry = match stop {
            None => entry.full,
            Some(_) => entry.masked,
        };
        (*n).masked_entry = entry.masked;
        (*n).differences = 0;
        (*n).meeting = u32::MAX;
        (*n).exclusive = exclusive.into();
        (*n).fuel = fuel;
        (*n).least = fuel;
        (*n).returns = 0;
        let end = chunks.start.add(range.end);
        if entry.pairs {
            for k in range.clone() {
                let c = &mut *chunks.start.add(k);
                (c.resume, c.waits, c.left) = ((*n).entry, u32::MAX, fuel);
            }
        }
        (*n).chunk = chunks.start.add(range.start);
        (*n).end = end;
        let enter = std::mem::transmute::<u64, EnterFn>(entry.enter);
        while (*n).chunk != end {
            (*n).pending = 0;
            enter(n);
            if (*n).pending != 0 {
                let chunk = (*n).exited;
                park_waiting(&mut *n, &*chunk, native, entry.blocks);
                together = false;
                // The peer goes on before the code may return for good.
                if entry.pairs
                    && (*chunk).peer != 0
                    && chunk.wrapping_byte_offset((*chunk).peer as isize) == (*n).chunk
                {
                    continue;
                }
            }
            (*n).returns = 0;
            if exclusive {
                break;
            }
        }
        together &= (*n).differences == 0;
        Ran {
            meeting: together.then_some((*n).meeting),
            left: (*n).least,
            count: (*n).chunk.offset_from(chunks.start) as usize,
        }
    }
}

/// Runs the lanes `mask` of a warp from an entry until each is at an instruction of the interpreter. Backward branches take
/// fuel.
///
/// # Safety
/// The warp is at the entry, position `from`, has a register file of the program, and belongs to the block of `cx`.
pub unsafe fn run<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    w: &mut Warp,
    native: &NativeCode,
    entry: u32,
    from: u32,
    mask: u32,
) -> Outcome {
    let entry = &native.entries[entry as usize];
    let alone = w.fragments.is_empty();
    // The interpreter looks for fragments to merge with at every backward branch.
    let below = !alone && w.fragments.iter().any(|f| f.pc <= from);
    let fuel = if below { 1 } else { w.fuel };
    cx.worker.chunks.clear();
    cx.worker.chunks_in_turn = None;
    // SAFETY: upheld by the caller.
    unsafe { list(cx, native, w, mask) };
    let whole = cx
        .worker
        .chunks
        .iter()
        .all(|c| c.lanes == native.all_lanes());
    if entry.masked == 0 && !(alone && whole) {
        return Outcome::Refused;
    }
    let stop = (!alone).then_some(w.next_merge);
    let count = cx.worker.chunks.len();
    // SAFETY: upheld by the caller.
    let ran = unsafe { run_chunks(cx, native, entry, fuel, stop, false, 0..count) };
    w.fuel -= fuel - ran.left;
    if let Some(pc) = ran.meeting {
        if pc == from && ran.left == fuel {
            // The first instruction faults, or is a branch that only the interpreter can execute.
            return Outcome::Refused;
        }
        w.pc = pc;
        w.mask = mask;
        if pc >= w.next_merge || below {
            w.reconverge(pc, mask);
        }
        return Outcome::Running;
    }
    w.mask = 0;
    for c in &cx.worker.chunks {
        if c.there != 0 {
            w.park(c.pc, c.there << c.first_lane, FragmentState::Ready);
        }
    }
    match w.resume_next() {
        true => Outcome::Running,
        false => Outcome::Stopped,
    }
}

/// Runs all lanes of `warps`, which are at `from`, as far as machine code goes. `again` says that the last call was for the same
/// warps.
///
/// # Safety
/// The warps have register files of the program, no fragments, and belong to the block of `cx`.
pub unsafe fn run_together<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    warps: &mut [Warp],
    native: &NativeCode,
    from: u32,
    again: bool,
) -> Together {
    let mut at = from;
    if !again {
        cx.worker.chunks.clear();
        cx.worker.chunks_in_turn = None;
        for w in warps.iter_mut() {
            // SAFETY: upheld by the caller.
            unsafe { list(cx, native, w, w.live) };
        }
    }
    loop {
        let inst = &native.code[at as usize];
        if inst.kind != InstKind::Native {
            return Together::At(at);
        }
        let entry = &native.entries[inst.target as usize];
        if entry.masked == 0
            && cx
                .worker
                .chunks
                .iter()
                .any(|c| c.lanes != native.all_lanes())
        {
            return Together::At(at);
        }
        let count = cx.worker.chunks.len();
        // SAFETY: upheld by the caller; the lanes are at `at`.
        let ran = unsafe { run_chunks(cx, native, entry, FUEL, None, false, 0..count) };
        let Some(pc) = ran.meeting else {
            break;
        };
        if ran.left > 0 {
            return Together::At(pc);
        }
        if cx.launch.is_stopped() {
            return Together::Stopped;
        }
        at = pc;
    }
    for w in warps.iter_mut() {
        let own = std::ptr::from_mut(w).cast();
        park(w, cx.worker.chunks.iter().filter(|c| c.warp == own));
    }
    Together::Parted
}

/// Parks the lanes of the chunks of a warp where they are.
fn park<'c>(w: &mut Warp, chunks: impl Iterator<Item = &'c Chunk>) {
    for c in chunks {
        if c.there != 0 {
            w.mask = c.there << c.first_lane;
            w.park(c.pc, w.mask, FragmentState::Ready);
        }
    }
    w.mask = 0;
}

/// Runs the first warps of `warps` from the start of the kernel to its end, one after the other, with the same register file.
/// Returns how many have ended, and whether the one after them has run to an instruction of the interpreter.
///
/// # Safety
/// The warps have not started; they have the same register file of the program, and belong to the block of `cx`.
pub unsafe fn run_in_turn<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    warps: &mut [Warp],
    native: &NativeCode,
) -> (usize, bool) {
    let first = &native.code[0];
    if first.kind != InstKind::Native {
        return (0, false);
    }
    let entry = &native.entries[first.target as usize];
    // The list of the last block serves again if the warps and their register file are the same. Another block may have warps at
    // the same addresses, but with other local memory.
    let list_for = Some((
        std::ptr::from_mut(&mut warps[0]) as usize,
        warps[0].regs as usize,
        native.lanes,
    ));
    if cx.worker.chunks_in_turn != list_for || native.accesses_local {
        cx.worker.chunks.clear();
        for w in warps.iter_mut() {
            // SAFETY: upheld by the caller.
            unsafe { list(cx, native, w, w.live) };
        }
        cx.worker.chunks_in_turn = list_for;
    }
    if entry.masked == 0
        && cx
            .worker
            .chunks
            .iter()
            .any(|c| c.lanes != native.all_lanes())
    {
        return (0, false);
    }
    let mut next = 0;
    let mut current = 0;
    let count = cx.worker.chunks.len();
    while next < count {
        // SAFETY: upheld by the caller. A chunk that is not at the end is the last one that uses the register file.
        let ran = unsafe { run_chunks(cx, native, entry, FUEL, None, true, next..count) };
        next = ran.count;
        let c = &cx.worker.chunks[next - 1];
        let ended = |c: &Chunk| c.there == c.lanes && ends(cx.program, c.pc);
        // Chunks that take turns end together.
        let other = (entry.pairs && c.peer != 0).then(|| &cx.worker.chunks[next - 2]);
        if ended(c) && other.is_none_or(ended) {
            continue;
        }
        let warp = c.warp;
        let of_warp = |c: &&Chunk| c.warp == warp;
        while cx.worker.chunks.get(next).as_ref().is_some_and(of_warp) {
            // SAFETY: upheld by the caller; the other chunks of the warp have their own parts of the register file.
            unsafe { run_chunks(cx, native, entry, FUEL, None, true, next..next + 1) };
            next += 1;
        }
        while std::ptr::from_mut(&mut warps[current]).cast() != warp {
            current += 1;
        }
        let own = cx.worker.chunks.iter().filter(of_warp);
        park(&mut warps[current], own);
        return (current, true);
    }
    (warps.len(), false)
}

/// Whether all lanes that are at an instruction exit there.
fn ends(program: &Program, pc: u32) -> bool {
    let inst = &program.code[pc as usize];
    inst.kind == InstKind::Ret && inst.flags & GUARDED == 0
}

/// Parks the lanes of a chunk that wait at blocks.
#[cold]
fn park_waiting(n: &mut NativeContext, c: &Chunk, native: &NativeCode, first: u32) {
    // SAFETY: the warp of the chunk lives, and the callers of `run_chunks` do not use it meanwhile.
    let w = unsafe { &mut *c.warp.cast::<Warp>() };
    while n.pending != 0 {
        let k = n.pending.trailing_zeros() as usize;
        n.pending &= n.pending - 1;
        let lanes = u32::from(std::mem::take(&mut n.waiting[k])) << c.first_lane;
        if lanes != 0 {
            w.park(
                native.positions[first as usize + k],
                lanes,
                FragmentState::Ready,
            );
        }
    }
}

/// Executes the instruction at `pc` for the lanes `mask` of the chunk, or a warp collective for all lanes of its warp. If it
/// faults or is no collective of the whole warp, the interpreter executes it again and raises the fault.
///
/// # Safety
/// `n` is the context of a running call of [`run_chunks`] with the same memory model.
unsafe extern "sysv64" fn execute<M: MemoryModel>(
    n: *mut NativeContext,
    pc: u32,
    mask: u32,
) -> u32 {
    // SAFETY: `run_chunks` has set the pointers, and nothing else uses what they lead to during the call.
    let run = || unsafe {
        let cx = &mut *(*n).cx.cast::<Context<'_, M>>();
        let chunk = &*(*n).chunk;
        let w = &mut *chunk.warp.cast::<Warp>();
        if !w.started {
            // The register file had another warp's thread indices.
            w.begin(cx.program, cx.launch);
        }
        let active = mask << chunk.first_lane;
        let inst = &cx.program.code[pc as usize];
        let regs = w.regs;
        match inst.kind {
            InstKind::Lanes => {
                (inst.run)(regs, &inst.args, active);
                Ok(())
            }
            InstKind::LdShared4 | InstKind::LdGlobal4 | InstKind::LdGlobal8 | InstKind::Ld => {
                general::load(cx, w, regs, inst, active)
            }
            InstKind::Atom => atomics::atomic(cx, w, regs, inst, active),
            InstKind::Match | InstKind::Redux | InstKind::Elect => {
                match warp_collectives::step_whole(cx, w, pc) {
                    true => Ok(()),
                    false => return None,
                }
            }
            _ => general::store(cx, w, regs, inst, active),
        }
        .ok()
    };
    // A panic cannot pass machine code. The interpreter meets it again.
    let result = catch_unwind(AssertUnwindSafe(run));
    u32::from(!matches!(result, Ok(Some(()))))
}
