//! Tables made by `cargo xtask codegen`.

pub mod driver_functions;
pub mod driver_types;
pub mod ids;
pub mod nvrtc_functions;
pub mod nvrtc_types;
