//! Translation of bulk copies: `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk`, and those of `multimem`.

use cupyrite_ptx::ir::{Base, Instr, Op, Operand, Space, Type, Word};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, BulkDirection, BulkOp, BulkSide};
use crate::semantics::lane::Slot;

impl FunctionBuilder<'_, '_> {
    /// `cp.async.bulk`, `cp.reduce.async.bulk`. Copies complete at once, so that the group forms do nothing.
    pub fn bulk_copy(&mut self, i: &Instr) -> Result<(), CompileError> {
        let mods = &i.mods;
        if mods.has(Word::CommitGroup) || mods.has(Word::WaitGroup) || mods.has(Word::Prefetch) {
            return Ok(());
        }
        let mut list = Vec::new();
        let is_tensor = |o: Option<&Operand>| matches!(o, Some(Operand::TexAddr(_)));
        let shared =
            |space: Option<Space>| matches!(space, Some(Space::Shared | Space::SharedCluster));
        let direction = match (shared(mods.space), shared(mods.space2)) {
            (true, false) => BulkDirection::Load,
            (false, true) => BulkDirection::Store,
            (true, true) => BulkDirection::Shared,
            (false, false) => return Err(self.unimplemented(i)),
        };
        let (ours, others) = match direction {
            BulkDirection::Load => (0, 1),
            BulkDirection::Store | BulkDirection::Shared => (1, 0),
        };
        let (ours, others) = (
            self.operand(i, ours)?.clone(),
            self.operand(i, others)?.clone(),
        );
        let shared = self.address(&ours, Some(Space::Shared), &mut list)?;
        let tensor = is_tensor(Some(&others));
        let other = match &others {
            Operand::TexAddr(parts) => {
                let offsets = match i.operands.get(3) {
                    Some(Operand::Vector(offsets)) if mods.has(Word::Im2col) => Some(&offsets[..]),
                    _ if mods.has(Word::Im2col) => {
                        return Err(self.error("the offsets of the im2col mode are missing"));
                    }
                    _ if mods.has(Word::Im2colNoOffs) => Some(&[][..]),
                    _ => None,
                };
                self.tensor_box(parts, offsets, &mut list)?
            }
            memory => {
                let space = match direction {
                    BulkDirection::Shared => Space::Shared,
                    _ => Space::Global,
                };
                let memory = self.address(memory, Some(space), &mut list)?;
                let size = self.operand(i, 2)?.clone();
                let size = self.source(&size, Slot::R32, Type::U32, &mut list)?;
                BulkSide::Memory(memory, size)
            }
        };
        let barrier_at = if tensor { 2 } else { 3 };
        let mbarrier = if mods.has(Word::MbarrierCompleteTxBytes) {
            let object = self.operand(i, barrier_at)?.clone();
            Some(self.address(&object, Some(Space::Shared), &mut list)?)
        } else {
            None
        };
        let multicast = if mods.has(Word::MulticastCluster) {
            let ranks = self.operand(i, barrier_at + 1)?.clone();
            Some(self.source(&ranks, Slot::R32, Type::U16, &mut list)?)
        } else {
            None
        };
        let reduce = match (i.op, mods.atom) {
            (Op::CpReduceAsync | Op::MultimemCpReduceAsyncBulk, Some(op)) => {
                Some((op, i.types.first().copied()))
            }
            (Op::CpReduceAsync | Op::MultimemCpReduceAsyncBulk, None) => {
                return Err(self.unimplemented(i));
            }
            _ => None,
        };
        list.push(Action::Bulk(Box::new(BulkOp {
            direction,
            shared,
            other,
            mbarrier,
            multicast,
            reduce,
            multimem: matches!(
                i.op,
                Op::MultimemCpAsyncBulk | Op::MultimemCpReduceAsyncBulk
            ),
        })));
        self.emit(list, i)
    }

    /// `[tensorMap, {coordinates}]`, and the offsets of the im2col mode. The map has a generic address.
    fn tensor_box(
        &mut self,
        parts: &[Operand],
        offsets: Option<&[Operand]>,
        list: &mut Vec<Action>,
    ) -> Result<BulkSide, CompileError> {
        let [map, Operand::Vector(coordinates)] = parts else {
            return Err(self.error("the operand is not a tensor map with coordinates"));
        };
        let map = match map {
            Operand::Reg(r) => Operand::Addr(Base::Reg(*r), 0),
            Operand::Var(v, at) => Operand::Addr(Base::Var(*v), *at),
            other => other.clone(),
        };
        let map = self.address(&map, None, list)?;
        if coordinates.is_empty() || coordinates.len() > 5 {
            return Err(self.error("a tensor has one to five coordinates"));
        }
        let coordinates = coordinates.iter();
        let position = coordinates.map(|c| self.source(c, Slot::R32, Type::S32, list));
        let position = position.collect::<Result<Vec<_>, _>>()?;
        let offsets = match offsets {
            Some(offsets) if offsets.len() > 3 => {
                return Err(self.error("the im2col mode has one to three offsets"));
            }
            Some(offsets) => {
                let offsets = offsets.iter();
                let offsets = offsets.map(|o| self.source(o, Slot::R32, Type::U16, list));
                Some(offsets.collect::<Result<_, _>>()?)
            }
            None => None,
        };
        Ok(BulkSide::Tensor(map, position, offsets))
    }
}
