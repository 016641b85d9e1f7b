//! Renumbers the references of bodies and initializers.

use std::collections::HashSet;

use super::{Input, ItemRef, LinkItem};
use crate::ir::{Base, Body, FuncId, InitElem, Operand, ProtoId, VarId};

/// New numbers of an input's items, by their old numbers.
type Numbers = Vec<Option<usize>>;

/// New numbers of the functions and variables of each input.
pub(super) struct NewNumbers(Vec<(Numbers, Numbers)>);

impl NewNumbers {
    pub(super) fn new(inputs: &[Input]) -> NewNumbers {
        let none = |n: usize| vec![None; n];
        let modules = inputs.iter().map(|i| &i.module);
        NewNumbers(
            modules
                .map(|m| (none(m.functions.len()), none(m.globals.len())))
                .collect(),
        )
    }

    pub(super) fn keep(&mut self, input: usize, item: LinkItem, number: usize) {
        let (functions, globals) = &mut self.0[input];
        match item {
            LinkItem::Func(i) => functions[i] = Some(number),
            LinkItem::Var(i) => globals[i] = Some(number),
        }
    }

    pub(super) fn of(&self, input: usize, item: LinkItem) -> Option<usize> {
        let (functions, globals) = self.0.get(input)?;
        match item {
            LinkItem::Func(i) => *functions.get(i)?,
            LinkItem::Var(i) => *globals.get(i)?,
        }
    }

    fn function(&self, input: usize, id: &mut FuncId) {
        if let Some(number) = self.of(input, LinkItem::Func(id.0 as usize)) {
            *id = FuncId(number as u32);
        }
    }

    fn variable(&self, input: usize, id: &mut VarId) {
        if let VarId::Module(n) = id
            && let Some(number) = self.of(input, LinkItem::Var(*n as usize))
        {
            *id = VarId::Module(number as u32);
        }
    }
}

/// Offsets of the numbers of an input's `.file` directives and prototypes.
#[derive(Clone, Copy, Default)]
pub(super) struct Shift {
    pub(super) files: u32,
    pub(super) prototypes: u32,
}

/// The items to which the code and the initializers of kept items refer.
pub(super) fn used(inputs: &[Input], new_numbers: &NewNumbers) -> HashSet<ItemRef> {
    let mut used = HashSet::new();
    for (n, Input { module, .. }) in inputs.iter().enumerate() {
        let mut item = |item| {
            used.insert((n, item));
        };
        let mut contents = |init: &[InitElem]| {
            for e in init {
                match e {
                    InitElem::Var {
                        var: VarId::Module(i),
                        ..
                    } => item(LinkItem::Var(*i as usize)),
                    InitElem::Func { func, .. } => item(LinkItem::Func(func.0 as usize)),
                    _ => {}
                }
            }
        };
        for (i, v) in module.globals.iter().enumerate() {
            if new_numbers.of(n, LinkItem::Var(i)).is_some() {
                contents(&v.init);
            }
        }
        for (i, f) in module.functions.iter().enumerate() {
            let Some(body) = f
                .body
                .as_ref()
                .filter(|_| new_numbers.of(n, LinkItem::Func(i)).is_some())
            else {
                continue;
            };
            body.vars.iter().for_each(|v| contents(&v.init));
        }
        for (i, f) in module.functions.iter().enumerate() {
            let Some(body) = f
                .body
                .as_ref()
                .filter(|_| new_numbers.of(n, LinkItem::Func(i)).is_some())
            else {
                continue;
            };
            for o in body.instrs.iter().flat_map(|i| &i.operands) {
                o.walk(&mut |o| match (o, o.variable()) {
                    (Operand::Func(f), _) => item(LinkItem::Func(f.0 as usize)),
                    (_, Some(VarId::Module(v))) => item(LinkItem::Var(v as usize)),
                    _ => {}
                });
            }
            for f in body.call_targets.iter().flat_map(|(_, list)| list) {
                item(LinkItem::Func(f.0 as usize));
            }
        }
    }
    used
}

/// Renumbers the references of a body of `input`.
pub(super) fn body(body: &mut Body, new_numbers: &NewNumbers, input: usize, shift: Shift) {
    for instr in &mut body.instrs {
        for o in &mut instr.operands {
            o.walk_mut(&mut |o| match o {
                Operand::Var(v, _) | Operand::Addr(Base::Var(v), _) => {
                    new_numbers.variable(input, v)
                }
                Operand::Func(f) => new_numbers.function(input, f),
                Operand::Proto(p) => *p = ProtoId(p.0 + shift.prototypes),
                _ => {}
            });
        }
        if let Some(loc) = &mut instr.loc {
            loc.file = loc.file.wrapping_add(shift.files);
        }
    }
    for v in &mut body.vars {
        initializer(&mut v.init, new_numbers, input);
    }
    for f in body.call_targets.iter_mut().flat_map(|(_, list)| list) {
        new_numbers.function(input, f);
    }
}

/// Renumbers the references of an initializer.
pub(super) fn initializer(init: &mut [InitElem], new_numbers: &NewNumbers, input: usize) {
    for e in init {
        match e {
            InitElem::Var { var, .. } => new_numbers.variable(input, var),
            InitElem::Func { func, .. } => new_numbers.function(input, func),
            _ => {}
        }
    }
}
