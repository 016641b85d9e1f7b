//! How views and buffers end: what they keep may be a view, a buffer, or an array over one, thousands of times over.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;

use crate::core::view::import::Keep;

/// How many of them may end inside of one another.
const DEEPEST: u32 = 50;

type Kept = (Option<Py<PyAny>>, Keep);

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LATER: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Lets go of what one of them kept: at once, or where too many are ending around this call when the outermost is done.
pub fn end(exporting: Option<Py<PyAny>>, keep: Keep) {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        LATER.with_borrow_mut(|later| later.push((exporting, keep)));
        return;
    }
    DEPTH.set(depth + 1);
    drop((exporting, keep));
    if depth == 0 {
        // What ends here may put off more.
        while let Some(next) = LATER.with_borrow_mut(Vec::pop) {
            drop(next);
        }
    }
    DEPTH.set(depth);
}
