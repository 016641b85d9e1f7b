//! Output of `printf` in kernels.
//!
//! As in NVIDIA's driver, output is buffered until a synchronising call, a blocking copy, module unloading or context
//! destruction, and then written to standard output at once. A buffer that exceeds [`FULL`] is written immediately, so
//! that no text is lost; a GPU would overwrite the oldest text.

use cupyrite_engine::PrintfSink;
use parking_lot::Mutex;

/// Buffer size at which output is written immediately, in bytes.
const FULL: usize = 1 << 20;

/// A context's pending output.
#[derive(Default)]
pub(crate) struct PrintfBuffer {
    text: Mutex<Vec<u8>>,
}

impl PrintfSink for PrintfBuffer {
    fn emit(&self, bytes: &[u8]) {
        let mut text = self.text.lock();
        text.extend_from_slice(bytes);
        if text.len() >= FULL {
            write_out(&std::mem::take(&mut *text));
        }
    }
}

impl PrintfBuffer {
    /// Writes all pending output. Holds the lock while writing, so that two threads do not reorder their output.
    pub(crate) fn flush(&self) {
        let mut text = self.text.lock();
        if !text.is_empty() {
            write_out(&std::mem::take(&mut *text));
        }
    }
}

/// Writes to descriptor 1, below the buffers of the program (C's `stdout`, Python's `sys.stdout`).
fn write_out(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the buffer is valid for its length.
        let n = unsafe { libc::write(1, bytes.as_ptr().cast(), bytes.len()) };
        match n {
            1.. => bytes = &bytes[n as usize..],
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}
