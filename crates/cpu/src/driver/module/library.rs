//! Libraries: code that is loaded once and usable in every context.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use cupyrite_engine::Unit;
use cupyrite_engine::{Image, Kernel};
use cupyrite_sys::driver::{CUfunction_attribute as Attribute, CUlibraryOption as LibraryOption};
use parking_lot::Mutex;

use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, get_name, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::refuse;
use crate::driver::module::function::{self, Function, Settings};
use crate::driver::module::jit::{self, JitOptions, Rejected};
use crate::driver::module::{self, Module};
use crate::driver::stream::capture_state;

static LIBRARIES: HandleTable<LoadedLibrary> = HandleTable::new(HandleKind::Library);
pub(crate) static KERNELS: HandleTable<LibraryKernel> = HandleTable::new(HandleKind::Kernel);

struct LoadedLibrary {
    id: u64,
    /// Reloaded in contexts after the first.
    units: Arc<[Unit]>,
    /// The image loaded to validate the code; the first context uses it.
    first: Arc<Image>,
    first_taken: Mutex<bool>,
    /// The library's module in each context.
    modules: Mutex<HashMap<u64, Arc<Module>>>,
    kernels: Mutex<HashMap<String, Arc<LibraryKernel>>>,
}

/// A kernel of a library, independent of a context.
pub(crate) struct LibraryKernel {
    id: u64,
    library: Weak<LoadedLibrary>,
    kernel: Arc<Kernel>,
    /// Set by `cuKernelSetAttribute` for each device.
    settings: Box<[Arc<Settings>]>,
}

impl LoadedLibrary {
    fn handle(&self) -> u64 {
        handle_of(HandleKind::Library, self.id)
    }

    /// The library's module in a context, loaded on first use.
    fn module_in(&self, context: &Arc<Context>) -> Res<Arc<Module>> {
        let mut modules = self.modules.lock();
        if let Some(m) = modules.get(&context.id) {
            return Ok(m.clone());
        }
        let image = if std::mem::replace(&mut *self.first_taken.lock(), true) {
            jit::load_again(&self.units, &self.first).map_err(|r| r.code)?
        } else {
            self.first.clone()
        };
        let made = Module::new(context, image, true);
        modules.insert(context.id, made.clone());
        Ok(made)
    }

    fn kernel(self: &Arc<Self>, name: &str) -> Res<Arc<LibraryKernel>> {
        let mut kernels = self.kernels.lock();
        if let Some(k) = kernels.get(name) {
            return Ok(k.clone());
        }
        let kernel = self.first.kernel(name).ok_or(Code::NOT_FOUND)?;
        let devices = device::all()?.iter();
        let settings = devices.map(|_| Settings::of(&kernel)).collect();
        let made = Arc::new(LibraryKernel {
            id: fresh_id(),
            library: Arc::downgrade(self),
            kernel,
            settings,
        });
        KERNELS.insert(made.id, made.clone());
        kernels.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    fn unload(&self) {
        let _ = LIBRARIES.remove(self.handle());
        for (_, kernel) in self.kernels.lock().drain() {
            let _ = KERNELS.remove(kernel.handle());
        }
        let modules: Vec<_> = self.modules.lock().drain().collect();
        for (_, module) in modules {
            module.unload();
        }
    }
}

impl LibraryKernel {
    fn handle(&self) -> u64 {
        handle_of(HandleKind::Kernel, self.id)
    }

