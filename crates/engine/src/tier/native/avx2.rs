//! AVX2: emits other instructions for those of AVX-512.
//!
//! The translation selects instructions of AVX-512, with 16 lanes and mask registers. Here each becomes instructions of AVX2 for
//! 8 lanes: a register of 512 bits is one of 256 bits, one of 256 bits is one of 128 bits, and so on. Mask registers are in the
//! [context](NativeContext::masks) or in [vector registers](super::homes), with 32 bits for each lane. An instruction under a mask computes its result in a temporary
//! register, and blends it into the destination.
//!
//! Three vector registers and four scalar registers are temporary; the translation does not use them. An instruction that has no
//! counterpart here is an error of the compiler, which leaves the function to the interpreter.

mod forms;
mod masks;
mod memory;
mod sequences;
mod supported;

use std::mem::offset_of;

use iced_x86::{Code, Instruction, MemoryOperand, Register, RoundingControl};

pub use self::forms::Elements;
pub use self::supported::has_counterparts;
use super::assembler::{Assembler, EncodeError, Mask, Source};
use super::emit::{CONTEXT, context};
use super::isa::number;
use crate::run::native_context::{NativeContext, constant};

/// The first of the temporary vector registers.
pub const FIRST_TEMPORARY: u32 = 13;

/// Holds results that are to be blended.
const T0: Register = Register::YMM13;
/// Holds masks, and second intermediate results.
const T1: Register = Register::YMM14;
/// Holds sources that are broadcast from memory, and third intermediate results.
const T2: Register = Register::YMM15;

/// The register that stands for one of AVX-512.
fn narrowed(r: Register) -> Register {
    match number(r) {
        Some(n) if r as u32 >= Register::ZMM0 as u32 => Register::YMM0 + n,
        Some(n) => Register::XMM0 + n,
        None => r,
    }
}

/// The lower half of a 256-bit register.
fn half(r: Register) -> Register {
    Register::XMM0 + number(r).unwrap_or(0)
}

/// The 256-bit register that contains `r`.
fn whole(r: Register) -> Register {
    Register::YMM0 + number(r).unwrap_or(0)
}

/// Memory whose index register stands for one of AVX-512.
fn narrowed_index(mut m: MemoryOperand) -> MemoryOperand {
    m.index = narrowed(m.index);
    m
}

/// The number of a mask register.
fn mask_number(k: Register) -> usize {
    (k as u32 - Register::K0 as u32) as usize
}

/// Where the lanes of mask register `k` are, unless a vector register holds them.
fn mask_field(k: Register) -> MemoryOperand {
    context(offset_of!(NativeContext, masks) + 32 * mask_number(k))
}

fn is_mask(r: Register) -> bool {
    (Register::K0 as u32..=Register::K7 as u32).contains(&(r as u32))
}

/// A [constant] in every lane.
fn vector(n: usize) -> MemoryOperand {
    context(offset_of!(NativeContext, vectors) + 32 * n)
}

/// Ones in every bit.
fn ones() -> MemoryOperand {
    context(offset_of!(NativeContext, ones))
}

impl Assembler {
    /// Appends an instruction of AVX2 as it is.
    fn raw(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) {
        // Tests only read their first operand.
        if let Ok(i) = &instruction
            && [T0, half(T0)].contains(&i.op0_register())
            && ![Code::VEX_Vptest_ymm_ymmm256, Code::VEX_Vptest_xmm_xmmm128].contains(&i.code())
        {
            self.loaded_masks = 0;
        }
        self.push(instruction);
    }

    fn raw2(&mut self, code: Code, d: Register, a: Register) {
        self.raw(Instruction::with2(code, d, a));
    }

    fn raw3(&mut self, code: Code, d: Register, a: Register, b: impl Into<Operand>) {
        match b.into() {
            Operand::Reg(b) => self.raw(Instruction::with3(code, d, a, b)),
            Operand::Memory(b) => self.raw(Instruction::with3(code, d, a, b)),
        }
    }

    fn load(&mut self, d: Register, from: impl Into<Operand>) {
        match from.into() {
            Operand::Reg(r) if r == d => {}
            Operand::Reg(r) => self.raw2(Code::VEX_Vmovdqa_ymm_ymmm256, d, r),
            Operand::Memory(m) => {
                self.raw(Instruction::with2(Code::VEX_Vmovdqu_ymm_ymmm256, d, m));
            }
        }
    }

