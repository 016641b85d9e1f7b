//! The PTX engine: loads PTX, runs kernels.
//!
//! The driver half of this crate (`crate::driver`) uses only what this file exports. A kernel passes through three
//! stages: [`load`] parses modules and places their variables in memory, [`compile`] turns each kernel and the
//! functions that it calls into a [`program`], and [`run`] executes the program. [`ops`] has the operations that
//! involve only one lane.

mod address_windows;
mod compile;
mod cpu_features;
mod fault_report;
mod limits;
mod load;
pub mod ops;
mod program;
mod run;

pub use fault_report::{Fault, FaultKind};
pub use limits::{MAX_SHARED, MAX_THREADS, RESERVED_SHARED};
pub use load::{Global, Image, Kernel, LoadError, LoadErrorKind, ParamInfo};
pub(crate) use load::{check_unit, link_units, undefined_functions};
pub use run::grid::{LaunchSpec, launch};
pub use run::{GraphLauncher, PrintfSink};
