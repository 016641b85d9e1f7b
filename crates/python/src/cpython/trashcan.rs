//! Bounded-depth destruction of chains of views and buffers, which may be thousands of objects long. Compare CPython's
//! trashcan.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;

use crate::core::view::import::Keep;

/// Maximum depth of nested deallocations.
const DEEPEST: u32 = 50;

type Kept = (Option<Py<PyAny>>, Keep);

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LATER: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Drops the references of a view or buffer: immediately, or after the outermost deallocation if the nesting is too
/// deep.
pub fn end(exporting: Option<Py<PyAny>>, keep: Keep) {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        LATER.with_borrow_mut(|later| later.push((exporting, keep)));
        return;
    }
    DEPTH.set(depth + 1);
    drop((exporting, keep));
    if depth == 0 {
        // Dropping these may defer further objects.
        while let Some(next) = LATER.with_borrow_mut(Vec::pop) {
            drop(next);
        }
    }
    DEPTH.set(depth);
}
