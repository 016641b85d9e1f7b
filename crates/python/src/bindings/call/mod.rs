//! The routes of a call from Python to C.
//!
//! There are two. The **fast path** ([`fast`]) serves functions whose arguments and results are one word each, called with
//! exact ints, handles and enum members; it executes a plan stored in the function object. The **general route**
//! ([`general`]) serves all other calls; it reads the descriptor, binds keywords, and calls the hooks in
//! [`crate::bindings::custom`].
//!
//! Optimisations within the two, and their gains (release build, CPU device, Python 3.11; run-to-run variation 3 ns):
//!
//! | optimisation | within | gain |
//! |---|---|---|
//! | [`specialized`]: compiled plans for 30 common signatures | fast | 2 to 11 ns of 130 to 180 |
//! | [`fast`] itself, compared with `plain` | | 48 to 65 ns of 165 to 245 |
//! | `Plan::launch`: plans for functions with kernel arguments | fast | 80 to 105 ns of 950 |
//! | `plain`: no frame; one-word functions called with keywords or other objects | general | 46 to 58 ns of 195 to 225 |
//! | `raising::short`: the same for functions that raise | general | not measurable on the CPU device |
//!
//! [`convert`] converts arguments to words.

pub mod convert;
pub mod fast;
pub mod general;
pub mod specialized;
