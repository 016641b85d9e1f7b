//! The Python interface: the C half of the IR joined with `api/overlay/*.toml` to its Python half.
//!
//! [`mod@tuple`] derives modules whose functions return the status, [`raising`] those whose functions raise.

pub mod overlay;
pub mod raising;
pub mod tuple;
pub mod units;
