//! Functions: kernels in a module, their attributes and parameters.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use cupyrite_engine::{Image, Kernel};
use cupyrite_sys::driver::{self as sys, CUfunction_attribute as Attribute};
use parking_lot::Mutex;

use crate::driver::array::references::ModuleReferences;
use crate::driver::context;
use crate::driver::context::Context;
use crate::driver::device::attributes::{MAX_THREADS_PER_BLOCK, SHARED_PER_BLOCK};
use crate::driver::device::{self, Device};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::module::legacy_launch::LaunchSettings;
use crate::driver::module::library::{self, KERNELS};
use crate::driver::module::{MODULES, Module};

pub(crate) static FUNCTIONS: HandleTable<Function> = HandleTable::new(HandleKind::Function);

/// A function's settable attributes.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// Maximum dynamic shared memory of a launch, in bytes.
    pub(crate) max_dynamic_shared: i32,
    /// Percentage, -1 for the default.
    carveout: i32,
    /// Required cluster dimensions in blocks; zeros for none.
    pub(crate) cluster: [i32; 3],
    cluster_policy: i32,
    pub(crate) non_portable: i32,
    shared_mode: i32,
    cache_config: u32,
}

/// Settings shared between a library's kernel and its functions in each context.
pub(crate) type Shared = Arc<Mutex<Settings>>;

/// A kernel's initial settings.
pub(crate) fn default_settings(kernel: &Kernel) -> Shared {
    Arc::new(Mutex::new(Settings {
        max_dynamic_shared: SHARED_PER_BLOCK.saturating_sub(kernel.static_shared()) as i32,
        carveout: -1,
        cluster: kernel
            .cluster
            .required
            .unwrap_or_default()
            .map(u32::cast_signed),
        cluster_policy: 0,
        non_portable: 0,
        shared_mode: 0,
        cache_config: 0,
    }))
}

/// A function: a kernel in one context.
pub(crate) struct Function {
    id: u64,
    module: u64,
    pub(crate) context: Arc<Context>,
    /// Keeps the module's variables alive while a launch may use them.
    image: Arc<Image>,
    /// The references of the module.
    pub(crate) references: Arc<ModuleReferences>,
    pub(crate) kernel: Arc<Kernel>,
    settings: Shared,
    /// For the launch functions before CUDA 4.
    pub(crate) launch_settings: Mutex<LaunchSettings>,
}

impl Function {
    pub(crate) fn new(
        module: &Module,
        kernel: Arc<Kernel>,
        settings: Option<&Shared>,
    ) -> Arc<Function> {
        let id = fresh_id();
        let settings = settings
            .cloned()
            .unwrap_or_else(|| default_settings(&kernel));

        let function = Arc::new(Function {
            id,
            module: module.id,
            context: module.context.clone(),
            image: module.image.clone(),
            references: module.references.clone(),
            kernel,
            settings,
            launch_settings: Mutex::new(LaunchSettings::new()),
        });
        FUNCTIONS.insert(id, function.clone());
        function
    }

    pub(crate) fn handle(&self) -> u64 {
        handle_of(HandleKind::Function, self.id)
    }

    pub(crate) fn settings(&self) -> Settings {
        *self.settings.lock()
    }

    /// The kernel of this context with this address in device code.
    pub(crate) fn launched_by(&self, address: u64) -> Option<Arc<Function>> {
        if let Some(kernel) = self.image.kernel_at(address) {
            let module = MODULES.find(handle_of(HandleKind::Module, self.module));
            return Some(match module {
                Some(module) => module.function_of(&kernel),
                // The module was unloaded while this kernel was pending.
                None => Arc::new(self.unlisted(kernel)),
            });
        }
        let mut found = None;
        MODULES.remove_where(|m| {
            if found.is_none() && m.context.id == self.context.id {
                found = m.image.kernel_at(address).map(|k| (m.handle(), k));
            }
            false
        });
        let (module, kernel) = found?;
        Some(MODULES.find(module)?.function_of(&kernel))
    }

    /// A function of the same module without a handle.
    fn unlisted(&self, kernel: Arc<Kernel>) -> Function {
        Function {
            id: fresh_id(),
            module: self.module,
            context: self.context.clone(),
            image: self.image.clone(),
            references: self.references.clone(),
            settings: default_settings(&kernel),
            launch_settings: Mutex::new(LaunchSettings::new()),
            kernel,
        }
    }

    pub(crate) fn device(&self) -> Res<&'static Device> {
        device::by_ordinal(self.context.device)
    }
}

/// Invalidates the handles of a module's functions.
pub(crate) fn invalidate_module(module: u64) {
    FUNCTIONS.remove_where(|f| f.module == module);
}

/// The function of a handle. A library's kernel stands for its function in the current context, as in CUDA.
pub(crate) fn find(handle: u64) -> Res<Arc<Function>> {
    find_for(handle, context::current)
}

/// [`find`] with the context in which a library's kernel is resolved.
pub(crate) fn find_for(
    handle: u64,
    context: impl FnOnce() -> Res<Arc<Context>>,
) -> Res<Arc<Function>> {
    if let Some(function) = FUNCTIONS.find(handle) {
        function.context.check()?;
        return Ok(function);
    }
    let kernel = KERNELS.get(handle)?;
    library::function_in(&kernel, &context()?)
}

