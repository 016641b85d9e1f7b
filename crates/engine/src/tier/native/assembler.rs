//! Emission of x86-64 instructions: operands, labels, encoding.

use std::fmt;

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
#[derive(Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// Of each label, the position of its instruction.
    labels: Vec<Option<usize>>,
    error: Option<EncodeError>,
    /// Constants behind the code.
    constants: Vec<(u64, Label)>,
    /// How the instructions that follow round, instead of to nearest. Their operands are registers.
    pub rounding: RoundingControl,
}

impl Assembler {
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
    }

    /// A label bound here.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// Appends an instruction.
    fn push(&mut self, instruction: Result<Instruction, IcedError>) {
        match instruction {
            Ok(i) => self.code.push(i),
            Err(e) => {
                self.error.get_or_insert(e.into());
            }
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
        self.push(Instruction::with2(code, to, from));
    }

    /// An instruction whose first operand, a register, could be memory.
    pub fn store_register(&mut self, code: Code, a: Register, b: Register) {
        self.push(Instruction::with2(code, a, b));
    }

    /// A store with an immediate.
    pub fn store_imm(&mut self, code: Code, to: MemoryOperand, from: Register, imm: i32) {
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
        self.push_masked(Instruction::with2(code, to, from), false, mask);
    }

    /// An instruction with a destination and a source.
    pub fn op2(&mut self, code: Code, d: Register, a: impl Into<Source>) {
        self.op2_masked(code, d, a, Mask::None);
    }

    /// [`Self::op2`] under a mask.
    pub fn op2_masked(&mut self, code: Code, d: Register, a: impl Into<Source>, mask: Mask) {
        match a.into() {
            Source::Reg(a) => self.push_masked(Instruction::with2(code, d, a), false, mask),
            Source::Memory(m) => self.push_masked(Instruction::with2(code, d, m), false, mask),
            Source::Broadcast(m) => self.push_masked(Instruction::with2(code, d, m), true, mask),
        }
    }

    /// [`Self::op2_masked`] with an immediate.
    pub fn op2_imm(&mut self, code: Code, d: Register, a: impl Into<Source>, imm: i32, mask: Mask) {
        match a.into() {
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
        match b.into() {
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
        match b.into() {
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
        self.push(Instruction::with_branch(code, to.0));
    }

    /// A 64-bit constant in memory.
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

    /// Encodes the instructions.
    ///
    /// # Errors
    /// An instruction that does not exist, or a label that is not bound: an error of the compiler.
    pub fn encode(mut self) -> Result<Encoded, EncodeError> {
        for (bits, label) in std::mem::take(&mut self.constants) {
            self.bind(label);
            self.push(Ok(Instruction::with_declare_qword_1(bits)));
        }
        if let Some(e) = self.error {
            return Err(e);
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
