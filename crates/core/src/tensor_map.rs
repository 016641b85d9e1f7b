//! Tensor maps: descriptors of tensors for bulk copies between global and shared memory.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUtensorMap, CUtensorMap_st};
pub use cupyrite_sys::tensor_map::{TensorMapDescription, TensorMapMode};

use crate::error::{Error, Result, driver};
use crate::module::args::KernelArg;

/// A tensor map, a kernel argument of 128 bytes: `const __grid_constant__ CUtensorMap map`.
///
/// It holds an address, and does not keep the memory alive.
#[derive(Clone)]
pub struct TensorMap {
    raw: Box<CUtensorMap>,
    description: TensorMapDescription,
}

impl std::fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TensorMap").field(&self.description).finish()
    }
}

fn check(function: &'static str, description: &TensorMapDescription) -> Result<()> {
    description.check().map_err(|violation| {
        let index = match violation.index {
            Some(index) => format!("[{index}]"),
            None => String::new(),
        };
        let parameter = format!("{}{index}", violation.parameter);
        Error::argument(function, parameter, violation.problem)
    })
}

impl TensorMap {
    /// Encodes a tensor map.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a description that breaks a rule of the driver's manual, with the parameter;
    /// otherwise the driver's error, such as `CUDA_ERROR_NOT_SUPPORTED` before compute capability 9.0. Source:
    /// `cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col`, `cuTensorMapEncodeIm2colWide`.
    pub fn new(description: &TensorMapDescription) -> Result<TensorMap> {
        check("TensorMap::new", description)?;
        let mut raw = Box::new(CUtensorMap_st { opaque: [0; 16] });
        let d = description;
        let out = &raw mut *raw;
        let rank = d.dims.len() as u32;
        let address = std::ptr::with_exposed_provenance_mut::<c_void>(d.address as usize);
        let (dims, strides, steps) = (
            d.dims.as_ptr(),
            d.strides.as_ptr(),
            d.element_strides.as_ptr(),
        );
        match &d.mode {
            TensorMapMode::Tiled { box_dims } => {
                // SAFETY: `out` is valid for writes; the arrays have the lengths that `check` requires, and are read before
                // the call returns. The address is not used.
                unsafe {
                    driver!(cuTensorMapEncodeTiled(
                        out,
                        d.data_type,
                        rank,
                        address,
                        dims,
                        strides,
                        box_dims.as_ptr(),
                        steps,
                        d.interleave,
                        d.swizzle,
                        d.l2_promotion,
                        d.fill
                    ))?;
                }
            }
            TensorMapMode::Im2col {
                lower,
                upper,
                channels,
                pixels,
            } => {
                // SAFETY: `out` is valid for writes; the arrays have the lengths that `check` requires, and are read before
                // the call returns. The address is not used.
                unsafe {
                    driver!(cuTensorMapEncodeIm2col(
                        out,
                        d.data_type,
                        rank,
                        address,
                        dims,
                        strides,
                        lower.as_ptr(),
                        upper.as_ptr(),
                        *channels,
                        *pixels,
                        steps,
                        d.interleave,
                        d.swizzle,
                        d.l2_promotion,
                        d.fill
                    ))?;
                }
            }
            TensorMapMode::Im2colWide {
                lower,
                upper,
                channels,
                pixels,
                mode,
            } => {
                // SAFETY: `out` is valid for writes; the arrays have the lengths that `check` requires, and are read before
                // the call returns. The address is not used.
                unsafe {
                    driver!(cuTensorMapEncodeIm2colWide(
                        out,
                        d.data_type,
                        rank,
                        address,
                        dims,
                        strides,
                        *lower,
                        *upper,
                        *channels,
                        *pixels,
                        steps,
                        d.interleave,
                        *mode,
                        d.swizzle,
                        d.l2_promotion,
                        d.fill
                    ))?;
                }
            }
        }
        Ok(TensorMap {
            raw,
            description: description.clone(),
        })
    }

    /// Makes the map that of another tensor of the same layout.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a misaligned address; otherwise the driver's error. The map is then unchanged.
    /// Source: `cuTensorMapReplaceAddress`.
    pub fn replace_address(&mut self, address: u64) -> Result<()> {
        let description = TensorMapDescription {
            address,
            ..self.description.clone()
        };
        check("TensorMap::replace_address", &description)?;
        let place = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // SAFETY: a map that the driver has encoded; the address is not used.
        unsafe { driver!(cuTensorMapReplaceAddress(&raw mut *self.raw, place))? };
        self.description = description;
        Ok(())
    }

    /// What it was encoded from.
    pub fn description(&self) -> &TensorMapDescription {
        &self.description
    }

    /// The 128 bytes.
    pub fn bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.raw.opaque) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

// SAFETY: the 128 bytes of the map, in place.
unsafe impl KernelArg for &TensorMap {
    fn address(&self) -> *const c_void {
        (&raw const *self.raw).cast()
    }
    fn size(&self) -> usize {
        size_of::<CUtensorMap>()
    }
}
