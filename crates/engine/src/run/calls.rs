//! Calls and returns.
//!
//! Every function has fixed locations for its registers, with an element per lane. Return addresses and frames lie on a
//! stack per lane, so that fragments of a warp may be at different depths; the lanes of one fragment are at the same. A
//! recursive function saves its registers around a call.

use super::aligned::zeroed_lines;
use super::context::{Context, ExecResult, fault};
use super::lanes::{LANES, first_lane, lanes};
use super::memory::model::MemoryModel;
use super::memory::{
    blend32, get, local_base, local_read, local_read_bytes, local_write, local_write_bytes, set,
};
use super::warp::{Calls, FragmentState, Return, Warp};
use crate::bytecode::{Inst, InstKind};
use crate::fault::{FaultKind, LaneFault};
use crate::kir::{ArgCopy, Reg};
use crate::register_file::{SaveSet, fixed};
use crate::semantics::lane::Slot;

/// Copies one argument or result for the lanes `active`.
unsafe fn copy(
    cx: &Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    c: &ArgCopy,
    active: u32,
    frame: u32,
    into_callee: bool,
) {
    let base = local_base(cx, w);
    // SAFETY: both frames lie within the stack limit, which `call` has checked.
    unsafe {
        let frames = regs.add(fixed::FRAME as usize).cast::<u32>();
        let dynamic = regs.add(fixed::DYNAMIC as usize).cast::<u32>();
        for l in lanes(active) {
            let own = *frames.add(l);
            let other = own + frame + *dynamic.add(l);
            match *c {
                ArgCopy::Memory {
                    caller,
                    callee,
                    size,
                } => {
                    let (mut from, mut to) = (own + caller, other + callee);
                    if !into_callee {
                        std::mem::swap(&mut from, &mut to);
                    }
                    let mut k = 0;
                    while k < size {
                        let n = if size - k >= 4 && (from | to) & 3 == 0 {
                            4
                        } else {
                            1
                        };
                        let v = local_read(base, from + k, l, n);
                        local_write(base, to + k, l, n, v);
                        k += n;
                    }
                }
                ArgCopy::Register {
                    caller: Reg { at: caller, slot },
                    callee,
                    size,
                } => {
                    if into_callee {
                        let v = get(regs, caller, slot, l);
                        local_write_bytes(base, other + callee, l, size, v);
                    } else {
                        let v = local_read_bytes(base, other + callee, l, size);
                        set(regs, caller, slot, l, v);
                    }
                }
            }
        }
    }
}

/// The slots of a function's registers.
fn each_slot(s: &SaveSet) -> impl Iterator<Item = (u32, Slot)> {
    let range = |(from, to): (u32, u32), slot: Slot| {
        (from..to)
            .step_by(slot.bytes() as usize)
            .map(move |at| (at, slot))
    };
    range(s.preds, Slot::Pred)
        .chain(range(s.r32, Slot::R32))
        .chain(range(s.r64, Slot::R64))
        .chain(range(s.r128, Slot::R128))
}

/// Copies the lanes `active` of a function's registers between two register files.
unsafe fn move_registers(set: &SaveSet, from: *const u8, to: *mut u8, active: u32) {
    for (at, slot) in each_slot(set) {
        // SAFETY: the caller passes register files of the program that `set` belongs to.
        unsafe {
            let (f, t) = (from.add(at as usize), to.add(at as usize));
            match slot {
                Slot::Pred => {
                    let (f, t) = (f.cast::<u32>(), t.cast::<u32>());
                    *t = *t & !active | *f & active;
                }
                Slot::R32 => blend32(f.cast(), t.cast(), active),
                Slot::R64 => {
                    lanes(active).for_each(|l| *t.cast::<u64>().add(l) = *f.cast::<u64>().add(l))
                }
                Slot::R128 => {
                    lanes(active).for_each(|l| *t.cast::<u128>().add(l) = *f.cast::<u128>().add(l))
                }
            }
        }
    }
}

