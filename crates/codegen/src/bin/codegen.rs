//! `codegen [--check]`: what `cargo xtask codegen` runs; `--dump` prints the IR as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use cupyrite_codegen::{Options, read_api, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = if args.iter().any(|a| a == "--dump") {
        let root = PathBuf::from(".");
        read_api(&root, &root.join("target/codegen"))
            .and_then(|api| serde_json::to_string_pretty(&api).map_err(|e| e.to_string()))
            .map(|text| println!("{text}"))
    } else {
        run(&Options {
            check: args.iter().any(|a| a == "--check"),
            ..Options::default()
        })
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("codegen: {e}");
            ExitCode::FAILURE
        }
    }
}
