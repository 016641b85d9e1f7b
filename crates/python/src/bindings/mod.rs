//! `cuda.bindings`: Python functions built from descriptors.
//!
//! Each function is a row of a table in `generated/` ([`descriptor`]). [`function`] is its Python object; [`call`] contains
//! the routes of a call. [`raising`] serves functions that raise for a bad status; [`custom`] has code for single functions.

pub mod call;
pub mod custom;
pub mod descriptor;
pub mod errors;
pub mod function;
pub mod kernel_arguments;
pub mod parameter_arena;
pub mod raising;
pub mod symbols;
