//! CUDA for Rust: devices, streams, memory, programs and launches, on a GPU or on the CPU device.
