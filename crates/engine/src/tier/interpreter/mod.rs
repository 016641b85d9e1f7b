//! The interpreter: executes one warp until it waits, exits, yields or faults.
//!
//! [`encode`] turns KIR into [bytecode](crate::bytecode); the loop is here.

mod encode;

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

#[cfg(target_arch = "x86_64")]
use super::native::run as native;
use super::{Tier, Together, WarpStop};
use crate::address_windows;
use crate::build::{CompileError, PlacedModule};
use crate::bytecode::{BACKWARD, GUARD_NOT, GUARDED, Inst, InstKind, Program, SPIN};
use crate::fault::{FaultKind, LaneFault};
use crate::kir::Kernel;
use crate::passes::register_allocation::Allocation;
use crate::register_file::fixed;
use crate::run::context::{Context, fault};
use crate::run::lanes::{LANES, first_lane, lanes};
use crate::run::memory::model::MemoryModel;
use crate::run::memory::{fast, general, splat32, splat64};
use crate::run::warp::{FUEL, FragmentState, SPIN_COST, Warp};
use crate::run::{
    atomics, block_barrier, builtins, bulk_copy, calls, cluster_state, mbarrier, multimem,
    tensor_map, texture, warp_collectives, warp_functions,
};

/// The first tier, and the reference for the others.
#[derive(Debug)]
pub struct Interpreter;

impl Tier for Interpreter {
    type Code = Program;

    fn compile(
        kernel: Kernel,
        allocation: &Allocation,
        placed: &PlacedModule,
    ) -> Result<Program, CompileError> {
        encode::encode(kernel, allocation, placed)
    }

    unsafe fn run<M: MemoryModel>(cx: &mut Context<'_, M>, w: &mut Warp) -> WarpStop {
        // SAFETY: upheld by the caller.
        unsafe { run_warp(cx, w) }
    }

    fn during_launch<M: MemoryModel>(program: &Program, start: Instant) {
        #[cfg(target_arch = "x86_64")]
        if !M::CHECKS {
            super::native::during_launch(program, start);
        }
        let _ = (program, start);
    }

    fn runs_together<M: MemoryModel>(program: &Program) -> bool {
        !M::CHECKS && program.native.get().is_some()
    }

    unsafe fn run_together<M: MemoryModel>(
        cx: &mut Context<'_, M>,
        warps: &mut [Warp],
        from: u32,
        again: bool,
    ) -> Together {
        #[cfg(target_arch = "x86_64")]
        if let Some(code) = cx.program.native.get() {
            // SAFETY: upheld by the caller.
            return unsafe { native::run_together(cx, warps, code, from, again) };
        }
        let _ = (cx, warps, again);
        Together::At(from)
    }

    unsafe fn run_in_turn<M: MemoryModel>(
        cx: &mut Context<'_, M>,
        warps: &mut [Warp],
    ) -> (usize, bool) {
        #[cfg(target_arch = "x86_64")]
        if let Some(code) = cx.program.native.get() {
            // SAFETY: upheld by the caller.
            return unsafe { native::run_in_turn(cx, warps, code) };
        }
        let _ = (cx, warps);
        (0, false)
    }
}

