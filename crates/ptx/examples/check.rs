//! Parses PTX files and prints their contents in numbers: `cargo run -p cupyrite-ptx --example check -- FILE...`.

use std::time::Instant;

fn main() {
    let mut failed = 0;
    for path in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) => {
                eprintln!("{path}: {e}");
                failed += 1;
                continue;
            }
        };
        let start = Instant::now();
        match cupyrite_ptx::parse(&text) {
            Ok(module) => {
                let bodies = module.functions.iter().filter_map(|f| f.body.as_ref());
                let instructions: usize = bodies.map(|b| b.instrs.len()).sum();
                println!(
                    "{path}: {} functions, {} globals, {instructions} instructions, {:.2} ms for {} kB",
                    module.functions.len(),
                    module.globals.len(),
                    start.elapsed().as_secs_f64() * 1e3,
                    text.len() / 1000
                );
            }
            Err(e) => {
                println!("{path}: {e}");
                failed += 1;
            }
        }
    }
    if failed > 0 {
        std::process::exit(1);
    }
}
