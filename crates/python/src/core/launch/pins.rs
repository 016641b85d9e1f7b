//! Arguments of a launch, and the pins that keep the memory of their buffers valid.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use cupyrite::Stream;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bindings::errors;
use crate::bindings::kernel_parameters::packer::INLINE;
use crate::core::memory::buffer::PyBuffer;
use crate::cpython::{Obj, R};

/// Arguments of the C calling convention: live borrowed references.
#[derive(Clone, Copy)]
pub struct Args<'a>(&'a [*mut ffi::PyObject]);

impl<'a> Args<'a> {
    /// Wraps borrowed references.
    ///
    /// # Safety
    ///
    /// Each is a live object for `'a`, and the thread is attached.
    pub unsafe fn new(args: &'a [*mut ffi::PyObject]) -> Args<'a> {
        Args(args)
    }

    /// Number of arguments.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// The argument at this position.
    #[inline(always)]
    pub fn get(self, index: usize) -> Obj<'a> {
        // SAFETY: live, by the contract of `new`.
        unsafe { Obj::new(self.0[index]) }
    }
}

/// The object as a PyO3 reference.
#[inline(always)]
pub fn bound(value: Obj<'_>) -> Borrowed<'_, '_, PyAny> {
    // SAFETY: live, and arguments are converted on attached threads only.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), value.ptr()) }
}

/// Owner of the pins of buffer arguments, which keep the packed addresses valid.
#[derive(Clone, Copy)]
pub enum Hold<'a> {
    /// For a launch: pinned until the kernel is queued.
    Launch(&'a Pins<'a>),
    /// For kept arguments, which another call launches.
    Kept(&'a Kept),
}

impl<'a> Hold<'a> {
    /// The stream of the launch, if any.
    pub fn stream(self) -> Option<&'a Stream> {
        match self {
            Hold::Launch(pins) => Some(pins.stream),
            Hold::Kept(_) => None,
        }
    }
}

/// Kept arguments and their pinned buffers, whose memory stays valid while this lives.
pub struct Kept {
    args: Py<PyTuple>,
    /// Positions of the pinned buffers.
    held: Mutex<Vec<usize>>,
}

impl Kept {
    /// Keeps the arguments, without pins.
    pub const fn new(args: Py<PyTuple>) -> Kept {
        Kept {
            args,
            held: Mutex::new(Vec::new()),
        }
    }

    /// The arguments.
    pub const fn args(&self) -> &Py<PyTuple> {
        &self.args
    }

    /// Pins the buffer at this position and returns its address; `None` for a closed buffer.
    pub fn hold(&self, buffer: &PyBuffer, index: usize) -> R<Option<u64>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.try_reserve(1).is_err() {
            return Err(errors::no_memory());
        }
        // SAFETY: arguments are converted on attached threads only.
        let address = buffer.begin_launch(unsafe { Python::assume_attached() });
        if address.is_some() {
            held.push(index);
        }
        Ok(address)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: part of a Python object, or of a failed construction: dropped on an attached thread.
        let py = unsafe { Python::assume_attached() };
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        for &index in held.iter() {
            if let Ok(value) = self.args.bind_borrowed(py).get_borrowed_item(index)
                && let Ok(buffer) = value.cast::<PyBuffer>()
            {
                buffer.get().unpin(py);
            }
        }
    }
}

/// Pins of buffer arguments during a launch. A buffer that another thread closes after its address was read is freed
/// after the launch, ordered after the stream's work.
pub struct Pins<'a> {
    args: Args<'a>,
    stream: &'a Stream,
    /// The first `count` pinned buffers.
    first: [Cell<MaybeUninit<*const PyBuffer>>; INLINE],
    count: Cell<usize>,
    /// Index range of further arguments, in which every buffer is pinned.
    more: Cell<(usize, usize)>,
}

impl<'a> Pins<'a> {
    /// No pins.
    #[inline(always)]
    pub const fn new(args: Args<'a>, stream: &'a Stream) -> Pins<'a> {
        Pins {
            args,
            stream,
            first: [const { Cell::new(MaybeUninit::uninit()) }; INLINE],
            count: Cell::new(0),
            more: Cell::new((0, 0)),
        }
    }

    /// Pins the buffer at this position and returns its address; `None` for a closed buffer. Called in the order of the
    /// arguments.
    #[inline(always)]
    pub fn hold(&self, buffer: &PyBuffer, index: usize) -> Option<u64> {
        // SAFETY: arguments are converted on attached threads only.
        let address = buffer.begin_launch(unsafe { Python::assume_attached() })?;
        let count = self.count.get();
        match self.first.get(count) {
            Some(place) => {
                place.set(MaybeUninit::new(buffer));
                self.count.set(count + 1);
            }
            None => {
                let (start, end) = self.more.get();
                self.more
                    .set((if end == 0 { index } else { start }, index + 1));
            }
        }
        Some(address)
    }

    #[inline(never)]
    fn let_go_of_more(&self) {
        let (start, end) = self.more.get();
        for index in start..end {
            let value = bound(self.args.get(index));
            if let Ok(buffer) = value.cast::<PyBuffer>() {
                buffer.get().end_launch(value.py(), self.stream);
            }
        }
    }
}

impl Drop for Pins<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: launches start and end on attached threads.
        let py = unsafe { Python::assume_attached() };
        for place in self.first.iter().take(self.count.get()) {
            // SAFETY: `hold` wrote `count` buffer addresses; the arguments keep these buffers alive.
            let buffer = unsafe { &*place.get().assume_init() };
            buffer.end_launch(py, self.stream);
        }
        if self.more.get().1 != 0 {
            self.let_go_of_more();
        }
    }
}
