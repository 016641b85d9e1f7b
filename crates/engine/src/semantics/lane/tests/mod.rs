//! Tests of every lane function against plain references: random and special values, full and partial masks, both versions
//! of the code.

mod convert;
mod coverage;
mod float;
mod half;
mod integer;
mod logic;
mod math;
mod reference;
mod values;
mod video;

use super::lanes::with_baseline;
use super::{OpArgs, OperandRef, OperandSlot, Selected, Slot, select};
use cupyrite_ptx::ir::{Instr, Operand, RegId, Register, Type};
use values::Rng;

/// A module with one instruction, and registers `%p`, `%h` (16 bits), `%r` (32), `%d` (64), `%q` (128), numbered 0 to 7.
fn module(instruction: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100\n.address_size 64\n.func t()\n{{\n.reg .pred %p<8>; .reg .b16 %h<8>; \
         .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b128 %q<8>;\n{instruction}\nret;\n}}\n"
    )
}

/// Whether PTX has the instruction.
fn exists(instruction: &str) -> bool {
    cupyrite_ptx::parse(&module(instruction)).is_ok()
}

/// Parses one instruction.
fn parse(instruction: &str) -> (Instr, Vec<Register>) {
    let module =
        cupyrite_ptx::parse(&module(instruction)).unwrap_or_else(|e| panic!("{instruction}: {e}"));
    let body = module.functions[0].body.clone().expect("a body");
    (body.instrs[0].clone(), body.regs)
}

/// A register file of 64 slots of the largest size.
#[repr(align(64))]
struct File([u8; File::SLOT * 64]);

impl File {
    const SLOT: usize = 512;
    fn new() -> Box<File> {
        Box::new(File([0xa5; File::SLOT * 64]))
    }
    fn lane(&self, at: u32, slot: Slot, lane: usize) -> u128 {
        let at = at as usize;
        let bytes = |n: usize| &self.0[at + n * lane..at + n * (lane + 1)];
        match slot {
            Slot::Pred => u128::from(
                u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four")) >> lane & 1,
            ),
            Slot::R32 => u128::from(u32::from_le_bytes(bytes(4).try_into().expect("four"))),
            Slot::R64 => u128::from(u64::from_le_bytes(bytes(8).try_into().expect("eight"))),
            Slot::R128 => u128::from_le_bytes(bytes(16).try_into().expect("sixteen")),
        }
    }
    fn set(&mut self, at: u32, slot: Slot, lane: usize, v: u128) {
        let at = at as usize;
        match slot {
            Slot::Pred => {
                let old = u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four"));
                let new = old & !(1 << lane) | ((v & 1) as u32) << lane;
                self.0[at..at + 4].copy_from_slice(&new.to_le_bytes());
            }
            Slot::R32 => self.0[at + 4 * lane..][..4].copy_from_slice(&(v as u32).to_le_bytes()),
            Slot::R64 => self.0[at + 8 * lane..][..8].copy_from_slice(&(v as u64).to_le_bytes()),
            Slot::R128 => self.0[at + 16 * lane..][..16].copy_from_slice(&v.to_le_bytes()),
        }
    }
}

/// An instruction with its lane function in both versions. Register `n` has slot `n` of the file.
struct Test {
    text: String,
    versions: Vec<Selected>,
    args: OpArgs,
    sources: Vec<OperandSlot>,
    destinations: Vec<OperandSlot>,
}

fn register(o: &Operand) -> Option<RegId> {
    match o {
        Operand::Reg(r) | Operand::NotReg(r) | Operand::RegSelect(r, _) => Some(*r),
        Operand::Neg(o) => register(o),
        _ => None,
    }
}

impl Test {
    fn new(text: &str) -> Test {
        let (instr, regs) = parse(text);
        let s = select(&instr, &regs).unwrap_or_else(|| panic!("{text}: no lane function"));
        let base = with_baseline(|| select(&instr, &regs)).expect("selected before");
        let slot = |operand: OperandRef, n: usize, destination: bool| -> u32 {
            let operand = match operand {
                OperandRef::Operand(k) => Some(&instr.operands[usize::from(k)]),
                OperandRef::Part(k, c) => match &instr.operands[usize::from(k)] {
                    Operand::Vector(v) => Some(&v[usize::from(c)]),
                    Operand::Pair(a, b) => Some(if c == 0 { &**a } else { &**b }),
                    _ => panic!("{text}: no parts"),
                },
                OperandRef::Carry => return 62 * File::SLOT as u32,
                OperandRef::Scratch => return 63 * File::SLOT as u32,
            };
            match operand.and_then(register) {
                Some(r) => r.0 * File::SLOT as u32,
                None => (40 + n as u32 + 8 * u32::from(destination)) * File::SLOT as u32,
            }
        };
        let mut args = OpArgs {
            imm: s.imm,
            ..OpArgs::default()
        };
        let mut sources = Vec::new();
        let mut destinations = Vec::new();
        for (n, p) in s.srcs.iter().enumerate() {
            if let Some(p) = p {
                args.src[n] = slot(p.operand, n, false);
                sources.push(*p);
            }
        }
        for (n, p) in s.dsts.iter().enumerate() {
            if let Some(p) = p {
                args.dst[n] = slot(p.operand, n, true);
                destinations.push(*p);
            }
        }
        Test {
            text: text.to_string(),
            versions: vec![s, base],
            args,
            sources,
            destinations,
        }
    }

