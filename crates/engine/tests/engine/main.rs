//! Runs small kernels on the engine: control flow, memory, collectives, calls, faults.

mod cluster;
mod collectives;
mod control;
mod convergence;
mod faults;
mod harness;
mod instruction_table;
mod memory;
mod memory_model;
mod multimem;
mod mutations;
mod references;
mod runtime_calls;
mod sleep;
mod stack;
mod tearing;
mod texture;
