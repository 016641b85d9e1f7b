//! `cuda.bindings`: descriptors become Python functions.
//!
//! A function is a row of a table in `generated/` ([`descriptor`]); [`function`] is its Python object, [`call`] the routes
//! of a call. Functions whose status is an exception go through [`raising`]; code for single functions is in [`custom`].

pub mod call;
pub mod custom;
pub mod descriptor;
pub mod errors;
pub mod function;
pub mod kernel_arguments;
pub mod parameter_arena;
pub mod raising;
pub mod symbols;
