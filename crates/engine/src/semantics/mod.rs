//! What instructions compute.
//!
//! Belongs here: functions from the values of operands to the value of the result, as the PTX ISA defines them. Does not
//! belong here: where the operands are and in which order instructions run (`build`, `run`).

pub mod atomic;
pub mod collective;
pub mod lane;
pub mod warp;
