//! From the words of an instruction to its opcode.

use crate::ir::Op;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The opcode of an instruction whose first word and modifiers these are, and how many modifiers belong to its name.
pub(crate) fn find(first: &str, words: &[&str]) -> Option<(Op, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or("");
    let several = match (first, word(0), word(1)) {
        ("cp", "async", "bulk") => Some((Op::CpAsyncBulk, 2)),
        ("cp", "async", _) => Some((Op::CpAsync, 1)),
        ("cp", "reduce", "async") => Some((Op::CpReduceAsync, 2)),
        ("bar", "warp", _) => Some((Op::BarWarp, 1)),
        ("barrier", "cluster", _) => Some((Op::BarrierCluster, 1)),
        ("brx", "idx", _) => Some((Op::BrxIdx, 1)),
        ("cvt", "pack", _) => Some((Op::CvtPack, 1)),
        _ => None,
    };
    if several.is_some() {
        return several;
    }
    static TABLE: OnceLock<HashMap<&'static str, Op>> = OnceLock::new();
    TABLE
        .get_or_init(|| Op::ALL.iter().map(|op| (op.name(), *op)).collect())
        .get(first)
        .map(|op| (*op, 0))
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::ir::{Destination, Instr, Mods, Op, OpClass, Operand, Pos, RegId, Type};
    use crate::parse::modifiers::apply;

    fn with_modifiers(op: Op, words: &[&str]) -> Option<Instr> {
        let (mut mods, mut types) = (Mods::default(), Vec::new());
        let known = words.iter().all(|w| apply(op, w, &mut mods, &mut types));
        known.then(|| Instr {
            guard: None,
            op,
            mods,
            types,
            operands: vec![Operand::Reg(RegId(0)), Operand::Reg(RegId(1))],
            pos: Pos::default(),
            loc: None,
        })
    }

    #[test]
    fn every_opcode_is_found_by_its_spelling() {
        for &op in Op::ALL {
            let words: Vec<&str> = op.name().split('.').collect();
            assert_eq!(find(words[0], &words[1..]), Some((op, words.len() - 1)));
        }
        assert_eq!(find("frobnicate", &[]), None);
    }

    #[test]
    fn properties_of_every_opcode_agree_with_its_class() {
        for &op in Op::ALL {
            let class = op.class();
            // The parser rejects an unknown modifier exactly for the classes that check modifiers.
            let known = with_modifiers(op, &["frobnicate"]);
            assert_eq!(known.is_none(), class.checks_modifiers(), "{op}");
            // Only computations take `.ftz` among the classes that check modifiers.
            if class.checks_modifiers() && op != Op::Redux {
                let ftz = with_modifiers(op, &["ftz"]).is_some();
                assert_eq!(ftz, class.is_computation(), "{op}");
            }
            if class.is_computation() {
                assert_eq!(op.destination(), Destination::First, "{op}");
            }
            // What an instruction writes and reads follows from its destination.
            let plain = with_modifiers(op, &[]).unwrap();
            let (mut written, mut read) = (Vec::new(), Vec::new());
            plain.for_each_written(|r| written.push(r.0));
            plain.for_each_read(|r| read.push(r.0));
            let expected: (&[u32], &[u32]) = if plain.has_destination() {
                (&[0], &[1])
            } else {
                (&[], &[0, 1])
            };
            assert_eq!((&written[..], &read[..]), expected, "{op}");
            assert_eq!(
                plain.data_operand().is_some(),
                class == OpClass::Memory,
                "{op}"
            );
        }
    }

    #[test]
    fn forms_decide_about_the_destination_of_barriers_calls_and_mbarriers() {
        let by_form: Vec<Op> = Op::ALL
            .iter()
            .copied()
            .filter(|op| op.destination() == Destination::ByForm)
            .collect();
        assert_eq!(by_form, [Op::Call, Op::Bar, Op::Barrier, Op::Mbarrier]);
        for (op, words, expected) in [
            (Op::Bar, &["sync"][..], false),
            (Op::Bar, &["arrive"], false),
            (Op::Barrier, &["red", "popc", "u32"], true),
            (Op::Mbarrier, &["init"], false),
            (Op::Mbarrier, &["inval"], false),
            (Op::Mbarrier, &["expect_tx"], false),
            (Op::Mbarrier, &["complete_tx"], false),
            (Op::Mbarrier, &["arrive"], true),
            (Op::Mbarrier, &["arrive", "expect_tx"], true),
            (Op::Mbarrier, &["arrive_drop"], true),
            (Op::Mbarrier, &["test_wait", "parity"], true),
            (Op::Call, &["uni"], false),
        ] {
            let instr = with_modifiers(op, words).unwrap();
            assert_eq!(instr.has_destination(), expected, "{op} {words:?}");
        }
        // The results of a call are its first list.
        let mut call = with_modifiers(Op::Call, &[]).unwrap();
        call.operands[0] = Operand::Args(vec![Operand::Reg(RegId(7))]);
        let mut written = Vec::new();
        call.for_each_written(|r| written.push(r.0));
        assert_eq!(written, [7]);
        assert_eq!(call.types, Vec::<Type>::new());
    }
}
