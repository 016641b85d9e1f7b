//! What kernels print. It is kept until a synchronising call and then written to standard output in one go, as a GPU's
//! driver does: by synchronising calls, blocking copies, module unloading and the end of the context. A buffer that
//! exceeds [`FULL`] is written at once, so that nothing is lost (a GPU would overwrite the oldest text).

use parking_lot::Mutex;

use crate::engine::PrintfSink;

/// Bytes after which nothing is gained by waiting.
const FULL: usize = 1 << 20;

/// A context's output that is not yet written.
#[derive(Default)]
pub(crate) struct Printf {
    text: Mutex<Vec<u8>>,
}

impl PrintfSink for Printf {
    fn emit(&self, bytes: &[u8]) {
        let mut text = self.text.lock();
        text.extend_from_slice(bytes);
        if text.len() >= FULL {
            write_out(&std::mem::take(&mut *text));
        }
    }
}

impl Printf {
    /// Writes everything out. The lock is held meanwhile, so that two threads do not swap their parts.
    pub(crate) fn flush(&self) {
        let mut text = self.text.lock();
        if !text.is_empty() {
            write_out(&std::mem::take(&mut *text));
        }
    }
}

/// Descriptor 1 directly: whatever the program buffers above it (C's `stdout`, Python's `sys.stdout`) is not ours.
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
