//! The routes of a call from Python to C.
//!
//! There are two. The **fast route** ([`fast`]) serves functions whose arguments and results are one word each, called with
//! exact ints, handles, enum members and kernel arguments; it executes the steps stored in the function object. The
//! **general route** ([`general`]) serves all other calls; it reads the descriptor, and calls the hooks of
//! [`crate::bindings::custom`]. It also binds keywords, and then tries the fast route.
//!
//! [`convert`] converts arguments to words, [`frame`] has the data of a call, [`results`] makes the answer.
//!
//! What they cost, and what was removed because it gained less than 50 ns (release build, CPU device, Python 3.11, the
//! smallest of several runs; run-to-run variation 3 ns):
//!
//! | call | fast route | bound keywords, then fast route | general route's conversion (a NumPy int) |
//! |---|---|---|---|
//! | `cuDeviceGetAttribute` | 65 ns | 86 ns | 121 ns |
//! | `cuCtxSetCurrent` | 69 ns | 84 ns | |
//! | `cuStreamGetCtx` | 71 ns | 86 ns | 129 ns |
//!
//! | removed | its gain |
//! |---|---|
//! | a vectorcall with compiled steps for each of 30 common signatures | up to 11 ns of 80 to 180 |
//! | a general route without a frame, for one-word functions called with foreign objects | 34 ns of 164 |

pub mod convert;
pub mod fast;
pub mod frame;
pub mod general;
pub mod memory_checks;
pub mod results;
pub mod words;
