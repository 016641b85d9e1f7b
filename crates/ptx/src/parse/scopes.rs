//! Scopes: declarations of names, and their lookup.
//!
//! Parameterized registers (`%r<100>`) are kept as ranges. A register is created on first use, so that the count in a
//! declaration costs nothing.

use crate::ir::{Body, FuncId, Label, LabelId, Pos, ProtoId, RegId, Register, Type, VarId};
use std::collections::HashMap;

/// Meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Symbol {
    Reg(RegId),
    Var(VarId),
    Func(FuncId),
    Proto(ProtoId),
    BranchTargets(u32),
    CallTargets(u32),
}

/// Names of module scope.
pub(crate) type Names<'t> = HashMap<&'t str, Symbol>;

/// `.reg .type name<count>`.
#[derive(Clone, Copy)]
struct Range {
    count: u32,
    ty: Type,
    vector: u32,
}

/// A use of a label that may be defined later.
struct Pending<'t> {
    reference: u32,
    name: &'t str,
    pos: Pos,
}

#[derive(Default)]
struct Scope<'t> {
    names: Names<'t>,
    ranges: HashMap<&'t str, Range>,
    labels: HashMap<&'t str, LabelId>,
    pending: Vec<Pending<'t>>,
}

/// The current function: its body and its open scopes, the outermost (parameters) first.
#[derive(Default)]
pub(crate) struct FunctionScopes<'t> {
    pub body: Body,
    scopes: Vec<Scope<'t>>,
    /// The label of each use. Until the body ends, operands hold an index into this list.
    references: Vec<Option<LabelId>>,
}

/// All splits of a name into a prefix and a number, the longest number last.
fn splits(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name
        .bytes()
        .rev()
        .take_while(u8::is_ascii_digit)
        .count()
        .min(10);
    (1..=digits).filter_map(move |n| {
        let (prefix, number) = name.split_at(name.len() - n);
        let plain = !number.starts_with('0') || n == 1;
        Some((prefix, plain.then(|| number.parse().ok()).flatten()?))
    })
}

impl<'t> FunctionScopes<'t> {
    pub fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Closes the innermost scope. Uses of labels that it does not define pass to the enclosing scope.
    pub fn close(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        for pending in scope.pending {
            if let Some(label) = scope.labels.get(pending.name) {
                self.references[pending.reference as usize] = Some(*label);
            } else if let Some(outer) = self.scopes.last_mut() {
                outer.pending.push(pending);
            }
        }
    }

    /// A label that is used but not defined in an enclosing scope. Call it while the outermost scope is open.
    pub fn undefined(&self) -> Option<(&'t str, Pos)> {
        let scope = self.scopes.first()?;
        scope
            .pending
            .iter()
            .find(|p| !scope.labels.contains_key(p.name))
            .map(|p| (p.name, p.pos))
    }

    pub fn resolved(&self, reference: LabelId) -> Option<LabelId> {
        self.references.get(reference.0 as usize).copied().flatten()
    }

    /// Declares a name in the innermost scope. Returns false if it is declared there.
    pub fn declare(&mut self, name: &'t str, symbol: Symbol) -> bool {
        let Some(scope) = self.scopes.last_mut() else {
            return false;
        };
        if splits(name).any(|(prefix, n)| scope.ranges.get(prefix).is_some_and(|r| n < r.count)) {
            return false;
        }
        scope.names.insert(name, symbol).is_none()
    }

    pub fn declare_reg(&mut self, name: &'t str, ty: Type, vector: u32) -> bool {
        let id = RegId(self.body.regs.len() as u32);
        self.body.regs.push(Register {
            name: name.to_string(),
            ty,
            vector,
        });
        self.declare(name, Symbol::Reg(id))
    }

    pub fn declare_range(&mut self, prefix: &'t str, count: u32, ty: Type, vector: u32) -> bool {
        let Some(scope) = self.scopes.last_mut() else {
            return false;
        };
        scope
            .ranges
            .insert(prefix, Range { count, ty, vector })
            .is_none()
    }

    /// The symbol of a name, without module scope.
    pub fn find(&mut self, name: &'t str) -> Option<Symbol> {
        for scope in self.scopes.iter_mut().rev() {
            if let Some(symbol) = scope.names.get(name) {
                return Some(*symbol);
            }
            if scope.ranges.is_empty() {
                continue;
            }
            let range = splits(name).find_map(|(p, n)| scope.ranges.get(p).filter(|r| n < r.count));
            if let Some(&Range { ty, vector, .. }) = range {
                let symbol = Symbol::Reg(RegId(self.body.regs.len() as u32));
                self.body.regs.push(Register {
                    name: name.to_string(),
                    ty,
                    vector,
                });
                scope.names.insert(name, symbol);
                return Some(symbol);
            }
        }
        None
    }

    /// Defines a label before the next instruction. Returns false if the innermost scope has defined it.
    pub fn define_label(&mut self, name: &'t str) -> bool {
        let id = LabelId(self.body.labels.len() as u32);
        let at = self.body.instrs.len() as u32;
        let Some(scope) = self.scopes.last_mut() else {
            return false;
        };
        self.body.labels.push(Label {
            name: name.to_string(),
            at,
        });
        scope.labels.insert(name, id).is_none()
    }

    /// Records a use of a label. [`Self::resolved`] translates the result at the end of the body.
    pub fn refer_label(&mut self, name: &'t str, pos: Pos) -> LabelId {
        let reference = self.references.len() as u32;
        self.references.push(None);
        if let Some(scope) = self.scopes.last_mut() {
            scope.pending.push(Pending {
                reference,
                name,
                pos,
            });
        }
        LabelId(reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_registers_on_use() {
        let mut f = FunctionScopes::default();
        f.open();
        assert!(f.declare_range("%r", 100, Type::B32, 1));
        assert!(f.declare_range("t1", 3, Type::F32, 1));
        assert!(!f.declare("%r99", Symbol::Func(FuncId(0))));
        assert_eq!(f.find("%r7"), Some(Symbol::Reg(RegId(0))));
        assert_eq!(f.find("t12"), Some(Symbol::Reg(RegId(1))));
        assert_eq!(f.find("%r7"), Some(Symbol::Reg(RegId(0))));
        assert_eq!(f.find("%r100"), None);
        assert_eq!(f.find("%r07"), None);
        assert_eq!(f.find("%r"), None);
        f.open();
        assert!(f.declare_reg("%r7", Type::Pred, 1));
        assert_eq!(f.find("%r7"), Some(Symbol::Reg(RegId(2))));
        f.close();
        assert_eq!(f.find("%r7"), Some(Symbol::Reg(RegId(0))));
        assert_eq!(f.body.regs.len(), 3);
    }

    #[test]
    fn labels_belong_to_scopes() {
        let mut f = FunctionScopes::default();
        f.open();
        let outer = f.refer_label("L", Pos::default());
        f.open();
        let inner = f.refer_label("L", Pos::default());
        let beyond = f.refer_label("M", Pos::default());
        assert!(f.define_label("L"));
        assert!(!f.define_label("L"));
        f.close();
        assert!(f.undefined().is_some());
        assert!(f.define_label("L") && f.define_label("M"));
        assert!(f.undefined().is_none());
        f.close();
        assert_eq!(f.resolved(inner), Some(LabelId(1)));
        assert_ne!(f.resolved(inner), f.resolved(outer));
        assert!(f.resolved(beyond).is_some());
    }
}
