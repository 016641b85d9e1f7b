//! Register allocation on random control flow.

use std::fmt::Write as _;

use super::register_allocation::{NONE, allocate};
use crate::Image;
use crate::compile::to_kir;
use crate::kir::{Action, BlockId, Function, Kernel, Reg, Role, Source};
use crate::memory::AddressSpace;

/// A generator of pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A kernel of random instructions and branches.
fn random_kernel(random: &mut Random) -> Kernel {
    let blocks = 2 + random.below(8);
    let mut body = String::from("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %laneid;\n");
    for block in 0..blocks {
        let _ = writeln!(body, "B{block}:");
        for _ in 0..random.below(6) {
            let mut r = || 1 + random.below(6);
            let (d, a, b) = (r(), r(), r());
            let guard = match r() {
                1 => "@%p1 ",
                2 => "@!%p2 ",
                _ => "",
            };
            let _ = match r() {
                1 => writeln!(body, "{guard}setp.lt.s32 %p{}, %r{a}, %r{b};", 1 + d % 2),
                2 => writeln!(
                    body,
                    "{guard}shfl.sync.idx.b32 %r{d}|%p1, %r{a}, %r{b}, 31, -1;"
                ),
                3 => writeln!(body, "{guard}mul.wide.s32 %rd{d}, %r{a}, %r{b};"),
                4 => writeln!(body, "{guard}add.s64 %rd{d}, %rd{a}, %rd{b};"),
                _ => writeln!(body, "{guard}add.s32 %r{d}, %r{a}, %r{b};"),
            };
        }
        if random.below(3) > 0 {
            let guard = ["@%p1 ", "@!%p2 ", "@%p2 "][random.below(3) as usize];
            let _ = writeln!(body, "{guard}bra B{};", random.below(blocks));
        }
    }
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n{body}ret; }}"
    );
    let image = Image::load(&text, AddressSpace::global()).unwrap();
    let (placed, id) = image.kernels()[0].source_for_tests();
    to_kir(&placed, id, None).unwrap().0
}

/// Follows a random path of one thread, and checks that a register that it reads still is in its slot.
fn walk(f: &Function, locations: &[u32], random: &mut Random) {
    // The register that was written to each location last, and whether a register was written at all.
    let mut holds = std::collections::HashMap::new();
    let mut written = vec![false; f.registers.len()];
    let mut block = 0;
    for _ in 0..60 {
        for i in &f.blocks[block].instructions {
            let check = |r: Reg| {
                let at = locations[r.at as usize];
                assert_ne!(at, NONE, "{} has no location\n{f}", f.operand(r));
                if written[r.at as usize] {
                    assert_eq!(holds.get(&at), Some(&r.at), "{} is lost\n{f}", f.operand(r));
                }
            };
            i.guard.iter().for_each(|g| check(g.predicate));
            i.action.for_each(&mut |role, r| {
                if role == Role::Read {
                    check(*r);
                }
            });
            if i.guard.is_some() && random.below(2) == 0 {
                continue;
            }
            i.action.for_each(&mut |role, r| {
                let source = f.registers[r.at as usize].source;
                if role == Role::Write && !matches!(source, Source::Fixed(_)) {
                    holds.insert(locations[r.at as usize], r.at);
                    written[r.at as usize] = true;
                }
            });
        }
        let successors = f.successors(BlockId(block as u32));
        let Some(next) = successors.get(random.below(successors.len().max(1) as u64) as usize)
        else {
            return;
        };
        block = next.0 as usize;
    }
}

#[test]
fn no_thread_loses_a_register() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut shared = 0;
    for _ in 0..300 {
        let kernel = random_kernel(&mut random);
        let allocation = allocate(&kernel);
        let (f, locations) = (&kernel.functions[0], &allocation.locations[0]);
        let mut used: Vec<u32> = locations.iter().copied().filter(|at| *at != NONE).collect();
        let count = used.len();
        used.sort_unstable();
        used.dedup();
        shared += count - used.len();
        for _ in 0..20 {
            walk(f, locations, &mut random);
        }
    }
    assert!(shared > 300, "{shared} registers share a slot");
}

#[test]
fn destinations_of_one_instruction_have_slots_of_their_own() {
    let mut random = Random(7);
    for _ in 0..300 {
        let kernel = random_kernel(&mut random);
        let allocation = allocate(&kernel);
        let locations = &allocation.locations[0];
        for i in kernel.functions[0].instructions() {
            let (mut reads, mut writes) = (Vec::new(), Vec::new());
            i.action.for_each(&mut |role, r| match role {
                Role::Read => reads.push(*r),
                Role::Write => writes.push(*r),
            });
            for (n, a) in writes.iter().enumerate() {
                let at = |r: &Reg| locations[r.at as usize];
                assert!(
                    writes[..n].iter().all(|b| a == b || at(a) != at(b)),
                    "{i:?}"
                );
                let lanes = matches!(i.action, Action::Lanes(_));
                assert!(
                    lanes || reads.iter().all(|r| a == r || at(a) != at(r)),
                    "{i:?}"
                );
            }
        }
    }
}
