//! Loads PTX files and reports which kernels the engine can run: `cargo run --example engine_decode -p cupyrite-cpu
//! FILE...`.

use cupyrite_cpu::engine::Image;
use cupyrite_cpu::memory::AddressSpace;

fn main() {
    let (mut good, mut bad) = (0, 0);
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("{path}: cannot be read");
            continue;
        };
        match Image::load(&text, AddressSpace::global()) {
            Err(e) => println!("{path}: {e}"),
            Ok(image) => {
                for k in image.kernels() {
                    match k.unsupported() {
                        Some(why) => {
                            bad += 1;
                            println!("{path}: {}: {why}", k.name);
                        }
                        None => good += 1,
                    }
                }
            }
        }
    }
    println!("{good} kernels can run, {bad} cannot");
}
