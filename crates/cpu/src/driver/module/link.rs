//! The driver's linker: links PTX modules, and machine code that embeds its PTX, to one image (CUDA driver API, "Module
//! Management", `cuLink*`).
//!
//! Nothing is compiled: the image is a cubin that contains the PTX modules. They are linked, and thereby checked, on
//! completion and again when the image is loaded. LTO IR requires nvJitLink.

use std::ffi::CString;
use std::sync::Arc;

use cupyrite_engine::Unit;
use cupyrite_engine::memory::checked;
use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::code::{self, CodeSource, Content};
use crate::driver::context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_name, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::module;
use crate::driver::module::jit::{JitOptions, Rejected};
use crate::toolchain::{Lto, lto_to_ptx};

static LINKERS: HandleTable<Linker> = HandleTable::new(HandleKind::Linker);

/// Values of `CUjitInputType`.
const CUBIN: u32 = sys::CUjitInputType::CU_JIT_INPUT_CUBIN.0;
const PTX: u32 = sys::CUjitInputType::CU_JIT_INPUT_PTX.0;
const LAST_KIND: u32 = sys::CUjitInputType::CU_JIT_INPUT_NVVM.0;
const KINDS: [&str; 6] = [
    "a cubin",
    "PTX",
    "a fat binary",
    "an object file",
    "a library",
    "LTO IR",
];

struct Linker {
    id: u64,
    options: JitOptions,
    /// Target architecture of LTO IR.
    arch: u32,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    units: Vec<Unit>,
    lto: Vec<Lto>,
    /// Number of inputs, used to name unnamed ones.
    inputs: usize,
    info: String,
    error: String,
    /// The image, readable by callers until the linker is destroyed.
    image: Option<Arc<[u8]>>,
}

impl Linker {
    /// nvJitLink's options for LTO IR.
    fn nvjitlink_options(&self) -> Vec<CString> {
        let names = ["ftz", "prec-div", "prec-sqrt", "fma"];
        let arithmetic = names.iter().zip(self.options.arithmetic);
        let arithmetic =
            arithmetic.filter_map(|(name, value)| Some(format!("-{name}={}", u8::from(value?))));
        std::iter::once(format!("-arch=sm_{}", self.arch))
            .chain(arithmetic)
            .filter_map(|o| CString::new(o).ok())
            .collect()
    }

    /// Writes the logs, into the buffers of this input if it has its own.
    fn write_logs(&self, state: &LinkState, own: &JitOptions) -> Res {
        for options in [&self.options, own] {
            options.info.write(&state.info)?;
            options.error.write(&state.error)?;
        }
        Ok(())
    }

    /// Records a failure in the log.
    fn fail<T>(&self, state: &mut LinkState, own: &JitOptions, rejected: Rejected) -> Res<T> {
        let Rejected { code, log } = rejected;
        state.error += log.trim_end();
        state.error.push('\n');
        self.write_logs(state, own)?;
        refuse(code, || log)
    }

    fn add(&self, kind: u32, bytes: &[u8], name: &str, own: &JitOptions) -> Res {
        let mut state = self.state.lock();
        if state.image.is_some() {
            return refuse(Code::INVALID_VALUE, || {
                "the link is complete; no input can be added".into()
            });
        }
        state.inputs += 1;
        let name = match name {
            "" => format!("input {}", state.inputs),
            name => name.to_owned(),
        };
        match read(kind, bytes, &name) {
            Ok(Content::Ptx(units)) => state.units.extend(units),
            Ok(Content::Lto(data)) => state.lto.push(Lto { name, data }),
            Err(rejected) => return self.fail(&mut state, own, rejected),
        }
        self.write_logs(&state, own)
    }

    fn complete(&self) -> Res<Arc<[u8]>> {
        let mut state = self.state.lock();
        if let Some(image) = &state.image {
            return Ok(image.clone());
        }
        let own = JitOptions::default();
        if !state.lto.is_empty() {
            let lto: Vec<&Lto> = state.lto.iter().collect();
            match lto_to_ptx(&self.nvjitlink_options(), &lto, &state.units) {
                Ok(unit) => state.units.push(unit),
                Err(log) => {
                    let code = Code::JIT_COMPILER_NOT_FOUND;
                    return self.fail(&mut state, &own, Rejected { code, log });
                }
            }
            state.lto.clear();
        }
        code::limit_registers(&mut state.units, self.options.max_registers);
        if let Err(e) = cupyrite_engine::link_units(&state.units) {
            let log = format!("link error: {}", e.message.replace('\n', "\nlink error: "));
            let code = Code::NO_BINARY_FOR_GPU;
            return self.fail(&mut state, &own, Rejected { code, log });
        }
        if self.options.verbose {
            let names: Vec<_> = state
                .units
                .iter()
                .map(|u| format!("'{}'", u.name))
                .collect();
            state.info += &format!("CPU device: linked {}\n", names.join(", "));
        }
        let image: Arc<[u8]> = code::wrap(&state.units).into();
        state.image = Some(image.clone());
        self.write_logs(&state, &own)?;
        Ok(image)
    }
}

