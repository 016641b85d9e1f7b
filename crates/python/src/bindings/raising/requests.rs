//! Structs that C takes and that Python does not see: filled from arguments before a call, read into results after it.

use crate::bindings::call::frame::Frame;
use crate::bindings::call::words::address;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Out, Raising, Store};
use crate::bindings::raising::live_handles;
use crate::cpython::R;

/// Allocates the structs of a call and writes their inputs.
///
/// # Errors
///
/// `MemoryError`.
pub fn fill(frame: &mut Frame, raising: &Raising) -> R<()> {
    for (index, request) in raising.requests.iter().enumerate() {
        let at = match request.store {
            Store::Scratch(size) => frame.keep.array(size as usize)?.addr() as u64,
            Store::Result(result) => frame.outs[result as usize],
            Store::Arg(arg) => frame.vals[arg as usize],
        };
        frame.requests[index] = at;
        // The library refuses null itself.
        if at == 0 {
            continue;
        }
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address(at));
        // SAFETY: the struct was allocated above, or belongs to the caller and has the class's size. Offsets lie
        // within it: `descriptor::verify` checks them for scratch structs, the generator for structs of a class.
        // On a little-endian machine the low bytes of a word are the value.
        unsafe {
            if request.version != 0 {
                to.cast::<u32>().write_unaligned(request.version);
            }
            for (offset, kind, param) in request.inputs {
                let value = frame.vals[*param as usize];
                let from = (&raw const value).cast::<u8>();
                std::ptr::copy_nonoverlapping(from, to.add(*offset as usize), kind.size());
            }
        }
    }
    Ok(())
}

/// Registers the handles that C created, and copies the outputs of the structs to the results.
pub fn read(frame: &mut Frame, arguments: Arguments<'_>, raising: &Raising) {
    let results = arguments.f.results;
    for (index, result) in results.iter().enumerate() {
        // Register new handles first, so that no later failure leaves one unregistered.
        if let Out::NewHandle(kind) = result.kind {
            live_handles::register(kind, frame.outs[index]);
        }
    }
    for (index, request) in raising.requests.iter().enumerate() {
        let at = std::ptr::with_exposed_provenance::<u8>(address(frame.requests[index]));
        if at.is_null() {
            continue;
        }
        for (offset, result) in request.outputs {
            let result = *result as usize;
            // SAFETY: the outputs lie within the struct, as the inputs do in `fill`. `result` indexes `outs`.
            unsafe {
                let from = at.add(*offset as usize);
                let size = match results[result].kind {
                    Out::Int(kind) => kind.size(),
                    Out::Bool => 1,
                    Out::Str(_) => {
                        frame.outs[result] = from.addr() as u64;
                        continue;
                    }
                    _ => 8,
                };
                let to = frame.outs.as_mut_ptr().add(result);
                to.write(0);
                std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size);
                if let Out::NewHandle(kind) = results[result].kind {
                    live_handles::register(kind, to.read());
                }
            }
        }
    }
}
