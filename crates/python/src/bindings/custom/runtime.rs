//! Hooks of functions that only the runtime API has.

use cupyrite_sys::loader::{self, CudaLibrary, RuntimeSource};
use cupyrite_sys::runtime as c;

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::general;
use crate::bindings::call::results::answer;
use crate::bindings::call::words::address;
use crate::bindings::custom::required;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Int, MAX_WORDS};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Owned, R};
use crate::generated::runtime_types::class;
use crate::generated::runtime_v2_types::class as second_class;
use crate::types;
use crate::types::ClassId;
use crate::{pathfinder, site_packages};

/// Makes an object of a class whose C type is `T`, with this value.
fn object<T: Copy>(id: ClassId, value: T) -> R<Owned> {
    let (object, at) = match types::is_buffer_struct(id) {
        true => types::new_buffer_struct(id, 1)?,
        false => types::new_struct(id)?,
    };
    if types::class_size(id) != size_of::<T>() {
        return Err(errors::raise(
            ExceptionKind::System,
            "a class of another C type",
        ));
    }
    // SAFETY: the object holds a struct of its class's size, which the check above compared with `T`'s.
    unsafe { at.cast::<T>().write_unaligned(value) };
    Ok(object)
}

fn size(arguments: Arguments<'_>, index: usize) -> R<usize> {
    convert::int(required(arguments, index)?, Int::U64, arguments.site(index)).map(address)
}

// C implements the next four as inline functions or returns the struct by value. They only fill in a struct.

pub fn create_channel_desc(arguments: Arguments<'_>) -> R<Owned> {
    #[allow(clippy::cast_possible_truncation)] // the values were checked to fit
    let bits = |index| {
        convert::int(required(arguments, index)?, Int::I32, arguments.site(index))
            .map(|v| v as u32 as i32)
    };
    #[allow(clippy::cast_possible_truncation)] // enums are 32 bits
    let value = c::cudaChannelFormatDesc {
        x: bits(0)?,
        y: bits(1)?,
        z: bits(2)?,
        w: bits(3)?,
        f: c::cudaChannelFormatKind(
            convert::enumerator(required(arguments, 4)?, arguments.site(4))? as u32,
        ),
    };
    answer(arguments.f, 0, |_| {
        object(class::cudaChannelFormatDesc, value)
    })
}

pub fn make_extent(arguments: Arguments<'_>) -> R<Owned> {
    let value = c::cudaExtent {
        width: size(arguments, 0)?,
        height: size(arguments, 1)?,
        depth: size(arguments, 2)?,
    };
    object(class::cudaExtent, value)
}

pub fn make_pos(arguments: Arguments<'_>) -> R<Owned> {
    let value = c::cudaPos {
        x: size(arguments, 0)?,
        y: size(arguments, 1)?,
        z: size(arguments, 2)?,
    };
    object(class::cudaPos, value)
}

/// The struct borrows the address: the caller keeps the memory alive, as with a pointer in C.
pub fn make_pitched_ptr(arguments: Arguments<'_>) -> R<Owned> {
    let mut keep = Keep::default();
    let (start, _) = convert::void_ptr(required(arguments, 0)?, arguments.site(0), &mut keep)?;
    let value = c::cudaPitchedPtr {
        ptr: std::ptr::with_exposed_provenance_mut(address(start)),
        pitch: size(arguments, 1)?,
        xsize: size(arguments, 2)?,
        ysize: size(arguments, 3)?,
    };
    object(class::cudaPitchedPtr, value)
}

/// The version of the installed `libcudart`, independent of the runtime in use.
///
/// Raises `DynamicLibNotFoundError` if none is installed.
pub fn local_runtime_version(arguments: Arguments<'_>) -> R<Owned> {
    // SAFETY: Python calls this function, so this thread is attached.
    let py = unsafe { pyo3::Python::assume_attached() };
    let (status, version) = query_local_version(py)?;
    answer(arguments.f, status.into(), |_| {
        cpython::from_i64(version.into())
    })
}

/// Status and result of `cudaRuntimeGetVersion` in the installed libcudart.
///
/// # Errors
///
/// `DynamicLibNotFoundError` if none is installed.
pub fn query_local_version(py: pyo3::Python<'_>) -> R<(i32, i32)> {
    site_packages::refresh(py);
    let told = py.detach(|| {
        let loaded = cupyrite_pathfinder::load(CudaLibrary::Runtime.name())?;
        let symbol = loaded.handle.symbol(c"cudaRuntimeGetVersion");
        if symbol.is_null() {
            return Ok(None);
        }
        let mut version = 0i32;
        // SAFETY: the library exports the symbol with this signature, and it stores one integer.
        let status = unsafe {
            let get = std::mem::transmute::<
                *mut std::ffi::c_void,
                unsafe extern "C" fn(*mut i32) -> i32,
            >(symbol);
            get(&raw mut version)
        };
        Ok(Some((status, version)))
    });
    match told {
        Ok(Some(told)) => Ok(told),
        Ok(None) => {
            let message =
                "getLocalRuntimeVersion(): the installed libcudart lacks cudaRuntimeGetVersion";
            Err(errors::raise(ExceptionKind::Runtime, message))
        }
        Err(error) => {
            let error: cupyrite_pathfinder::LoadError = error;
            let failed = error.kind == cupyrite_pathfinder::LoadErrorKind::Failed;
            Err(pathfinder::raise(py, failed, error.to_string()))
        }
    }
}

