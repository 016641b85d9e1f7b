//! Symbol resolution: the definition of each name.

use std::collections::HashMap;

use super::renumber::NewNumbers;
use super::{Input, ItemRef, LinkError, LinkErrorKind, LinkItem, is_dynamic_shared, is_global};
use crate::ir::{Function, Linkage, Module, Space, Variable};

/// The definition of each name that modules share.
pub(super) type Definitions<'a> = HashMap<&'a str, ItemRef>;

/// Strength of a definition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// Uninitialized `.common`, by size: the largest is chosen.
    Common(u64),
    /// Initialized `.common`.
    Initialised,
    Weak,
    Strong,
}

/// Index of a function in its module after following aliases.
fn target_of(module: &Module, mut i: usize) -> usize {
    for _ in 0..=module.aliases.len() {
        match module.aliases.iter().find(|(a, _)| a.0 as usize == i) {
            Some((_, to)) => i = to.0 as usize,
            None => return i,
        }
    }
    i
}

fn function_strength(module: &Module, i: usize) -> Option<Strength> {
    let f = &module.functions[i];
    let defined = module
        .functions
        .get(target_of(module, i))
        .is_some_and(|f| f.body.is_some());
    (defined && is_global(f)).then_some(match f.linkage {
        Linkage::Weak => Strength::Weak,
        _ => Strength::Strong,
    })
}

fn variable_strength(v: &Variable) -> Option<Strength> {
    match v.linkage {
        Linkage::None | Linkage::Extern => None,
        Linkage::Visible => Some(Strength::Strong),
        Linkage::Weak => Some(Strength::Weak),
        Linkage::Common if v.init.is_empty() => Some(Strength::Common(v.size())),
        Linkage::Common => Some(Strength::Initialised),
    }
}

/// Chooses the definition of every shared name. Reports duplicate definitions and inconsistent declarations.
pub(super) fn definitions<'a>(inputs: &'a [Input], errors: &mut Vec<LinkError>) -> Definitions<'a> {
    let mut found: HashMap<&str, (ItemRef, Strength)> = HashMap::new();
    for (n, Input { name, module }) in inputs.iter().enumerate() {
        let functions = module.functions.iter().enumerate();
        let functions = functions
            .filter_map(|(i, f)| Some((&f.name, LinkItem::Func(i), function_strength(module, i)?)));
        let globals = module.globals.iter().enumerate();
        let globals =
            globals.filter_map(|(i, v)| Some((&v.name, LinkItem::Var(i), variable_strength(v)?)));
        for (symbol, item, strength) in functions.chain(globals) {
            let before = found.get(symbol.as_str()).copied();
            let twice = |s| matches!(s, Strength::Strong | Strength::Initialised);
            match before {
                Some(((m, _), was)) if was == strength && twice(was) => errors.push(LinkError {
                    kind: LinkErrorKind::Duplicate,
                    symbol: symbol.clone(),
                    message: format!(
                        "duplicate symbol: '{symbol}' is defined in '{}' and again in '{name}'",
                        inputs[m].name
                    ),
                }),
                Some((_, was)) if was >= strength => {}
                _ => {
                    found.insert(symbol, ((n, item), strength));
                }
            }
        }
    }
    let chosen: Definitions<'_> = found
        .into_iter()
        .map(|(name, (at, _))| (name, at))
        .collect();
    for (n, input) in inputs.iter().enumerate() {
        agree(inputs, &chosen, n, input, errors);
    }
    chosen
}

