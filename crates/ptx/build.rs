//! Compiles the instruction table, `isa/*.isa`, into the tables that `src/isa` includes.

#[path = "build/emit.rs"]
mod emit;
#[path = "build/table.rs"]
mod table;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=isa");
    println!("cargo::rerun-if-changed=build");
    let mut files: Vec<_> = fs::read_dir("isa")
        .expect("the folder isa can be read")
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "isa"))
        .collect();
    files.sort();
    let mut table = table::Table::default();
    for path in files {
        let text = fs::read_to_string(&path).expect("a table can be read");
        if let Err(error) = table.read(&text) {
            panic!("{}:{}: {}", path.display(), error.line, error.message);
        }
    }
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("isa.rs"), emit::rust(&table))
        .expect("the output can be written");
}
