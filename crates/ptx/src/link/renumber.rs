//! Renumbers the references of bodies and initializers.

use std::collections::HashSet;

use super::{At, Input, Item};
use crate::ir::{Base, Body, FuncId, InitElem, Operand, ProtoId, VarId};

/// New numbers of an input's items, by their old numbers.
type Numbers = Vec<Option<usize>>;

/// New numbers of the functions and variables of each input.
pub(super) struct Places(Vec<(Numbers, Numbers)>);

impl Places {
    pub(super) fn new(inputs: &[Input]) -> Places {
        let none = |n: usize| vec![None; n];
        let modules = inputs.iter().map(|i| &i.module);
        Places(
            modules
                .map(|m| (none(m.functions.len()), none(m.globals.len())))
                .collect(),
        )
    }

    pub(super) fn keep(&mut self, input: usize, item: Item, place: usize) {
        let (functions, globals) = &mut self.0[input];
        match item {
            Item::Func(i) => functions[i] = Some(place),
            Item::Var(i) => globals[i] = Some(place),
        }
    }

    pub(super) fn of(&self, input: usize, item: Item) -> Option<usize> {
        let (functions, globals) = self.0.get(input)?;
        match item {
            Item::Func(i) => *functions.get(i)?,
            Item::Var(i) => *globals.get(i)?,
        }
    }

    fn function(&self, input: usize, id: &mut FuncId) {
        if let Some(place) = self.of(input, Item::Func(id.0 as usize)) {
            *id = FuncId(place as u32);
        }
    }

    fn variable(&self, input: usize, id: &mut VarId) {
        if let VarId::Module(n) = id
            && let Some(place) = self.of(input, Item::Var(*n as usize))
        {
            *id = VarId::Module(place as u32);
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
pub(super) fn used(inputs: &[Input], places: &Places) -> HashSet<At> {
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
                    } => item(Item::Var(*i as usize)),
                    InitElem::Func { func, .. } => item(Item::Func(func.0 as usize)),
                    _ => {}
                }
            }
        };
        for (i, v) in module.globals.iter().enumerate() {
            if places.of(n, Item::Var(i)).is_some() {
                contents(&v.init);
            }
        }
        for (i, f) in module.functions.iter().enumerate() {
            let Some(body) = f
                .body
                .as_ref()
                .filter(|_| places.of(n, Item::Func(i)).is_some())
            else {
                continue;
            };
            body.vars.iter().for_each(|v| contents(&v.init));
        }
        for (i, f) in module.functions.iter().enumerate() {
            let Some(body) = f
                .body
                .as_ref()
                .filter(|_| places.of(n, Item::Func(i)).is_some())
            else {
                continue;
            };
            for o in body.instrs.iter().flat_map(|i| &i.operands) {
                o.walk(&mut |o| match (o, o.variable()) {
                    (Operand::Func(f), _) => item(Item::Func(f.0 as usize)),
                    (_, Some(VarId::Module(v))) => item(Item::Var(v as usize)),
                    _ => {}
                });
            }
            for f in body.call_targets.iter().flat_map(|(_, list)| list) {
                item(Item::Func(f.0 as usize));
            }
        }
    }
    used
}

/// Renumbers the references of a body of `input`.
pub(super) fn body(body: &mut Body, places: &Places, input: usize, shift: Shift) {
    for instr in &mut body.instrs {
        for o in &mut instr.operands {
            o.walk_mut(&mut |o| match o {
                Operand::Var(v, _) | Operand::Addr(Base::Var(v), _) => places.variable(input, v),
                Operand::Func(f) => places.function(input, f),
                Operand::Proto(p) => *p = ProtoId(p.0 + shift.prototypes),
                _ => {}
            });
        }
        if let Some(loc) = &mut instr.loc {
            loc.file = loc.file.wrapping_add(shift.files);
        }
    }
    for v in &mut body.vars {
        initializer(&mut v.init, places, input);
    }
    for f in body.call_targets.iter_mut().flat_map(|(_, list)| list) {
        places.function(input, f);
    }
}

/// Renumbers the references of an initializer.
pub(super) fn initializer(init: &mut [InitElem], places: &Places, input: usize) {
    for e in init {
        match e {
            InitElem::Var { var, .. } => places.variable(input, var),
            InitElem::Func { func, .. } => places.function(input, func),
            _ => {}
        }
    }
}
