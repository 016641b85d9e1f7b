//! The routes of a call from Python to C.
//!
//! There are two. The **fast call** ([`fast`]) serves functions whose arguments and results are one word each, called
//! with exact ints, handles and enum members: it reads a plan in the function object. The **general call** ([`general`])
//! serves everything else; it reads the descriptor, binds keywords, and calls the hooks in [`crate::bindings::custom`].
//!
//! Shortcuts within these two, each with what it gains (release build, CPU device, Python 3.11; run-to-run variation 3 ns):
//!
//! | shortcut | within | gain |
//! |---|---|---|
//! | [`specialized`]: the plan of 30 common signatures, compiled | fast | 2 to 11 ns of 130 to 180 |
//! | [`fast`] itself, against `plain` | | 48 to 65 ns of 165 to 245 |
//! | `Plan::launch`: the plan of a function with kernel arguments | fast | 80 to 105 ns of 950 |
//! | `plain`: no frame, for functions of words called with keywords or other objects | general | 46 to 58 ns of 195 to 225 |
//! | `raising::short`: the same for functions that raise | general | not measurable on the CPU device |
//!
//! [`convert`] turns arguments into words.

pub mod convert;
pub mod fast;
pub mod general;
pub mod specialized;
