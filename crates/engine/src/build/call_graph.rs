//! The call graph below a kernel: reachable functions, recursion, stack depth.

use std::collections::{BTreeSet, HashMap, HashSet};

use cupyrite_ptx::ir::{Body, FuncId, InitElem, Instr, Module, Op, Operand};

/// The calls in the functions of a module, which the call graphs of all its kernels share.
pub struct ModuleCalls {
    /// For each function of the module, the functions with a body that it calls by name, in order.
    direct: Vec<Vec<FuncId>>,
    /// For each function of the module, whether it makes indirect calls.
    indirect: Vec<bool>,
    /// Functions that an indirect call may reach, in order.
    targets: Vec<FuncId>,
    /// Kernels whose address is taken, in order.
    pub kernels: Vec<FuncId>,
}

impl ModuleCalls {
    /// The calls in the functions of `m`.
    pub fn new(m: &Module) -> Self {
        let function = |f: &FuncId| &m.functions[f.0 as usize];
        let has_body = |f: &FuncId| function(f).body.is_some();
        let calls = |body: &'_ Body| {
            let calls = body.instrs.iter().filter(|i| i.op == Op::Call);
            let callees = calls.filter(|i| !i.is_indirect_call()).flat_map(callees_of);
            let callees: BTreeSet<u32> = callees.filter(&has_body).map(|f| f.0).collect();
            callees.into_iter().map(FuncId).collect()
        };
        let bodies = || m.functions.iter().map(|f| f.body.as_ref());
        let indirect = |b: &Body| b.instrs.iter().any(Instr::is_indirect_call);
        let taken: Vec<FuncId> = address_taken(m).into_iter().map(FuncId).collect();
        let is_entry = |f: &FuncId| function(f).is_entry;
        Self {
            direct: bodies().map(|b| b.map_or_else(Vec::new, calls)).collect(),
            indirect: bodies().map(|b| b.is_some_and(indirect)).collect(),
            kernels: taken.iter().copied().filter(is_entry).collect(),
            targets: taken
                .into_iter()
                .filter(|f| has_body(f) && !is_entry(f))
                .collect(),
        }
    }
}

/// The functions that an instruction names as its target.
fn callees_of(i: &Instr) -> impl Iterator<Item = FuncId> + '_ {
    i.operands.iter().filter_map(|o| match o {
        Operand::Func(f) => Some(*f),
        _ => None,
    })
}

/// Functions whose address is taken anywhere in the module.
fn address_taken(m: &Module) -> BTreeSet<u32> {
    let mut taken = BTreeSet::new();
    for body in m.functions.iter().filter_map(|f| f.body.as_ref()) {
        for i in &body.instrs {
            for o in &i.operands {
                // The target of a direct call does not count, its arguments do.
                if i.op == Op::Call && matches!(o, Operand::Func(_)) {
                    continue;
                }
                o.walk(&mut |o| {
                    if let Operand::Func(f) = o {
                        taken.insert(f.0);
                    }
                });
            }
        }
    }
    let variables = m
        .functions
        .iter()
        .filter_map(|f| f.body.as_ref())
        .flat_map(|b| &b.vars)
        .chain(&m.globals);
    for e in variables.flat_map(|v| &v.init) {
        if let InitElem::Func { func, .. } = e {
            taken.insert(func.0);
        }
    }
    taken
}

/// The functions that a kernel can reach.
pub struct CallGraph {
    /// Reachable functions with a body, the kernel first.
    pub functions: Vec<FuncId>,
    /// For each of them, the functions that it may call, as indices into `functions`.
    callees: Vec<Vec<usize>>,
    /// Functions that an indirect call may reach.
    pub indirect_targets: HashSet<u32>,
    /// The strongly connected components, each after those that it calls: indices into `functions`.
    components: Vec<Vec<usize>>,
}

impl CallGraph {
    /// The call graph below `kernel`.
    pub fn new(calls: &ModuleCalls, kernel: FuncId) -> Self {
        let mut functions = vec![kernel];
        let mut index = HashMap::from([(kernel.0, 0)]);
        let mut callees: Vec<Vec<usize>> = Vec::new();
        let mut indirect_targets = HashSet::new();
        while let Some(function) = functions.get(callees.len()) {
            let f = function.0 as usize;
            let mut out = calls.direct[f].clone();
            if calls.indirect[f] {
                out.extend(&calls.targets);
                out.sort_unstable_by_key(|f| f.0);
                out.dedup();
                indirect_targets.extend(calls.targets.iter().map(|f| f.0));
            }
            let known = out.into_iter().map(|f| {
                *index.entry(f.0).or_insert_with(|| {
                    functions.push(f);
                    functions.len() - 1
                })
            });
            callees.push(known.collect());
        }
        let components = components(&callees);
        Self {
            functions,
            callees,
            indirect_targets,
            components,
        }
    }

    /// For each function, whether it lies on a cycle.
    pub fn recursive(&self) -> Vec<bool> {
        let mut recursive = vec![false; self.functions.len()];
        for component in &self.components {
            for &n in component {
                recursive[n] = component.len() > 1 || self.callees[n].contains(&n);
            }
        }
        recursive
    }

