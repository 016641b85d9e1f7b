//! Shared memory objects that other programs or APIs created: files that consist of memory, by descriptor.
//!
//! Their size must not shrink while they are mapped, because an access to a lost part ends the process (SIGBUS). An object
//! is therefore sealed when it is opened. Objects of `shm_open` and memfds without `MFD_ALLOW_SEALING` cannot be sealed;
//! their creator must not truncate them.

use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::files;

/// A shared memory object.
#[derive(Debug)]
pub struct MemoryObject {
    file: OwnedFd,
    /// Offset of the memory in the file.
    start: u64,
    size: u64,
    /// Whether the system reserves memory for the object when it is mapped: file systems have a limited size.
    reserve: bool,
}

/// Why a descriptor is not a usable shared memory object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// Not an open descriptor.
    NotOpen,
    /// A file of another kind: its name in the system.
    NotMemory(String),
    /// Memory of the device with an internal layout: its name in the system.
    Internal(String),
    /// Opened for reading only, or sealed against writes.
    NotWritable,
    /// The object has no bytes.
    Empty,
    /// No descriptor is available.
    System,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("it is not an open descriptor"),
            Self::NotMemory(name) => write!(
                f,
                "it is {name}; expected a memfd, a shared memory object (shm_open) or a dma-buf"
            ),
            Self::Internal(name) => write!(
                f,
                "it is {name}, which only the CPU device maps: import it by the call of its type"
            ),
            Self::NotWritable => f.write_str(
                "the object cannot be written: it was opened for reading only or is sealed against writes",
            ),
            Self::Empty => f.write_str("the object has no bytes; set its size with ftruncate"),
            Self::System => f.write_str("the process has no free descriptors"),
        }
    }
}

/// `f_type` of file systems that consist of memory (statfs(2)), and of dma-bufs.
const TMPFS: i64 = 0x0102_1994;
const DMA_BUF: i64 = 0x444D_4142;
/// Name of the files of Mesa's software renderers, and the size of the header that they begin with.
const LLVMPIPE: &str = "/memfd:llvmpipe memory fd";
const LLVMPIPE_HEADER: u64 = 40;

impl MemoryObject {
    /// Opens the object of a descriptor, which stays the caller's.
    ///
    /// The files of Mesa's software renderers (lavapipe) begin with a header; their memory is what follows it.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn open(descriptor: i32) -> Result<MemoryObject, ObjectError> {
        let file = duplicate(descriptor)?;
        let name = files::describe(file.as_raw_fd());
        // SAFETY: a statfs structure is plain data that the call fills in.
        let mut system: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is ours and the structure has the right size.
        let known = unsafe { libc::fstatfs(file.as_raw_fd(), &mut system) } == 0;
        #[allow(clippy::unnecessary_cast)]
        let kind = system.f_type as i64;
        if !known || !matches!(kind, TMPFS | DMA_BUF) || !is_file(&file) {
            return Err(ObjectError::NotMemory(name));
        }
        // Files of the device other than memory that it exports whole.
        let exported = ["cupyrite-memory-", super::SHARED_NAME];
        if let Some(own) = name.strip_prefix("/memfd:")
            && own.starts_with("cupyrite-")
            && !exported.iter().any(|prefix| own.starts_with(prefix))
        {
            return Err(ObjectError::Internal(name));
        }
        // SAFETY: queries our own descriptor.
        let (mode, seals) = unsafe {
            (
                libc::fcntl(file.as_raw_fd(), libc::F_GETFL),
                libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS),
            )
        };
        let read_only = libc::F_SEAL_WRITE | libc::F_SEAL_FUTURE_WRITE;
        if mode & libc::O_ACCMODE != libc::O_RDWR || seals > 0 && seals & read_only != 0 {
            return Err(ObjectError::NotWritable);
        }
        // SAFETY: restricts a file; it fails where that is not possible, see the module's comment.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        // After the seal, so that it cannot shrink any more.
        let size = size_of(&file, kind == DMA_BUF);
        if size == 0 {
            return Err(ObjectError::Empty);
        }
        let start = if name.starts_with(LLVMPIPE) {
            llvmpipe_start(&file, size).unwrap_or(0)
        } else {
            0
        };
        Ok(MemoryObject {
            file,
            start,
            size: size - start,
            reserve: kind == TMPFS && !name.starts_with("/memfd:"),
        })
    }

    /// The file, for [`super::AddressSpace::map_foreign`].
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Size of the memory in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Offset in the file of a range of the memory; `None` if the range is empty or exceeds the memory.
    pub fn locate(&self, offset: u64, size: u64) -> Option<u64> {
        let inside = size > 0 && offset <= self.size && size <= self.size - offset;
        inside.then(|| self.start + offset)
    }

    /// Makes the system reserve memory for a range of the file; false if the file system has too little. Without it, an
    /// access could end the process.
    pub fn reserve(&self, offset: u64, size: u64) -> bool {
        let (Ok(offset), Ok(size)) = (i64::try_from(offset), i64::try_from(size)) else {
            return false;
        };
        // SAFETY: allocates memory for a range within our own file and changes no contents.
        !self.reserve || unsafe { libc::fallocate(self.file.as_raw_fd(), 0, offset, size) } == 0
    }
}

