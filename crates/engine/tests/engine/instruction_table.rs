//! What the instruction table says of the device is what the engine does.

use cupyrite_engine::Image;
use cupyrite_engine::memory::AddressSpace;
use cupyrite_ptx::NEWEST_VERSION;
use cupyrite_ptx::ir::Op;
use cupyrite_ptx::isa::{
    DECLARATIONS, Support, VARIABLES, WIDE_DECLARATIONS, bulk_copy_samples, samples,
};

/// A module of the newest version with one instruction.
fn module(target: &str, instruction: &str) -> String {
    let (major, minor) = NEWEST_VERSION;
    format!(
        ".version {major}.{minor}\n.target {target}\n.address_size 64\n{VARIABLES}\
         .visible .entry kernel(.param .align 64 .b8 kernel_parameter[128]) {{\n{DECLARATIONS}{WIDE_DECLARATIONS}\
         .param .align 64 .b8 call_parameter[128];\n{instruction}\nret;\n}}\n"
    )
}

#[test]
fn forms_run_or_are_refused_as_the_table_says() {
    const TARGETS: [&str; 7] = [
        "sm_90a", "sm_100a", "sm_120a", "sm_80", "sm_60", "sm_103a", "sm_107f",
    ];
    let (mut run, mut refused, mut wrong) = (0, 0, Vec::new());
    let listed = Op::ALL.iter().flat_map(|op| samples(*op));
    for sample in listed.chain(bulk_copy_samples()) {
        let loaded = TARGETS.iter().find_map(|target| {
            Image::load(&module(target, &sample.text), AddressSpace::global()).ok()
        });
        // Forms that newer versions or architectures no longer have.
        let Some(image) = loaded else { continue };
        let problem = image.kernels()[0].unsupported();
        let says = sample.support() == Support::Refused;
        match (says, &problem) {
            (false, None) => run += 1,
            (true, Some(_)) => refused += 1,
            (true, None) => wrong.push(format!("{}: runs, `{}`", sample.text, sample.form.text)),
            (false, Some(p)) => wrong.push(format!("{}: {p}, `{}`", sample.text, sample.form.text)),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} forms differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        run > 8000 && refused > 100,
        "{run} run, {refused} are refused"
    );
}
