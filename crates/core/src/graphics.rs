//! Graphics resources: OpenGL buffers and textures that kernels access.

use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite_sys::driver::{CUdeviceptr, CUgraphicsRegisterFlags, CUgraphicsResource};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::{Context, Device};
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::memory::raw::{AllocationSource, DeviceBuffer};
use crate::memory::resource::MemoryResource;
use crate::stream::Stream;

/// How kernels access a graphics resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GraphicsAccess {
    /// They read and write.
    #[default]
    ReadWrite,
    /// They only read.
    ReadOnly,
    /// They overwrite the whole content, so the previous one need not be kept.
    WriteDiscard,
}

/// Intended use of a graphics resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GraphicsOptions {
    /// How kernels access it.
    pub access: GraphicsAccess,
    /// Whether surfaces are bound to the image.
    pub surface_load_store: bool,
    /// Whether textures gather from the image.
    pub texture_gather: bool,
}

impl GraphicsOptions {
    fn flags(self) -> c_uint {
        type Flags = CUgraphicsRegisterFlags;
        let access = match self.access {
            GraphicsAccess::ReadWrite => Flags::CU_GRAPHICS_REGISTER_FLAGS_NONE,
            GraphicsAccess::ReadOnly => Flags::CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY,
            GraphicsAccess::WriteDiscard => Flags::CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD,
        };
        let flag = |set: bool, flag: Flags| if set { flag.0 } else { 0 };
        access.0
            | flag(
                self.surface_load_store,
                Flags::CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST,
            )
            | flag(
                self.texture_gather,
                Flags::CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER,
            )
    }
}

/// An OpenGL buffer or texture that is registered with CUDA. Clones share the registration, which ends with the last clone
/// and the last mapping.
///
/// All methods, and the destruction of a mapped [`DeviceBuffer`], need the OpenGL context of the object to be current in the
/// calling thread. While a resource is mapped, OpenGL must not use it.
///
/// Source: [Graphics Interoperability](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPHICS.html).
#[derive(Clone, Debug)]
pub struct GraphicsResource {
    registration: Arc<Registration>,
}

#[derive(Debug)]
struct Registration {
    handle: CUgraphicsResource,
    device: Device,
    context: Context,
    mapped: AtomicBool,
    generation: ForkGeneration,
}

// SAFETY: the handle is a name of the driver, which may be used in every thread.
unsafe impl Send for Registration {}
// SAFETY: a shared registration only names the resource; `mapped` is atomic, and the driver synchronises its calls.
unsafe impl Sync for Registration {}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        let _relaxed = RelaxedCapture::enter();
        let done = self.context.enter().and_then(|_entered| {
            // SAFETY: registered by `register`, and unregistered once, here.
            unsafe { driver!(cuGraphicsUnregisterResource(self.handle)) }
        });
        report(done);
    }
}

impl GraphicsResource {
    /// Registers an OpenGL buffer (`GLuint`) with the current device.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_GRAPHICS_CONTEXT` without a current OpenGL context, `CUDA_ERROR_INVALID_VALUE` for a name that is no
    /// buffer, `CUDA_ERROR_OPERATING_SYSTEM` if the OpenGL context is not one of the GPU. Source: `cuGraphicsGLRegisterBuffer`.
    pub fn from_gl_buffer(buffer: u32, options: GraphicsOptions) -> Result<GraphicsResource> {
        Self::register(|handle| {
            // SAFETY: `handle` is valid for writes; the driver checks the name.
            unsafe { driver!(cuGraphicsGLRegisterBuffer(handle, buffer, options.flags())) }
        })
    }

    /// Registers an OpenGL texture or renderbuffer (`GLuint`) of a target such as `GL_TEXTURE_2D` with the current device.
    ///
    /// # Errors
    ///
    /// As [`GraphicsResource::from_gl_buffer`]; also `CUDA_ERROR_INVALID_VALUE` for a target or a format that CUDA cannot
    /// access. Source: `cuGraphicsGLRegisterImage`.
    pub fn from_gl_image(
        image: u32,
        target: u32,
        options: GraphicsOptions,
    ) -> Result<GraphicsResource> {
        Self::register(|handle| {
            // SAFETY: `handle` is valid for writes; the driver checks the name and the target.
            unsafe {
                driver!(cuGraphicsGLRegisterImage(
                    handle,
                    image,
                    target,
                    options.flags()
                ))
            }
        })
    }

    fn register(
        call: impl FnOnce(&mut CUgraphicsResource) -> Result<()>,
    ) -> Result<GraphicsResource> {
        let device = Device::current()?;
        let (_entered, context) = device.enter()?;
        let mut handle: CUgraphicsResource = std::ptr::null_mut();
        call(&mut handle)?;
        Ok(GraphicsResource {
            registration: Arc::new(Registration {
                handle,
                device,
                context,
                mapped: AtomicBool::new(false),
                generation: ForkGeneration::current(),
            }),
        })
    }

    /// The driver's handle.
    pub fn handle(&self) -> CUgraphicsResource {
        self.registration.handle
    }

    /// Whether the resource is mapped by [`GraphicsResource::map`].
    pub fn is_mapped(&self) -> bool {
        self.registration.mapped.load(Ordering::Acquire)
    }

    /// Maps a buffer: work of `stream` that follows can access its memory, until the returned buffer is closed or dropped.
    /// That unmaps the resource after the work of its deallocation stream.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ALREADY_MAPPED`; `CUDA_ERROR_NOT_MAPPED_AS_POINTER` for an image, which is then not mapped. Source:
    /// `cuGraphicsMapResources`, `cuGraphicsResourceGetMappedPointer`.
    pub fn map(&self, stream: &Stream) -> Result<DeviceBuffer> {
        let registration = &self.registration;
        let _entered = registration.context.enter()?;
        let mut handle = registration.handle;
        // SAFETY: one live resource; the stream is live.
        unsafe { driver!(cuGraphicsMapResources(1, &mut handle, stream.handle()))? };
        registration.mapped.store(true, Ordering::Release);
        let (mut address, mut size): (CUdeviceptr, usize) = (0, 0);
        // SAFETY: both are valid for writes; the resource is live.
        let found = unsafe {
            driver!(cuGraphicsResourceGetMappedPointer(
                &mut address,
                &mut size,
                handle
            ))
        };
        if let Err(error) = found {
            report(registration.unmap(stream));
            return Err(error);
        }
        let source = AllocationSource::Resource(registration.clone());
        DeviceBuffer::from_existing(source, registration.device, address, size, stream)
    }
}

impl Registration {
    fn unmap(&self, stream: &Stream) -> Result<()> {
        let _entered = self.context.enter()?;
        let mut handle = self.handle;
        // SAFETY: one live resource; the stream is live.
        unsafe { driver!(cuGraphicsUnmapResources(1, &mut handle, stream.handle()))? };
        self.mapped.store(false, Ordering::Release);
        Ok(())
    }
}

// SAFETY: the only memory is that of a mapping, which `deallocate` ends.
unsafe impl MemoryResource for Registration {
    fn allocate(&self, _: usize, _: &Stream) -> Result<CUdeviceptr> {
        Err(Error::argument(
            "GraphicsResource::allocate",
            "bytes",
            "a graphics resource allocates no memory",
        ))
    }

    unsafe fn deallocate(&self, _: CUdeviceptr, _: usize, stream: &Stream) -> Result<()> {
        self.unmap(stream)
    }

    fn device(&self) -> Option<Device> {
        Some(self.device)
    }

    fn is_device_accessible(&self) -> bool {
        true
    }

    fn is_host_accessible(&self) -> bool {
        false
    }
}
