//! Tiers: ways to execute KIR.
//!
//! Belongs here: the code that a tier makes of KIR, and the loop that runs it. Does not belong here: what instructions mean
//! (`semantics`), when a warp runs and on which thread (`run`).
//!
//! The [`Interpreter`] is the first tier, and the reference: another one must produce the same bits. Tiers share the
//! [register file](crate::register_file), the [state of a warp](crate::run::warp) and its fuel, so that a warp can stop in one
//! and go on in another.

pub mod interpreter;
#[cfg(target_arch = "x86_64")]
pub mod native;

pub use interpreter::Interpreter;

pub use crate::run::tier::{Tier, Together, WarpStop};
