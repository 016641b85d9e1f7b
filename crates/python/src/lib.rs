//! The extension module behind the Python packages.
