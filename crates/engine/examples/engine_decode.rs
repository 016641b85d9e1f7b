//! Loads PTX files and lists the kernels that the engine cannot run: `cargo run --example engine_decode -p cupyrite-engine
//! FILE...`.

use cupyrite_engine::Image;
use cupyrite_engine::memory::AddressSpace;

fn main() {
    let (mut supported, mut unsupported) = (0, 0);
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
                            unsupported += 1;
                            println!("{path}: {}: {why}", k.name);
                        }
                        None => supported += 1,
                    }
                }
            }
        }
    }
    println!("{supported} kernels can run, {unsupported} cannot");
}
