//! The shortest way: calls of the shapes that hot loops are made of, each with a vectorcall of its own.
//!
//! [`Plan::call`] reads from the plan what to do: a jump for each argument, one to the thunk, one for the answer. Here the
//! compiler knows the shape: half of the instructions are left, and the arguments go to C in registers.

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

/// Where a C argument comes from and what C takes.
trait WordKind {
    /// As C has it. Signed and unsigned are passed alike.
    type C;
    const FROM: WordSource;
    /// Of an integer; 0 for everything else.
    const BITS: u16;

    /// The argument, from the next of Python's where it is one of those; `None` where that needs more than a glance.
    ///
    /// # Safety
    ///
    /// As many live objects are left as kinds that read one; `id` is that of the plan's step.
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
                // SAFETY: the caller's.
                unsafe {
                    let obj = Obj::new(**args);
                    *args = args.add(1);
                    // `value` says which words fit.
                    value(obj, WordSource::$from, id).map(|word| word as $c)
                }
            }
        }
    )*};
}

kinds! {
    /// A handle of 64 bits.
    Handle: Handle, 0, u64;
    /// An address, whatever it is of.
    Address: Address, 0, u64;
    /// A member of an enum.
    Enum: Enum, 0, u32;
    /// `size_t` and its like.
    U64: Unsigned, 64, u64;
    /// `unsigned int`.
    U32: Unsigned, 32, u32;
    /// `int`.
    I32: Signed, 32, u32;
}

/// The place of the result.
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

/// What comes back after the status.
trait Finish {
    /// Whether it is this.
    fn fits(answer: Answer) -> bool;

    /// As [`Plan::answer`].
    ///
    /// # Safety
    ///
    /// As for that one; `callable` is the function object of the plan, which has this answer.
    unsafe fn finish(
        plan: *mut Plan,
        callable: *mut ffi::PyObject,
        status: i32,
        out: u64,
    ) -> R<Owned>;
}

/// Nothing does.
struct Nothing;
/// A value that cannot be changed.
struct Value;
/// A handle of 64 bits.
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
        // SAFETY: the caller's; the plan holds the tuple.
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
        // SAFETY: the caller's; the plan holds the tuple.
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
        // SAFETY: the caller's.
        unsafe {
            match (*plan).answer {
                Answer::Handle(id) if status == 0 => Plan::handle(plan, id, out),
                _ => other(plan, callable, status, out),
            }
        }
    }
}

/// The answer in general.
#[inline(never)]
unsafe fn other(plan: *mut Plan, callable: *mut ffi::PyObject, status: i32, out: u64) -> R<Owned> {
    // SAFETY: the caller's; a shape has one result at most.
    unsafe {
        let f = function::function_of(callable);
        Plan::answer(plan, f, i64::from(status), &raw const out)
    }
}

/// The vectorcall of functions with so many C parameters.
macro_rules! with_words {
    ($name:ident: $($kind:ident $word:ident $index:literal)*) => {
        unsafe extern "C" fn $name<A: Finish, $($kind: WordKind),*>(
            callable: *mut ffi::PyObject,
            args: *const *mut ffi::PyObject,
            nargsf: usize,
            kwnames: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            let expected = const { 0 $(+ ($kind::FROM as usize != WordSource::Result as usize) as usize)* };
            // SAFETY: the protocol gives a function object and as many arguments as it says, on an attached thread.
            // Function objects with this vectorcall have a plan of this shape, whose symbol is a function of this C
            // signature that returns a status: `Plan::new` and `of` have seen to that. What C writes to lies in this frame.
            // The thread state is restored before Python is touched.
            unsafe {
                let plan = function::plan_of(callable);
                // The top bit only says that the place before the arguments may be used.
                let nargs = nargsf & (usize::MAX >> 1);
                let address = (*plan).address.load(Ordering::Relaxed).cast_const();
                'short: {
                    if nargs != expected || !kwnames.is_null() || address.is_null() {
                        break 'short;
                    }
                    // As much room as `Plan::call` has: what is called a float may be four (`cuTexRefGetBorderColor`).
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
                // The first call, too.
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
    // Synchronise, choose, ask.
    with0: Nothing;
    with1: Nothing, I32;
    with1: Nothing, U32;
    with1: Value, Out;
    with1: Made, Out;
    with2: Made, Out, U32;
    with2: Value, Out, Handle;
    with2: Made, Out, Handle;
    // Release; work of streams and events.
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
                // Each argument is taken once, in Python's order.
                step.from == from && step.index == index && (!integer || step.id == bits)
            });
        every && arguments == plan.arguments && (self.answer)(plan.answer)
    }
}

/// The vectorcall for a plan, if it is of one of the shapes.
pub fn of(plan: &Plan) -> Option<VectorCall> {
    let shape = SHAPES.iter().find(|shape| shape.fits(plan));
    shape.filter(|_| plan.usable).map(|shape| shape.call)
}
