//! Modules: code loaded into one context.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_engine::Unit;
use cupyrite_engine::memory::checked;
use cupyrite_engine::{Image, Kernel};
use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use self::function::{Function, Settings};
use crate::code;
use crate::driver::array::references::ModuleReferences;
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_name, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::refuse;
use crate::driver::module::jit::{JitOptions, Rejected, units_at, units_of};
use crate::driver::stream::capture_state;

mod cluster;
pub(crate) mod function;
pub(crate) mod jit;
pub(crate) mod launch;
pub(crate) mod launch_devices;
pub(crate) mod launch_kernel;
pub(crate) mod legacy_launch;
pub(crate) mod library;
pub(crate) mod link;
pub(crate) mod occupancy;

pub(crate) static MODULES: HandleTable<Module> = HandleTable::new(HandleKind::Module);

/// A module. Its image is dropped after the last launch and function that can run its code.
pub(crate) struct Module {
    pub(crate) id: u64,
    pub(crate) context: Arc<Context>,
    pub(crate) image: Arc<Image>,
    /// Functions returned so far, by name.
    functions: Mutex<HashMap<String, Arc<Function>>>,
    /// Its texture and surface references.
    pub(crate) references: Arc<ModuleReferences>,
    /// Unloaded with its library, not by `cuModuleUnload`.
    of_library: bool,
}

impl Module {
    pub(crate) fn new(context: &Arc<Context>, image: Arc<Image>, of_library: bool) -> Arc<Module> {
        let id = fresh_id();
        let functions = Mutex::default();
        let references = ModuleReferences::new(context, &image);
        let module = Arc::new(Module {
            id,
            context: context.clone(),
            image,
            functions,
            references,
            of_library,
        });
        MODULES.insert(id, module.clone());
        module
    }

    pub(crate) fn handle(&self) -> u64 {
        handle_of(HandleKind::Module, self.id)
    }

    /// The function of that name; the same one on every call. `settings` are those of the library's kernel, if known.
    pub(crate) fn function(
        &self,
        name: &str,
        settings: Option<&Arc<Settings>>,
    ) -> Res<Arc<Function>> {
        if let Some(f) = self.functions.lock().get(name) {
            return Ok(f.clone());
        }
        let kernel = self.image.kernel(name).ok_or(Code::NOT_FOUND)?;
        Ok(self.create_function(kernel, settings))
    }

    /// The function of a kernel of the module, for a launch by another kernel.
    pub(crate) fn function_of(&self, kernel: &Arc<Kernel>) -> Arc<Function> {
        if let Some(f) = self.functions.lock().get(&kernel.name) {
            return f.clone();
        }
        self.create_function(kernel.clone(), None)
    }

    /// Creates the function of a kernel with the settings of the library's kernel, unless another thread has created it.
    fn create_function(
        &self,
        kernel: Arc<Kernel>,
        settings: Option<&Arc<Settings>>,
    ) -> Arc<Function> {
        // Before the lock: the library has one of its own.
        let settings = match settings {
            Some(settings) => Some(settings.clone()),
            None if self.of_library => library::settings_of(self, &kernel.name),
            None => None,
        };
        let settings = settings.unwrap_or_else(|| Settings::of(&kernel));
        let mut functions = self.functions.lock();
        let entry = functions.entry(kernel.name.clone());
        let made = entry.or_insert_with(|| Function::new(self, kernel, settings));
        made.clone()
    }

    /// Invalidates the handles of the module and its functions. Pending launches keep their resources alive.
    pub(crate) fn unload(&self) {
        let _ = MODULES.remove(self.handle());
        function::invalidate_module(self.id);
        self.references.remove();
        self.functions.lock().clear();
        self.context.printf.flush();
    }
}

/// Unloads the modules of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    let mut ids = Vec::new();
    MODULES.remove_where(|m| {
        let removed = m.context.id == context;
        if removed {
            ids.push(m.id);
            m.functions.lock().clear();
        }
        removed
    });
    for id in ids {
        function::invalidate_module(id);
    }
}

/// Bytes that [`read_file`] appends to a file's contents.
pub(crate) const PADDING: usize = 64;

/// The contents of an image file, followed by NULs.
pub(crate) fn read_file(path: u64) -> Res<Vec<u8>> {
    let path = checked::read_c_string(path, 1 << 16)?;
    let path = std::path::PathBuf::from(
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(path),
    );
    // Regular files only: reading a device or a pipe may never return.
    if !std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= code::MAX_SIZE) {
        return Err(Code::FILE_NOT_FOUND);
    }
    let mut bytes = std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::OutOfMemory => Code::OUT_OF_MEMORY,
        _ => Code::FILE_NOT_FOUND,
    })?;
    // Lets the image readers read fixed-size headers without bounds checks of the file's end.
    bytes.extend_from_slice(&[0; PADDING]);
    Ok(bytes)
}