    fn settings(&self, device: i32) -> Res<&Arc<Settings>> {
        let index = usize::try_from(device).ok();
        let settings = index.and_then(|n| self.settings.get(n));
        settings.ok_or(Code::INVALID_DEVICE)
    }
}

/// The function of a library's kernel in a context.
pub(crate) fn function_in(kernel: &LibraryKernel, context: &Arc<Context>) -> Res<Arc<Function>> {
    let library = kernel.library.upgrade().ok_or(Code::INVALID_HANDLE)?;
    library
        .module_in(context)?
        .function(&kernel.kernel.name, Some(kernel.settings(context.device)?))
}

/// The settings of a kernel of the library with this module, on the device of the module.
pub(crate) fn settings_of(module: &Module, name: &str) -> Option<Arc<Settings>> {
    let of_module = |l: &LoadedLibrary| l.modules.lock().values().any(|m| m.id == module.id);
    let library = LIBRARIES.pick(of_module).pop()?;
    let kernel = library.kernel(name).ok()?;
    kernel.settings(module.context.device).ok().cloned()
}

/// Removes a context's modules. Later contexts cannot use the first image, because its variables have been modified.
pub(crate) fn remove_context(context: u64) {
    // Removes no library: `remove_where` only visits all of them.
    LIBRARIES.remove_where(|l| {
        l.modules.lock().remove(&context);
        false
    });
}

fn load(out: u64, jit: &JitOptions, find: impl FnOnce() -> Result<Vec<Unit>, Rejected>) -> Res {
    non_null(out)?;
    let (first, units) = jit.load(find)?;
    let library = Arc::new(LoadedLibrary {
        id: fresh_id(),
        units,
        first,
        first_taken: Mutex::new(false),
        modules: Mutex::default(),
        kernels: Mutex::default(),
    });
    LIBRARIES.insert(library.id, library.clone());
    put(out, library.handle()).inspect_err(|_| library.unload())
}

/// Reads the options of a load. Library options have no effect but must be valid.
fn options(jit: (u64, u64, u32), library: (u64, u64, u32)) -> Res<JitOptions> {
    let (ids, values, count) = library;
    if count > 0 {
        non_null(ids)?;
        if count > 64 {
            return Err(Code::INVALID_VALUE);
        }
        for id in get_array::<u32>(ids, count as usize)? {
            match LibraryOption(id) {
                // Requires device code in the host program.
                LibraryOption::CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE => {
                    return Err(Code::NOT_SUPPORTED);
                }
                LibraryOption::CU_LIBRARY_BINARY_IS_PRESERVED => non_null(values)?,
                _ => return Err(Code::INVALID_VALUE),
            }
        }
    }
    JitOptions::read(jit.2, jit.0, jit.1)
}

/// Reads the image from a file, as `cuModuleLoad` does.
fn load_file(out: u64, path: u64, jit: &JitOptions) -> Res {
    non_null(path)?;
    let bytes = module::read_file(path)?;
    load(out, jit, || jit::units_of(&bytes))
}

driver_entry_points! {
    fn library_load_data "cuLibraryLoadData"
        (out: u64, code: u64, jit: u64, jit_values: u64, jit_count: u32, ids: u64, values: u64, count: u32) {
        non_null(code)?;
        let jit = options((jit, jit_values, jit_count), (ids, values, count))?;
        load(out, &jit, || jit::units_at(code))
    }
    fn library_load_file "cuLibraryLoadFromFile"
        (out: u64, path: u64, jit: u64, jit_values: u64, jit_count: u32, ids: u64, values: u64, count: u32) {
        let jit = options((jit, jit_values, jit_count), (ids, values, count))?;
        load_file(out, path, &jit)
    }
    fn library_unload "cuLibraryUnload" (handle: u64) {
        let library = LIBRARIES.get(handle)?;
        capture_state::reject_if_capturing()?;
        library.unload();
        Ok(())
    }
    fn library_get_kernel "cuLibraryGetKernel" (out: u64, handle: u64, name: u64) {
        non_null(out)?;
        non_null(name)?;
        put(out, LIBRARIES.get(handle)?.kernel(&get_name(name)?)?.handle())
    }
    fn library_kernel_count "cuLibraryGetKernelCount" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, LIBRARIES.get(handle)?.first.kernels().len() as u32)
    }
    fn library_enumerate_kernels "cuLibraryEnumerateKernels" (out: u64, count: u32, handle: u64) {
        non_null(out)?;
        let library = LIBRARIES.get(handle)?;
        for (i, kernel) in library.first.kernels().iter().take(count as usize).enumerate() {
            let kernel = library.kernel(&kernel.name)?;
            put(out.checked_add(8 * i as u64).ok_or(Code::INVALID_VALUE)?, kernel.handle())?;
        }
        Ok(())
    }
    fn library_get_module "cuLibraryGetModule" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, LIBRARIES.get(handle)?.module_in(&context::current()?)?.handle())
    }
    fn library_get_global "cuLibraryGetGlobal" (address: u64, size: u64, handle: u64, name: u64) {
        non_null(name)?;
        let library = LIBRARIES.get(handle)?;
        module::put_global(&library.module_in(&context::current()?)?.image, name, address, size, false)
    }
    fn library_get_managed "cuLibraryGetManaged" (address: u64, size: u64, handle: u64, name: u64) {
        non_null(name)?;
        // Managed variables are shared by all contexts: those of the first image.
        module::put_global(&LIBRARIES.get(handle)?.first, name, address, size, true)
    }
    fn library_get_unified_function "cuLibraryGetUnifiedFunction" (out: u64, handle: u64, name: u64) {
        non_null(out)?;
        non_null(name)?;
        LIBRARIES.get(handle)?;
        let name = get_name(name)?;
        // As in NVIDIA's driver on devices without unified functions.
        refuse(Code::INVALID_VALUE, || {
            format!("no unified function '{name}': the host cannot call functions of the CPU device's code")
        })
    }
    fn kernel_get_function "cuKernelGetFunction" (out: u64, handle: u64) {
        non_null(out)?;
        let kernel = KERNELS.get(handle)?;
        put(out, function_in(&kernel, &context::current()?)?.handle())
    }
    fn kernel_get_library "cuKernelGetLibrary" (out: u64, handle: u64) {
        non_null(out)?;
        let library = KERNELS.get(handle)?.library.upgrade().ok_or(Code::INVALID_HANDLE)?;
        put(out, library.handle())
    }
    fn kernel_get_name "cuKernelGetName" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, function::intern(&KERNELS.get(handle)?.kernel.name).as_ptr() as u64)
    }
    fn kernel_get_param_info "cuKernelGetParamInfo" (handle: u64, index: u64, offset: u64, size: u64) {
        function::put_param(&KERNELS.get(handle)?.kernel, index, offset, size)
    }
    fn kernel_get_param_count "cuKernelGetParamCount" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, KERNELS.get(handle)?.kernel.params.len() as u64)
    }
    fn kernel_get_attribute "cuKernelGetAttribute" (out: u64, id: u32, handle: u64, device: i32) {
        non_null(out)?;
        let kernel = KERNELS.get(handle)?;
        let settings = kernel.settings(device)?;
        put(out, function::attribute(&kernel.kernel, |a| settings.get(a), device::by_ordinal(device)?, Attribute(id))?)
    }
    fn kernel_set_attribute "cuKernelSetAttribute" (id: u32, value: i32, handle: u64, device: i32) {
        let kernel = KERNELS.get(handle)?;
        let settings = kernel.settings(device)?;
        function::set_attribute(&kernel.kernel, settings, device::by_ordinal(device)?, Attribute(id), value)
    }
    fn kernel_set_cache_config "cuKernelSetCacheConfig" (handle: u64, config: u32, device: i32) {
        device::by_ordinal(device)?;
        KERNELS.get(handle)?;
        function::check_cache_config(config)
    }
}
