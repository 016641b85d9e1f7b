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
        .get_or_init(|| Op::ALL.iter().copied().collect())
        .get(first)
        .map(|op| (*op, 0))
}
