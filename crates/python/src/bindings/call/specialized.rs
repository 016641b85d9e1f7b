//! Compiled plans: a separate vectorcall for each signature that is common in hot loops.
//!
//! [`Plan::call`] interprets the plan: a jump for each argument, one to the thunk, one for the answer. Here the shape is
//! known at compile time, which halves the number of instructions and passes the arguments to C in registers.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use pyo3::ffi;

use crate::bindings::call::fast::{Answer, Plan, WordSource, value};
use crate::bindings::descriptor::PLAIN_RESULTS;
use crate::bindings::function;
use crate::bindings::function::VectorCall;
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// Source and type of a C argument.
trait WordKind {
    /// The type in C. Signed and unsigned types are passed alike.
    type C;
    const FROM: WordSource;
    /// Number of bits of an integer; 0 for other sources.
    const BITS: u16;

    /// The C argument. Consumes the next Python argument unless it is a result; `None` if that needs the general route.
    ///
    /// # Safety
    ///
    /// `args` points to a live object for each remaining kind that consumes one; `id` is that of the plan's step.
    unsafe fn take(args: &mut *const *mut ffi::PyObject, id: u16, out: *mut u64)
    -> Option<Self::C>;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $from:ident, $bits:literal, $c:ty;)*) => {$(
        $(#[$doc])*
        struct $name;

        impl WordKind for $name {
            type C = $c;
            const FROM: WordSource = WordSource::$from;
            const BITS: u16 = $bits;

            #[inline(always)]
            unsafe fn take(args: &mut *const *mut ffi::PyObject, id: u16, _out: *mut u64) -> Option<$c> {
                let id = if $bits == 0 { id } else { $bits };
                // SAFETY: the caller guarantees that `args` points to a live object.
                unsafe {
                    let obj = Obj::new(**args);
                    *args = args.add(1);
                    // `value` has checked the range.
                    value(obj, WordSource::$from, id).map(|word| word as $c)
                }
            }
        }
    )*};
}

kinds! {
    /// A 64-bit handle.
    Handle: Handle, 0, u64;
    /// An address.
    Address: Address, 0, u64;
    /// A member of an enum.
    Enum: Enum, 0, u32;
    /// `size_t` and other 64-bit types.
    U64: Unsigned, 64, u64;
    /// `unsigned int`.
    U32: Unsigned, 32, u32;
    /// `int`.
    I32: Signed, 32, u32;
}

/// The storage of the result.
struct Out;

impl WordKind for Out {
    type C = *mut u64;
    const FROM: WordSource = WordSource::Result;
    const BITS: u16 = 0;

    #[inline(always)]
    unsafe fn take(
        _args: &mut *const *mut ffi::PyObject,
        _id: u16,
        out: *mut u64,
    ) -> Option<*mut u64> {
        Some(out)
    }
}

/// The result after the status.
trait Finish {
    /// Whether `answer` is of this kind.
    fn fits(answer: Answer) -> bool;

    /// As [`Plan::answer`].
    ///
    /// # Safety
    ///
    /// As for [`Plan::answer`]; `callable` is the function object of the plan, whose answer is of this kind.
    unsafe fn finish(
        plan: *mut Plan,
        callable: *mut ffi::PyObject,
        status: i32,
        out: u64,
    ) -> R<Owned>;
}

/// No result.
struct Nothing;
/// An immutable value.
struct Value;
/// A new 64-bit handle.
struct Made;

impl Finish for Nothing {
    fn fits(answer: Answer) -> bool {
        answer == Answer::Nothing
    }

    #[inline(always)]
    unsafe fn finish(
        plan: *mut Plan,
        _callable: *mut ffi::PyObject,
        status: i32,
        _out: u64,
    ) -> R<Owned> {
        // SAFETY: as promised by the caller; a tuple in the plan is live.
        unsafe {
            let last = (*plan).last;
            if status == 0 && !last.is_null() {
                return Ok(Obj::new(last).owned());
            }
            Plan::status(plan, i64::from(status))
        }
    }
}

impl Finish for Value {
    fn fits(answer: Answer) -> bool {
        answer == Answer::Value
    }

    #[inline(always)]
    unsafe fn finish(
        plan: *mut Plan,
        callable: *mut ffi::PyObject,
        status: i32,
        out: u64,
    ) -> R<Owned> {
        // SAFETY: as promised by the caller; a tuple in the plan is live.
        unsafe {
            let last = (*plan).last;
            if status == 0 && !last.is_null() && (*plan).last_word == out {
                return Ok(Obj::new(last).owned());
            }
            other(plan, callable, status, out)
        }
    }
}

impl Finish for Made {
    fn fits(answer: Answer) -> bool {
        matches!(answer, Answer::Handle(_))
    }

    #[inline(always)]
    unsafe fn finish(
        plan: *mut Plan,
        callable: *mut ffi::PyObject,
        status: i32,
        out: u64,
    ) -> R<Owned> {
        // SAFETY: as promised by the caller.
        unsafe {
            match (*plan).answer {
                Answer::Handle(id) if status == 0 => Plan::handle(plan, id, out),
                _ => other(plan, callable, status, out),
            }
        }
    }
}

/// The answer in all other cases.
#[inline(never)]
unsafe fn other(plan: *mut Plan, callable: *mut ffi::PyObject, status: i32, out: u64) -> R<Owned> {
    // SAFETY: as promised by the caller; a shape has at most one result.
    unsafe {
        let f = function::function_of(callable);
        Plan::answer(plan, f, i64::from(status), &raw const out)
    }
}