/// A NUL-terminated copy of a name, leaked because callers may keep the pointer after the function is unloaded.
pub(crate) fn intern(name: &str) -> &'static CStr {
    static NAMES: Mutex<Option<HashSet<&'static CStr>>> = Mutex::new(None);
    let name = CString::new(name).unwrap_or_default();
    let mut names = NAMES.lock();
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name.as_c_str()) {
        return known;
    }
    let kept: &'static CStr = Box::leak(name.into_boxed_c_str());
    names.insert(kept);
    kept
}

/// The value of a `CUfunction_attribute`.
pub(crate) fn attribute(
    kernel: &Kernel,
    settings: &Settings,
    device: &Device,
    id: u32,
) -> Res<i32> {
    let (major, minor) = device.capability;
    Ok(match Attribute(id) {
        Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => {
            kernel.max_threads_per_block.min(MAX_THREADS_PER_BLOCK) as i32
        }
        Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => kernel.static_shared() as i32,
        Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => kernel.const_bytes as i32,
        Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.local_bytes() as i32,
        Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS => kernel.num_regs() as i32,
        // Major version times ten plus minor version of the virtual architecture.
        Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION => kernel.ptx_target as i32,
        Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION => major * 10 + minor,
        Attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
        Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => settings.max_dynamic_shared,
        Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => settings.carveout,
        Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => i32::from(kernel.cluster.explicit),
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH => settings.cluster[0],
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT => settings.cluster[1],
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => settings.cluster[2],
        Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => settings.non_portable,
        Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
            settings.cluster_policy
        }
        Attribute::CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED => 0,
        Attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE => settings.shared_mode,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Sets a `CUfunction_attribute`; attributes of the code are read-only.
pub(crate) fn set_attribute(
    kernel: &Kernel,
    settings: &mut Settings,
    device: &Device,
    id: u32,
    value: i32,
) -> Res {
    match Attribute(id) {
        Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let limit = device
                .multiprocessor()
                .shared_optin
                .saturating_sub(kernel.static_shared());
            if value < 0 || value as u32 > limit {
                return Err(Code::INVALID_VALUE);
            }
            settings.max_dynamic_shared = value;
        }
        Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            if (-1..=100).contains(&value) =>
        {
            settings.carveout = value
        }
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => {
            let axis = id - Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.0;
            let of_code = kernel.cluster.required.map(|dims| dims[axis as usize]);
            let most = match kernel.cluster.max_rank {
                _ if !device.has_clusters() => 1,
                Some(most) => most,
                None => i32::MAX.cast_unsigned(),
            };
            let wanted = u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?;
            if wanted > most || of_code.is_some_and(|n| n != wanted) {
                return Err(Code::INVALID_VALUE);
            }
            // A launch checks whether all three are set.
            settings.cluster[axis as usize] = value;
        }
        Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            if matches!(value, 0 | 1) =>
        {
            settings.non_portable = value
        }
        Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
            if (0..=2).contains(&value) =>
        {
            settings.cluster_policy = value
        }
        Attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE if (0..=2).contains(&value) => {
            settings.shared_mode = value
        }
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

pub(crate) fn set_cache_config(settings: &Shared, config: u32) -> Res {
    if config > sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
        return Err(Code::INVALID_VALUE);
    }
    settings.lock().cache_config = config;
    Ok(())
}

/// Writes a parameter's offset and, if requested, its size.
pub(crate) fn put_param(kernel: &Kernel, index: u64, offset: u64, size: u64) -> Res {
    non_null(offset)?;
    let param = usize::try_from(index)
        .ok()
        .and_then(|i| kernel.params.get(i))
        .ok_or(Code::INVALID_VALUE)?;
    put(offset, u64::from(param.offset))?;
    put_optional(size, u64::from(param.size))
}

driver_entry_points! {
    fn func_get_attribute "cuFuncGetAttribute" (out: u64, id: u32, handle: u64) {
        non_null(out)?;
        let f = find(handle)?;
        put(out, attribute(&f.kernel, &f.settings(), f.device()?, id)?)
    }
    fn func_set_attribute "cuFuncSetAttribute" (handle: u64, id: u32, value: i32) {
        let f = find(handle)?;
        set_attribute(&f.kernel, &mut f.settings.lock(), f.device()?, id, value)
    }
    fn func_set_cache_config "cuFuncSetCacheConfig" (handle: u64, config: u32) {
        set_cache_config(&find(handle)?.settings, config)
    }
    fn func_set_shared_config "cuFuncSetSharedMemConfig" (handle: u64, config: u32) {
        find(handle)?;
        if config > sys::CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }
    fn func_get_module "cuFuncGetModule" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, handle_of(HandleKind::Module, find(handle)?.module))
    }
    fn func_get_name "cuFuncGetName" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, intern(&find(handle)?.kernel.name).as_ptr() as u64)
    }
    fn func_get_param_info "cuFuncGetParamInfo" (handle: u64, index: u64, offset: u64, size: u64) {
        put_param(&find(handle)?.kernel, index, offset, size)
    }
    fn func_get_param_count "cuFuncGetParamCount" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, find(handle)?.kernel.params.len() as u64)
    }
    fn func_is_loaded "cuFuncIsLoaded" (out: u64, handle: u64) {
        non_null(out)?;
        find(handle)?;
        put(out, sys::CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED.0)
    }
    fn func_load "cuFuncLoad" (handle: u64) {
        find(handle).map(|_| ())
    }
}