    /// The operand for a source: broadcasts are loaded to the third temporary register.
    fn operand(&mut self, source: Source, elements: Elements) -> Operand {
        match source {
            Source::Reg(r) => Operand::Reg(narrowed(r)),
            Source::Memory(m) => Operand::Memory(narrowed_index(m)),
            Source::Broadcast(m) => {
                if let Some(vector) = self.vector_of(m, elements) {
                    return Operand::Memory(vector);
                }
                let code = match elements {
                    Elements::Bits32 => Code::VEX_Vpbroadcastd_ymm_xmmm32,
                    Elements::Bits64 => Code::VEX_Vpbroadcastq_ymm_xmmm64,
                };
                self.raw(Instruction::with2(code, T2, m));
                Operand::Reg(T2)
            }
        }
    }

    /// A vector in memory with an element in every lane: those of constants exist.
    fn vector_of(&self, m: MemoryOperand, elements: Elements) -> Option<MemoryOperand> {
        if m.base == Register::RIP {
            return (elements == Elements::Bits64).then_some(m);
        }
        let from = offset_of!(NativeContext, constants) as i64;
        let n = (m.displacement - from) / 8;
        let known = m.base == CONTEXT && (0..constant::COUNT as i64).contains(&n);
        known.then(|| vector(n as usize))
    }

    /// An operand in a register: its own, or `to`.
    fn in_temporary(&mut self, operand: Operand, to: Register) -> Register {
        match operand {
            Operand::Reg(r) => r,
            Operand::Memory(_) => {
                self.load(to, operand);
                to
            }
        }
    }

    /// A mask with 32 bits for each lane.
    fn mask(&self, k: Register) -> Operand {
        let register = self.mask_registers[mask_number(k)];
        register.map_or_else(|| Operand::Memory(mask_field(k)), Operand::Reg)
    }

    /// Loads a mask with one element per lane.
    fn load_mask(&mut self, to: Register, k: Register, elements: Elements) {
        match (elements, self.mask(k)) {
            (Elements::Bits32, mask) => self.load(to, mask),
            (Elements::Bits64, Operand::Reg(r)) => {
                self.raw2(Code::VEX_Vpmovsxdq_ymm_xmmm128, to, half(r));
            }
            (Elements::Bits64, Operand::Memory(m)) => {
                self.raw(Instruction::with2(Code::VEX_Vpmovsxdq_ymm_xmmm128, to, m));
            }
        }
    }

    /// A mask with one element per lane, in its register or in the second temporary register.
    fn mask_in_register(&mut self, k: Register, elements: Elements) -> Register {
        match (elements, self.mask(k)) {
            (Elements::Bits32, Operand::Reg(r)) => r,
            _ => {
                self.load_mask(T1, k, elements);
                T1
            }
        }
    }

    /// Writes the first temporary register to `d` in the lanes of a mask.
    fn blend(&mut self, d: Register, mask: Mask, elements: Elements) {
        self.blend_from(d, T0, mask, elements);
    }

    /// Writes `from` to `d` in the lanes of a mask.
    fn blend_from(&mut self, d: Register, from: Register, mask: Mask, elements: Elements) {
        match mask {
            Mask::None => self.load(d, from),
            Mask::Merge(k) => {
                let mask = self.mask_in_register(k, elements);
                let code = match elements {
                    Elements::Bits32 => Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm,
                    Elements::Bits64 => Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm,
                };
                self.raw(Instruction::with4(code, d, d, from, mask));
            }
            Mask::Zero(k) => {
                let mask = self.mask_in_register(k, elements);
                self.raw3(Code::VEX_Vpand_ymm_ymm_ymmm256, d, from, mask);
            }
        }
    }

    /// The register in which a result is computed that is written under a mask.
    fn target(&self, d: Register, mask: Mask) -> Register {
        match mask {
            Mask::None => d,
            _ => T0,
        }
    }

    /// Makes the NaNs in the lanes of a register canonical.
    pub fn avx2_canonicalize(&mut self, r: Register, mask: Mask) {
        const UNORDERED: i32 = 3;
        let r = narrowed(r);
        let compare = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
        self.raw(Instruction::with4(compare, T0, r, r, UNORDERED));
        if let Mask::Merge(k) | Mask::Zero(k) = mask {
            let lanes = self.mask(k);
            self.raw3(Code::VEX_Vpand_ymm_ymm_ymmm256, T0, T0, lanes);
        }
        let blend = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        let nan = vector(constant::NAN32);
        self.raw(Instruction::with4(blend, r, r, nan, T0));
    }

