//! Translation of `tensormap.replace` and `tensormap.cp_fenceproxy`.

use cupyrite_ptx::ir::{Instr, Operand, Type, Word};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, TensorMapOp};
use crate::semantics::lane::Slot;
use crate::tensor_map::TensorMapField;

impl FunctionBuilder<'_, '_> {
    /// `tensormap`. The fence of `cp_fenceproxy` does nothing: a tensor copy reads its map when it executes.
    pub fn tensor_map(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mut list = Vec::new();
        let map = self.operand(i, 0)?.clone();
        let map = self.address(&map, i.mods.space, &mut list)?;
        if i.mods.has(Word::CpFenceproxy) {
            if !matches!(self.operand(i, 2)?, Operand::Int(128)) {
                return Err(self.error("the size of a tensor map is 128 bytes"));
            }
            let from = self.operand(i, 1)?.clone();
            let from = self.address(&from, i.mods.space2, &mut list)?;
            list.push(Action::TensorMap(TensorMapOp::Copy { to: map, from }));
            return self.emit(list, i);
        }
        let ordinals = |least: i64| match self.operand(i, 1)? {
            Operand::Int(n) if (0..least).contains(n) => Ok(*n as u8),
            _ => Err(self.error(&format!(
                "the ordinal of the field is not a constant from 0 to {}",
                least - 1
            ))),
        };
        let has = |word| i.mods.has(word);
        let (field, value) = if has(Word::GlobalAddress) {
            (TensorMapField::Address, 1)
        } else if has(Word::Rank) {
            (TensorMapField::Rank, 1)
        } else if has(Word::BoxDim) {
            (TensorMapField::BoxDim(ordinals(5)?), 2)
        } else if has(Word::GlobalDim) {
            (TensorMapField::Dim(ordinals(5)?), 2)
        } else if has(Word::GlobalStride) {
            (TensorMapField::Stride(ordinals(4)?), 2)
        } else if has(Word::ElementStride) {
            (TensorMapField::ElementStride(ordinals(5)?), 2)
        } else {
            let (field, count) = if has(Word::Elemtype) {
                (TensorMapField::DataType, 16)
            } else if has(Word::InterleaveLayout) {
                (TensorMapField::Interleave, 3)
            } else if has(Word::SwizzleMode) {
                (TensorMapField::Swizzle, 4)
            } else if has(Word::FillMode) {
                (TensorMapField::Fill, 2)
            } else {
                return Err(self.unimplemented(i));
            };
            if !matches!(self.operand(i, 1)?, Operand::Int(n) if (0..count).contains(n)) {
                return Err(self.error(&format!(
                    "the new value is not a constant from 0 to {}",
                    count - 1
                )));
            }
            (field, 1)
        };
        let value = self.operand(i, value)?.clone();
        let value = self.source(&value, Slot::R64, Type::U64, &mut list)?;
        list.push(Action::TensorMap(TensorMapOp::Replace {
            map,
            field,
            value,
        }));
        self.emit(list, i)
    }
}
