//! Headers and overlay to the generated files.