    /// The largest sum of frame sizes of the functions below the kernel on a path. Those of a cycle count once each.
    pub fn deepest_calls(&self, frame_sizes: &[u32]) -> u64 {
        self.deepest_stack(frame_sizes) - u64::from(frame_sizes[0])
    }

    /// The largest sum of frame sizes on a path from the kernel. The functions of a cycle count once each.
    pub fn deepest_stack(&self, frame_sizes: &[u32]) -> u64 {
        let mut depth = vec![0; self.functions.len()];
        for component in &self.components {
            let callees = component.iter().flat_map(|&n| &self.callees[n]);
            // Zero for those of the same component.
            let below = callees.map(|&callee| depth[callee]).max().unwrap_or(0);
            let own: u64 = component.iter().map(|&n| u64::from(frame_sizes[n])).sum();
            for &n in component {
                depth[n] = own + below;
            }
        }
        depth[0]
    }
}

/// The strongly connected components of a graph whose nodes are reachable from node 0, each after those to which its edges
/// lead (Tarjan, "Depth-first search and linear graph algorithms", 1972). The search has a stack of its own: calls may be
/// nested thousands deep.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    /// The number of nodes in finished components: such a number never lowers another one.
    const FINISHED: usize = usize::MAX - 1;
    let mut number = vec![UNSEEN; edges.len()];
    let mut lowest = vec![UNSEEN; edges.len()];
    let mut found = Vec::new();
    let mut open = vec![0];
    let mut path = vec![(0, 0)];
    (number[0], lowest[0]) = (0, 0);
    let mut next = 1;
    while let Some((node, edge)) = path.last_mut() {
        let node = *node;
        if let Some(&to) = edges[node].get(*edge) {
            *edge += 1;
            if number[to] == UNSEEN {
                (number[to], lowest[to]) = (next, next);
                next += 1;
                open.push(to);
                path.push((to, 0));
            } else {
                lowest[node] = lowest[node].min(number[to]);
            }
            continue;
        }
        path.pop();
        if let Some(&(caller, _)) = path.last() {
            lowest[caller] = lowest[caller].min(lowest[node]);
        }
        if lowest[node] == number[node] {
            let start = open.iter().rposition(|&n| n == node).unwrap_or(0);
            let component = open.split_off(start);
            component.iter().for_each(|&n| number[n] = FINISHED);
            found.push(component);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(callees: &[&[usize]]) -> CallGraph {
        let callees: Vec<Vec<usize>> = callees.iter().map(|c| c.to_vec()).collect();
        CallGraph {
            functions: (0..callees.len() as u32).map(FuncId).collect(),
            components: components(&callees),
            callees,
            indirect_targets: HashSet::new(),
        }
    }

    #[test]
    fn functions_on_cycles_are_recursive() {
        // 0 calls 1 and 4; 1, 2 and 3 call each other; 4 calls itself and 5.
        let g = graph(&[&[1, 4], &[2], &[3], &[1, 5], &[4, 5], &[]]);
        let expected = [false, true, true, true, true, false];
        assert_eq!(g.recursive(), expected);
    }

    #[test]
    fn the_deepest_stack_is_that_of_the_longest_path() {
        let g = graph(&[&[1, 2], &[3], &[3], &[]]);
        assert_eq!(g.deepest_stack(&[16, 32, 48, 64]), 16 + 48 + 64);
        // A cycle of 1 and 2 counts once, with what it calls.
        let g = graph(&[&[1, 3], &[2], &[1, 3], &[]]);
        assert_eq!(g.deepest_stack(&[16, 32, 48, 64]), 16 + 32 + 48 + 64);
    }

    #[test]
    fn deep_chains_need_no_stack_of_the_host() {
        const COUNT: usize = 200_000;
        let callees: Vec<Vec<usize>> = (1..COUNT).map(|n| vec![n]).chain([vec![]]).collect();
        let found = components(&callees);
        assert_eq!(found.len(), COUNT);
        assert_eq!(found[0], [COUNT - 1]);
    }

    /// Random graphs, against reachability by search.
    #[test]
    fn components_are_mutually_reachable() {
        let mut random = 7u64;
        let mut next = |bound: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % bound
        };
        for _ in 0..200 {
            let count = 2 + next(8);
            let mut callees: Vec<Vec<usize>> = vec![Vec::new(); count];
            for _ in 0..next(20) {
                let (from, to) = (next(count), next(count));
                callees[from].push(to);
            }
            // Every node is reachable from node 0.
            callees[0].extend(0..count);
            let reach = |from: usize| {
                let (mut seen, mut stack) = (vec![false; count], vec![from]);
                while let Some(n) = stack.pop() {
                    for &to in &callees[n] {
                        if !std::mem::replace(&mut seen[to], true) {
                            stack.push(to);
                        }
                    }
                }
                seen
            };
            let reaches: Vec<Vec<bool>> = (0..count).map(reach).collect();
            let found = components(&callees);
            let mut of = vec![usize::MAX; count];
            for (n, component) in found.iter().enumerate() {
                for &node in component {
                    assert_eq!(std::mem::replace(&mut of[node], n), usize::MAX);
                }
            }
            for a in 0..count {
                for b in 0..count {
                    let together = a == b || reaches[a][b] && reaches[b][a];
                    assert_eq!(of[a] == of[b], together);
                    assert!(!reaches[a][b] || of[b] <= of[a]);
                }
            }
        }
    }
}
