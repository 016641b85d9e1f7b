//! Kernel parameters: conversion of Python values to the array of pointers that `cuLaunchKernel` takes.
//!
//! [`Packer`] owns pointers and values. It has two front ends with conversion rules of their own, as NVIDIA's interfaces
//! have: [`forms`], where a ctypes type beside each value selects the conversion (`kernelParams` of `cuda.bindings`), and
//! `core::launch::packing`, where the value's own type and the size of the kernel's parameter do. What both need to know
//! of a value is in [`value`]. [`attribute`] packs by [`forms`] for attributes of `CUDA_KERNEL_NODE_PARAMS` and keeps the
//! result.

pub mod attribute;
pub mod forms;
pub mod packer;
pub mod value;

use std::ffi::c_void;

pub use self::packer::{Packer, Parameters};
use crate::bindings::call::convert::Keep;
use crate::cpython::R;

/// Packed parameters that outlive a call.
pub struct Packed {
    /// Boxed: the pointers refer to its contents.
    _packer: Box<Packer>,
    _keep: Keep,
    pointers: *mut *mut c_void,
}

// SAFETY: immutable after construction; its Python objects are dropped on an attached thread, as all contents of Python
// objects.
unsafe impl Send for Packed {}
// SAFETY: immutable after construction, so that shared references only read.
unsafe impl Sync for Packed {}

impl Packed {
    /// Packs with a front end, which returns the array of pointers and stores what must live as long.
    ///
    /// # Errors
    ///
    /// Errors of `pack`.
    pub fn new(pack: impl FnOnce(&mut Packer, &mut Keep) -> R<*mut *mut c_void>) -> R<Packed> {
        let (mut packer, mut keep) = (Box::new(Packer::new()), Keep::new());
        let pointers = pack(&mut packer, &mut keep)?;
        Ok(Packed {
            _packer: packer,
            _keep: keep,
            pointers,
        })
    }

    /// The address of the array of pointers (`void **`), 0 for none.
    pub fn address(&self) -> u64 {
        self.pointers.expose_provenance() as u64
    }
}
