//! Conversion of Python values to C values.
//!
//! Accepts what NVIDIA's package accepts (observed), and in addition objects that have only `__index__`, `None` for null
//! pointers, and objects with `getPtr()` for `void *`. Other values raise before the C call; the message names function
//! and parameter.

mod keep;
mod lists;
mod memory;
mod numbers;
mod structs;
mod text;

pub use self::keep::{Keep, Objects};
pub use self::lists::{addresses, check_count, items, list, text_list};
pub use self::memory::{
    buffer_in, buffer_out, bytes_out, get_ptr, no_buffer, no_pointer, void_ptr, void_ptr_or,
};
pub use self::numbers::{address, enumerator, float, handle, handle_storage, int, truth};
pub use self::structs::{buffer_struct, buffer_structs, structure};
pub use self::text::{bytes, c_string, text, utf8};
