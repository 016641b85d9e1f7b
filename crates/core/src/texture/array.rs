//! `OpaqueArray` and `MipmappedArray`: memory whose layout the driver chooses.

use std::sync::Arc;

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{
    CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DESCRIPTOR_st, CUDA_ARRAY3D_LAYERED,
    CUDA_ARRAY3D_SURFACE_LDST, CUarray, CUdevice_attribute, CUmipmappedArray, CUresult,
};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::{Context, Device};
use crate::error::{Error, Result, driver, report};
use crate::texture::format::{ArrayFormat, check_channels};

/// What the last extent of an array counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArrayKind {
    /// Width, height, depth.
    #[default]
    Plain,
    /// Independent layers.
    Layered,
    /// The six faces of a cube, which are squares.
    Cubemap,
    /// Cubes of six faces each.
    CubemapLayered,
}

impl ArrayKind {
    const fn flags(self) -> u32 {
        match self {
            ArrayKind::Plain => 0,
            ArrayKind::Layered => CUDA_ARRAY3D_LAYERED,
            ArrayKind::Cubemap => CUDA_ARRAY3D_CUBEMAP,
            ArrayKind::CubemapLayered => CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED,
        }
    }
}

/// Description of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayOptions {
    /// Width, height and depth in elements, one to three numbers. For a layered array the last number counts layers, for
    /// a cube faces.
    pub shape: Vec<usize>,
    /// Format of a channel.
    pub format: ArrayFormat,
    /// Channels of an element: 1, 2 or 4.
    pub num_channels: u32,
    /// Whether kernels can write the array through a surface.
    pub surface_load_store: bool,
    /// What the last extent counts.
    pub kind: ArrayKind,
}

impl ArrayOptions {
    /// A plain array that kernels only read.
    pub fn new(shape: &[usize], format: ArrayFormat, num_channels: u32) -> ArrayOptions {
        ArrayOptions {
            shape: shape.to_vec(),
            format,
            num_channels,
            surface_load_store: false,
            kind: ArrayKind::Plain,
        }
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        self.format.bytes() * self.num_channels as usize
    }

    /// Width in elements, rows, and slices (or layers, or faces) of the memory that holds a copy of the array.
    pub fn extents(&self) -> [usize; 3] {
        let at = |index: usize| self.shape.get(index).copied().unwrap_or(1);
        match (self.kind, self.shape.len()) {
            // Layers of rows.
            (ArrayKind::Layered, 2) => [at(0), 1, at(1)],
            _ => [at(0), at(1), at(2)],
        }
    }

    /// Bytes of the elements, without the padding of the device's layout.
    pub fn size_bytes(&self) -> usize {
        // Checked when the array was created.
        self.shape.iter().product::<usize>() * self.element_bytes()
    }

    /// The error of a failed creation. The driver does not say which extent is too large: the device's limits are added.
    #[cold]
    fn with_limits(&self, error: Error, device: Device) -> Error {
        if error.status() != Some(CUresult::CUDA_ERROR_INVALID_VALUE) {
            return error;
        }
        let limits = self.limiting_attributes();
        let limits = limits.iter().map(|&attribute| device.attribute(attribute));
        match limits.collect::<Result<Vec<i32>>>() {
            Ok(limits) => error.with_log(&format!(
                "the shape is {:?}; this device has arrays of this kind up to {limits:?}",
                self.shape
            )),
            Err(_) => error,
        }
    }