/// Defines the vectorcall of functions with this number of C parameters.
macro_rules! with_words {
    ($name:ident: $($kind:ident $word:ident $index:literal)*) => {
        unsafe extern "C" fn $name<A: Finish, $($kind: WordKind),*>(
            callable: *mut ffi::PyObject,
            args: *const *mut ffi::PyObject,
            nargsf: usize,
            kwnames: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            let expected = const { 0 $(+ ($kind::FROM as usize != WordSource::Result as usize) as usize)* };
            // SAFETY: the vectorcall protocol passes a function object and `nargs` live arguments, on an attached thread.
            // Function objects with this vectorcall have a plan of this shape, whose symbol is a function of this C
            // signature that returns a status; `Plan::new` and `of` ensure this. C writes into this stack frame only.
            // The thread is attached again before Python is used.
            unsafe {
                let plan = function::plan_of(callable);
                // Clears PY_VECTORCALL_ARGUMENTS_OFFSET.
                let nargs = nargsf & (usize::MAX >> 1);
                let address = (*plan).address.load(Ordering::Relaxed).cast_const();
                'short: {
                    if nargs != expected || !kwnames.is_null() || address.is_null() {
                        break 'short;
                    }
                    // The same room as in `Plan::call`: a float result may be four (`cuTexRefGetBorderColor`).
                    #[allow(unused_mut, reason = "not every shape has results")]
                    let mut out = [0u64; PLAIN_RESULTS];
                    #[allow(unused_mut, unused_variables, reason = "not every shape has arguments")]
                    let mut next = args;
                    $(
                        let id = (*plan).steps[$index].id;
                        let Some($word) = $kind::take(&mut next, id, (&raw mut out).cast()) else {
                            break 'short;
                        };
                    )*
                    let function = std::mem::transmute::<
                        *const c_void,
                        unsafe extern "C" fn($($kind::C),*) -> i32,
                    >(address);
                    let status = if (*plan).keep_gil && symbols::keeps_gil() {
                        function($($word),*)
                    } else {
                        cpython::detached(|| function($($word),*))
                    };
                    if (*plan).interruptible && symbols::check_interrupt().is_err() {
                        return std::ptr::null_mut();
                    }
                    return match A::finish(plan, callable, status, out[0]) {
                        Ok(answer) => answer.into_ptr(),
                        Err(Raised) => std::ptr::null_mut(),
                    };
                }
                // Also serves the first call, which resolves the symbol.
                function::vectorcall(callable, args, nargsf, kwnames)
            }
        }
    };
}

with_words!(with0:);
with_words!(with1: A0 a0 0);
with_words!(with2: A0 a0 0 A1 a1 1);
with_words!(with3: A0 a0 0 A1 a1 1 A2 a2 2);
with_words!(with4: A0 a0 0 A1 a1 1 A2 a2 2 A3 a3 3);
with_words!(with5: A0 a0 0 A1 a1 1 A2 a2 2 A3 a3 3 A4 a4 4);

/// A shape and its vectorcall.
struct Shape {
    words: &'static [(WordSource, u16)],
    answer: fn(Answer) -> bool,
    call: VectorCall,
}

macro_rules! shapes {
    ($($with:ident: $answer:ident $(, $kind:ident)*;)*) => {
        [$(Shape {
            words: &[$(($kind::FROM, $kind::BITS)),*],
            answer: $answer::fits,
            call: $with::<$answer, $($kind),*>,
        }),*]
    };
}

#[rustfmt::skip]
static SHAPES: [Shape; 30] = shapes! {
    // Synchronise, select, query.
    with0: Nothing;
    with1: Nothing, I32;
    with1: Nothing, U32;
    with1: Value, Out;
    with1: Made, Out;
    with2: Made, Out, U32;
    with2: Value, Out, Handle;
    with2: Made, Out, Handle;
    // Release; streams and events.
    with1: Nothing, Handle;
    with1: Nothing, Address;
    with2: Nothing, Handle, Handle;
    with2: Nothing, Handle, U32;
    with2: Nothing, Address, Handle;
    with3: Nothing, Handle, Handle, U32;
    with3: Value, Out, Handle, Handle;
    // Allocate.
    with2: Value, Out, U64;
    with2: Made, Out, U64;
    with3: Value, Out, U64, U32;
    with3: Value, Out, U64, Handle;
    with3: Made, Out, U64, Handle;
    // Copy.
    with3: Nothing, Handle, Address, U64;
    with3: Nothing, Address, Handle, U64;
    with3: Nothing, Handle, Handle, U64;
    with4: Nothing, Handle, Address, U64, Handle;
    with4: Nothing, Address, Handle, U64, Handle;
    with4: Nothing, Handle, Handle, U64, Handle;
    with4: Nothing, Address, Address, U64, Enum;
    with5: Nothing, Address, Address, U64, Enum, Handle;
    // Fill.
    with3: Nothing, Address, I32, U64;
    with4: Nothing, Address, I32, U64, Handle;
};

impl Shape {
    fn fits(&self, plan: &Plan) -> bool {
        let steps = &plan.steps[..plan.words as usize];
        let mut arguments = 0;
        let every = self.words.len() == steps.len()
            && self.words.iter().zip(steps).all(|(&(from, bits), step)| {
                let integer = matches!(from, WordSource::Unsigned | WordSource::Signed);
                let index = if from == WordSource::Result {
                    0
                } else {
                    arguments += 1;
                    arguments - 1
                };
                // Each argument is used once, in the order of the Python parameters.
                step.from == from && step.index == index && (!integer || step.id == bits)
            });
        every && arguments == plan.arguments && (self.answer)(plan.answer)
    }
}

/// The vectorcall for a plan that has one of the shapes.
pub fn of(plan: &Plan) -> Option<VectorCall> {
    let shape = SHAPES.iter().find(|shape| shape.fits(plan));
    shape.filter(|_| plan.usable).map(|shape| shape.call)
}
