//! The interpreter's loop: one warp, until it waits, exits, has run long enough or faults.

use std::sync::atomic::{Ordering, fence};

use super::block::BlockCore;
use super::grid::{Run, WorkerState};
use super::memory::{fast, general};
use super::memory::{splat32, splat64};
use super::warp::{ALL, FUEL, LANES, SPIN_COST, State, Warp};
use super::{atomics, builtins, calls, collectives, mbarrier, texture};
use crate::engine::address_windows;
use crate::engine::fault_report::{FaultKind, LaneFault, What};
use crate::engine::ops::OpArgs;
use crate::engine::program::{BACKWARD, GUARD_NOT, GUARDED, Inst, Kind, Program, SPIN, fixed};

/// Everything an instruction can reach besides its warp.
pub struct Cx<'a> {
    /// The launch.
    pub run: &'a Run<'a>,
    /// The program.
    pub program: &'a Program,
    /// The block.
    pub core: &'a mut BlockCore,
    /// The worker.
    pub worker: &'a mut WorkerState,
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No lanes are left.
    Exited,
    /// All lanes that are left wait at a block barrier.
    Waiting,
    /// It has run long enough; `true` if it waits for something in memory.
    Yield(bool),
    /// It faulted, or the launch is over.
    Fault,
}

/// Result of an instruction.
pub type Done = Result<(), Box<LaneFault>>;

/// A fault with a text.
#[cold]
pub fn fault(kind: FaultKind, mask: u32, text: impl Into<String>) -> Box<LaneFault> {
    Box::new(LaneFault {
        kind,
        lane: mask.trailing_zeros().min(31),
        what: What::Text(text.into()),
    })
}