    /// The attributes with the largest extents of such an array.
    fn limiting_attributes(&self) -> &'static [CUdevice_attribute] {
        use CUdevice_attribute as A;
        match (self.kind, self.shape.len(), self.surface_load_store) {
            (ArrayKind::Plain, 1, false) => &[A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH],
            (ArrayKind::Plain, 1, true) => &[A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH],
            (ArrayKind::Plain, 2, false) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
            ],
            (ArrayKind::Plain, 2, true) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,
            ],
            (ArrayKind::Plain, _, false) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,
            ],
            (ArrayKind::Plain, _, true) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,
            ],
            (ArrayKind::Layered, 2, false) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS,
            ],
            (ArrayKind::Layered, 2, true) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS,
            ],
            (ArrayKind::Layered, _, false) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
            ],
            (ArrayKind::Layered, _, true) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS,
            ],
            (_, _, false) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
            ],
            (_, _, true) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
            ],
        }
    }

    fn descriptor(&self, function: &'static str) -> Result<CUDA_ARRAY3D_DESCRIPTOR_st> {
        let argument_error =
            |parameter: &str, problem: String| Error::argument(function, parameter, problem);
        check_channels(function, self.num_channels)?;
        let shape = &self.shape[..];
        if !(1..=3).contains(&shape.len()) {
            return Err(argument_error(
                "shape",
                format!("has {} extents; expected 1, 2 or 3", shape.len()),
            ));
        }
        if let Some(axis) = shape.iter().position(|&extent| extent == 0) {
            return Err(argument_error(
                "shape",
                format!("is {shape:?}; extent {axis} must be at least 1"),
            ));
        }
        let bytes = shape
            .iter()
            .try_fold(self.element_bytes(), |bytes, &extent| {
                bytes.checked_mul(extent)
            });
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(argument_error(
                "shape",
                format!("is {shape:?}, which is more memory than an address space holds"),
            ));
        }
        let cube = matches!(self.kind, ArrayKind::Cubemap | ArrayKind::CubemapLayered);
        if cube {
            let faces = match shape {
                [width, height, faces] if width == height => *faces,
                _ => 0,
            };
            let valid = match self.kind {
                ArrayKind::Cubemap => faces == 6,
                _ => faces > 0 && faces % 6 == 0,
            };
            if !valid {
                return Err(argument_error(
                    "shape",
                    format!(
                        "is {shape:?}; a cube has (width, width, 6) elements, a layered one (width, width, 6 * layers)"
                    ),
                ));
            }
        }
        if self.kind == ArrayKind::Layered && shape.len() == 1 {
            return Err(argument_error(
                "shape",
                format!(
                    "is {shape:?}; the last extent of a layered array counts layers: (width, layers) or (width, height, layers)"
                ),
            ));
        }
        let [width, height, depth] = match (self.kind, shape) {
            (ArrayKind::Layered, [width, layers]) => [*width, 0, *layers],
            (_, [width]) => [*width, 0, 0],
            (_, [width, height]) => [*width, *height, 0],
            (_, [width, height, depth]) => [*width, *height, *depth],
            _ => [0; 3],
        };
        let surface = if self.surface_load_store {
            CUDA_ARRAY3D_SURFACE_LDST
        } else {
            0
        };
        Ok(CUDA_ARRAY3D_DESCRIPTOR_st {
            Width: width,
            Height: height,
            Depth: depth,
            Format: self.format.to_driver(),
            NumChannels: self.num_channels,
            Flags: self.kind.flags() | surface,
        })
    }

    /// The description of a mipmap level: dimensions halve, layers and faces stay.
    fn at_level(&self, level: u32) -> ArrayOptions {
        let stays = match self.kind {
            ArrayKind::Plain => 3,
            _ => self.shape.len() - 1,
        };
        let mut options = self.clone();
        for extent in options.shape.iter_mut().take(stays) {
            *extent = extent.checked_shr(level).unwrap_or(0).max(1);
        }
        options
    }
}

/// What destroys an array.
#[derive(Debug)]
enum ArrayOwner {
    /// Destroyed with the last clone; the epoch of its creation.
    Owned(u32),
    /// A level, which belongs to this mipmapped array.
    Level(MipmappedArray),
    /// Owned elsewhere, such as by a mapped graphics resource.
    Foreign,
}

#[derive(Debug)]
struct ArrayInner {
    handle: CUarray,
    context: Context,
    options: ArrayOptions,
    owner: ArrayOwner,
}

// SAFETY: array handles may be used from any thread; the driver synchronises.
unsafe impl Send for ArrayInner {}
// SAFETY: array handles may be used from any thread; the driver synchronises.
unsafe impl Sync for ArrayInner {}