    /// Runs one version and compares all lanes.
    fn run(&self, version: usize, inputs: &[Vec<u128>], mask: u32, expected: &[Vec<u128>]) {
        let s = &self.versions[version];
        let mut file = File::new();
        for (n, p) in self.sources.iter().enumerate() {
            for (lane, values) in inputs.iter().enumerate() {
                // The contents of a scratch source do not matter.
                file.set(
                    self.args.src[n],
                    p.slot,
                    lane,
                    values.get(n).copied().unwrap_or(0),
                );
            }
        }
        let before = File(file.0);
        // SAFETY: the file is aligned to 64 bytes, and every offset is that of one of its 64 slots of the largest size.
        unsafe { (s.run)(file.0.as_mut_ptr(), &self.args, mask) };
        for lane in 0..32 {
            for (n, p) in self.destinations.iter().enumerate() {
                if p.operand == OperandRef::Scratch {
                    continue;
                }
                let got = file.lane(self.args.dst[n], p.slot, lane);
                let on = mask >> lane & 1 != 0;
                let want = if on {
                    expected[lane][n]
                } else {
                    before.lane(self.args.dst[n], p.slot, lane)
                };
                // Payloads of double precision have a test of their own.
                let wide = self.sources.first().is_some_and(|s| s.ty == Type::F64);
                let key = |v: u128| match p.ty {
                    Type::F64 if d(v).is_nan() => u128::MAX,
                    Type::F32 if wide && f32::from_bits(v as u32).is_nan() => u128::MAX,
                    _ => v,
                };
                assert!(
                    key(got) == key(want),
                    "{} (version {version}, mask {mask:x?}, lane {lane}, result {n}): got {got:#x}, want {want:#x}, \
                     inputs {:#x?}",
                    self.text,
                    inputs[lane]
                );
            }
        }
    }
}

/// Compares an instruction with a reference: `f` maps the sources of a lane (slot elements) to the destinations.
fn check(text: &str, rounds: usize, f: impl Fn(&[u128]) -> Vec<u128>) {
    let types = Test::new(text)
        .sources
        .iter()
        .map(|p| p.ty)
        .collect::<Vec<Type>>();
    check_with(
        text,
        rounds,
        |rng| types.iter().map(|&t| values::of(t, rng)).collect(),
        f,
    );
}

/// [`check`] with the sources of a lane from `values`.
fn check_with(
    text: &str,
    rounds: usize,
    mut values: impl FnMut(&mut Rng) -> Vec<u128>,
    f: impl Fn(&[u128]) -> Vec<u128>,
) {
    let test = Test::new(text);
    let mut rng = Rng::new(text);
    for round in 0..rounds {
        let inputs: Vec<Vec<u128>> = (0..32).map(|_| values(&mut rng)).collect();
        // Sources that are the same register have the same value.
        let inputs: Vec<Vec<u128>> = inputs
            .into_iter()
            .map(|mut lane| {
                for a in 0..test.sources.len() {
                    for b in a + 1..test.sources.len() {
                        if test.args.src[a] == test.args.src[b] {
                            lane[a] = lane[b];
                        }
                    }
                }
                lane
            })
            .collect();
        let expected: Vec<Vec<u128>> = inputs.iter().map(|i| f(i)).collect();
        for version in 0..test.versions.len() {
            test.run(version, &inputs, u32::MAX, &expected);
            if round < 8 {
                test.run(version, &inputs, rng.next() as u32, &expected);
                test.run(version, &inputs, 1 << (rng.next() % 32), &expected);
                test.run(version, &inputs, 0, &expected);
            }
        }
    }
}

fn u(v: u128) -> u32 {
    v as u32
}
fn f(v: u128) -> f32 {
    f32::from_bits(v as u32)
}
fn d(v: u128) -> f64 {
    f64::from_bits(v as u64)
}
/// A single-precision result: NaNs are canonical.
fn single(x: f32) -> Vec<u128> {
    vec![if x.is_nan() {
        0x7fff_ffff
    } else {
        u128::from(x.to_bits())
    }]
}
/// A double-precision result.
fn double(x: f64) -> Vec<u128> {
    vec![if x.is_nan() {
        0xfff8_0000_0000_0000
    } else {
        u128::from(x.to_bits())
    }]
}