/// A descriptor of the same file, closed when a program is executed.
///
/// # Errors
/// [`ObjectError::NotOpen`], or [`ObjectError::System`] if the process has too many open files.
pub fn duplicate(descriptor: i32) -> Result<OwnedFd, ObjectError> {
    // SAFETY: creates a descriptor; an invalid one returns an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EMFILE) => ObjectError::System,
            _ => ObjectError::NotOpen,
        });
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Closes a descriptor of the program, which a successful import takes over.
pub fn close(descriptor: i32) {
    // SAFETY: the caller passed the ownership of the descriptor to the device.
    unsafe { libc::close(descriptor) };
}

fn stat_of(file: &OwnedFd) -> Option<libc::stat> {
    // SAFETY: a stat structure is plain data that the call fills in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is ours and the structure has the right size.
    (unsafe { libc::fstat(file.as_raw_fd(), &mut stat) } == 0).then_some(stat)
}

/// Whether it is a regular file: not a folder or a pipe in a memory file system. Some systems give a dma-buf no type.
fn is_file(file: &OwnedFd) -> bool {
    stat_of(file).is_some_and(|stat| matches!(stat.st_mode & libc::S_IFMT, libc::S_IFREG | 0))
}

/// Size in bytes, zero if it is unknown. A dma-buf reports it as the end of the file only.
fn size_of(file: &OwnedFd, is_dma_buf: bool) -> u64 {
    let size = if is_dma_buf {
        // SAFETY: a dma-buf is not read, so that its position has no meaning.
        unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) }
    } else {
        stat_of(file).map_or(0, |stat| stat.st_size)
    };
    u64::try_from(size).unwrap_or(0)
}

/// Where the memory of a file of Mesa's `os_malloc_aligned_fd` begins. The file starts with its size, this offset and 16
/// bytes that identify the build; the offset is repeated before the memory.
fn llvmpipe_start(file: &OwnedFd, size: u64) -> Option<u64> {
    let [whole, start] = files::read_words::<2>(file, 0)?;
    let plausible = whole == size && (LLVMPIPE_HEADER..size).contains(&start);
    let [again] = plausible.then(|| files::read_words::<1>(file, start - 8))??;
    (again == start).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memfd(name: &std::ffi::CStr, flags: u32, size: i64) -> OwnedFd {
        // SAFETY: a new file, owned by the returned value.
        unsafe {
            let file = OwnedFd::from_raw_fd(libc::memfd_create(name.as_ptr(), flags));
            assert_eq!(libc::ftruncate(file.as_raw_fd(), size), 0);
            file
        }
    }

    #[test]
    fn objects_are_sealed_and_located() {
        let file = memfd(c"object", libc::MFD_ALLOW_SEALING, 10_000);
        let object = MemoryObject::open(file.as_raw_fd()).unwrap();
        assert_eq!(object.size(), 10_000);
        // SAFETY: changes our own file.
        assert_ne!(unsafe { libc::ftruncate(file.as_raw_fd(), 100) }, 0);
        assert_eq!(object.locate(0, 10_000), Some(0));
        assert_eq!(object.locate(9_999, 1), Some(9_999));
        for (offset, size) in [
            (0, 0),
            (0, 10_001),
            (10_000, 1),
            (u64::MAX, 2),
            (1, u64::MAX),
        ] {
            assert_eq!(object.locate(offset, size), None, "{offset} {size}");
        }
        assert!(MemoryObject::open(memfd(c"unsealed", 0, 1).as_raw_fd()).is_ok());
    }

    #[test]
    fn other_descriptors_are_refused() {
        let refusal = |fd: i32| MemoryObject::open(fd).unwrap_err();
        assert_eq!(refusal(-1), ObjectError::NotOpen);
        assert_eq!(refusal(1 << 20), ObjectError::NotOpen);
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(
            refusal(null.as_raw_fd()),
            ObjectError::NotMemory(_)
        ));
        let folder = std::fs::File::open("/dev/shm").unwrap();
        assert!(matches!(
            refusal(folder.as_raw_fd()),
            ObjectError::NotMemory(_)
        ));
        // SAFETY: a new descriptor, owned by the value.
        let event = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) };
        assert!(matches!(
            refusal(event.as_raw_fd()),
            ObjectError::NotMemory(_)
        ));
        let empty = memfd(c"empty", 0, 0);
        assert_eq!(refusal(empty.as_raw_fd()), ObjectError::Empty);
        let pool = files::create("cupyrite-pool-7", 4096).unwrap();
        assert!(matches!(
            refusal(pool.as_raw_fd()),
            ObjectError::Internal(_)
        ));
        let sealed = memfd(c"sealed", libc::MFD_ALLOW_SEALING, 4096);
        // SAFETY: changes our own file.
        unsafe { libc::fcntl(sealed.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
        assert_eq!(refusal(sealed.as_raw_fd()), ObjectError::NotWritable);
        let plain = memfd(c"read", 0, 4096);
        let path = format!("/proc/self/fd/{}", plain.as_raw_fd());
        let read = std::fs::File::open(path).unwrap();
        assert_eq!(refusal(read.as_raw_fd()), ObjectError::NotWritable);
    }

    #[test]
    fn headers_of_llvmpipe_are_skipped() {
        let file = memfd(c"llvmpipe memory fd", libc::MFD_ALLOW_SEALING, 12_288);
        assert!(files::write_words(&file, 0, &[12_288, 4096]));
        assert!(files::write_words(&file, 4088, &[4096]));
        let object = MemoryObject::open(file.as_raw_fd()).unwrap();
        assert_eq!((object.size(), object.locate(8, 8)), (8192, Some(4104)));
        // Without the repeated offset it is not such a header.
        assert!(files::write_words(&file, 4088, &[0]));
        assert_eq!(MemoryObject::open(file.as_raw_fd()).unwrap().size(), 12_288);
    }
}
