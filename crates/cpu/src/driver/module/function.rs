//! Functions: kernels in a module, their attributes and parameters.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

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

/// The axes of the clusters that a function requires.
pub(crate) const REQUIRED_CLUSTER: [Attribute; 3] = [
    Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
    Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
    Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
];

/// Value of an attribute that is not set. [`set_attribute`] refuses it for every attribute.
const UNSET: i32 = i32::MIN;

/// Values of the settable attributes, by the number of the attribute. A launch reads them without a lock.
pub(crate) struct Settings([AtomicI32; Attribute::CU_FUNC_ATTRIBUTE_MAX.0 as usize]);

impl Settings {
    fn unset() -> Settings {
        Settings([const { AtomicI32::new(UNSET) }; Attribute::CU_FUNC_ATTRIBUTE_MAX.0 as usize])
    }

    /// A kernel's initial settings.
    pub(crate) fn of(kernel: &Kernel) -> Arc<Settings> {
        let settings = Settings::unset();
        let dynamic_shared = SHARED_PER_BLOCK.saturating_sub(kernel.static_shared());
        let cluster = kernel.cluster.required.unwrap_or_default();
        let initial = [
            (
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                dynamic_shared.cast_signed(),
            ),
            // The default carveout.
            (
                Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                -1,
            ),
            (
                Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                0,
            ),
            (
                Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                0,
            ),
            (Attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE, 0),
        ];
        for (attribute, value) in initial {
            settings.set(attribute, value);
        }
        for (attribute, blocks) in REQUIRED_CLUSTER.into_iter().zip(cluster) {
            settings.set(attribute, blocks.cast_signed());
        }
        Arc::new(settings)
    }

    pub(crate) fn get(&self, attribute: Attribute) -> i32 {
        self.0[attribute.0 as usize].load(Ordering::Relaxed)
    }

    fn set(&self, attribute: Attribute, value: i32) {
        self.0[attribute.0 as usize].store(value, Ordering::Relaxed);
    }
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
    /// Set by `cuFuncSetAttribute`: these override those of the kernel.
    settings: Settings,
    /// Those of the kernel on the device of the context.
    kernel_settings: Arc<Settings>,
    /// For the launch functions before CUDA 4.
    pub(crate) launch_settings: Mutex<LaunchSettings>,
}

impl Function {
    pub(crate) fn new(
        module: &Module,
        kernel: Arc<Kernel>,
        kernel_settings: Arc<Settings>,
    ) -> Arc<Function> {
        let id = fresh_id();
        let function = Arc::new(Function {
            id,
            module: module.id,
            context: module.context.clone(),
            image: module.image.clone(),
            references: module.references.clone(),
            kernel,
            settings: Settings::unset(),
            kernel_settings,
            launch_settings: Mutex::new(LaunchSettings::new()),
        });
        FUNCTIONS.insert(id, function.clone());
        function
    }

    pub(crate) fn handle(&self) -> u64 {
        handle_of(HandleKind::Function, self.id)
    }

    /// The value of a settable attribute.
    pub(crate) fn setting(&self, attribute: Attribute) -> i32 {
        match self.settings.get(attribute) {
            UNSET => self.kernel_settings.get(attribute),
            set => set,
        }
    }

    /// Maximum dynamic shared memory of a launch, in bytes.
    pub(crate) fn max_dynamic_shared(&self) -> i32 {
        self.setting(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
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
            settings: Settings::unset(),
            kernel_settings: Settings::of(&kernel),
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

/// The value of a `CUfunction_attribute`; `setting` returns those of the settable ones.
pub(crate) fn attribute(
    kernel: &Kernel,
    setting: impl Fn(Attribute) -> i32,
    device: &Device,
    attribute: Attribute,
) -> Res<i32> {
    let (major, minor) = device.capability;
    Ok(match attribute {
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
        Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => i32::from(kernel.cluster.explicit),
        Attribute::CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED => 0,
        Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        | Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH
        | Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        | Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        | Attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE => setting(attribute),
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Sets a `CUfunction_attribute`; attributes of the code are read-only.
pub(crate) fn set_attribute(
    kernel: &Kernel,
    settings: &Settings,
    device: &Device,
    attribute: Attribute,
    value: i32,
) -> Res {
    match attribute {
        Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let limit = device
                .multiprocessor()
                .shared_optin
                .saturating_sub(kernel.static_shared());
            if value < 0 || value as u32 > limit {
                return Err(Code::INVALID_VALUE);
            }
        }
        Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            if (-1..=100).contains(&value) => {}
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        | Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => {
            let axis = attribute.0 - Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.0;
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
        }
        Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            if matches!(value, 0 | 1) => {}
        Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        | Attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE
            if (0..=2).contains(&value) => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    settings.set(attribute, value);
    Ok(())
}

/// Checks a preferred cache configuration, which has no effect and which no entry point returns.
pub(crate) fn check_cache_config(config: u32) -> Res {
    if config > sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
        return Err(Code::INVALID_VALUE);
    }
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
        put(out, attribute(&f.kernel, |a| f.setting(a), f.device()?, Attribute(id))?)
    }
    fn func_set_attribute "cuFuncSetAttribute" (handle: u64, id: u32, value: i32) {
        let f = find(handle)?;
        set_attribute(&f.kernel, &f.settings, f.device()?, Attribute(id), value)
    }
    fn func_set_cache_config "cuFuncSetCacheConfig" (handle: u64, config: u32) {
        find(handle)?;
        check_cache_config(config)
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
