//! Reports what is installed, whether kernels can be compiled and run, and how to fix problems.
//!
//! ```text
//! cargo run --release --package cupyrite-doctor --example doctor
//! cargo run --release --package cupyrite-doctor --example doctor -- --json
//! ```
//!
//! The exit status is 0 only if a kernel ran.

use std::io::Write;
use std::process::ExitCode;

use cupyrite_doctor::{Facts, examine};

fn main() -> ExitCode {
    let mut json = false;
    for word in std::env::args().skip(1) {
        if word == "--json" {
            json = true;
        } else {
            eprintln!("doctor: {word:?} is not understood; the only option is --json");
            return ExitCode::from(2);
        }
    }
    let report = examine(&Facts::default());
    let text = if json {
        report.to_json() + "\n"
    } else {
        report.to_string()
    };
    // A closed pipe (`| head`) is not an error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(u8::from(!report.ok))
}
