//! Prints the KIR of the kernels of a PTX file: `cargo run -p cupyrite-engine --example kir FILE.ptx [PASS]`.

use std::process::ExitCode;

use cupyrite_engine::Image;
use cupyrite_engine::memory::AddressSpace;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: kir FILE.ptx [PASS]");
        return ExitCode::from(2);
    };
    match print(&file, arguments.next().as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{file}: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the KIR of all kernels of a file after a pass.
fn print(file: &str, pass: Option<&str>) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let image = Image::load(&text, AddressSpace::global())
        .map_err(|e| format!("line {}: {}", e.line, e.message))?;
    for kernel in image.kernels() {
        println!(
            "{}",
            kernel
                .kir(pass)
                .map_err(|e| format!("`{}`: {e}", kernel.name))?
        );
    }
    Ok(())
}
