//! Uniformity: finds the registers that hold one value for the whole launch or block, and hoists their definitions.
//!
//! A register is uniform if it has one definition, that definition is unguarded, and it is either a load of a kernel
//! parameter or constant whose address is known before the launch, or a lane function with uniform sources. Lane functions
//! have no side effects, so the definition can run earlier than control reaches it: once per launch or block, before the
//! threads. This covers kernel parameters, immediates, grid and block coordinates, and everything computed from them. A copy
//! of `%tid` is removed, and the register gets the location of `%tid`.

use std::collections::VecDeque;

use cupyrite_ptx::ir::{Op, Special};

use super::remove;
use crate::build::CompileError;
use crate::kir::{
    Action, Fixed, Function, HoistedLoad, Instruction, LaneOp, MemOp, Reg, Register, Role, Source,
    Uniformity,
};
use crate::semantics::lane::Slot;

/// The instructions that read each register.
struct Readers {
    /// Start of each register's list; one more element than registers.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Readers {
    fn new(registers: usize, instructions: &[&Instruction]) -> Self {
        let mut starts = vec![0u32; registers + 1];
        for i in instructions {
            for_each_read(i, |r| starts[r.at as usize + 1] += 1);
        }
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut next = starts.clone();
        let mut list = vec![0; starts.last().copied().unwrap_or(0) as usize];
        for (n, i) in instructions.iter().enumerate() {
            for_each_read(i, |r| {
                let at = &mut next[r.at as usize];
                list[*at as usize] = n as u32;
                *at += 1;
            });
        }
        Self { starts, list }
    }

    fn of(&self, r: Reg) -> &[u32] {
        let r = r.at as usize;
        &self.list[self.starts[r] as usize..self.starts[r + 1] as usize]
    }
}

fn for_each_read(i: &Instruction, mut f: impl FnMut(Reg)) {
    i.action.for_each(&mut |role, r| {
        if role == Role::Read {
            f(*r);
        }
    });
}

/// Number of instructions that write each register.
pub fn count_definitions(f: &Function) -> Vec<u32> {
    let mut definitions = vec![0u32; f.registers.len()];
    for i in f.instructions() {
        i.action.for_each(&mut |role, r| {
            definitions[r.at as usize] += u32::from(role == Role::Write);
        });
    }
    definitions
}

/// Hoists the definitions of uniform registers.
pub fn hoist_uniform(f: &mut Function) -> Result<(), CompileError> {
    let definitions = count_definitions(f);
    let instructions: Vec<&Instruction> = f.blocks.iter().flat_map(|b| &b.instructions).collect();
    let readers = Readers::new(f.registers.len(), &instructions);
    let mut omitted = vec![false; instructions.len()];
    // Worklist: all instructions in order, then the readers of each register that turns out to be uniform.
    let mut queue: VecDeque<u32> = (0..instructions.len() as u32).collect();
    while let Some(n) = queue.pop_front() {
        let n = n as usize;
        let i = instructions[n];
        if omitted[n] || i.guard.is_some() {
            continue;
        }
        let uniformity = match &i.action {
            Action::Load(op) if op.constant.is_some() => Some(Uniformity::Launch),
            Action::Lanes(op) => result_uniformity(op, &f.registers),
            _ => None,
        };
        let Some(uniformity) = uniformity else {
            continue;
        };
        let mut written = Vec::new();
        i.action.for_each(&mut |role, r| {
            let discarded = matches!(f.registers[r.at as usize].source, Source::Fixed(_));
            if role == Role::Write && !discarded {
                written.push(*r);
            }
        });
        if written.is_empty() || !written.iter().all(|r| definitions[r.at as usize] == 1) {
            continue;
        }
        match &i.action {
            Action::Load(op) => {
                let loads = hoisted_loads(op, f.origins[i.origin as usize].line)?;
                f.hoisted_loads.extend(loads);
            }
            _ if uniformity == Uniformity::Launch => f.launch_prologue.push(i.clone()),
            _ if uniformity == Uniformity::Block => f.block_prologue.push(i.clone()),
            _ => {}
        }
        omitted[n] = true;
        for &r in &written {
            f.registers[r.at as usize].uniformity = uniformity;
            let readers = readers.of(r).iter().copied();
            queue.extend(readers.filter(|reader| !omitted[*reader as usize]));
        }
    }
    remove(f, &omitted);
    Ok(())
}

/// Uniformity of the result of a lane function; `None` if it varies and is no copy of `%tid`.
fn result_uniformity(op: &LaneOp, registers: &[Register]) -> Option<Uniformity> {
    let register = |r: &Reg| &registers[r.at as usize];
    if let (Some((Op::Mov, _)), Some(src), Some(dst)) = (op.op, &op.src[0], &op.dst[0])
        && let Source::Special(Special::Tid(axis)) = register(src).source
        && dst.slot == Slot::R32
        && op.dst[1].is_none()
    {
        return Some(Uniformity::Tid(axis));
    }
    let carry = Some(Fixed::Carry.reg());
    if op.dst.contains(&carry) || op.src.contains(&carry) {
        return None;
    }
    let mut sources = op.src.iter().flatten();
    sources.try_fold(Uniformity::Launch, |u, r| {
        let own = match register(r).source {
            // A fixed location other than the frame does not affect the result.
            Source::Fixed(fixed) if fixed != Fixed::Frame => Uniformity::Launch,
            _ => register(r).uniformity,
        };
        own.is_uniform().then(|| u.max(own))
    })
}

/// The elements of a load that runs before the launch.
fn hoisted_loads(op: &MemOp, line: u32) -> Result<Vec<HoistedLoad>, CompileError> {
    let Some(constant) = &op.constant else {
        return Ok(Vec::new());
    };
    if let Some(message) = &constant.refused {
        let message = message.clone();
        return Err(CompileError { line, message });
    }
    let elements = op.regs.iter().enumerate();
    Ok(elements
        .map(|(k, &to)| HoistedLoad {
            from: constant.from + k as u64 * u64::from(op.size),
            absolute: constant.absolute,
            size: op.size,
            signed: op.signed,
            narrow: op.narrow,
            to,
        })
        .collect())
}