    /// Records that an instruction has no counterpart.
    fn no_counterpart(&mut self, code: Code) {
        self.fail(EncodeError::new(format!("no AVX2 code for {code:?}")));
    }

    /// An instruction with a destination and a source.
    pub fn avx2_2(&mut self, code: Code, d: Register, a: Source, imm: Option<i32>, mask: Mask) {
        if self.rounding != RoundingControl::None {
            return self.no_counterpart(code);
        }
        if is_mask(d) || matches!(a, Source::Reg(a) if is_mask(a)) {
            self.mask_move(code, d, a, imm);
            return;
        }
        if forms::is_plain(code) {
            self.plain2(code, d, a, imm);
            return;
        }
        let is_scalar = |r: Register| number(r).is_none();
        if is_scalar(d) && !matches!(a, Source::Reg(a) if !is_scalar(a)) {
            self.plain2(code, d, a, imm);
            return;
        }
        let d = narrowed(d);
        if let (Source::Memory(m), true) = (a, mask != Mask::None)
            && self.masked_load(code, d, m, mask)
        {
            return;
        }
        if let Some((vex, elements)) = forms::unary(code) {
            let a = self.operand(a, elements);
            if let (Operand::Reg(a), true) = (a, forms::is_copy(vex)) {
                self.blend_from(d, a, mask, elements);
                return;
            }
            let to = self.target(d, mask);
            let a = match (a, forms::shift(code)) {
                (Operand::Memory(_), Some(_)) => Operand::Reg(self.in_temporary(a, to)),
                _ => a,
            };
            match (a, imm) {
                (Operand::Reg(a), None) => self.raw2(vex, to, a),
                (Operand::Memory(m), None) => self.raw(Instruction::with2(vex, to, m)),
                (Operand::Reg(a), Some(imm)) => self.raw(Instruction::with3(vex, to, a, imm)),
                (Operand::Memory(m), Some(imm)) => self.raw(Instruction::with3(vex, to, m, imm)),
            }
            if to != d {
                self.blend(d, mask, elements);
            }
            return;
        }
        self.unary_sequence(code, d, a, imm, mask);
    }

    /// An instruction with a destination and two sources.
    pub fn avx2_3(
        &mut self,
        code: Code,
        d: Register,
        a: Register,
        b: Source,
        imm: Option<i32>,
        mask: Mask,
    ) {
        if self.rounding != RoundingControl::None {
            return self.no_counterpart(code);
        }
        if is_mask(d) {
            match b {
                Source::Reg(b) if is_mask(b) => self.mask_logic(code, d, a, b),
                _ => self.comparison(code, d, a, b, imm, mask),
            }
            return;
        }
        if number(d).is_none() || forms::is_plain(code) {
            self.plain3(code, d, a, b, imm);
            return;
        }
        let (d, a) = (narrowed(d), narrowed(a));
        if forms::is_zeroing(code, d, a, b) && mask == Mask::None {
            self.raw3(Code::VEX_Vpxor_ymm_ymm_ymmm256, d, d, d);
            return;
        }
        if let Some((vex, elements)) = forms::binary(code) {
            let b = self.operand(b, elements);
            let to = self.target(d, mask);
            if to != d && forms::reads_destination(code) {
                self.load(to, d);
            }
            match (b, imm) {
                (b, None) => self.raw3(vex, to, a, b),
                (Operand::Reg(b), Some(imm)) => self.raw(Instruction::with4(vex, to, a, b, imm)),
                (Operand::Memory(b), Some(imm)) => {
                    self.raw(Instruction::with4(vex, to, a, b, imm));
                }
            }
            if to != d {
                self.blend(d, mask, elements);
            }
            return;
        }
        self.binary_sequence(code, d, a, b, imm, mask);
    }
}

/// An operand that can be memory.
#[derive(Clone, Copy)]
pub enum Operand {
    Reg(Register),
    Memory(MemoryOperand),
}

impl From<Register> for Operand {
    fn from(r: Register) -> Self {
        Operand::Reg(r)
    }
}

impl From<MemoryOperand> for Operand {
    fn from(m: MemoryOperand) -> Self {
        Operand::Memory(m)
    }
}