/// Runs `w` with the version of the code for this machine.
///
/// # Safety
/// The warp has a register file of the program's size and belongs to the block of `cx`.
unsafe fn run_warp(cx: &mut Context<'_, impl MemoryModel>, w: &mut Warp) -> WarpStop {
    #[cfg(target_arch = "x86_64")]
    if cx.worker.v3 {
        // SAFETY: the machine has these features; the caller upholds the rest.
        return unsafe { run_v3(cx, w) };
    }
    // SAFETY: upheld by the caller.
    unsafe { run_body::<false, _>(cx, w) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn run_v3(cx: &mut Context<'_, impl MemoryModel>, w: &mut Warp) -> WarpStop {
    // SAFETY: upheld by the caller.
    unsafe { run_body::<true, _>(cx, w) }
}

/// The most nanoseconds that `nanosleep` sleeps (PTX ISA).
const LONGEST_SLEEP: u32 = 1_000_000;
/// Nanoseconds from which on a fragment sleeps: the operating system wakes threads less precisely.
const SHORTEST_SLEEP: u32 = 10_000;
/// Fuel that a shorter `nanosleep` takes from a fragment that polls.
const POLL_COST: i32 = 4 * SPIN_COST;

/// Why a warp stops in which no fragment can run.
#[cold]
fn stopped(w: &Warp) -> WarpStop {
    if w.live == 0 {
        WarpStop::Exited
    } else if w.wake_time().is_some() {
        WarpStop::Sleeping
    } else {
        WarpStop::Waiting
    }
}

/// Raises a fault at `pc`.
#[cold]
#[inline(never)]
fn raise(cx: &mut Context<'_, impl MemoryModel>, w: &Warp, pc: u32, f: &LaneFault) -> WarpStop {
    cx.launch.raise(cx.block, w.index, pc, f);
    WarpStop::Fault
}

#[inline(always)]
unsafe fn run_body<const V3: bool, M: MemoryModel>(
    cx: &mut Context<'_, M>,
    w: &mut Warp,
) -> WarpStop {
    let native_code = if M::CHECKS {
        None
    } else {
        cx.program.native.get()
    };
    let mut code = native_code.map_or(&cx.program.code, |n| &n.code).as_ptr();
    if !w.started {
        w.begin(cx.program, cx.launch);
    }
    let regs = w.regs;
    let mut pc = w.pc;
    let mut mask = w.mask;

    // Reads the running fragment back from the warp.
    macro_rules! reload {
        () => {{
            pc = w.pc;
            mask = w.mask;
        }};
    }
    // Runs the next fragment, or stops.
    macro_rules! resume_or_stop {
        () => {{
            if w.resume_next() {
                reload!();
                continue;
            }
            return stopped(w);
        }};
    }
    // Stops on a fault.
    macro_rules! check {
        ($result:expr) => {
            if let Err(f) = $result {
                return raise(cx, w, pc, &f);
            }
        };
    }
    // Branches with the whole fragment.
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
                    if let Some(stop) = out_of_fuel(cx, w, $inst.flags & SPIN != 0) {
                        return stop;
                    }
                    reload!();
                    continue;
                }
            }
            if !w.fragments.is_empty() {
                w.reconverge(to, mask);
                reload!();
            } else {
                pc = to;
            }
            continue;
        }};
    }

    if mask == 0 {
        if !w.resume_next() {
            return stopped(w);
        }
        reload!();
    }

    loop {
        // SAFETY: every function ends in an unguarded `ret`, and branch targets lie in the code.
        let inst: &Inst = unsafe { &*code.add(pc as usize) };
        let mut active = mask;
        if inst.kind == InstKind::Lanes && inst.flags & GUARDED == 0 {
            // SAFETY: the operands of a decoded instruction lie in the register file.
            unsafe { (inst.run)(regs, &inst.args, active) };
            pc += 1;
            if pc >= w.next_merge {
                w.reconverge(pc, mask);
                reload!();
            }
            continue;
        }
        if inst.flags & GUARDED != 0 {
            // SAFETY: the guard lies in the register file.
            let p = unsafe { *regs.add(inst.guard as usize).cast::<u32>() };
            active &= if inst.flags & GUARD_NOT != 0 { !p } else { p };
            if active == 0 && !matches!(inst.kind, InstKind::Call | InstKind::CallIndirect) {
                pc += 1;
                if pc >= w.next_merge {
                    w.reconverge(pc, mask);
                    reload!();
                }
                continue;
            }
        }
        // SAFETY: the operands of a decoded instruction lie in the register file.
        unsafe {
            match inst.kind {
                InstKind::Lanes => (inst.run)(regs, &inst.args, active),
                InstKind::Bra => {
                    if active == mask {
                        jump!(inst, inst.target);
                    }
                    let next = pc + 1;
                    if inst.flags & BACKWARD != 0 {
                        w.fuel -= if inst.flags & SPIN != 0 { SPIN_COST } else { 1 };
                    }
                    w.split(mask, active, inst.target, next);
                    if w.fuel <= 0
                        && let Some(stop) = out_of_fuel(cx, w, inst.flags & SPIN != 0)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                InstKind::Warp => {
                    if !warp_functions::come_together(w, inst, pc, active) {
                        if mask != active {
                            w.park(pc + 1, mask & !active, FragmentState::Ready);
                        }
                        resume_or_stop!();
                    }
                    check!(warp_functions::run(cx, w, regs, inst, active));
                }
                InstKind::LdGlobal4 => {
                    check!(fast::ld_simple::<4, 4, V3>(cx, w, regs, inst, active))
                }
                InstKind::LdGlobal8 => {
                    check!(fast::ld_simple::<8, 8, V3>(cx, w, regs, inst, active))
                }
                InstKind::StGlobal4 => {
                    check!(fast::st_simple::<4, 4, V3>(cx, w, regs, inst, active))
                }
                InstKind::StGlobal8 => {
                    check!(fast::st_simple::<8, 8, V3>(cx, w, regs, inst, active))
                }
                InstKind::LdShared4 => check!(fast::ld_shared4(cx, w, regs, inst, active)),
                InstKind::StShared4 => check!(fast::st_shared4(cx, w, regs, inst, active)),
                InstKind::Ld => check!(general::load(cx, w, regs, inst, active)),
                InstKind::St => check!(general::store(cx, w, regs, inst, active)),
                InstKind::Atom => check!(atomics::atomic(cx, w, regs, inst, active)),
                InstKind::Multimem => check!(multimem::run(cx, regs, inst, active)),
                InstKind::Texture => check!(texture::run(cx, regs, inst, active)),
                InstKind::Mbarrier => check!(mbarrier::run(cx, regs, inst, active)),
                InstKind::PendingCount => mbarrier::pending_count(regs, inst, active),
                InstKind::CpAsync => check!(general::cp_async(cx, regs, inst, active)),
                InstKind::Bulk => check!(bulk_copy::run(cx, regs, inst, active)),
                InstKind::TensorMap => check!(tensor_map::run(cx, regs, inst, active)),
                InstKind::BrxIdx => {
                    let table = &cx.program.tables[inst.target as usize];
                    let index = regs.add(inst.args.src[0] as usize).cast::<u32>();
                    if table.is_empty() {
                        let f = fault(
                            FaultKind::InvalidPc,
                            active,
                            "the list of branch targets is empty",
                        );
                        return raise(cx, w, pc, &f);
                    }
                    let rest = mask & !active;
                    if rest != 0 {
                        w.park(pc + 1, rest, FragmentState::Ready);
                    }
                    let mut left = active;
                    while left != 0 {
                        let i = *index.add(left.trailing_zeros() as usize);
                        let mut group = 0;
                        for l in 0..LANES {
                            group |= u32::from(*index.add(l) == i) << l;
                        }
                        group &= left;
                        left &= !group;
                        let to = table[(i as usize).min(table.len() - 1)];
                        w.park(to, group, FragmentState::Ready);
                        if to <= pc {
                            w.fuel -= 1;
                        }
                    }
                    w.resume_next();
                    if w.fuel <= 0
                        && let Some(stop) = out_of_fuel(cx, w, false)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                InstKind::Call | InstKind::CallIndirect => {
                    if active != mask {
                        // Lanes that do not call also skip the `AfterCall` that follows.
                        w.park(pc + 2, mask & !active, FragmentState::Ready);
                    }
                    if active != 0 {
                        w.fuel -= 1;
                        check!(calls::call(cx, w, regs, inst, pc, active));
                    }
                    w.resume_next();
                    if w.fuel <= 0
                        && let Some(stop) = out_of_fuel(cx, w, false)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                InstKind::AfterCall => calls::after_call(cx, w, regs, inst, active),
                InstKind::Builtin => check!(builtins::builtin(cx, w, regs, inst, active)),
                InstKind::Ret => {
                    if active == w.live && w.calls.is_none() {
                        exit(cx, w, active);
                        return WarpStop::Exited;
                    }
                    let rest = mask & !active;
                    if rest != 0 {
                        w.park(pc + 1, rest, FragmentState::Ready);
                    }
                    let exited = calls::ret(w, regs, active);
                    exit(cx, w, exited);
                    resume_or_stop!();
                }
                InstKind::Exit => {
                    let rest = mask & !active;
                    if rest != 0 {
                        w.park(pc + 1, rest, FragmentState::Ready);
                    }
                    exit(cx, w, active);
                    resume_or_stop!();
                }
                InstKind::Trap => {
                    let text = match inst.target {
                        0 => "the kernel executed `trap`",
                        _ => "the kernel reached a breakpoint (`brkpt`) without a debugger",
                    };
                    let f = fault(FaultKind::Trap, active, text);
                    return raise(cx, w, pc, &f);
                }
                InstKind::Bar => match block_barrier::arrive(cx, w, regs, inst, active) {
                    Ok(block_barrier::Arrival::Proceed) => {}
                    Ok(block_barrier::Arrival::Wait(state)) => {
                        if mask != active {
                            w.park(pc + 1, mask & !active, FragmentState::Ready);
                        }
                        w.park(pc, active, state);
                        resume_or_stop!();
                    }
                    Err(f) => return raise(cx, w, pc, &f),
                },
                InstKind::ClusterArrive => check!(cluster_state::arrive(cx, w, active)),
                InstKind::ClusterWait => match cluster_state::wait(cx, w, active) {
                    Ok(None) => {}
                    Ok(Some(state)) => {
                        if mask != active {
                            w.park(pc + 1, mask & !active, FragmentState::Ready);
                        }
                        w.park(pc, active, state);
                        resume_or_stop!();
                    }
                    Err(f) => return raise(cx, w, pc, &f),
                },
                InstKind::BarWarp
                | InstKind::Shfl
                | InstKind::Vote
                | InstKind::Match
                | InstKind::Redux
                | InstKind::Elect => {
                    let done = warp_collectives::run(cx, w, regs, inst, pc, active);
                    if done != active {
                        // Complete groups proceed; `run` has parked the others.
                        let on = mask & !active | done;
                        if on != 0 {
                            w.park(pc + 1, on, FragmentState::Ready);
                        }
                        resume_or_stop!();
                    }
                }
                InstKind::ActiveMask => splat32(regs, inst.args.dst[0], active, active),
                InstKind::Fence => fence(Ordering::SeqCst),
                InstKind::Special => special(cx, regs, inst, active),
                InstKind::FrameAddr => {
                    let frame = regs.add(fixed::FRAME as usize).cast::<u32>();
                    let dst = regs.add(inst.args.dst[0] as usize).cast::<u64>();
                    for l in lanes(active) {
                        *dst.add(l) = u64::from(*frame.add(l)).wrapping_add(inst.imm as u64);
                    }
                }
                InstKind::IsSpace => is_space(cx, regs, inst, active),
                InstKind::Nanosleep => {
                    let ns = *regs
                        .add(inst.args.src[0] as usize)
                        .cast::<u32>()
                        .add(first_lane(active));
                    if ns >= SHORTEST_SLEEP {
                        let ns = Duration::from_nanos(u64::from(ns.min(LONGEST_SLEEP)));
                        // Lanes that skip the instruction stay with the others.
                        w.sleep(pc + 1, mask, Instant::now() + ns);
                        resume_or_stop!();
                    }
                    if w.polls(mask) {
                        w.fuel -= POLL_COST;
                    }
                }
                InstKind::Alloca => check!(calls::alloca(cx, w, regs, inst, active)),
                InstKind::StackSave => calls::stack_save(regs, inst, active),
                InstKind::StackRestore => calls::stack_restore(regs, inst, active),
                #[cfg(target_arch = "x86_64")]
                InstKind::Native => {
                    let outcome = match native_code {
                        Some(code) => native::run(cx, w, code, inst.target, pc, mask),
                        None => native::Outcome::Refused,
                    };
                    match outcome {
                        native::Outcome::Running => {}
                        native::Outcome::Stopped => return stopped(w),
                        native::Outcome::Refused => {
                            code = cx.program.code.as_ptr();
                            continue;
                        }
                    }
                    if w.fuel <= 0
                        && let Some(stop) = out_of_fuel(cx, w, false)
                    {
                        return stop;
                    }
                    reload!();
                    continue;
                }
                #[cfg(not(target_arch = "x86_64"))]
                InstKind::Native => {
                    code = cx.program.code.as_ptr();
                    continue;
                }
            }
        }
        pc += 1;
        if pc >= w.next_merge {
            w.reconverge(pc, mask);
            reload!();
        }
    }
}

/// The fuel has run out: checks whether the launch was stopped, and lets other fragments, warps or blocks run.
#[cold]
#[inline(never)]
fn out_of_fuel<M: MemoryModel>(
    cx: &mut Context<'_, M>,
    w: &mut Warp,
    spin: bool,
) -> Option<WarpStop> {
    w.fuel = FUEL;
    w.slow += 1;
    #[cfg(target_arch = "x86_64")]
    if !M::CHECKS {
        super::native::during_launch(cx.program, cx.launch.start);
    }
    if cx.launch.is_stopped() {
        return Some(WarpStop::Fault);
    }
    let turn = spin || w.slow.is_multiple_of(64);
    if !turn {
        let (pc, mask) = (w.pc, w.mask);
        w.reconverge(pc, mask);
        return None;
    }
    let (pc, mask) = (w.pc, w.mask);
    if !w.rotate(pc, mask) {
        w.reconverge(pc, mask);
    }
    Some(WarpStop::Yield)
}

/// Retires lanes.
fn exit(cx: &mut Context<'_, impl MemoryModel>, w: &mut Warp, exited: u32) {
    if exited != 0 {
        w.remove(exited);
        cx.block.live_threads -= exited.count_ones().min(cx.block.live_threads);
        if !cx.program.barriers.is_empty() {
            cx.block.threads_exited();
        }
        if cx.program.uses_cluster_barrier {
            cx.block.cluster.threads_exited(w, exited);
        }
    }
}

/// Reads a special register that changes while a warp runs.
unsafe fn special(cx: &mut Context<'_, impl MemoryModel>, regs: *mut u8, inst: &Inst, active: u32) {
    let clock = cx.launch.clock();
    let now = || {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64)
    };
    let at = inst.args.dst[0];
    // SAFETY: the destination has the width of the special register.
    unsafe {
        match inst.aux {
            0 => splat32(regs, at, clock as u32, active),
            1 => splat32(regs, at, (clock >> 32) as u32, active),
            2 => splat64(regs, at, clock, active),
            3 => splat64(regs, at, now(), active),
            4 => splat32(regs, at, now() as u32, active),
            _ => splat32(regs, at, (now() >> 32) as u32, active),
        }
    }
}

/// `isspacep`.
unsafe fn is_space(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) {
    let win = address_windows::windows();
    let inside = |a: u64, base: u64, size: u64| a.wrapping_sub(base) < size;
    let mut bits = 0u32;
    for l in 0..LANES {
        // SAFETY: the source is a 64-bit slot.
        let a = unsafe { *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l) };
        let shared = inside(a, win.shared, address_windows::WINDOW);
        let local = inside(a, win.local, address_windows::WINDOW);
        let (param, bytes) = cx.launch.params;
        // The address of the memory of another block is one of `shared::cluster` only.
        let own = |at| {
            let other = cx.block.in_cluster(at);
            other.is_none_or(|(_, base, _)| base == cx.block.shared() as u64)
        };
        let yes = match inst.aux {
            1 => shared && own(a - win.shared),
            5 => shared,
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
        *p = (*p & !active) | (bits & active);
    }
}
