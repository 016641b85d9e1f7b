//! Examples of docstrings: `#[doc = example!("cuda.core.Device.sync")]` below the documentation of a class or method appends
//! the section `Examples` with the example of that name.
//!
//! The examples lie in the files of the folder `doctests`, so that they can be run without a build and do not lengthen the
//! sources. Every example is used by exactly the object it names: `tests/core/objects/test_docstrings.py`.

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

/// A docstring as a constant `&CStr`: a text and the example of a name.
macro_rules! with_example {
    ($text:literal, $name:tt) => {
        const {
            match std::ffi::CStr::from_bytes_with_nul(
                concat!($text, "\n", example!($name), "\0").as_bytes(),
            ) {
                Ok(text) => text,
                Err(_) => panic!("a docstring contains a zero byte"),
            }
        }
    };
}
