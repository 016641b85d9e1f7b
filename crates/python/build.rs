//! What is known of the interpreter, and link arguments.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // `cfg(Py_GIL_DISABLED)`: `src/core/pin_count.rs`.
    pyo3_build_config::use_pyo3_cfgs();
    // `src/cpython/unwinding.rs` says what for. Where the C library ends threads without unwinding their stacks, nothing is
    // needed.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
    {
        println!("cargo:rustc-link-arg=-Wl,--wrap=rust_eh_personality");
    }
}
