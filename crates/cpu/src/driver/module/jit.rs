//! Loading and linking of code: JIT options and error logs.

use std::sync::Arc;
use std::time::Instant;

use cupyrite_engine::Unit;
use cupyrite_engine::{Image, LoadError, LoadErrorKind};
use cupyrite_sys::driver::CUjit_option as JitOption;

use crate::code::{self, CodeError};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put, put_bytes};
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs;
use crate::driver::memory::space::space;

/// A log buffer of the caller (`CU_JIT_INFO_LOG_BUFFER`, `CU_JIT_ERROR_LOG_BUFFER`).
#[derive(Default)]
pub(crate) struct Log {
    buffer: u64,
    size: u32,
    /// Address for the number of bytes used.
    used: u64,
}

impl Log {
    /// Writes the text, truncated to the buffer, and its length.
    pub(crate) fn write(&self, text: &str) -> Res {
        let mut used = 0;
        if self.buffer != 0 && self.size > 0 {
            let n = text.len().min(self.size as usize - 1);
            let mut bytes = text.as_bytes()[..n].to_vec();
            bytes.push(0);
            put_bytes(self.buffer, &bytes)?;
            used = if n == 0 { 0 } else { bytes.len() as u32 };
        }
        if self.used != 0 {
            put(self.used, used)
        } else {
            Ok(())
        }
    }
}

/// The JIT options that have an effect.
#[derive(Default)]
pub(crate) struct JitOptions {
    pub(crate) info: Log,
    pub(crate) error: Log,
    /// Address for the elapsed time, a `float` in milliseconds.
    wall_time: u64,
    pub(crate) verbose: bool,
    /// `CU_JIT_TARGET`: the compute capability times ten.
    pub(crate) target: Option<u32>,
    /// `CU_JIT_MAX_REGISTERS`: the limit of registers per thread.
    pub(crate) max_registers: Option<u32>,
    /// `CU_JIT_FTZ`, `CU_JIT_PREC_DIV`, `CU_JIT_PREC_SQRT`, `CU_JIT_FMA`: used when LTO IR is compiled.
    pub(crate) arithmetic: [Option<bool>; 4],
}

const OPTION_COUNT: u32 = JitOption::CU_JIT_NUM_OPTIONS.0;

