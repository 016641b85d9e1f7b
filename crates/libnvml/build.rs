//! The exported functions of NVML.

include!("../libcuda/exports.rs");

fn main() {
    println!("cargo::rerun-if-changed=../libcuda/exports.rs");
    let symbols = cupyrite_sys::nvml::SYMBOLS.iter();
    export(
        "libnvidia-ml.so.1",
        None,
        symbols.filter_map(|s| s.export.to_str().ok()).collect(),
    );
}
