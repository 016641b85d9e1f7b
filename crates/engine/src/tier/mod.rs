//! Tiers: how KIR is executed.

pub mod encode;
