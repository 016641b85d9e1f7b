//! Where the lanes of a warp come together again after a divergent branch.
//!
//! The reconvergence point of a branch is its immediate post-dominator: the first block that every path from the branch to the
//! end of the function passes. The interpreter needs no such points, because it runs the lanes with the lowest position
//! first and merges those that meet. A tier that keeps a stack of masks does.

use crate::build::CompileError;
use crate::kir::{BlockId, Function};

/// Finds the reconvergence point of every block that control can leave in more than one way.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a pass")]
pub fn find_reconvergence_points(f: &mut Function) -> Result<(), CompileError> {
    let count = f.blocks.len();
    let exit = count as u32;
    // The reversed graph, from a node behind all blocks that end the function.
    let mut reversed = vec![Vec::new(); count + 1];
    let mut forks = vec![false; count];
    for (n, forks) in forks.iter_mut().enumerate() {
        let successors = f.successors(BlockId(n as u32));
        *forks = successors.len() > 1;
        if successors.is_empty() {
            reversed[count].push(n as u32);
        }
        for s in successors {
            reversed[s.0 as usize].push(n as u32);
        }
    }
    let dominators = immediate_dominators(&reversed, exit);
    let point = |n: usize| {
        dominators[n]
            .filter(|d| forks[n] && *d != exit)
            .map(BlockId)
    };
    f.reconvergence = (0..count).map(point).collect();
    Ok(())
}

/// The immediate dominator of each node of a graph, which has the successors of each; `None` for the entry and for nodes that
/// it does not reach. The algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
pub fn immediate_dominators(successors: &[Vec<u32>], entry: u32) -> Vec<Option<u32>> {
    const UNREACHED: u32 = u32::MAX;
    let postorder = postorder(successors, entry);
    let mut number = vec![UNREACHED; successors.len()];
    for (n, &node) in postorder.iter().enumerate() {
        number[node as usize] = n as u32;
    }
    let mut predecessors = vec![Vec::new(); successors.len()];
    for &node in &postorder {
        for &s in &successors[node as usize] {
            predecessors[s as usize].push(node);
        }
    }
    // By number; the entry has the highest.
    let mut dominators = vec![UNREACHED; postorder.len()];
    let Some(last) = dominators.last_mut() else {
        return vec![None; successors.len()];
    };
    *last = postorder.len() as u32 - 1;
    let mut changed = true;
    while changed {
        changed = false;
        for &node in postorder.iter().rev().skip(1) {
            let known = predecessors[node as usize]
                .iter()
                .map(|p| number[*p as usize]);
            let mut known = known.filter(|p| dominators[*p as usize] != UNREACHED);
            let Some(mut new) = known.next() else {
                continue;
            };
            for mut other in known {
                while new != other {
                    if new < other {
                        new = dominators[new as usize];
                    } else {
                        other = dominators[other as usize];
                    }
                }
            }
            let own = &mut dominators[number[node as usize] as usize];
            changed |= *own != new;
            *own = new;
        }
    }
    let dominator = |node: usize| match number[node] {
        UNREACHED => None,
        n if n as usize + 1 == postorder.len() => None,
        n => Some(postorder[dominators[n as usize] as usize]),
    };
    (0..successors.len()).map(dominator).collect()
}

/// The nodes that `entry` reaches, each after its successors, as far as there is no cycle.
fn postorder(successors: &[Vec<u32>], entry: u32) -> Vec<u32> {
    let mut order = Vec::new();
    let mut visited = vec![false; successors.len()];
    visited[entry as usize] = true;
    // A stack of its own: chains of blocks can be longer than the thread's.
    let mut stack = vec![(entry, 0)];
    while let Some((node, next)) = stack.last_mut() {
        match successors[*node as usize].get(*next) {
            Some(&s) => {
                *next += 1;
                if !std::mem::replace(&mut visited[s as usize], true) {
                    stack.push((s, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::immediate_dominators;

    /// A node that each path from the entry to `node` passes, by definition: without it, there is no path.
    fn dominates(successors: &[Vec<u32>], by: u32, node: u32) -> bool {
        let mut reached = vec![false; successors.len()];
        let mut stack = vec![0];
        while let Some(n) = stack.pop() {
            if n != by && !std::mem::replace(&mut reached[n as usize], true) {
                stack.extend(&successors[n as usize]);
            }
        }
        !reached[node as usize]
    }

    #[test]
    fn dominators_are_those_of_the_definition() {
        let mut state = 1u64;
        let mut random = move |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..200 {
            let count = 2 + random(9);
            let mut edges = || (0..random(4)).map(|_| random(count) as u32).collect();
            let successors: Vec<Vec<u32>> = (0..count).map(|_| edges()).collect();
            let found = immediate_dominators(&successors, 0);
            for node in 1..count as u32 {
                let strict = (0..count as u32).filter(|d| *d != node);
                let strict: Vec<u32> = strict
                    .filter(|d| dominates(&successors, *d, node))
                    .collect();
                // Every node dominates one that is not reached.
                let unreached =
                    strict.len() == count - 1 && dominates(&successors, node, node) && {
                        let direct = successors.iter().enumerate();
                        let reached =
                            |n: usize| n == 0 || !dominates(&successors, u32::MAX, n as u32);
                        !direct.clone().any(|(n, s)| reached(n) && s.contains(&node))
                    };
                let closest = strict.iter().copied().find(|d| {
                    strict
                        .iter()
                        .all(|other| other == d || dominates(&successors, *other, *d))
                });
                let expected = if unreached { None } else { closest };
                assert_eq!(
                    found[node as usize], expected,
                    "node {node} of {successors:?}"
                );
            }
        }
    }
}