/// Compares the declarations of a module with the definitions.
fn agree(
    inputs: &[Input],
    chosen: &Definitions<'_>,
    n: usize,
    input: &Input,
    errors: &mut Vec<LinkError>,
) {
    let mut differ = |symbol: &str, m: usize, how: String| {
        errors.push(LinkError {
            kind: LinkErrorKind::Mismatch,
            symbol: symbol.to_owned(),
            message: format!(
                "'{symbol}' in '{}' does not fit its definition in '{}': {how}",
                input.name, inputs[m].name
            ),
        });
    };
    for f in input.module.functions.iter().filter(|f| shared_function(f)) {
        match chosen.get(f.name.as_str()) {
            Some(&(m, LinkItem::Func(k))) if m != n => {
                if let Some(how) = function_difference(f, &inputs[m].module.functions[k]) {
                    differ(&f.name, m, how);
                }
            }
            Some(&(m, LinkItem::Var(_))) => {
                differ(&f.name, m, "a function here, a variable there".into())
            }
            _ => {}
        }
    }
    let shared = |v: &&Variable| v.linkage != Linkage::None && !is_dynamic_shared(v);
    for v in input.module.globals.iter().filter(shared) {
        match chosen.get(v.name.as_str()) {
            Some(&(m, LinkItem::Var(k))) if m != n => {
                if let Some(how) = variable_difference(v, &inputs[m].module.globals[k]) {
                    differ(&v.name, m, how);
                }
            }
            Some(&(m, LinkItem::Func(_))) => {
                differ(&v.name, m, "a variable here, a function there".into())
            }
            _ => {}
        }
    }
}

/// Whether a function is shared between modules: it has a linking directive, is a kernel, or is a declaration.
fn shared_function(f: &Function) -> bool {
    is_global(f) || f.body.is_none()
}

fn function_difference(here: &Function, there: &Function) -> Option<String> {
    if here.is_entry != there.is_entry {
        return Some("one is a kernel, the other a function".into());
    }
    for (what, a, b) in [
        ("parameters", &here.params, &there.params),
        ("results", &here.returns, &there.returns),
    ] {
        if a.len() != b.len() {
            return Some(format!("{} {what} instead of {}", a.len(), b.len()));
        }
        if let Some(i) = (0..a.len()).find(|&i| a[i].size() != b[i].size()) {
            let (a, b) = (a[i].size(), b[i].size());
            return Some(format!(
                "number {} of the {what} has {a} bytes instead of {b}",
                i + 1
            ));
        }
    }
    None
}

fn variable_difference(here: &Variable, there: &Variable) -> Option<String> {
    if here.space != there.space {
        return Some(format!(
            "the state space is {} instead of {}",
            space(here.space),
            space(there.space)
        ));
    }
    // Tentative definitions may differ; the largest was chosen.
    let sized = !here.is_unsized() && !there.is_unsized() && here.linkage != Linkage::Common;
    if sized && here.size() != there.size() {
        return Some(format!("{} bytes instead of {}", here.size(), there.size()));
    }
    (here.managed != there.managed).then(|| "only one of them is managed".into())
}

fn space(space: Space) -> &'static str {
    match space {
        Space::Const => ".const",
        Space::Global => ".global",
        Space::Local => ".local",
        Space::Shared | Space::SharedCluster => ".shared",
        Space::Tex => ".tex",
        Space::Reg => ".reg",
        Space::Param => ".param",
    }
}

/// Maps an item that was not kept to the target of its alias or to the chosen definition of its name. Returns whether the
/// item is mapped.
pub(super) fn lead(
    inputs: &[Input],
    chosen: &Definitions<'_>,
    new_numbers: &mut NewNumbers,
    at: ItemRef,
) -> bool {
    // Follows names and aliases, at most once through every module.
    let mut here = at;
    for _ in 0..=2 * inputs.len() {
        if let Some(number) = new_numbers.of(here.0, here.1) {
            new_numbers.keep(at.0, at.1, number);
            return true;
        }
        let module = &inputs[here.0].module;
        let (name, shared) = match here.1 {
            LinkItem::Func(i) => (
                &module.functions[i].name,
                shared_function(&module.functions[i]),
            ),
            LinkItem::Var(i) => (
                &module.globals[i].name,
                module.globals[i].linkage != Linkage::None,
            ),
        };
        let own = match here.1 {
            LinkItem::Func(i) => LinkItem::Func(target_of(module, i)),
            var => var,
        };
        here = match chosen.get(name.as_str()) {
            Some(&next) if shared && next != here => next,
            _ if own != here.1 => (here.0, own),
            _ => return false,
        };
    }
    false
}
