//! Translation of calls.

use cupyrite_ptx::ir::{FuncId, InitElem, Instr, Operand, Type, VarId, Variable};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, ArgCopy, BuiltinArg, BuiltinKind, BuiltinOp, CallOp, Callee};
use crate::semantics::lane::Slot;

impl<'m> FunctionBuilder<'_, 'm> {
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
        list: &mut Vec<Action>,
    ) -> Result<BuiltinArg, CompileError> {
        match o {
            Operand::Var(v, n) => {
                if *n != 0 {
                    return Err(self.error("an argument must be a whole variable"));
                }
                let at = self.frame_offset(*v)?;
                Ok(BuiltinArg::Memory(at, size))
            }
            Operand::Reg(r) => Ok(BuiltinArg::Register(self.reg(*r)?)),
            o => {
                let (slot, ty) = if size > 4 {
                    (Slot::R64, Type::U64)
                } else {
                    (Slot::R32, Type::U32)
                };
                Ok(BuiltinArg::Register(self.source(o, slot, ty, list)?))
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
            BuiltinKind::Vprintf
            | BuiltinKind::AlignedMalloc
            | BuiltinKind::SetConditional
            | BuiltinKind::LaunchGraph => 2,
            BuiltinKind::AssertFail => 5,
            BuiltinKind::Malloc | BuiltinKind::Free => 1,
            BuiltinKind::Runtime(f, _) => f.parameters().len(),
        };
        if args.len() != expected || function.params.len() != expected {
            return Err(self.error("the number of arguments differs from the callee's parameters"));
        }
        let mut list = Vec::new();
        let mut arguments = Vec::new();
        let runtime_parameters = match kind {
            BuiltinKind::Runtime(f, _) => f.parameters(),
            _ => &[],
        };
        for (n, (o, p)) in args.iter().zip(&function.params).enumerate() {
            let expected = runtime_parameters.get(n);
            if expected.is_some_and(|e| !e.has_size(p.size())) {
                return Err(self.error(&format!(
                    "parameter {n} of `{}` has {} bytes, which is not the size of the CUDA manual's",
                    function.name,
                    p.size()
                )));
            }
            match expected.map(|e| e.words()) {
                // A structure, word by word.
                Some((count, bytes)) if count > 1 => {
                    let whole = self.builtin_arg(o, p.size() as u32, &mut list)?;
                    let BuiltinArg::Memory(at, _) = whole else {
                        return Err(self.error("a structure must be passed as a variable"));
                    };
                    arguments.extend((0..count).map(|n| BuiltinArg::Memory(at + n * bytes, bytes)));
                }
                _ => arguments.push(self.builtin_arg(o, p.size() as u32, &mut list)?),
            }
        }
        let result = match (returns.first(), function.returns.first()) {
            (Some(o), Some(v)) => Some(self.builtin_arg(o, v.size() as u32, &mut list)?),
            _ => None,
        };
        list.push(Action::Builtin(Box::new(BuiltinOp {
            kind,
            args: arguments,
            result,
        })));
        self.emit(list, i)
    }

    fn copies(
        &mut self,
        ops: &[Operand],
        callee: &[(u32, u32)],
        list: &mut Vec<Action>,
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
                Operand::Reg(r) => ArgCopy::Register {
                    caller: self.reg(*r)?,
                    callee: at,
                    size,
                },
                Operand::Sink => continue,
                o => {
                    let (slot, ty) = if size > 4 {
                        (Slot::R64, Type::U64)
                    } else {
                        (Slot::R32, Type::U32)
                    };
                    ArgCopy::Register {
                        caller: self.source(o, slot, ty, list)?,
                        callee: at,
                        size,
                    }
                }
            });
        }
        Ok(out)
    }

    fn variable_size(&self, v: VarId) -> u32 {
        let f = self.function;
        let found = match v {
            VarId::Local(n) => self.body.vars.get(n as usize),
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
            Operand::Targets(n) => of(*self.body.call_targets.get(*n as usize)?.1.first()?),
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
        let mut list = Vec::new();
        let (callee, return_slots, argument_slots) = match callee {
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
                let Some(&n) = self.layout.indices.get(&f.0) else {
                    return Err(self.error("internal error: the callee was not compiled"));
                };
                if function.is_entry {
                    return Err(self.error("a kernel cannot be called"));
                }
                let frame = &self.layout.functions[n].frame;
                let pairs = |at: &[u32], v: &[Variable]| -> Vec<(u32, u32)> {
                    at.iter()
                        .zip(v)
                        .map(|(a, v)| (*a, v.size() as u32))
                        .collect()
                };
                (
                    Callee::Direct(n as u32),
                    pairs(&frame.returns, &function.returns),
                    pairs(&frame.params, &function.params),
                )
            }
            Operand::Reg(r) => {
                let Some((proto_returns, proto_params)) = self.signature(i) else {
                    return Err(self.error("an indirect call needs a prototype"));
                };
                let address = self.source(&Operand::Reg(*r), Slot::R64, Type::U64, &mut list)?;
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
                (Callee::Indirect(address, at as u32), rets, args)
            }
            _ => return Err(self.error("the callee is missing")),
        };
        let args = self.copies(args, &argument_slots, &mut list)?;
        let returns = self.copies(returns, &return_slots, &mut list)?;
        list.push(Action::Call(Box::new(CallOp {
            callee,
            args,
            returns,
            may_wait: true,
        })));
        self.emit(list, i)
    }
}
