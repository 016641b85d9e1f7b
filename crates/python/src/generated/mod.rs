//! Tables made by `cargo xtask codegen`.

pub mod cudla_functions;
pub mod cudla_types;
pub mod cufile_functions;
pub mod cufile_types;
pub mod cython;
pub mod driver_functions;
pub mod driver_types;
pub mod driver_v2_functions;
pub mod driver_v2_types;
pub mod nvfatbin_functions;
pub mod nvfatbin_types;
pub mod nvjitlink_functions;
pub mod nvjitlink_types;
pub mod nvml_functions;
pub mod nvml_types;
pub mod nvrtc_functions;
pub mod nvrtc_types;
pub mod nvrtc_v2_functions;
pub mod nvrtc_v2_types;
pub mod nvvm_functions;
pub mod nvvm_types;
pub mod runtime_functions;
pub mod runtime_types;
pub mod runtime_v2_functions;
pub mod runtime_v2_types;
