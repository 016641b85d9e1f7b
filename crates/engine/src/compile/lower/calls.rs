//! Lowering of calls.

use cupyrite_ptx::ir::{FuncId, InitElem, Instr, Operand, Type, VarId, Variable};

use super::Lower;
use crate::compile::unit::CompileError;
use crate::program::{ArgCopy, BuiltinArg, BuiltinKind, BuiltinOp, CallOp, Inst, InstKind};
use crate::semantics::lane::Slot;

impl<'m> Lower<'_, 'm> {
    /// The parts of `call (returns), callee, (arguments), prototype`.
    fn call_parts<'i>(
        &self,
        i: &'i Instr,
    ) -> Result<(&'i [Operand], &'i Operand, &'i [Operand]), CompileError> {
        let mut ops = i.operands.iter();
        let mut returns: &[Operand] = &[];
        let mut callee = ops.next();
        if let Some(Operand::Args(v)) = callee {
            returns = v;
            callee = ops.next();
        }
        let args: &[Operand] = match ops.next() {
            Some(Operand::Args(v)) => v,
            _ => &[],
        };
        match callee {
            Some(c @ (Operand::Func(_) | Operand::Reg(_))) => Ok((returns, c, args)),
            _ => Err(self.error("the callee is missing")),
        }
    }

    fn builtin_arg(
        &mut self,
        o: &Operand,
        size: u32,
        list: &mut Vec<Inst>,
    ) -> Result<BuiltinArg, CompileError> {
        match o {
            Operand::Var(v, n) => {
                if *n != 0 {
                    return Err(self.error("an argument must be a whole variable"));
                }
                let at = self.frame_offset(*v)?;
                Ok(BuiltinArg::Memory(at, size))
            }
            Operand::Reg(r) => {
                let (at, slot) = self.reg(*r)?;
                Ok(BuiltinArg::Register(at, slot))
            }
            o => {
                let (slot, ty) = if size > 4 {
                    (Slot::R64, Type::U64)
                } else {
                    (Slot::R32, Type::U32)
                };
                Ok(BuiltinArg::Register(self.source(o, slot, ty, list)?, slot))
            }
        }
    }

    fn call_builtin(
        &mut self,
        i: &Instr,
        f: FuncId,
        kind: BuiltinKind,
    ) -> Result<(), CompileError> {
        let function = &self.placed.module.functions[f.0 as usize];
        let (returns, _, args) = self.call_parts(i)?;
        let expected = match kind {
            BuiltinKind::Vprintf | BuiltinKind::SetConditional | BuiltinKind::LaunchGraph => 2,
            BuiltinKind::AssertFail => 5,
            BuiltinKind::Malloc | BuiltinKind::Free => 1,
        };
        if args.len() != expected || function.params.len() != expected {
            return Err(self.error("the number of arguments differs from the callee's parameters"));
        }
        let mut list = Vec::new();
        let mut arguments = Vec::new();
        for (o, p) in args.iter().zip(&function.params) {
            arguments.push(self.builtin_arg(o, p.size() as u32, &mut list)?);
        }
        let result = match (returns.first(), function.returns.first()) {
            (Some(o), Some(v)) => Some(self.builtin_arg(o, v.size() as u32, &mut list)?),
            _ => None,
        };
        let mut inst = Inst::new(InstKind::Builtin);
        inst.target = self.b.program.builtins.len() as u32;
        self.b.program.builtins.push(BuiltinOp {
            kind,
            args: arguments,
            result,
        });
        list.push(inst);
        self.emit(list, i)
    }

    fn copies(
        &mut self,
        ops: &[Operand],
        callee: &[(u32, u32)],
        list: &mut Vec<Inst>,
    ) -> Result<Vec<ArgCopy>, CompileError> {
        if ops.len() != callee.len() {
            return Err(self.error("the number of arguments differs from the callee's parameters"));
        }
        let mut out = Vec::new();
        for (o, &(at, size)) in ops.iter().zip(callee) {
            out.push(match o {
                Operand::Var(v, n) => {
                    let have = self.variable_size(*v);
                    if *n != 0 {
                        return Err(self.error("an argument must be a whole variable"));
                    }
                    let caller = self.frame_offset(*v)?;
                    ArgCopy::Memory {
                        caller,
                        callee: at,
                        size: size.min(have),
                    }
                }
                Operand::Reg(r) => {
                    let (caller, slot) = self.reg(*r)?;
                    ArgCopy::Register {
                        caller,
                        slot,
                        callee: at,
                        size,
                    }
                }
                Operand::Sink => continue,
                o => {
                    let (slot, ty) = if size > 4 {
                        (Slot::R64, Type::U64)
                    } else {
                        (Slot::R32, Type::U32)
                    };
                    ArgCopy::Register {
                        caller: self.source(o, slot, ty, list)?,
                        slot,
                        callee: at,
                        size,
                    }
                }
            });
        }
        Ok(out)
    }

    fn variable_size(&self, v: VarId) -> u32 {
        let f = self.unit().function;
        let found = match v {
            VarId::Local(n) => self.unit().body.vars.get(n as usize),
            VarId::Param(n) => f.params.get(n as usize),
            VarId::Return(n) => f.returns.get(n as usize),
            VarId::Module(_) => None,
        };
        found.map_or(0, |v| u32::try_from(v.size()).unwrap_or(u32::MAX))
    }

    /// Results and parameters of an indirect call: those of its prototype, or of the first function of its target list.
    fn signature(&self, i: &Instr) -> Option<(&'m [Variable], &'m [Variable])> {
        let module = &self.placed.module;
        let of = |f: FuncId| {
            let f = module.functions.get(f.0 as usize)?;
            Some((f.returns.as_slice(), f.params.as_slice()))
        };
        i.operands.iter().find_map(|o| match o {
            Operand::Proto(p) => {
                let p = module.prototypes.get(p.0 as usize)?;
                Some((p.returns.as_slice(), p.params.as_slice()))
            }
            Operand::Targets(n) => {
                of(*self.unit().body.call_targets.get(*n as usize)?.1.first()?)
            }
            Operand::Var(VarId::Module(n), _) => {
                let table = module.globals.get(*n as usize)?;
                table.init.iter().find_map(|e| match e {
                    InitElem::Func { func, .. } => of(*func),
                    _ => None,
                })
            }
            _ => None,
        })
    }

    /// `call`.
    pub fn call(&mut self, i: &Instr) -> Result<(), CompileError> {
        let (returns, callee, args) = self.call_parts(i)?;
        let (returns, args) = (returns.to_vec(), args.to_vec());
        let mut list = Vec::new();
        let mut op = CallOp {
            frame: self.unit().frame.size,
            ..CallOp::default()
        };
        let (kind, return_slots, argument_slots) = match callee {
            Operand::Func(f) => {
                let function = &self.placed.module.functions[f.0 as usize];
                if function.body.is_none() {
                    return match BuiltinKind::from_name(&function.name) {
                        Some(kind) => self.call_builtin(i, *f, kind),
                        None => {
                            Err(self
                                .error(&format!("`{}` is declared but not defined", function.name)))
                        }
                    };
                }
                let Some(&n) = self.layout.units.get(&f.0) else {
                    return Err(self.error("internal error: the callee was not compiled"));
                };
                if function.is_entry {
                    return Err(self.error("a kernel cannot be called"));
                }
                op.entry = n as u32;
                let frame = &self.units[n].frame;
                let pairs = |at: &[u32], v: &[Variable]| -> Vec<(u32, u32)> {
                    at.iter()
                        .zip(v)
                        .map(|(a, v)| (*a, v.size() as u32))
                        .collect()
                };
                (
                    InstKind::Call,
                    pairs(&frame.returns, &function.returns),
                    pairs(&frame.params, &function.params),
                )
            }
            Operand::Reg(r) => {
                op.entry = u32::MAX;
                let Some((proto_returns, proto_params)) = self.signature(i) else {
                    return Err(self.error("an indirect call needs a prototype"));
                };
                let slot = self.source(&Operand::Reg(*r), Slot::R64, Type::U64, &mut list)?;
                // Laid out like the callee's own frame: results first, then parameters.
                let mut at = 0u64;
                let mut reserve = |v: &Variable| {
                    at = at.next_multiple_of(u64::from(v.align.max(1)));
                    let here = at;
                    at += v.size();
                    (here as u32, v.size() as u32)
                };
                let rets: Vec<_> = proto_returns.iter().map(&mut reserve).collect();
                let args: Vec<_> = proto_params.iter().map(&mut reserve).collect();
                op.callee_frame = at as u32;
                let mut inst = Inst::new(InstKind::CallIndirect);
                inst.args.src[0] = slot;
                list.push(inst);
                (InstKind::CallIndirect, rets, args)
            }
            _ => return Err(self.error("the callee is missing")),
        };
        op.args = self.copies(&args, &argument_slots, &mut list)?;
        op.returns = self.copies(&returns, &return_slots, &mut list)?;
        if self.unit().recursive {
            op.save = Some(self.unit().save);
        }
        let index = self.b.program.calls.len() as u32;
        self.b.program.calls.push(op);
        // The conversions that `copies` added come before the call.
        let mut inst = if kind == InstKind::CallIndirect {
            let at = list
                .iter()
                .position(|i| i.kind == InstKind::CallIndirect)
                .unwrap_or(0);
            list.remove(at)
        } else {
            Inst::new(InstKind::Call)
        };
        inst.target = index;
        list.push(inst);
        let mut after = Inst::new(InstKind::AfterCall);
        after.target = index;
        self.emit(list, i)?;
        // Only lanes that have called execute this, so that it needs no guard.
        let unguarded = Instr {
            guard: None,
            ..i.clone()
        };
        self.emit(vec![after], &unguarded)
    }
}
