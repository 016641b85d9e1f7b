//! What the extension module needs of CPython: objects, exceptions, binding of arguments, methods, the GIL, and private
//! layouts ([`internals`]).
//!
//! Nothing here depends on `bindings`, `types` or `core`.

pub mod arguments;
pub mod buffer;
pub mod errors;
mod gil;
pub mod gil_lock;
pub mod internals;
pub mod method;
mod object;
pub mod pointer_map;
pub mod trashcan;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod unwinding;

pub use self::errors::guard;
pub use self::gil::{DropAttached, attached, detached, python_is_there};
pub use self::object::*;
