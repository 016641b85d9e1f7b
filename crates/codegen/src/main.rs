//! Command line of the generator. `[--check]` regenerates or compares (`cargo xtask codegen`), `--reference FOLDER`
//! writes the reference pages (`cargo xtask reference`), `--dump` prints the IR as JSON, `--facts PATH` compares an
//! interface manifest with the IR (`cuda.bindings`) or with the tables of `cupyrite-pathfinder` (`cuda.pathfinder`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cupyrite_codegen::check::facts;
use cupyrite_codegen::{Options, describe, reference, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let recorded = args
        .iter()
        .position(|a| a == "--facts")
        .and_then(|i| args.get(i + 1));
    let pages = args
        .iter()
        .position(|a| a == "--reference")
        .and_then(|i| args.get(i + 1));
    let root = Path::new(".");
    let result = if let Some(path) = recorded {
        check_facts(Path::new(path))
    } else if let Some(folder) = pages {
        reference(root, &root.join("target/codegen"), Path::new(folder))
            .map(|n| println!("{n} files in {folder}; all links are valid"))
    } else if args.iter().any(|a| a == "--dump") {
        let root = PathBuf::from(".");
        describe(&root, &root.join("target/codegen"))
            .and_then(|d| serde_json::to_string_pretty(&d.api).map_err(|e| e.to_string()))
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

fn check_facts(path: &Path) -> Result<(), String> {
    let recorded = facts::read(path)?;
    let (what, differences) = if facts::pathfinder::recognises(&recorded) {
        ("the tables match", facts::pathfinder::compare(&recorded)?)
    } else {
        let root = PathBuf::from(".");
        let description = describe(&root, &root.join("target/codegen"))?;
        let differences = facts::compare(&description.api, &recorded, path)?;
        ("the IR matches", differences)
    };
    for d in &differences {
        println!("{d}");
    }
    match differences.len() {
        0 => {
            println!("{what} {}", path.display());
            Ok(())
        }
        n => Err(format!("{n} differences from {}", path.display())),
    }
}
