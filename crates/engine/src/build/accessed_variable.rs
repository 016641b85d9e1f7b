//! The module variable that the address of each memory access is computed from, for fault reports.
//!
//! An address outside of every variable does not identify the intended one: the nearest variable may be its neighbour.
//! The registers identify it. The analysis covers one function and ignores control flow: a register that holds the
//! address of a variable on only some paths gets no variable.

use cupyrite_ptx::ir::{Base, Body, Instr, Op, Operand, RegId, VarId};

/// Passes over a body. Compilers' code needs two or three; other code may remain unresolved.
const MOST_PASSES: usize = 8;

/// The source that a register is computed from. It only changes to a later variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// No instruction that writes it was seen yet.
    Undefined,
    /// The address of a variable, and offsets.
    Variable(VarId),
    /// Anything else.
    Other,
}

impl Source {
    /// The source of a register with two definitions.
    fn join(self, other: Source) -> Source {
        match (self, other) {
            (Source::Undefined, known) | (known, Source::Undefined) => known,
            (a, b) if a == b => a,
            _ => Source::Other,
        }
    }

    /// The source of a sum.
    fn plus(self, other: Source) -> Source {
        match (self, other) {
            (Source::Variable(_), Source::Variable(_)) => Source::Other,
            (address @ Source::Variable(_), _) | (_, address @ Source::Variable(_)) => address,
            (Source::Undefined, _) | (_, Source::Undefined) => Source::Undefined,
            _ => Source::Other,
        }
    }
}

/// For each instruction of a body, the variable that it accesses, as far as its address shows one.
pub fn accessed_variables(body: &Body) -> Vec<Option<VarId>> {
    let unknown = || vec![None; body.instrs.len()];
    let names_variables = (body.instrs.iter().flat_map(|i| &i.operands))
        .any(|o| matches!(o.variable(), Some(VarId::Module(_) | VarId::Local(_))));
    if !names_variables {
        return unknown();
    }
    let mut sources = vec![Source::Undefined; body.regs.len()];
    for pass in 0.. {
        if pass == MOST_PASSES {
            return unknown();
        }
        let mut changed = false;
        for i in &body.instrs {
            let made = result(i, &sources);
            i.for_each_written(|r| {
                let old = &mut sources[r.0 as usize];
                let new = old.join(made);
                changed |= *old != new;
                *old = new;
            });
        }
        if !changed {
            break;
        }
    }
    let accessed = |i: &Instr| {
        let mut addresses = i.operands.iter().filter_map(|o| match o {
            Operand::Addr(base, _) => Some(*base),
            _ => None,
        });
        // Copies between two addresses may fail at either.
        match (addresses.next(), addresses.next()) {
            (Some(Base::Var(variable)), None) => Some(variable),
            (Some(Base::Reg(r)), None) => match sources[r.0 as usize] {
                Source::Variable(variable) => Some(variable),
                _ => None,
            },
            _ => None,
        }
    };
    body.instrs.iter().map(accessed).collect()
}

/// The source of the value that an instruction writes.
fn result(i: &Instr, sources: &[Source]) -> Source {
    let of = |n: usize| match i.operands.get(n) {
        Some(Operand::Reg(RegId(r))) => sources[*r as usize],
        Some(Operand::Var(variable, _)) => Source::Variable(*variable),
        _ => Source::Other,
    };
    match i.op {
        Op::Mov | Op::Cvta => of(1),
        Op::Add => of(1).plus(of(2)),
        Op::Sub => match (of(1), of(2)) {
            // The distance between two addresses.
            (_, Source::Variable(_)) => Source::Other,
            (from, _) => from,
        },
        Op::Mad => match (of(1), of(2)) {
            (Source::Variable(_), _) | (_, Source::Variable(_)) => Source::Other,
            _ => of(3).plus(Source::Other),
        },
        Op::Selp => of(1).join(of(2)),
        _ => Source::Other,
    }
}
