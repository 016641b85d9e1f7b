//! The exported functions of the driver.

include!("exports.rs");

fn main() {
    println!("cargo::rerun-if-changed=exports.rs");
    let points = cupyrite_sys::driver::ENTRY_POINTS.iter();
    export(
        "libcuda.so.1",
        None,
        points.filter_map(|p| p.symbol.to_str().ok()).collect(),
    );
}