/// Runs `w` in the best version for this machine.
///
/// # Safety
/// The warp has a register file of the program's size and belongs to the block of `cx`.
pub unsafe fn run_warp(cx: &mut Cx<'_>, w: &mut Warp) -> Stop {
    #[cfg(target_arch = "x86_64")]
    if cx.worker.v3 {
        // SAFETY: the machine has these features; the rest is the caller's promise.
        return unsafe { run_v3(cx, w) };
    }
    // SAFETY: the caller's promise.
    unsafe { run_body::<false>(cx, w) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn run_v3(cx: &mut Cx<'_>, w: &mut Warp) -> Stop {
    // SAFETY: the caller's promise.
    unsafe { run_body::<true>(cx, w) }
}

/// Raises a fault at `pc`.
#[cold]
#[inline(never)]
fn raise(cx: &mut Cx<'_>, w: &Warp, pc: u32, f: &LaneFault) -> Stop {
    cx.run.raise(cx.core, w.index, pc, f);
    Stop::Fault
}

#[inline(always)]
unsafe fn run_body<const V3: bool>(cx: &mut Cx<'_>, w: &mut Warp) -> Stop {
    let code = cx.program.code.as_ptr();
    if !w.started {
        w.begin(cx.program, cx.run.block);
    }
    let regs = w.regs;
    let mut pc = w.pc;
    let mut mask = w.mask;

    // The running fragment has changed in the warp: read it again.
    macro_rules! reload {
        () => {{
            pc = w.pc;
            mask = w.mask;
        }};
    }
    // The running fragment is gone: the next one, or stop.
    macro_rules! pick_or {
        ($stop:expr) => {{
            if w.pick() {
                reload!();
                continue;
            }
            return $stop;
        }};
    }
    macro_rules! check {
        ($done:expr) => {
            if let Err(f) = $done {
                return raise(cx, w, pc, &f);
            }
        };
    }
    // A jump of the whole fragment.
    macro_rules! jump {
        ($inst:expr, $to:expr) => {{
            let to: u32 = $to;
            if $inst.flags & BACKWARD != 0 {
                w.fuel -= if $inst.flags & SPIN != 0 {
                    SPIN_COST
                } else {
                    1
                };
                if w.fuel <= 0 {
                    w.pc = to;
                    w.mask = mask;
                    if let Some(stop) = look_around(cx, w, $inst.flags & SPIN != 0) {
                        return stop;
                    }
                    reload!();
                    continue;
                }
            }
            if !w.frags.is_empty() {
                w.settle(to, mask);
                reload!();
            } else {
                pc = to;
            }
            continue;
        }};
    }

    if mask == 0 {
        if !w.pick() {
            return if w.live == 0 {
                Stop::Exited
            } else {
                Stop::Waiting
            };
        }
        reload!();
    }

    loop {
        // SAFETY: every function ends in `Kind::End`, which never falls through, and branch targets lie in the code.
        let inst: &Inst = unsafe { &*code.add(pc as usize) };
        let mut m = mask;
        if inst.kind == Kind::Alu && inst.flags & GUARDED == 0 {
            // SAFETY: all places of a decoded instruction lie in the register file.
            unsafe { (inst.run)(regs, &inst.args, m) };
            pc += 1;
            if pc >= w.stop {
                w.settle(pc, mask);
                reload!();
            }
            continue;
        }
        if inst.flags & GUARDED != 0 {
            // SAFETY: the guard is a place of the register file.
            let p = unsafe { *regs.add(inst.guard as usize).cast::<u32>() };
            m &= if inst.flags & GUARD_NOT != 0 { !p } else { p };
            if m == 0 && !matches!(inst.kind, Kind::Call | Kind::CallIndirect) {
                pc += 1;
                if pc >= w.stop {
                    w.settle(pc, mask);
                    reload!();
                }
                continue;
            }
        }
        // SAFETY: all places of a decoded instruction lie in the register file.
        unsafe {
            match inst.kind {
                Kind::Alu => (inst.run)(regs, &inst.args, m),
                Kind::Bra => {
                    if m == mask {
                        jump!(inst, inst.target);
                    }
                    let next = pc + 1;
                    if inst.flags & BACKWARD != 0 {
                        w.fuel -= if inst.flags & SPIN != 0 { SPIN_COST } else { 1 };
                    }
                    w.split(mask, m, inst.target, next);
                    if w.fuel <= 0
                        && let Some(stop) = look_around(cx, w, inst.flags & SPIN != 0)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                Kind::LdGlobal4 => check!(fast::ld_simple::<4, 4, V3>(cx, w, regs, inst, m)),
                Kind::LdGlobal8 => check!(fast::ld_simple::<8, 8, V3>(cx, w, regs, inst, m)),
                Kind::StGlobal4 => check!(fast::st_simple::<4, 4, V3>(cx, w, regs, inst, m)),
                Kind::StGlobal8 => check!(fast::st_simple::<8, 8, V3>(cx, w, regs, inst, m)),
                Kind::LdShared4 => check!(fast::ld_shared4(cx, regs, inst, m)),
                Kind::StShared4 => check!(fast::st_shared4(cx, regs, inst, m)),
                Kind::Ld => check!(general::load(cx, w, regs, inst, m)),
                Kind::St => check!(general::store(cx, w, regs, inst, m)),
                Kind::Atom => check!(atomics::atomic(cx, w, regs, inst, m)),
                Kind::Texture => check!(texture::run(cx, regs, inst, m)),
                Kind::Mbarrier => check!(mbarrier::run(cx, regs, inst, m)),
                Kind::PendingCount => mbarrier::pending_count(regs, inst, m),
                Kind::CpAsync => check!(general::cp_async(cx, w, regs, inst, m)),
                Kind::BrxIdx => {
                    let table = &cx.program.tables[inst.target as usize];
                    let index = regs.add(inst.args.src[0] as usize).cast::<u32>();
                    if table.is_empty() {
                        let f = fault(FaultKind::InvalidPc, m, "an empty list of targets");
                        return raise(cx, w, pc, &f);
                    }
                    let rest = mask & !m;
                    if rest != 0 {
                        w.park(pc + 1, rest, State::Ready);
                    }
                    let mut left = m;
                    while left != 0 {
                        let i = *index.add(left.trailing_zeros() as usize);
                        let mut group = 0;
                        for l in 0..LANES {
                            group |= u32::from(*index.add(l) == i) << l;
                        }
                        group &= left;
                        left &= !group;
                        let to = table[(i as usize).min(table.len() - 1)];
                        w.park(to, group, State::Ready);
                        if to <= pc {
                            w.fuel -= 1;
                        }
                    }
                    w.pick();
                    if w.fuel <= 0
                        && let Some(stop) = look_around(cx, w, false)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                Kind::Call | Kind::CallIndirect => {
                    if m != mask {
                        // Lanes that do not call skip the copying of results too.
                        w.park(pc + 2, mask & !m, State::Ready);
                    }
                    if m != 0 {
                        w.fuel -= 1;
                        check!(calls::call(cx, w, regs, inst, pc, m));
                    }
                    w.pick();
                    if w.fuel <= 0
                        && let Some(stop) = look_around(cx, w, false)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                Kind::AfterCall => calls::after_call(cx, w, regs, inst, m),
                Kind::Builtin => check!(builtins::builtin(cx, w, regs, inst, pc, m)),
                Kind::Ret | Kind::End => {
                    if m == w.live && w.calls.is_none() {
                        exit(cx, w, m);
                        return Stop::Exited;
                    }
                    let rest = mask & !m;
                    if rest != 0 {
                        w.park(pc + 1, rest, State::Ready);
                    }
                    let gone = calls::ret(w, regs, m);
                    exit(cx, w, gone);
                    pick_or!(if w.live == 0 {
                        Stop::Exited
                    } else {
                        Stop::Waiting
                    });
                }
                Kind::Exit => {
                    let rest = mask & !m;
                    if rest != 0 {
                        w.park(pc + 1, rest, State::Ready);
                    }
                    exit(cx, w, m);
                    pick_or!(if w.live == 0 {
                        Stop::Exited
                    } else {
                        Stop::Waiting
                    });
                }
                Kind::Trap => {
                    let f = fault(FaultKind::Trap, m, "the kernel asked for it");
                    return raise(cx, w, pc, &f);
                }
                Kind::Bar => match collectives::barrier(cx, w, regs, inst, pc, m) {
                    Ok(collectives::Bar::Continue) => {}
                    Ok(collectives::Bar::Wait(state)) => {
                        if mask != m {
                            w.park(pc + 1, mask & !m, State::Ready);
                        }
                        w.park(pc, m, state);
                        pick_or!(Stop::Waiting);
                    }
                    Err(f) => return raise(cx, w, pc, &f),
                },
                Kind::BarWarp
                | Kind::Shfl
                | Kind::Vote
                | Kind::Match
                | Kind::Redux
                | Kind::Elect => {
                    let done = collectives::run(cx, w, regs, inst, pc, m);
                    if done != m {
                        // The groups that are complete go on; the others are parked.
                        let on = mask & !m | done;
                        if on != 0 {
                            w.park(pc + 1, on, State::Ready);
                        }
                        pick_or!(Stop::Waiting);
                    }
                }
                Kind::ActiveMask => splat32(regs, inst.args.dst[0], m, m),
                Kind::Fence => fence(Ordering::SeqCst),
                Kind::Special => special(cx, regs, inst, m),
                Kind::FrameAddr => {
                    let frame = regs.add(fixed::FRAME as usize).cast::<u32>();
                    let dst = regs.add(inst.args.dst[0] as usize).cast::<u64>();
                    for l in 0..LANES {
                        *dst.add(l) = u64::from(*frame.add(l)).wrapping_add(inst.imm as u64);
                    }
                }
                Kind::IsSpace => is_space(cx, regs, inst, m),
                Kind::Nanosleep => {
                    w.fuel -= SPIN_COST;
                    let ns = *regs
                        .add(inst.args.src[0] as usize)
                        .cast::<u32>()
                        .add(m.trailing_zeros() as usize);
                    if ns >= 10_000 {
                        // Bounded by the manual at a millisecond.
                        std::thread::sleep(std::time::Duration::from_nanos(u64::from(
                            ns.min(1_000_000),
                        )));
                    } else {
                        std::thread::yield_now();
                    }
                }
                Kind::Alloca => check!(calls::alloca(cx, regs, inst, m)),
                Kind::StackSave => calls::stack_save(regs, inst, m),
                Kind::StackRestore => calls::stack_restore(regs, inst, m),
            }
        }
        pc += 1;
        if pc >= w.stop {
            w.settle(pc, mask);
            reload!();
        }
    }
}

/// Out of fuel: is the launch over, should another fragment, warp or block have its turn?
#[cold]
#[inline(never)]
fn look_around(cx: &mut Cx<'_>, w: &mut Warp, spin: bool) -> Option<Stop> {
    w.fuel = FUEL;
    w.slow += 1;
    if cx.run.is_over() {
        return Some(Stop::Fault);
    }
    let turn = spin || w.slow.is_multiple_of(64);
    if !turn {
        let (pc, mask) = (w.pc, w.mask);
        w.settle(pc, mask);
        return None;
    }
    let (pc, mask) = (w.pc, w.mask);
    if !w.rotate(pc, mask) {
        w.settle(pc, mask);
    }
    Some(Stop::Yield(spin))
}

/// Lanes `gone` have exited.
fn exit(cx: &mut Cx<'_>, w: &mut Warp, gone: u32) {
    if gone != 0 {
        w.remove(gone);
        cx.core.live_threads -= gone.count_ones().min(cx.core.live_threads);
        if !cx.program.bars.is_empty() {
            cx.core.threads_exited();
        }
    }
}

unsafe fn special(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32) {
    let clock = cx.run.clock();
    let now = || {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64)
    };
    let at = inst.args.dst[0];
    // SAFETY: the destination has the width of the special register.
    unsafe {
        match inst.aux {
            0 => splat32(regs, at, clock as u32, m),
            1 => splat32(regs, at, (clock >> 32) as u32, m),
            2 => splat64(regs, at, clock, m),
            3 => splat64(regs, at, now(), m),
            4 => splat32(regs, at, now() as u32, m),
            _ => splat32(regs, at, (now() >> 32) as u32, m),
        }
    }
}

unsafe fn is_space(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32) {
    let win = address_windows::windows();
    let inside = |a: u64, base: u64, size: u64| a.wrapping_sub(base) < size;
    let mut bits = 0u32;
    for l in 0..LANES {
        // SAFETY: the source is a 64-bit slot.
        let a = unsafe { *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l) };
        let shared = inside(a, win.shared, address_windows::WINDOW);
        let local = inside(a, win.local, address_windows::WINDOW);
        let (param, bytes) = cx.run.param_bank();
        let yes = match inst.aux {
            1 => shared,
            2 => local,
            3 => cx
                .program
                .const_ranges
                .iter()
                .any(|&(b, s)| inside(a, b, s)),
            4 => inside(a, param, bytes),
            _ => !shared && !local,
        };
        bits |= u32::from(yes) << l;
    }
    // SAFETY: the destination is a predicate slot.
    unsafe {
        let p = regs.add(inst.args.dst[0] as usize).cast::<u32>();
        *p = (*p & !m) | (bits & m);
    }
}

/// Runs prologue instructions: all lanes, no control flow.
///
/// # Safety
/// `regs` is a register file of the program the instructions belong to.
pub unsafe fn run_prologue(list: &[Inst], regs: *mut u8) {
    for i in list {
        if i.kind == Kind::Alu {
            let args: &OpArgs = &i.args;
            // SAFETY: the caller's promise.
            unsafe { (i.run)(regs, args, ALL) };
        }
    }
}
