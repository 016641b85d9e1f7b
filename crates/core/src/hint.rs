//! Hints to the optimiser.

/// Marks the branch that calls it as unlikely.
///
/// `std::hint::cold_path` exists from Rust 1.95 on; a call of an empty cold function compiles to the same code.
#[cold]
#[inline(always)]
pub fn cold_path() {}