/// Checks that a lane may use `more` bytes of stack, besides its calls in progress and the `dynamic` bytes of `alloca` in
/// the current frame; returns the sum.
///
/// The sum is a lower bound of the stack on a GPU. Without recursion and `alloca`, a GPU's compiler computes the stack
/// of a kernel, and the driver provides it regardless of the limit.
fn check_stack_limit(
    cx: &Context<'_, impl MemoryModel>,
    w: &Warp,
    lane: usize,
    dynamic: u32,
    more: u64,
) -> Result<u32, Box<LaneFault>> {
    let used = w.calls.as_ref().map_or(0, |c| c.gpu_stack[lane]);
    let sum = (u64::from(used) + u64::from(dynamic)).saturating_add(more);
    let limit = cx.launch.stack_limit;
    match u32::try_from(sum) {
        Ok(total) if sum <= u64::from(cx.program.gpu_stack) + u64::from(limit) => Ok(total),
        _ => {
            let text = format!(
                "a thread of kernel `{}` needs at least {sum} bytes of stack on a GPU; the limit is {limit} bytes; call \
                 cuCtxSetLimit(CU_LIMIT_STACK_SIZE, ...) with a larger value, or recurse less",
                cx.program.name
            );
            Err(fault(FaultKind::StackOverflow, 1 << lane, text))
        }
    }
}

/// `call`: parks the lanes `active` at the entry points of their callees.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn call(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    pc: u32,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.calls[inst.target as usize];
    // SAFETY: operands and fixed locations lie in the register file.
    unsafe {
        let frames = regs.add(fixed::FRAME as usize).cast::<u32>();
        let dynamic = regs.add(fixed::DYNAMIC as usize).cast::<u32>();
        // Group the lanes by callee, and check that their frames fit.
        let mut groups: [(u32, u32); LANES] = [(0, 0); LANES];
        let mut count = 0;
        let mut gpu_stack = [0u32; LANES];
        for l in lanes(active) {
            let (entry, size, gpu_frame) = if inst.kind == InstKind::Call {
                (op.entry, op.callee_frame, op.callee_gpu_frame)
            } else {
                let address = *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l);
                match program.targets.iter().find(|t| t.address == address) {
                    Some(t) => (t.entry, t.frame.max(op.callee_frame), t.gpu_frame),
                    None => {
                        let text =
                            format!("call of {address:#x}, which is not the address of a function");
                        return Err(fault(FaultKind::InvalidPc, 1 << l, text));
                    }
                }
            };
            gpu_stack[l] = check_stack_limit(cx, w, l, *dynamic.add(l), gpu_frame.into())?;
            let top = u64::from(*frames.add(l))
                + u64::from(op.frame)
                + u64::from(*dynamic.add(l))
                + u64::from(size);
            if top > u64::from(cx.launch.local_bytes) {
                let text = format!(
                    "the call needs {top} bytes of stack; the CPU device has {} bytes for a thread",
                    cx.launch.local_bytes
                );
                return Err(fault(FaultKind::StackOverflow, 1 << l, text));
            }
            match groups[..count].iter_mut().find(|g| g.0 == entry) {
                Some(g) => g.1 |= 1 << l,
                None => {
                    groups[count] = (entry, 1 << l);
                    count += 1;
                }
            }
        }
        for c in &op.args {
            copy(cx, w, regs, c, active, op.frame, true);
        }
        let mut calls = w.calls.take().unwrap_or_default();
        let first = first_lane(active);
        let depth = calls.depth[first];
        let from = Return {
            pc: pc + 1,
            path: calls.path[first],
            ..Return::default()
        };
        let path = calls.callee_path(from, depth, w.live & !active);
        if calls.stack.len() <= depth as usize {
            calls.stack.push([Return::default(); LANES]);
        }
        for l in lanes(active) {
            calls.stack[depth as usize][l] = Return {
                frame: *frames.add(l),
                dynamic: *dynamic.add(l),
                gpu_stack: calls.gpu_stack[l],
                ..from
            };
            calls.gpu_stack[l] = gpu_stack[l];
        }
        if let Some(set) = &op.save {
            save(&mut calls, program.file.bytes, set, regs, active);
        }
        for l in lanes(active) {
            calls.depth[l] = depth + 1;
            calls.path[l] = path;
            *frames.add(l) += op.frame + *dynamic.add(l);
            *dynamic.add(l) = 0;
        }
        w.calls = Some(calls);
        for &(entry, lanes) in &groups[..count] {
            w.park(entry, lanes, FragmentState::Ready);
        }
    }
    Ok(())
}

/// Saves the registers of the lanes `active` at their depth.
unsafe fn save(calls: &mut Calls, bytes: u32, set: &SaveSet, regs: *mut u8, active: u32) {
    let depth = calls.depth[first_lane(active)] as usize;
    while calls.saved.len() <= depth {
        calls.saved.push(Vec::new());
    }
    let file = &mut calls.saved[depth];
    if file.is_empty() {
        *file = zeroed_lines(bytes as usize);
    }
    // SAFETY: both have the size of the program's register file.
    unsafe { move_registers(set, regs, file.as_mut_ptr().cast(), active) };
}

