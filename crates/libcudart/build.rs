//! The exported functions of the runtime.

include!("../libcuda/exports.rs");

fn main() {
    println!("cargo::rerun-if-changed=../libcuda/exports.rs");
    let names: Vec<String> = cupyrite_cudart::exports().collect();
    let names = names.iter().map(String::as_str).collect();
    // As in NVIDIA's library, so that a program linked with either runs with the other.
    export("libcudart.so.13", Some("libcudart.so.13"), names);
    println!("cargo::rustc-env=CUPYRITE_CUDART_MAJOR=13");
}
