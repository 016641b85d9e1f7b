//! Headers and overlay to the generated files.
//!
//! Belongs here: reading NVIDIA's headers through libclang, joining them with `api/overlay/*.toml`, and the back ends
//! that write `generated/` folders. Does not belong here: anything the published crates need at build or run time.

pub mod backend;
pub mod ir;