/// A CUDA array: memory in a layout of the driver's choice, for textures and surfaces. Cheap to clone; the last clone
/// destroys it.
#[derive(Clone, Debug)]
pub struct OpaqueArray {
    inner: Arc<ArrayInner>,
}

#[cold]
fn destroyed(call: &'static str, what: &str, how: &str) -> Error {
    Error::Driver {
        call,
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: format!("the {what} was destroyed by the program: with {how}, or with its context"),
    }
}

impl OpaqueArray {
    /// Creates an array on `device`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an invalid description; otherwise the driver's error, `CUDA_ERROR_INVALID_VALUE`
    /// for extents beyond the device's limits. Source: `cuArray3DCreate`.
    pub fn new(device: Device, options: &ArrayOptions) -> Result<OpaqueArray> {
        let descriptor = options.descriptor("OpaqueArray::new")?;
        let (_entered, context) = device.enter()?;
        let mut handle: CUarray = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes, the descriptor is read before the call returns.
        unsafe { driver!(cuArray3DCreate(&mut handle, &raw const descriptor)) }
            .map_err(|error| options.with_limits(error, device))?;
        Ok(OpaqueArray {
            inner: Arc::new(ArrayInner {
                handle,
                context,
                options: options.clone(),
                owner: ArrayOwner::Owned(OwnedKind::Array.epoch()),
            }),
        })
    }

    /// Wraps an array that another owner destroys.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a format that [`ArrayFormat`] lacks; otherwise the driver's error. Source:
    /// `cuArray3DGetDescriptor`.
    ///
    /// # Safety
    ///
    /// `handle` is an array of `context` that outlives the result.
    pub unsafe fn from_handle(context: &Context, handle: CUarray) -> Result<OpaqueArray> {
        // SAFETY: integers and an enum, for which zero is valid.
        let mut found: CUDA_ARRAY3D_DESCRIPTOR_st = unsafe { std::mem::zeroed() };
        // SAFETY: `found` is valid for writes; the caller promises the handle.
        context.with_current(|| unsafe { driver!(cuArray3DGetDescriptor(&mut found, handle)) })?;
        let Some(format) = ArrayFormat::from_driver(found.Format) else {
            return Err(Error::Unsupported {
                function: "OpaqueArray::from_handle",
                problem: format!("the array has the format {:?}", found.Format),
            });
        };
        let has = |flag| found.Flags & flag != 0;
        let kind = match (has(CUDA_ARRAY3D_LAYERED), has(CUDA_ARRAY3D_CUBEMAP)) {
            (false, false) => ArrayKind::Plain,
            (true, false) => ArrayKind::Layered,
            (false, true) => ArrayKind::Cubemap,
            (true, true) => ArrayKind::CubemapLayered,
        };
        let shape = [found.Width, found.Height, found.Depth];
        Ok(OpaqueArray {
            inner: Arc::new(ArrayInner {
                handle,
                context: context.clone(),
                options: ArrayOptions {
                    shape: shape.into_iter().filter(|&extent| extent != 0).collect(),
                    format,
                    num_channels: found.NumChannels,
                    surface_load_store: has(CUDA_ARRAY3D_SURFACE_LDST),
                    kind,
                },
                owner: ArrayOwner::Foreign,
            }),
        })
    }

    /// The driver's handle; valid while a clone of this array lives.
    pub fn handle(&self) -> CUarray {
        self.inner.handle
    }

    /// The context of the array.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The description that it was created with; of a level, its own.
    pub fn options(&self) -> &ArrayOptions {
        &self.inner.options
    }

    /// An error if the program has destroyed the array.
    pub(crate) fn check_live(&self) -> Result<()> {
        match &self.inner.owner {
            ArrayOwner::Owned(created)
                if OwnedKind::Array.is_destroyed(
                    self.inner.handle,
                    self.inner.context.handle(),
                    *created,
                ) =>
            {
                Err(destroyed(
                    "OpaqueArray",
                    "array",
                    "cuArrayDestroy or cudaFreeArray",
                ))
            }
            ArrayOwner::Level(whole) => whole.check_live(),
            _ => Ok(()),
        }
    }
}