/// Reads an input of the declared type.
fn read(kind: u32, bytes: &[u8], name: &str) -> Result<Content, Rejected> {
    let content = code::content(CodeSource::Slice(bytes), name).map_err(|problem| {
        let mut rejected = Rejected::from(problem);
        rejected.log = format!("'{name}': {}", rejected.log);
        rejected
    })?;
    let fits = match kind {
        CUBIN => bytes.starts_with(b"\x7fELF"),
        PTX => code::is_text(bytes),
        _ => true,
    };
    if !fits {
        return Err(Rejected {
            code: Code::INVALID_IMAGE,
            log: format!("'{name}' is not {}", KINDS[kind as usize]),
        });
    }
    if let Content::Ptx(units) = &content {
        // A GPU driver compiles, and reports errors, at this point.
        for unit in units {
            cupyrite_engine::check_unit(unit)?;
        }
    }
    Ok(content)
}

driver_entry_points! {
    fn link_create "cuLinkCreate_v2" (count: u32, options: u64, values: u64, out: u64) {
        non_null(out)?;
        let context = context::current()?;
        let options = JitOptions::read(count, options, values)?;
        let (major, minor) = device::by_ordinal(context.device)?.capability;
        let linker = Arc::new(Linker {
            id: fresh_id(),
            arch: options.target.unwrap_or((major * 10 + minor) as u32),
            options,
            state: Mutex::default(),
        });
        LINKERS.insert(linker.id, linker.clone());
        let handle = handle_of(HandleKind::Linker, linker.id);
        put(out, handle).inspect_err(|_| { let _ = LINKERS.remove(handle); })
    }
    fn link_add_data "cuLinkAddData_v2"
        (state: u64, kind: u32, data: u64, size: u64, name: u64, count: u32, options: u64, values: u64) {
        let linker = LINKERS.get(state)?;
        if kind > LAST_KIND {
            return refuse(Code::INVALID_VALUE, || format!("type={kind}: not a valid input type"));
        }
        if data == 0 || size == 0 || size > code::MAX_SIZE {
            return refuse(Code::INVALID_VALUE, || format!("data={data:#x}, size={size}: not a valid input"));
        }
        let own = JitOptions::read(count, options, values)?;
        let name = if name == 0 { String::new() } else { get_name(name)? };
        // Checks the end of the range before allocating.
        checked::read_bytes(data.checked_add(size - 1).ok_or(Code::INVALID_VALUE)?, &mut [0])?;
        let mut bytes = vec![0u8; size as usize];
        checked::read_bytes(data, &mut bytes)?;
        linker.add(kind, &bytes, &name, &own)
    }
    fn link_add_file "cuLinkAddFile_v2" (state: u64, kind: u32, path: u64, count: u32, options: u64, values: u64) {
        let linker = LINKERS.get(state)?;
        if kind > LAST_KIND {
            return refuse(Code::INVALID_VALUE, || format!("type={kind}: not a valid input type"));
        }
        non_null(path)?;
        let own = JitOptions::read(count, options, values)?;
        let name = get_name(path)?;
        let bytes = module::read_file(path).map_err(|code| because(code, || format!("path='{name}': cannot be read")))?;
        // Without the padding that `read_file` appends.
        linker.add(kind, &bytes[..bytes.len() - module::PADDING], &name, &own)
    }
    fn link_complete "cuLinkComplete" (state: u64, cubin: u64, size: u64) {
        let linker = LINKERS.get(state)?;
        non_null(cubin)?;
        let image = linker.complete()?;
        put(cubin, image.as_ptr() as u64)?;
        crate::driver::entry::caller_memory::put_optional(size, image.len() as u64)
    }
    fn link_destroy "cuLinkDestroy" (state: u64) {
        LINKERS.remove(state).map(|_| ())
    }
}
