//! Link arguments.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Threads of the device run until the process ends, so the library is never unloaded. Its name is its own: a process
    // that has loaded it still finds NVIDIA's driver as `libcuda.so.1`.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcupyrite_cpu_device.so,-z,nodelete");
    // The unwinding guard of the extension module, see `crates/python/src/cpython/unwinding.rs`.
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap=rust_eh_personality");
    }
}