impl Drop for ArrayInner {
    fn drop(&mut self) {
        let ArrayOwner::Owned(created) = self.owner else {
            return;
        };
        if !self.context.is_current_process()
            || OwnedKind::Array.is_destroyed(self.handle, self.context.handle(), created)
        {
            return;
        }
        // A drop must not invalidate a capture of this thread.
        let _relaxed = RelaxedCapture::enter();
        report(self.context.with_current(|| {
            // SAFETY: created by `OpaqueArray::new`, destroyed once, here.
            unsafe { driver!(owned cuArrayDestroy(self.handle)) }
        }));
    }
}

#[derive(Debug)]
struct MipmappedInner {
    handle: CUmipmappedArray,
    context: Context,
    options: ArrayOptions,
    levels: u32,
    created: u32,
}

// SAFETY: handles of mipmapped arrays may be used from any thread; the driver synchronises.
unsafe impl Send for MipmappedInner {}
// SAFETY: handles of mipmapped arrays may be used from any thread; the driver synchronises.
unsafe impl Sync for MipmappedInner {}

/// An array with levels, each half as large as the one before. Cheap to clone; the last clone, levels included, destroys
/// it.
#[derive(Clone, Debug)]
pub struct MipmappedArray {
    inner: Arc<MipmappedInner>,
}

impl MipmappedArray {
    /// Creates a mipmapped array with `levels` levels on `device`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an invalid description, and for more levels than there are until every dimension
    /// is 1; otherwise the driver's error. Source: `cuMipmappedArrayCreate`.
    pub fn new(device: Device, options: &ArrayOptions, levels: u32) -> Result<MipmappedArray> {
        let descriptor = options.descriptor("MipmappedArray::new")?;
        let halved = match options.kind {
            ArrayKind::Plain => &options.shape[..],
            _ => &options.shape[..options.shape.len() - 1],
        };
        let most = halved.iter().max().map_or(1, |largest| largest.ilog2() + 1);
        if !(1..=most).contains(&levels) {
            return Err(Error::argument(
                "MipmappedArray::new",
                "num_levels",
                format!(
                    "is {levels}; an array of shape {:?} has 1 to {most} levels",
                    options.shape
                ),
            ));
        }
        let (_entered, context) = device.enter()?;
        let mut handle: CUmipmappedArray = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes, the descriptor is read before the call returns.
        unsafe {
            driver!(cuMipmappedArrayCreate(
                &mut handle,
                &raw const descriptor,
                levels
            ))
        }
        .map_err(|error| options.with_limits(error, device))?;
        Ok(MipmappedArray {
            inner: Arc::new(MipmappedInner {
                handle,
                context,
                options: options.clone(),
                levels,
                created: OwnedKind::MipmappedArray.epoch(),
            }),
        })
    }

    /// The array of a level, which keeps this one alive.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a level that does not exist; otherwise the driver's error. Source:
    /// `cuMipmappedArrayGetLevel`.
    pub fn level(&self, level: u32) -> Result<OpaqueArray> {
        if level >= self.levels() {
            return Err(Error::argument(
                "MipmappedArray::level",
                "level",
                format!(
                    "is {level}; the array has the levels 0 to {}",
                    self.levels() - 1
                ),
            ));
        }
        self.check_live()?;
        let mut handle: CUarray = std::ptr::null_mut();
        let place = &raw mut handle;
        // SAFETY: `place` is valid for writes; the mipmapped array is live.
        self.context().with_current(|| unsafe {
            driver!(cuMipmappedArrayGetLevel(place, self.inner.handle, level))
        })?;
        Ok(OpaqueArray {
            inner: Arc::new(ArrayInner {
                handle,
                context: self.context().clone(),
                options: self.options().at_level(level),
                owner: ArrayOwner::Level(self.clone()),
            }),
        })
    }

    /// Number of levels.
    pub fn levels(&self) -> u32 {
        self.inner.levels
    }