/// `cudaGetDeviceProperties`. CUDA 12's library fills in CUDA 12's struct, which is converted to CUDA 13's. Members that
/// CUDA 12 lacks are 0.
pub fn device_properties(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let device = convert::int(required(arguments, 0)?, Int::I32, arguments.site(0))?;
    let older = matches!(loader::chosen_runtime(), Some(RuntimeSource::Cudart(12)));
    let (status, properties) = if older || installed_is_older(f)? {
        let index = c::Symbol::cudaGetDeviceProperties_cuda12 as usize;
        let symbol = symbols::symbol_at(f.library(), index, f.name)?;
        let mut from = c::cudaDeviceProp_cuda12::default();
        let words = [(&raw mut from).addr() as u64, device];
        let status = general::invoke_at(f, symbol, words.as_ptr());
        (status, from_cuda12(&from))
    } else {
        let mut properties = c::cudaDeviceProp::default();
        let mut words = [0u64; MAX_WORDS];
        words[..2].copy_from_slice(&[(&raw mut properties).addr() as u64, device]);
        (general::invoke(f, &words)?, properties)
    };
    symbols::check_interrupt()?;
    let id = match f.raising {
        None => class::cudaDeviceProp,
        Some(_) => second_class::DeviceProp,
    };
    answer(f, status, |_| object(id, properties))
}

/// Whether this is the first call and the library that it chooses is CUDA 12's.
fn installed_is_older(f: &'static crate::bindings::descriptor::Function) -> R<bool> {
    if loader::chosen_runtime().is_some() {
        return Ok(false);
    }
    // Resolving any symbol chooses the runtime and does the setup of a first use.
    let _ = symbols::symbol_at(
        f.library(),
        c::Symbol::cudaRuntimeGetVersion as usize,
        f.name,
    )?;
    Ok(matches!(
        loader::chosen_runtime(),
        Some(RuntimeSource::Cudart(12))
    ))
}

fn from_cuda12(from: &c::cudaDeviceProp_cuda12) -> c::cudaDeviceProp {
    macro_rules! members {
        ($($name:ident,)*) => {
            c::cudaDeviceProp { $($name: from.$name,)* ..c::cudaDeviceProp::default() }
        };
    }
    members! {
        name, uuid, luid, luidDeviceNodeMask, totalGlobalMem, sharedMemPerBlock, regsPerBlock,
        warpSize, memPitch, maxThreadsPerBlock, maxThreadsDim, maxGridSize, totalConstMem, major,
        minor, textureAlignment, texturePitchAlignment, multiProcessorCount, integrated,
        canMapHostMemory, maxTexture1D, maxTexture1DMipmap, maxTexture2D, maxTexture2DMipmap,
        maxTexture2DLinear, maxTexture2DGather, maxTexture3D, maxTexture3DAlt, maxTextureCubemap,
        maxTexture1DLayered, maxTexture2DLayered, maxTextureCubemapLayered, maxSurface1D,
        maxSurface2D, maxSurface3D, maxSurface1DLayered, maxSurface2DLayered, maxSurfaceCubemap,
        maxSurfaceCubemapLayered, surfaceAlignment, concurrentKernels, ECCEnabled, pciBusID,
        pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing, memoryBusWidth,
        l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor,
        streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported,
        sharedMemPerMultiprocessor, regsPerMultiprocessor, managedMemory, isMultiGpuBoard,
        multiGpuBoardGroupID, hostNativeAtomicSupported, pageableMemoryAccess,
        concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        cooperativeLaunch, sharedMemPerBlockOptin, pageableMemoryAccessUsesHostPageTables,
        directManagedMemAccessFromHost, maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize,
        reservedSharedMemPerBlock, hostRegisterSupported, sparseCudaArraySupported,
        hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported, memoryPoolsSupported,
        gpuDirectRDMASupported, gpuDirectRDMAFlushWritesOptions, gpuDirectRDMAWritesOrdering,
        memoryPoolSupportedHandleTypes, deferredMappingCudaArraySupported, ipcEventSupported,
        clusterLaunch, unifiedFunctionPointers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_values_from_cuda_12() {
        let mut older = c::cudaDeviceProp_cuda12 {
            totalGlobalMem: 1 << 40,
            major: 9,
            maxGridSize: [1, 2, 3],
            clusterLaunch: 1,
            ..c::cudaDeviceProp_cuda12::default()
        };
        older.name[0] = b'H'.cast_signed();
        let newer = from_cuda12(&older);
        assert_eq!(newer.totalGlobalMem, 1 << 40);
        assert_eq!((newer.major, newer.clusterLaunch), (9, 1));
        assert_eq!(newer.maxGridSize, [1, 2, 3]);
        assert_eq!(newer.name[0], b'H'.cast_signed());
        assert_eq!(newer.mpsEnabled, 0);
    }
}