/// Loads a module and writes its handle to the caller.
fn load_module(
    out: u64,
    jit: &JitOptions,
    find: impl FnOnce() -> Result<Vec<Unit>, Rejected>,
) -> Res {
    non_null(out)?;
    let context = context::current()?;
    context.printf.flush();
    let (image, _) = jit.load(find)?;
    let module = Module::new(&context, image, false);
    put(out, module.handle()).inspect_err(|_| module.unload())
}

fn find(handle: u64) -> Res<Arc<Module>> {
    let module = MODULES.get(handle)?;
    module.context.check()?;
    Ok(module)
}

/// The name of a reference.
fn reference_name(address: u64) -> Res<String> {
    let name = get_name(address)?;
    if name.is_empty() {
        return refuse(Code::INVALID_VALUE, || "the name is empty".to_owned());
    }
    Ok(name)
}

/// Writes the address and size of a variable, each if requested.
pub(crate) fn put_global(image: &Image, name: u64, address: u64, size: u64, managed: bool) -> Res {
    let name = get_name(name)?;
    if image.references().iter().any(|r| *r.name == *name) {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "'{name}' is a texture or surface reference, which has no address; use cuModuleGetTexRef or cuModuleGetSurfRef"
            )
        });
    }
    let global = image
        .global(&name)
        .filter(|g| !managed || g.managed)
        .ok_or(Code::NOT_FOUND)?;
    put_optional(address, global.addr)?;
    put_optional(size, global.size)
}

driver_entry_points! {
    fn module_load "cuModuleLoad" (out: u64, path: u64) {
        non_null(path)?;
        let bytes = read_file(path)?;
        load_module(out, &JitOptions::default(), || units_of(&bytes))
    }
    fn module_load_data "cuModuleLoadData" (out: u64, image: u64) {
        non_null(image)?;
        load_module(out, &JitOptions::default(), || units_at(image))
    }
    fn module_load_data_ex "cuModuleLoadDataEx" (out: u64, image: u64, count: u32, options: u64, values: u64) {
        non_null(image)?;
        let jit = JitOptions::read(count, options, values)?;
        load_module(out, &jit, || units_at(image))
    }
    fn module_load_fat_binary "cuModuleLoadFatBinary" (out: u64, image: u64) {
        non_null(image)?;
        load_module(out, &JitOptions::default(), || units_at(image))
    }
    fn module_unload "cuModuleUnload" (handle: u64) {
        let module = MODULES.get(handle)?;
        if module.of_library {
            return Err(Code::NOT_PERMITTED);
        }
        capture_state::reject_if_capturing()?;
        let status = module.context.check();
        module.unload();
        status
    }
    fn module_get_function "cuModuleGetFunction" (out: u64, handle: u64, name: u64) {
        non_null(out)?;
        non_null(name)?;
        let module = find(handle)?;
        put(out, module.function(&get_name(name)?, None)?.handle())
    }
    fn module_get_global "cuModuleGetGlobal_v2" (address: u64, size: u64, handle: u64, name: u64) {
        non_null(name)?;
        put_global(&find(handle)?.image, name, address, size, false)
    }
    fn module_get_texref "cuModuleGetTexRef" (out: u64, handle: u64, name: u64) {
        non_null(out)?;
        non_null(name)?;
        let name = reference_name(name)?;
        let found = find(handle)?.references.texture(&name);
        put(out, found.ok_or(Code::NOT_FOUND)?)
    }
    fn module_get_surfref "cuModuleGetSurfRef" (out: u64, handle: u64, name: u64) {
        non_null(out)?;
        non_null(name)?;
        let name = reference_name(name)?;
        let found = find(handle)?.references.surface(&name);
        put(out, found.ok_or(Code::NOT_FOUND)?)
    }
    fn module_function_count "cuModuleGetFunctionCount" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, find(handle)?.image.kernels().len() as u32)
    }
    fn module_enumerate_functions "cuModuleEnumerateFunctions" (out: u64, count: u32, handle: u64) {
        non_null(out)?;
        let module = find(handle)?;
        for (i, kernel) in module.image.kernels().iter().take(count as usize).enumerate() {
            let function = module.function(&kernel.name, None)?;
            put(out.checked_add(8 * i as u64).ok_or(Code::INVALID_VALUE)?, function.handle())?;
        }
        Ok(())
    }
    fn module_loading_mode "cuModuleGetLoadingMode" (out: u64) {
        put(out, sys::CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING.0)
    }
}
