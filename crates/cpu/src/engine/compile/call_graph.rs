//! The call graph below a kernel: reachable functions, recursion, stack depth.

use std::collections::{BTreeSet, HashMap};

use cupyrite_ptx::ir::{FuncId, InitElem, Module, Op, Operand};

/// The functions that a kernel can reach.
pub struct CallGraph {
    /// Reachable functions with a body, the kernel first.
    pub functions: Vec<FuncId>,
    /// For each of them, the functions that it may call.
    callees: Vec<Vec<FuncId>>,
    /// Functions that an indirect call may reach.
    pub indirect_targets: BTreeSet<u32>,
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

impl CallGraph {
    /// The call graph below `kernel`.
    pub fn new(m: &Module, kernel: FuncId) -> Self {
        let taken: BTreeSet<u32> = address_taken(m)
            .into_iter()
            .filter(|&f| {
                m.functions[f as usize].body.is_some() && !m.functions[f as usize].is_entry
            })
            .collect();
        let mut functions = vec![kernel];
        let mut callees = Vec::new();
        let mut indirect_targets = BTreeSet::new();
        let mut n = 0;
        while n < functions.len() {
            let mut out = Vec::new();
            if let Some(body) = &m.functions[functions[n].0 as usize].body {
                for i in body.instrs.iter().filter(|i| i.op == Op::Call) {
                    if i.is_indirect_call() {
                        out.extend(taken.iter().map(|&f| FuncId(f)));
                        indirect_targets.extend(taken.iter().copied());
                    } else {
                        out.extend(i.operands.iter().filter_map(|o| match o {
                            Operand::Func(f) => Some(*f),
                            _ => None,
                        }));
                    }
                }
            }
            out.sort_by_key(|f| f.0);
            out.dedup();
            out.retain(|f| m.functions[f.0 as usize].body.is_some());
            for f in &out {
                if !functions.contains(f) {
                    functions.push(*f);
                }
            }
            callees.push(out);
            n += 1;
        }
        Self {
            functions,
            callees,
            indirect_targets,
        }
    }

    /// For each function, whether it lies on a cycle.
    pub fn recursive(&self) -> Vec<bool> {
        let index: HashMap<u32, usize> = self
            .functions
            .iter()
            .enumerate()
            .map(|(n, f)| (f.0, n))
            .collect();
        (0..self.functions.len())
            .map(|start| {
                let mut seen = vec![false; self.functions.len()];
                let mut stack: Vec<usize> =
                    self.callees[start].iter().map(|f| index[&f.0]).collect();
                while let Some(n) = stack.pop() {
                    if n == start {
                        return true;
                    }
                    if !std::mem::replace(&mut seen[n], true) {
                        stack.extend(self.callees[n].iter().map(|f| index[&f.0]));
                    }
                }
                false
            })
            .collect()
    }

    /// The largest sum of frame sizes on a path from the kernel. A function on a cycle counts once.
    pub fn deepest_stack(&self, frame_sizes: &[u32]) -> u64 {
        self.deepest_below(
            0,
            frame_sizes,
            &mut Vec::new(),
            &mut vec![None; self.functions.len()],
        )
    }

    fn deepest_below(
        &self,
        n: usize,
        sizes: &[u32],
        path: &mut Vec<usize>,
        memo: &mut [Option<u64>],
    ) -> u64 {
        if let Some(depth) = memo[n] {
            return depth;
        }
        if path.len() > 500 {
            // Exceeds every stack limit, so that the kernel is refused.
            return u64::from(u32::MAX);
        }
        path.push(n);
        let mut below = 0;
        for f in &self.callees[n] {
            if let Some(k) = self.functions.iter().position(|o| o == f)
                && !path.contains(&k)
            {
                below = below.max(self.deepest_below(k, sizes, path, memo));
            }
        }
        path.pop();
        let depth = u64::from(sizes[n]) + below;
        memo[n] = Some(depth);
        depth
    }
}