/// After a return: restores the registers of a recursive caller and copies the results.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn after_call(
    cx: &mut Context<'_, impl MemoryModel>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) {
    let program = cx.program;
    let op = &program.calls[inst.target as usize];
    if let Some(set) = &op.save
        && let Some(calls) = &w.calls
        && let Some(file) = calls
            .saved
            .get(calls.depth[first_lane(active)] as usize)
            .filter(|f| !f.is_empty())
    {
        // SAFETY: both have the size of the program's register file.
        unsafe { move_registers(set, file.as_ptr().cast(), regs, active) };
    }
    for c in &op.returns {
        // SAFETY: the callee's frame lies within the stack limit, which `call` has checked.
        unsafe { copy(cx, w, regs, c, active, op.frame, false) };
    }
}

/// `ret`: parks the lanes of a call at its return address, and returns the lanes of no call, which exit.
///
/// # Safety
/// `regs` is the warp's register file.
pub unsafe fn ret(w: &mut Warp, regs: *mut u8, active: u32) -> u32 {
    let first = first_lane(active);
    let Some(calls) = w.calls.as_mut().filter(|c| c.depth[first] > 0) else {
        return active;
    };
    let depth = calls.depth[first] - 1;
    let pc = calls.stack[depth as usize][first].pc;
    // SAFETY: operands and fixed locations lie in the register file.
    unsafe {
        let frames = regs.add(fixed::FRAME as usize).cast::<u32>();
        let dynamic = regs.add(fixed::DYNAMIC as usize).cast::<u32>();
        for l in lanes(active) {
            let r = calls.stack[depth as usize][l];
            calls.depth[l] = depth;
            calls.path[l] = r.path;
            *frames.add(l) = r.frame;
            *dynamic.add(l) = r.dynamic;
            calls.gpu_stack[l] = r.gpu_stack;
        }
    }
    w.park(pc, active, FragmentState::Ready);
    0
}

/// `alloca`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn alloca(
    cx: &Context<'_, impl MemoryModel>,
    w: &Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let align = (inst.imm as u64).clamp(1, 1024).next_power_of_two().max(16);
    // SAFETY: operands and fixed locations lie in the register file.
    unsafe {
        for l in lanes(active) {
            let frame = *regs.add(fixed::FRAME as usize).cast::<u32>().add(l);
            let dynamic = regs.add(fixed::DYNAMIC as usize).cast::<u32>().add(l);
            let size = *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l);
            let own = u64::from(inst.args.src[1]);
            let at = (u64::from(frame) + own + u64::from(*dynamic)).next_multiple_of(align);
            check_stack_limit(cx, w, l, *dynamic, size)?;
            let top = at.saturating_add(size).saturating_add(15) / 16 * 16;
            if top > u64::from(cx.launch.local_bytes) {
                let text = format!(
                    "`alloca` of {size} bytes exceeds the stack of a thread, {} bytes",
                    cx.launch.local_bytes
                );
                return Err(fault(FaultKind::StackOverflow, 1 << l, text));
            }
            *dynamic = (top - u64::from(frame) - own) as u32;
            *regs.add(inst.args.dst[0] as usize).cast::<u64>().add(l) = at;
        }
    }
    Ok(())
}

/// `stacksave`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn stack_save(regs: *mut u8, inst: &Inst, active: u32) {
    // SAFETY: operands and fixed locations lie in the register file.
    unsafe {
        for l in lanes(active) {
            let dynamic = *regs.add(fixed::DYNAMIC as usize).cast::<u32>().add(l);
            *regs.add(inst.args.dst[0] as usize).cast::<u64>().add(l) = u64::from(dynamic);
        }
    }
}

/// `stackrestore`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
pub unsafe fn stack_restore(regs: *mut u8, inst: &Inst, active: u32) {
    // SAFETY: operands and fixed locations lie in the register file.
    unsafe {
        for l in lanes(active) {
            let dynamic = regs.add(fixed::DYNAMIC as usize).cast::<u32>().add(l);
            // The minimum keeps an invalid value from raising the stack past its limit.
            let saved = *regs.add(inst.args.src[0] as usize).cast::<u64>().add(l);
            *dynamic = (*dynamic).min(u32::try_from(saved).unwrap_or(0));
        }
    }
}
