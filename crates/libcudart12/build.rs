//! The exported functions of the runtime of CUDA 12.

include!("../libcuda/exports.rs");

fn main() {
    println!("cargo::rerun-if-changed=../libcuda/exports.rs");
    let names: Vec<String> = cupyrite_cudart::exports_cuda12().collect();
    let names = names.iter().map(String::as_str).collect();
    // As in NVIDIA's library, so that a program linked with either runs with the other.
    export("libcudart.so.12", Some("libcudart.so.12"), names);
    println!("cargo::rustc-env=CUPYRITE_CUDART_MAJOR=12");
}
