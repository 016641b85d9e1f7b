//! Arguments of a launch, and the pins that keep the memory of their buffers valid.

use std::cell::{Cell, RefCell};
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

    /// Calls `each` with the arguments from `start` on that have the same type; returns the index of the next one.
    ///
    /// # Errors
    ///
    /// The first error of `each`.
    #[inline(always)]
    pub fn run(self, start: usize, mut each: impl FnMut(usize, Obj<'a>) -> R<()>) -> R<usize> {
        let ty = self.get(start).ty();
        let mut index = start;
        loop {
            each(index, self.get(index))?;
            index += 1;
            if index >= self.len() || !std::ptr::eq(self.get(index).ty(), ty) {
                return Ok(index);
            }
        }
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
    /// Whether memory that a graph allocates is left to that graph.
    of_graph: bool,
}

impl Kept {
    /// Keeps the arguments, without pins.
    pub const fn new(args: Py<PyTuple>) -> Kept {
        Kept {
            args,
            held: Mutex::new(Vec::new()),
            of_graph: false,
        }
    }

    /// As [`Kept::new`], for a graph: the memory of its own allocations is not pinned.
    pub const fn for_graph(args: Py<PyTuple>) -> Kept {
        Kept {
            args,
            held: Mutex::new(Vec::new()),
            of_graph: true,
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
        let py = unsafe { Python::assume_attached() };
        if self.of_graph && buffer.is_graph_memory(py) {
            let extent = buffer.extent();
            return Ok(extent.open.then_some(extent.address));
        }
        let address = buffer.begin_launch(py);
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
    /// The first `count` pinned buffers, which the arguments keep alive.
    first: [Cell<MaybeUninit<*const PyBuffer>>; INLINE],
    count: Cell<usize>,
    /// Further pinned buffers.
    more: RefCell<Vec<*const PyBuffer>>,
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
            more: RefCell::new(Vec::new()),
        }
    }

    /// Pins a buffer, which is one of the arguments, and returns its address; `None` for a closed buffer.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline(always)]
    pub fn hold(&self, buffer: &PyBuffer) -> R<Option<u64>> {
        // SAFETY: arguments are converted on attached threads only.
        let py = unsafe { Python::assume_attached() };
        let count = self.count.get();
        let Some(place) = self.first.get(count) else {
            return self.hold_more(py, buffer);
        };
        let address = buffer.begin_launch(py);
        if address.is_some() {
            place.set(MaybeUninit::new(buffer));
            self.count.set(count + 1);
        }
        Ok(address)
    }

    /// As [`Pins::hold`], after the first [`INLINE`] buffers.
    fn hold_more(&self, py: Python<'_>, buffer: &PyBuffer) -> R<Option<u64>> {
        let mut more = self.more.borrow_mut();
        if more.capacity() == 0 && more.try_reserve_exact(self.args.len()).is_err() {
            return Err(errors::no_memory());
        }
        let address = buffer.begin_launch(py);
        if address.is_some() {
            more.push(buffer);
        }
        Ok(address)
    }
}

impl Drop for Pins<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: launches start and end on attached threads.
        let py = unsafe { Python::assume_attached() };
        for place in self.first.iter().take(self.count.get()) {
            // SAFETY: `hold` stored `count` addresses of buffers, which the arguments keep alive.
            let buffer = unsafe { &*place.get().assume_init() };
            buffer.end_launch(py, self.stream);
        }
        for &buffer in self.more.get_mut().iter() {
            // SAFETY: `hold_more` stored addresses of buffers, which the arguments keep alive.
            unsafe { &*buffer }.end_launch(py, self.stream);
        }
    }
}