    /// The driver's handle; valid while a clone of this array lives.
    pub fn handle(&self) -> CUmipmappedArray {
        self.inner.handle
    }

    /// The context of the array.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The description that it was created with, which is that of level 0.
    pub fn options(&self) -> &ArrayOptions {
        &self.inner.options
    }

    /// An error if the program has destroyed the array.
    pub(crate) fn check_live(&self) -> Result<()> {
        let inner = &*self.inner;
        if OwnedKind::MipmappedArray.is_destroyed(
            inner.handle,
            inner.context.handle(),
            inner.created,
        ) {
            return Err(destroyed(
                "MipmappedArray",
                "mipmapped array",
                "cuMipmappedArrayDestroy or cudaFreeMipmappedArray",
            ));
        }
        Ok(())
    }
}

impl Drop for MipmappedInner {
    fn drop(&mut self) {
        if !self.context.is_current_process()
            || OwnedKind::MipmappedArray.is_destroyed(
                self.handle,
                self.context.handle(),
                self.created,
            )
        {
            return;
        }
        let _relaxed = RelaxedCapture::enter();
        report(self.context.with_current(|| {
            // SAFETY: created by `MipmappedArray::new`, destroyed once, here; levels own a clone.
            unsafe { driver!(owned cuMipmappedArrayDestroy(self.handle)) }
        }));
    }
}

impl Device {
    /// [`OpaqueArray::new`].
    ///
    /// # Errors
    ///
    /// Same as [`OpaqueArray::new`].
    pub fn create_opaque_array(&self, options: &ArrayOptions) -> Result<OpaqueArray> {
        OpaqueArray::new(*self, options)
    }

    /// [`MipmappedArray::new`].
    ///
    /// # Errors
    ///
    /// Same as [`MipmappedArray::new`].
    pub fn create_mipmapped_array(
        &self,
        options: &ArrayOptions,
        levels: u32,
    ) -> Result<MipmappedArray> {
        MipmappedArray::new(*self, options, levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(shape: &[usize], kind: ArrayKind) -> Result<CUDA_ARRAY3D_DESCRIPTOR_st> {
        let mut options = ArrayOptions::new(shape, ArrayFormat::Float32, 1);
        options.kind = kind;
        options.descriptor("test")
    }

    #[test]
    fn shapes_become_descriptors() {
        use ArrayKind::{Cubemap, CubemapLayered, Layered, Plain};
        for (shape, kind, expected) in [
            (&[5][..], Plain, [5, 0, 0]),
            (&[5, 4], Plain, [5, 4, 0]),
            (&[5, 4, 3], Plain, [5, 4, 3]),
            (&[5, 3], Layered, [5, 0, 3]),
            (&[5, 4, 3], Layered, [5, 4, 3]),
            (&[4, 4, 6], Cubemap, [4, 4, 6]),
            (&[4, 4, 12], CubemapLayered, [4, 4, 12]),
        ] {
            let found = described(shape, kind).unwrap();
            assert_eq!([found.Width, found.Height, found.Depth], expected);
        }
        for (shape, kind) in [
            (&[][..], Plain),
            (&[1, 1, 1, 1], Plain),
            (&[4, 0], Plain),
            (&[usize::MAX, 2], Plain),
            (&[4], Layered),
            (&[4, 3, 6], Cubemap),
            (&[4, 4, 12], Cubemap),
            (&[4, 4, 7], CubemapLayered),
        ] {
            assert!(described(shape, kind).is_err(), "{shape:?} {kind:?}");
        }
    }

    #[test]
    fn layers_do_not_halve() {
        let mut options = ArrayOptions::new(&[8, 3, 5], ArrayFormat::Uint8, 4);
        assert_eq!(options.at_level(1).shape, [4, 1, 2]);
        options.kind = ArrayKind::Layered;
        assert_eq!(options.at_level(2).shape, [2, 1, 5]);
        options.shape = vec![8, 5];
        assert_eq!(options.at_level(1).extents(), [4, 1, 5]);
    }
}
