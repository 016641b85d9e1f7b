//! Emission of x86-64 instructions: operands, labels, encoding.

use std::fmt;

use super::isa::Isa;
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, IcedError, Instruction, InstructionBlock,
    MemoryOperand, Register, RoundingControl,
};

/// A position in the code, bound once and used any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(u64);

/// The last operand of a vector instruction.
#[derive(Clone, Copy)]
pub enum Source {
    /// A register.
    Reg(Register),
    /// A vector in memory.
    Memory(MemoryOperand),
    /// An element in memory, for every lane.
    Broadcast(MemoryOperand),
}

impl From<Register> for Source {
    fn from(r: Register) -> Self {
        Source::Reg(r)
    }
}

/// Memory at `base + displacement`.
pub fn at(base: Register, displacement: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, displacement)
}

/// The reason why code could not be encoded.
#[derive(Debug)]
pub struct EncodeError(String);

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl EncodeError {
    /// An error with this message.
    pub fn new(message: String) -> Self {
        Self(message)
    }
}

impl From<IcedError> for EncodeError {
    fn from(e: IcedError) -> Self {
        Self(e.to_string())
    }
}

/// Machine code at its first byte's offset zero, and the offsets of its labels.
pub struct Encoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    offsets: Vec<u32>,
    positions: Vec<Option<usize>>,
}

impl Encoded {
    /// Offset of a bound label.
    pub fn offset(&self, label: Label) -> Option<u32> {
        let position = (*self.positions.get(label.0 as usize - 1)?)?;
        self.offsets.get(position).copied()
    }
}

/// Collects instructions, and encodes them.
///
/// The instructions are those of AVX-512; for AVX2, [others](super::avx2) are encoded.
pub struct Assembler {
    /// The instruction set.
    pub isa: Isa,
    code: Vec<Instruction>,
    /// Of each label, the position of its instruction.
    labels: Vec<Option<usize>>,
    error: Option<EncodeError>,
    /// Constants behind the code.
    constants: Vec<(u64, Label)>,
    /// With AVX2: the masks that the first temporary register equals, as bits.
    pub loaded_masks: u8,
    /// With AVX2: the vector registers that hold masks; the others are in memory.
    pub mask_registers: [Option<Register>; 8],
    /// How the instructions that follow round, instead of to nearest. Their operands are registers.
    pub rounding: RoundingControl,
}

impl Assembler {
    /// No instructions.
    pub fn new(isa: Isa) -> Self {
        Self {
            isa,
            code: Vec::new(),
            labels: Vec::new(),
            error: None,
            constants: Vec::new(),
            loaded_masks: 0,
            mask_registers: [None; 8],
            rounding: RoundingControl::None,
        }
    }

    /// Records an error, which [`Self::encode`] returns.
    pub fn fail(&mut self, e: EncodeError) {
        self.error.get_or_insert(e);
    }

