//! The routes of a call from Python to C.
//!
//! There are two. The **fast route** ([`fast`]) serves functions whose arguments and results are one word each, called with
//! exact ints, handles, enum members and kernel arguments; it executes the steps stored in the function object. The
//! **general route** ([`general`]) serves all other calls; it reads the descriptor, binds keywords, and calls the hooks in
//! [`crate::bindings::custom`].
//!
//! Optimisations within the two, and their gains (release build, CPU device, Python 3.11; run-to-run variation 3 ns):
//!
//! | optimisation | within | gain |
//! |---|---|---|
//! | [`fast`] itself, compared with `plain` | | 48 to 65 ns of 165 to 245 |
//! | steps for kernel arguments | fast | 80 to 105 ns of 950 |
//! | `plain`: no frame; one-word functions called with keywords or other objects | general | 46 to 58 ns of 195 to 225 |
//! | `raising::short`: the same for functions that raise | general | not measurable on the CPU device |
//!
//! [`convert`] converts arguments to words. A vectorcall for each of 30 common signatures, with the steps compiled in, was
//! 2 to 11 ns of 130 to 180 faster than the fast route, and was removed.

pub mod convert;
pub mod fast;
pub mod general;
