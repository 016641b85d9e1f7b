//! Prints an instruction for each form of the table and each of its modifiers, with the version and the architecture that it
//! needs.

use cupyrite_ptx::ir::Op;
use cupyrite_ptx::isa::samples;

fn main() {
    for op in Op::ALL {
        for (form, text) in samples(*op) {
            let (major, minor) = form.version;
            println!("{}\t{major}.{minor}\t{text}", form.target);
        }
    }
}
