//! The parser returns a module or an error for every text, and never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match cupyrite_ptx::parse(text) {
        Ok(module) => {
            for instr in module.functions.iter().filter_map(|f| f.body.as_ref()).flat_map(|b| &b.instrs) {
                assert!(!instr.mnemonic().is_empty());
            }
        }
        Err(error) => {
            assert!(error.pos.line >= 1 && error.pos.column >= 1);
            assert!(!error.to_string().contains('\n'));
        }
    }
});
