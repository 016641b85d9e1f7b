//! The verifier: what holds for the KIR of a kernel before and after every pass.

use super::action::{Action, Role};
use super::function::{Function, Instruction, Kernel};
use super::operation::{Callee, MemSpace};
use super::register::{Fixed, Reg, Source, Uniformity};
use crate::semantics::lane::Slot;

/// Checks a kernel.
///
/// # Panics
/// On the first violation, with the function, the instruction and the pass before it.
pub fn verify(kernel: &Kernel, pass: &str) {
    for f in &kernel.functions {
        if let Err(problem) = function(f, kernel) {
            panic!("after {pass}: `{}`: {problem}\n{f}", f.name);
        }
    }
}

fn function(f: &Function, kernel: &Kernel) -> Result<(), String> {
    for (n, fixed) in Fixed::ALL.into_iter().enumerate() {
        let own = f.registers.get(n).map(|r| (r.source, r.slot));
        if own != Some((Source::Fixed(fixed), fixed.reg().slot)) {
            return Err(format!("register {n} is not {fixed:?}"));
        }
    }
    for l in &f.hoisted_loads {
        register(f, l.to)?;
        if f.registers[l.to.at as usize].uniformity != Uniformity::Launch {
            return Err(format!(
                "a hoisted load writes the varying register {}",
                l.to.at
            ));
        }
    }
    for (list, most) in [
        (&f.launch_prologue, Uniformity::Launch),
        (&f.block_prologue, Uniformity::Block),
    ] {
        for i in list {
            prologue(f, i, most).map_err(|e| format!("{e} in the prologue: {i:?}"))?;
        }
    }
    for (n, b) in f.blocks.iter().enumerate() {
        for (k, i) in b.instructions.iter().enumerate() {
            let last = k + 1 == b.instructions.len();
            let at = |e: String| format!("block {n}, instruction {k}: {e}: {i:?}");
            instruction(f, i, kernel).map_err(at)?;
            if i.action.ends_block() && !last {
                return Err(at("control leaves the block before its end".into()));
            }
        }
    }
    let last = f.blocks.last().and_then(|b| b.instructions.last());
    match last {
        Some(i) if i.guard.is_none() && i.action.ends_block() => Ok(()),
        _ => Err("control falls through the last block".into()),
    }
}

/// Checks that the register exists and has the slot that the operand says.
fn register(f: &Function, r: Reg) -> Result<(), String> {
    match f.registers.get(r.at as usize) {
        Some(own) if own.slot == r.slot => Ok(()),
        Some(own) => Err(format!(
            "register {} is {:?}, not {:?}",
            r.at, own.slot, r.slot
        )),
        None => Err(format!("register {} does not exist", r.at)),
    }
}

/// Checks an instruction that runs before the threads.
fn prologue(f: &Function, i: &Instruction, most: Uniformity) -> Result<(), String> {
    if i.guard.is_some() || !matches!(i.action, Action::Lanes(_)) {
        return Err("an instruction that depends on the thread".into());
    }
    let mut result = Ok(());
    i.action.for_each(&mut |role, &r| {
        let own = f.registers.get(r.at as usize);
        let uniform = own.is_some_and(|o| {
            matches!(o.source, Source::Fixed(_))
                || o.uniformity.is_uniform() && o.uniformity <= most
        });
        if !uniform {
            result = Err(format!("a varying operand ({role:?} {})", r.at));
        }
    });
    result
}

fn instruction(f: &Function, i: &Instruction, kernel: &Kernel) -> Result<(), String> {
    if f.origins.get(i.origin as usize).is_none() {
        return Err("the origin does not exist".into());
    }
    let mut result = Ok(());
    i.action.for_each(&mut |role, &r| {
        if let Err(e) = register(f, r) {
            result = Err(e);
        } else if role == Role::Write && !writable(f, r) {
            result = Err(format!("register {} cannot be written here", r.at));
        }
    });
    result?;
    if let Some(g) = i.guard {
        register(f, g.predicate)?;
        if g.predicate.slot != Slot::Pred {
            return Err("the guard is no predicate".into());
        }
    }
    match &i.action {
        Action::Branch { target, .. } => block(f, target.0),
        Action::BranchIndexed { targets, .. } => targets.iter().try_for_each(|t| block(f, t.0)),
        Action::Call(op) => match op.callee {
            Callee::Direct(n) if n as usize >= kernel.functions.len() => {
                Err("the callee does not exist".into())
            }
            _ => Ok(()),
        },
        Action::Load(op) | Action::Store(op) => {
            let stores = matches!(i.action, Action::Store(_));
            let narrow_space = matches!(op.address.space, MemSpace::Shared | MemSpace::Local);
            let wide_uniform = op.address.uniform.is_none_or(|r| r.slot == Slot::R64);
            if stores != op.store || op.regs.is_empty() || !wide_uniform {
                return Err("the access is inconsistent".into());
            }
            if op.address.is_narrow() && !narrow_space {
                return Err("a 32-bit address of this state space".into());
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether an instruction of a body may write the register.
fn writable(f: &Function, r: Reg) -> bool {
    let own = &f.registers[r.at as usize];
    match own.source {
        Source::Declared(..) | Source::Temporary => own.uniformity == Uniformity::Varying,
        Source::Fixed(fixed) => !matches!(fixed, Fixed::True | Fixed::Frame),
        _ => false,
    }
}

fn block(f: &Function, n: u32) -> Result<(), String> {
    match f.blocks.get(n as usize) {
        Some(_) => Ok(()),
        None => Err(format!("block {n} does not exist")),
    }
}