impl JitOptions {
    /// Reads `count` options and their values. Values are pointer-sized; numbers are in the low half.
    pub(crate) fn read(count: u32, options: u64, values: u64) -> Res<JitOptions> {
        let mut jit = JitOptions::default();
        if count == 0 {
            return Ok(jit);
        }
        if count > 4096 {
            return Err(Code::INVALID_VALUE);
        }
        non_null(options)?;
        non_null(values)?;
        let ids = get_array::<u32>(options, count as usize)?;
        for (i, (id, value)) in ids
            .into_iter()
            .zip(get_array::<u64>(values, count as usize)?)
            .enumerate()
        {
            let slot = values + 8 * i as u64;
            match JitOption(id) {
                JitOption::CU_JIT_WALL_TIME => jit.wall_time = slot,
                JitOption::CU_JIT_INFO_LOG_BUFFER => jit.info.buffer = value,
                JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => {
                    (jit.info.size, jit.info.used) = (value as u32, slot)
                }
                JitOption::CU_JIT_ERROR_LOG_BUFFER => jit.error.buffer = value,
                JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                    (jit.error.size, jit.error.used) = (value as u32, slot)
                }
                JitOption::CU_JIT_LOG_VERBOSE => jit.verbose = value as u32 != 0,
                // Architecture-specific and family-specific targets set higher bits.
                JitOption::CU_JIT_TARGET => jit.target = Some(value as u32 & 0xFFFF),
                // Unsupported: an image cannot refer to external symbols.
                JitOption::CU_JIT_GLOBAL_SYMBOL_NAMES
                | JitOption::CU_JIT_GLOBAL_SYMBOL_ADDRESSES
                | JitOption::CU_JIT_GLOBAL_SYMBOL_COUNT => return Err(Code::NOT_SUPPORTED),
                JitOption::CU_JIT_MAX_REGISTERS => {
                    jit.max_registers = Some(value as u32).filter(|&n| n != 0);
                }
                JitOption::CU_JIT_FTZ => jit.arithmetic[0] = Some(value as u32 != 0),
                JitOption::CU_JIT_PREC_DIV => jit.arithmetic[1] = Some(value as u32 != 0),
                JitOption::CU_JIT_PREC_SQRT => jit.arithmetic[2] = Some(value as u32 != 0),
                JitOption::CU_JIT_FMA => jit.arithmetic[3] = Some(value as u32 != 0),
                // Optimisation and target options have no effect.
                _ if id < OPTION_COUNT => {}
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        Ok(jit)
    }

    /// Loads the PTX that `find` returns and writes the caller's logs.
    pub(crate) fn load(
        &self,
        find: impl FnOnce() -> Result<Vec<Unit>, Rejected>,
    ) -> Res<(Arc<Image>, Arc<[Unit]>)> {
        let start = Instant::now();
        let outcome = find().and_then(|mut units| {
            code::limit_registers(&mut units, self.max_registers);
            Ok((load(&units)?, Arc::from(units)))
        });
        if self.wall_time != 0 {
            put(self.wall_time, start.elapsed().as_secs_f32() * 1000.0)?;
        }
        match outcome {
            Ok((image, units)) => {
                self.error.write("")?;
                self.info.write(&if self.verbose {
                    summary(&image)
                } else {
                    String::new()
                })?;
                Ok((image, units))
            }
            Err(Rejected { code, log }) => {
                log::debug!("module load failed with {code}: {log}");
                self.info.write("")?;
                self.error.write(&log)?;
                Err(logs::because(code, || log))
            }
        }
    }
}

/// The report of a verbose load.
fn summary(image: &Image) -> String {
    let mut text = String::from(
        "CPU device: PTX decoded, no machine code generated
",
    );
    for k in image.kernels() {
        text += &format!(
            "{}: {} registers, {} bytes shared, {} bytes local, {} bytes constant\n",
            k.name,
            k.num_regs(),
            k.static_shared(),
            k.local_bytes(),
            k.const_bytes
        );
    }
    text
}

/// Code that cannot be loaded, and the text for the caller's error log.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) code: Code,
    pub(crate) log: String,
}

impl From<CodeError> for Rejected {
    fn from(problem: CodeError) -> Rejected {
        let code = match problem {
            CodeError::Unreadable => Code::INVALID_VALUE,
            CodeError::Invalid(_) => Code::INVALID_IMAGE,
            CodeError::NoPtx(_) => Code::NO_BINARY_FOR_GPU,
        };
        Rejected {
            code,
            log: problem.text().to_owned(),
        }
    }
}

/// The PTX of the image at an address.
pub(crate) fn units_at(address: u64) -> Result<Vec<Unit>, Rejected> {
    Ok(code::units_at(address)?)
}

/// The PTX of a file's contents.
pub(crate) fn units_of(bytes: &[u8]) -> Result<Vec<Unit>, Rejected> {
    units_at(bytes.as_ptr() as u64)
}

impl From<LoadError> for Rejected {
    fn from(e: LoadError) -> Rejected {
        let code = match e.kind {
            LoadErrorKind::InvalidPtx => Code::INVALID_PTX,
            LoadErrorKind::UnsupportedPtxVersion => Code::UNSUPPORTED_PTX_VERSION,
            LoadErrorKind::UnresolvedSymbol => Code::INVALID_PTX,
            LoadErrorKind::OutOfMemory => Code::OUT_OF_MEMORY,
        };
        let place = if e.line == 0 {
            String::new()
        } else {
            format!("line {}, column {}: ", e.line, e.column)
        };
        Rejected {
            code,
            log: format!("ptx {place}error: {}\n", e.message),
        }
    }
}

/// Links and loads PTX modules that are loaded as `first`, whose managed variables they use.
pub(crate) fn load_again(units: &[Unit], first: &Image) -> Result<Arc<Image>, Rejected> {
    Ok(Arc::new(Image::load_again(units, first)?))
}

/// Links and loads PTX modules.
pub(crate) fn load(units: &[Unit]) -> Result<Arc<Image>, Rejected> {
    Ok(Arc::new(Image::load_units(units, space())?))
}