    /// A label that is not bound yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        // Zero is the address of instructions without a label.
        Label(self.labels.len() as u64)
    }

    /// Binds a label to the position of the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize - 1] = Some(self.code.len());
        let mut carrier = Instruction::with(Code::Zero_bytes);
        carrier.set_ip(label.0);
        self.code.push(carrier);
        self.loaded_masks = 0;
    }

    /// A label bound here.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// Appends an instruction.
    pub fn push(&mut self, instruction: Result<Instruction, IcedError>) {
        match instruction {
            Ok(i) => self.code.push(i),
            Err(e) => self.fail(e.into()),
        }
    }

    fn push_masked(&mut self, i: Result<Instruction, IcedError>, broadcast: bool, mask: Mask) {
        let rounding = self.rounding;
        self.push(i.map(|mut i| {
            i.set_is_broadcast(broadcast);
            i.set_rounding_control(rounding);
            match mask {
                Mask::None => {}
                Mask::Merge(k) => i.set_op_mask(k),
                Mask::Zero(k) => {
                    i.set_op_mask(k);
                    i.set_zeroing_masking(true);
                }
            }
            i
        }));
    }

    /// An instruction without operands.
    pub fn op0(&mut self, code: Code) {
        self.push(Ok(Instruction::with(code)));
    }

    /// An instruction with a register.
    pub fn op1(&mut self, code: Code, a: Register) {
        self.push(Instruction::with1(code, a));
    }

    /// An instruction with a memory operand only.
    pub fn op1_mem(&mut self, code: Code, a: MemoryOperand) {
        self.push(Instruction::with1(code, a));
    }

    /// An instruction with a register and an immediate.
    pub fn op_imm(&mut self, code: Code, a: Register, imm: i32) {
        self.push(Instruction::with2(code, a, imm));
    }

    /// `mov` of a 64-bit immediate.
    pub fn op2_imm64(&mut self, a: Register, imm: u64) {
        self.push(Instruction::with2(Code::Mov_r64_imm64, a, imm));
    }

    /// An instruction with memory and an immediate.
    pub fn mem_imm(&mut self, code: Code, a: MemoryOperand, imm: i32) {
        self.push(Instruction::with2(code, a, imm));
    }

    /// An instruction that writes or compares memory.
    pub fn store(&mut self, code: Code, to: MemoryOperand, from: Register) {
        if self.isa == Isa::Avx2 && !is_scalar(from) {
            return self.avx2_store(code, to, from, Mask::None);
        }
        self.push(Instruction::with2(code, to, from));
    }

    /// An instruction whose first operand, a register, could be memory.
    pub fn store_register(&mut self, code: Code, a: Register, b: Register) {
        self.push(Instruction::with2(code, a, b));
    }

    /// A store with an immediate.
    pub fn store_imm(&mut self, code: Code, to: MemoryOperand, from: Register, imm: i32) {
        if self.isa == Isa::Avx2 && !is_scalar(from) {
            return self.avx2_store_imm(code, to, from, imm);
        }
        self.push(Instruction::with3(code, to, from, imm));
    }

    /// A read-modify-write instruction with the `lock` prefix.
    pub fn locked(&mut self, code: Code, to: MemoryOperand, from: Register) {
        self.push(Instruction::with2(code, to, from).map(|mut i| {
            i.set_has_lock_prefix(true);
            i
        }));
    }

    /// A vector store under a mask.
    pub fn store_masked(&mut self, code: Code, to: MemoryOperand, from: Register, mask: Mask) {
        if self.isa == Isa::Avx2 {
            return self.avx2_store(code, to, from, mask);
        }
        self.push_masked(Instruction::with2(code, to, from), false, mask);
    }

    /// An instruction with a destination and a source.
    pub fn op2(&mut self, code: Code, d: Register, a: impl Into<Source>) {
        self.op2_masked(code, d, a, Mask::None);
    }

    /// [`Self::op2`] under a mask.
    pub fn op2_masked(&mut self, code: Code, d: Register, a: impl Into<Source>, mask: Mask) {
        let a = a.into();
        if self.isa == Isa::Avx2 {
            return self.avx2_2(code, d, a, None, mask);
        }
        match a {
            Source::Reg(a) => self.push_masked(Instruction::with2(code, d, a), false, mask),
            Source::Memory(m) => self.push_masked(Instruction::with2(code, d, m), false, mask),
            Source::Broadcast(m) => self.push_masked(Instruction::with2(code, d, m), true, mask),
        }
    }

    /// [`Self::op2_masked`] with an immediate.
    pub fn op2_imm(&mut self, code: Code, d: Register, a: impl Into<Source>, imm: i32, mask: Mask) {
        let a = a.into();
        if self.isa == Isa::Avx2 {
            return self.avx2_2(code, d, a, Some(imm), mask);
        }
        match a {
            Source::Reg(a) => self.push_masked(Instruction::with3(code, d, a, imm), false, mask),
            Source::Memory(m) => self.push_masked(Instruction::with3(code, d, m, imm), false, mask),
            Source::Broadcast(m) => {
                self.push_masked(Instruction::with3(code, d, m, imm), true, mask);
            }
        }
    }

    /// An instruction with a destination and two sources.
    pub fn op3(&mut self, code: Code, d: Register, a: Register, b: impl Into<Source>) {
        self.op3_masked(code, d, a, b, Mask::None);
    }

    /// [`Self::op3`] under a mask.
    pub fn op3_masked(
        &mut self,
        code: Code,
        d: Register,
        a: Register,
        b: impl Into<Source>,
        mask: Mask,
    ) {
        let b = b.into();
        if self.isa == Isa::Avx2 {
            return self.avx2_3(code, d, a, b, None, mask);
        }
        match b {
            Source::Reg(b) => self.push_masked(Instruction::with3(code, d, a, b), false, mask),
            Source::Memory(m) => self.push_masked(Instruction::with3(code, d, a, m), false, mask),
            Source::Broadcast(m) => self.push_masked(Instruction::with3(code, d, a, m), true, mask),
        }
    }

    /// [`Self::op3_masked`] with an immediate.
    pub fn op3_imm(
        &mut self,
        code: Code,
        d: Register,
        a: Register,
        b: impl Into<Source>,
        imm: i32,
        mask: Mask,
    ) {
        let b = b.into();
        if self.isa == Isa::Avx2 {
            return self.avx2_3(code, d, a, b, Some(imm), mask);
        }
        match b {
            Source::Reg(b) => self.push_masked(Instruction::with4(code, d, a, b, imm), false, mask),
            Source::Memory(m) => {
                self.push_masked(Instruction::with4(code, d, a, m, imm), false, mask);
            }
            Source::Broadcast(m) => {
                self.push_masked(Instruction::with4(code, d, a, m, imm), true, mask);
            }
        }
    }

    /// A jump or call.
    pub fn jump(&mut self, code: Code, to: Label) {
        if code == Code::Call_rel32_64 {
            self.loaded_masks = 0;
        }
        self.push(Instruction::with_branch(code, to.0));
    }

    /// A 64-bit constant in memory; with AVX2, a vector of it.
    pub fn constant(&mut self, bits: u64) -> MemoryOperand {
        let known = self.constants.iter().find(|(b, _)| *b == bits);
        let label = match known {
            Some(&(_, label)) => label,
            None => {
                let label = self.label();
                self.constants.push((bits, label));
                label
            }
        };
        at(Register::RIP, label.0 as i64)
    }

    /// The memory at a label, for `lea`.
    pub fn address_of(&self, label: Label) -> MemoryOperand {
        at(Register::RIP, label.0 as i64)
    }

    /// Encodes the instructions.
    ///
    /// # Errors
    /// An instruction that does not exist, or a label that is not bound: an error of the compiler.
    pub fn encode(mut self) -> Result<Encoded, EncodeError> {
        for (bits, label) in std::mem::take(&mut self.constants) {
            self.bind(label);
            self.push(match self.isa {
                Isa::Avx512 => Ok(Instruction::with_declare_qword_1(bits)),
                Isa::Avx2 => Instruction::with_declare_qword(&[bits, bits]),
            });
            if self.isa == Isa::Avx2 {
                self.push(Instruction::with_declare_qword(&[bits, bits]));
            }
        }
        if let Some(e) = self.error {
            return Err(e);
        }
        #[cfg(debug_assertions)]
        if self.isa == Isa::Avx2 {
            for i in &self.code {
                let name = format!("{:?}", i.code());
                assert!(
                    !name.starts_with("EVEX_") && !name.starts_with("VEX_K"),
                    "{name} is no AVX2 instruction"
                );
            }
        }
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let result = BlockEncoder::encode(64, InstructionBlock::new(&self.code, 0), options)?;
        Ok(Encoded {
            bytes: result.code_buffer,
            offsets: result.new_instruction_offsets,
            positions: self.labels,
        })
    }
}

fn is_scalar(r: Register) -> bool {
    let first_vector = Register::XMM0 as u32;
    (r as u32) < first_vector
}

/// The lanes that an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// All of them.
    None,
    /// Those of the register; the others keep their values.
    Merge(Register),
    /// Those of the register; the others become zero.
    Zero(Register),
}
