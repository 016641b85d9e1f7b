//! External memory: shared memory objects that kernels and copies access through mapped buffers and arrays.
//!
//! A mapping keeps its memory when the external memory object is destroyed, until it is freed.

use std::sync::Arc;

use cupyrite_engine::memory::object::MemoryObject;
use cupyrite_engine::memory::{Reach, RegionKind};
use cupyrite_sys::driver::{
    self as sys, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUexternalMemoryHandleType as HandleType,
};

use super::{check_flags, check_handle, refuse_descriptor, take_over};
use crate::driver::array;
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::memory::space::space;
use crate::driver::stream::capture_state;

static IMPORTED: HandleTable<ExternalMemory> = HandleTable::new(HandleKind::ExternalMemory);

/// An imported memory object.
struct ExternalMemory {
    context: Arc<Context>,
    object: MemoryObject,
    /// Size that the program stated; at most the object's.
    size: u64,
    is_dma_buf: bool,
}

/// Destroys the objects of a destroyed context. Its mappings are freed with its memory.
pub(super) fn remove_context(context: u64) {
    IMPORTED.remove_where(|m| m.context.id == context);
}

/// Validates the type and the flags. Returns whether the object is a dma-buf.
fn check_type(desc: &CUDA_EXTERNAL_MEMORY_HANDLE_DESC) -> Res<bool> {
    let is_dma_buf = match desc.r#type {
        HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD => false,
        HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD => true,
        HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT
            if desc.flags & sys::CUDA_EXTERNAL_MEMORY_DEDICATED == 0 =>
        {
            return refuse(Code::INVALID_VALUE, || {
                "flags: resources of Direct3D need CUDA_EXTERNAL_MEMORY_DEDICATED".into()
            });
        }
        HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE
        | HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT => {
            return refuse(Code::NOT_SUPPORTED, || {
                format!(
                    "type={}: a handle of Windows; the CPU device imports OPAQUE_FD and DMABUF_FD",
                    desc.r#type.0
                )
            });
        }
        HandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF => {
            return refuse(Code::NOT_SUPPORTED, || {
                "type=NVSCIBUF: NvSci exists on NVIDIA's embedded systems only; the CPU device imports OPAQUE_FD and DMABUF_FD".into()
            });
        }
        HandleType(kind) => {
            return refuse(Code::INVALID_VALUE, || {
                format!("type={kind} is not a CUexternalMemoryHandleType")
            });
        }
    };
    let allowed = if is_dma_buf {
        0
    } else {
        sys::CUDA_EXTERNAL_MEMORY_DEDICATED
    };
    check_flags(desc.flags, allowed, &desc.reserved)?;
    Ok(is_dma_buf)
}

fn import(desc: &CUDA_EXTERNAL_MEMORY_HANDLE_DESC) -> Res<(Arc<ExternalMemory>, i32)> {
    let context = context::current()?;
    capture_state::reject_if_capturing()?;
    let is_dma_buf = check_type(desc)?;
    if desc.size == 0 {
        return refuse(Code::INVALID_VALUE, || "size=0: must be positive".into());
    }
    // SAFETY: an integer, for which any bits are valid.
    let descriptor = unsafe { desc.handle.fd };
    let object = MemoryObject::open(descriptor)
        .map_err(|error| refuse_descriptor(desc.r#type.0, descriptor, &error))?;
    if desc.size > object.size() {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "size={}: the memory object has {} bytes",
                desc.size,
                object.size()
            )
        });
    }
    let memory = ExternalMemory {
        context,
        object,
        size: desc.size,
        is_dma_buf,
    };
    Ok((Arc::new(memory), descriptor))
}

impl ExternalMemory {
    /// The offset in the file of a range that the program describes.
    fn locate(&self, offset: u64, size: u64) -> Res<u64> {
        let inside = offset <= self.size && size <= self.size - offset;
        let located = self.object.locate(offset, size).filter(|_| inside);
        located.ok_or_else(|| {
            because(Code::INVALID_VALUE, || {
                format!(
                    "offset={offset}, size={size}: must be a range of at least one byte in an external memory of {} bytes",
                    self.size
                )
            })
        })
    }

    fn map_buffer(&self, desc: &CUDA_EXTERNAL_MEMORY_BUFFER_DESC) -> Res<u64> {
        let context = context::current()?;
        check_flags(desc.flags, 0, &desc.reserved)?;
        let at = self.locate(desc.offset, desc.size)?;
        self.reserve(at, desc.size)?;
        let reach = Reach::of(context.device).and_peers();
        let file = self.object.file();
        let region = space()
            .map_foreign(file, at, desc.size, RegionKind::External, context.id, reach)
            .or_else(|_| {
                refuse(Code::MAP_FAILED, || {
                    "the system refuses to map the memory object".into()
                })
            })?;
        Ok(region.base)
    }

    fn reserve(&self, at: u64, size: u64) -> Res {
        if !self.object.reserve(at, size) {
            return refuse(Code::OUT_OF_MEMORY, || {
                format!("the file system of the memory object has less than {size} bytes left")
            });
        }
        Ok(())
    }

    fn map_array(&self, desc: &CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC) -> Res<u64> {
        if self.is_dma_buf {
            return refuse(Code::NOT_SUPPORTED, || {
                "memory of a dma-buf cannot be mapped as a mipmapped array".into()
            });
        }
        check_flags(0, 0, &desc.reserved)?;
        array::map_mipmapped(
            context::current()?,
            &desc.arrayDesc,
            desc.numLevels,
            (&self.object, desc.offset, self.size),
        )
    }
}

driver_entry_points! {
    fn import_memory "cuImportExternalMemory" (out: u64, desc: u64) {
        non_null(out)?;
        non_null(desc)?;
        let (memory, descriptor) = import(&get(desc)?)?;
        let handle = IMPORTED.insert(fresh_id(), memory);
        put(out, handle).inspect_err(|_| { let _ = IMPORTED.remove(handle); })?;
        take_over(descriptor);
        Ok(())
    }
    fn mapped_buffer "cuExternalMemoryGetMappedBuffer" (out: u64, memory: u64, desc: u64) {
        non_null(out)?;
        non_null(desc)?;
        context::current()?;
        check_handle(memory, "external memory")?;
        let address = IMPORTED.get(memory)?.map_buffer(&get(desc)?)?;
        put(out, address).inspect_err(|_| { let _ = space().free(address); })
    }
    fn mapped_mipmapped "cuExternalMemoryGetMappedMipmappedArray" (out: u64, memory: u64, desc: u64) {
        non_null(out)?;
        non_null(desc)?;
        context::current()?;
        check_handle(memory, "external memory")?;
        let mipmapped = IMPORTED.get(memory)?.map_array(&get(desc)?)?;
        put(out, mipmapped).inspect_err(|_| array::remove_mipmapped(mipmapped))
    }
    fn destroy_memory "cuDestroyExternalMemory" (memory: u64) {
        check_handle(memory, "external memory")?;
        capture_state::reject_if_capturing()?;
        IMPORTED.remove(memory).map(|_| ())
    }
}
