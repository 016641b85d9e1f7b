//! Whether operands fit their instruction.

use crate::error::Error;
use crate::ir::*;
use crate::lexer::Token;
use crate::parser::Parser;

impl<'t> Parser<'t> {
    /// Checks an instruction whose operands have been read.
    pub fn check(&self, instr: &mut Instr, _first: Token<'t>) -> Result<(), Error> {
        let address = match instr.op {
            Op::Ld | Op::Ldu | Op::Atom => 1,
            _ => 0,
        };
        if matches!(instr.op, Op::Ld | Op::Ldu | Op::Atom | Op::St | Op::Red)
            && let Some(operand) = instr.operands.get_mut(address)
            && let Operand::Var(var, offset) = *operand
        {
            *operand = Operand::Addr(Base::Var(var), offset);
        }
        Ok(())
    }
}
