//! Printed modules: the text parses, and printing what it parses to gives the same text.

use cupyrite_ptx::{parse, print};

fn texts() -> Vec<(String, String)> {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut files = Vec::new();
    for folder in [data.to_string(), format!("{data}/nvrtc")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "ptx") {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn printed_modules_are_stable() {
    let texts = texts();
    for (name, text) in &texts {
        let module = parse(text).unwrap();
        let first = print(&module);
        let again = parse(&first).unwrap_or_else(|e| {
            panic!(
                "{name}: {e}\n{}",
                first.lines().nth(e.pos.line as usize - 1).unwrap_or("")
            )
        });
        let second = print(&again);
        let difference = first.lines().zip(second.lines()).find(|(a, b)| a != b);
        assert_eq!(difference, None, "{name}");
        assert_eq!(first.lines().count(), second.lines().count(), "{name}");
        // Nothing is lost: the same instructions, with the same operands, for the same positions in the source.
        for (a, b) in module.functions.iter().zip(&again.functions) {
            let (Some(a), Some(b)) = (&a.body, &b.body) else {
                continue;
            };
            assert_eq!(a.instrs.len(), b.instrs.len(), "{name}");
            for (a, b) in a.instrs.iter().zip(&b.instrs) {
                assert_eq!(
                    (a.op, &a.mods, &a.types, a.loc),
                    (b.op, &b.mods, &b.types, b.loc),
                    "{name}: {}",
                    a.mnemonic()
                );
            }
        }
    }
    assert!(texts.len() > 10, "{}", texts.len());
}
