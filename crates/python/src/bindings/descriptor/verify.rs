//! Verification of the tables at compile time.

use super::{
    Conv, Function, Len, MAX_PARAMS, MAX_REQUESTS, MAX_RESULTS, MAX_WORDS, NO_SYMBOL, Out, OutSize,
    Raising, Ret, Store, Word,
};
use crate::types::declare::is_before;

/// Checks a table at compile time. The engine relies on it and does not check again.
///
/// # Panics
///
/// An index is out of range, a table is too long for a call's frame, or the names are not sorted.
pub const fn verify(functions: &[Function]) {
    let mut at = 0;
    while at < functions.len() {
        let f = &functions[at];
        assert!(f.symbol != NO_SYMBOL || f.hook.is_some(), "nothing to call");
        assert!(f.params.len() <= MAX_PARAMS, "too many parameters");
        assert!(f.words.len() <= MAX_WORDS, "too many C parameters");
        assert!(f.results.len() <= MAX_RESULTS, "too many results");
        let mut word = 0;
        while word < f.words.len() {
            match f.words[word] {
                Word::Arg(arg) | Word::ArgAddress(arg) | Word::Elements(arg) => {
                    assert!((arg as usize) < f.params.len(), "no such parameter");
                }
                Word::Result(result) => {
                    assert!((result as usize) < f.results.len(), "no such result");
                }
                Word::InOut(arg, result) => {
                    assert!((arg as usize) < f.params.len(), "no such parameter");
                    assert!((result as usize) < f.results.len(), "no such result");
                }
                Word::Null | Word::Const(_) => {}
                Word::Count => {
                    let counted = match f.raising {
                        Some(raising) => raising.sizing.is_some(),
                        None => false,
                    };
                    assert!(counted, "no sizing");
                }
                Word::Request(request) => {
                    let count = match f.raising {
                        Some(raising) => raising.requests.len(),
                        None => 0,
                    };
                    assert!((request as usize) < count, "no such request");
                }
            }
            word += 1;
        }
        let mut param = 0;
        while param < f.params.len() {
            let other = match f.params[param].conv {
                Conv::HandleArray(_, other) | Conv::StructArray(_, other) => other,
                Conv::BytesOut(Some(other)) | Conv::VoidPtr(Some(other)) => other,
                Conv::Addresses(Some(other)) | Conv::Writable(Some(other)) => other,
                Conv::BufferStructs(_, other) => other,
                Conv::List(_, Some(count)) => count.param,
                Conv::Attribute(_, other) => other,
                Conv::StrList(Some(other)) | Conv::Buffer(Some(other)) => other,
                Conv::BufferOut(OutSize::Arg(other)) => other,
                Conv::Options(_, options, count) => {
                    assert!((options as usize) < f.params.len(), "no such parameter");
                    count
                }
                _ => 0,
            };
            assert!((other as usize) < f.params.len(), "no such parameter");
            param += 1;
        }
        let mut result = 0;
        while result < f.results.len() {
            let other = match f.results[result].kind {
                Out::Bytes(Len::Arg(other), _) | Out::List(_, Len::Arg(other)) => other,
                Out::Str(Len::Arg(other))
                | Out::Slice(_, Len::Arg(other))
                | Out::BufferStructs(_, Len::Arg(other)) => other,
                Out::Attribute(_, other) => other,
                _ => 0,
            };
            let known = (other as usize) < f.params.len();
            assert!(other == 0 || known, "no such parameter");
            result += 1;
        }
        if let Some(raising) = f.raising {
            verify_raising(f, raising);
        }
        if at > 0 {
            assert!(
                is_before(functions[at - 1].name, f.name),
                "names are not sorted"
            );
        }
        at += 1;
    }
}

/// The part of [`verify`] for functions that raise.
const fn verify_raising(f: &Function, raising: &Raising) {
    assert!(raising.requests.len() <= MAX_REQUESTS, "too many requests");
    let returned = matches!(raising.ret, Ret::Size | Ret::Value(_) | Ret::Text);
    assert!(!returned || !f.results.is_empty(), "no result to return");
    if let Some(sizing) = &raising.sizing {
        let mut at = 0;
        while at < sizing.arrays.len() {
            let array = sizing.arrays[at] as usize;
            assert!(array < f.results.len(), "no such result");
            at += 1;
        }
    }
    let mut at = 0;
    while at < raising.requests.len() {
        let request = &raising.requests[at];
        // Fields must lie within the struct. The size of a class is checked by the engine instead.
        let size = match request.store {
            Store::Scratch(size) => size as usize,
            Store::Result(result) => {
                assert!((result as usize) < f.results.len(), "no such result");
                usize::MAX
            }
            Store::Arg(arg) => {
                assert!((arg as usize) < f.params.len(), "no such parameter");
                usize::MAX
            }
        };
        assert!(request.version == 0 || size >= 4, "no room for the version");
        let mut input = 0;
        while input < request.inputs.len() {
            let (offset, kind, param) = request.inputs[input];
            assert!(offset as usize + kind.size() <= size, "outside the struct");
            assert!((param as usize) < f.params.len(), "no such parameter");
            input += 1;
        }
        let mut output = 0;
        while output < request.outputs.len() {
            let (offset, result) = request.outputs[output];
            assert!((result as usize) < f.results.len(), "no such result");
            let bytes = match f.results[result as usize].kind {
                Out::Int(kind) => kind.size(),
                Out::Bool => 1,
                Out::Address | Out::NewHandle(_) => 8,
                Out::Str(Len::Const(len)) => len as usize,
                _ => panic!("a request has no result of this kind"),
            };
            assert!(offset as usize + bytes <= size, "outside the struct");
            output += 1;
        }
        at += 1;
    }
}
