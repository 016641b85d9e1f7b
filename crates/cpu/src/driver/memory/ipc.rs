//! Interprocess memory: imported and exported pools, their allocations, and the older handles for `cuMemAlloc` memory
//! (CUDA driver API, "Stream Ordered Memory Allocator" and `cuIpc*` of "Memory Management").
//!
//! A shareable pool lives in an anonymous file; its file descriptor is the pool's shareable handle. The file's header
//! names the exporting process and lists the exported allocations, so that an importer detects freed ones. `cuMemAlloc`
//! memory moves to a file when a handle is requested. A memory handle is bytes, not a descriptor: it names a descriptor
//! of the exporting process and is valid as long as that process lives and the memory is allocated.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cupyrite_engine::memory::files::{self, Process};
use cupyrite_engine::memory::{Access, Arena, Reach, Region, RegionKind, SharedRange};
use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::host_flags;
use crate::driver::memory::ipc_message::{Message, is_sealed, seal, words};
use crate::driver::memory::pool::{self, Pool, PoolKind};
use crate::driver::memory::space::space;
use crate::driver::stream::capture_state;

/// The only supported handle type.
pub(crate) const DESCRIPTOR: u32 =
    sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;
/// Prefix of the names of pool files.
const POOL: &str = "cupyrite-pool-";
/// Prefix of the names of files that describe the memory of a handle.
const TOKEN: &str = "cupyrite-handle-";
/// First words of a pool file's header, an exported pointer, a memory handle, and the file it names.
const POOL_MAGIC: u64 = u64::from_le_bytes(*b"cprpool1");
const POINTER_MAGIC: u64 = u64::from_le_bytes(*b"cprptr_1");
const HANDLE_MAGIC: u64 = u64::from_le_bytes(*b"cpripcm1");
const TOKEN_MAGIC: u64 = u64::from_le_bytes(*b"cprtokn1");

/// Start and end of the list of exported allocations in a pool file. Only the used part of the file occupies memory.
const SLOTS: u64 = 4096;
const HEAD: u64 = 64 << 20;
/// Bytes of a list entry: ticket, offset, size, unused word.
const SLOT: u64 = 32;

/// The file of a pool that this process exports.
pub(crate) struct Shareable {
    arena: Arc<Arena>,
    id: [u64; 2],
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    free: Vec<u64>,
    next: u64,
    ticket: u64,
}

/// A pool imported from another process.
pub(crate) struct Imported {
    file: OwnedFd,
    size: u64,
    id: [u64; 2],
    maker: Process,
}

/// A pool's relation to other processes.
#[derive(Clone)]
pub(crate) enum Sharing {
    /// Private to this process.
    No,
    /// Other processes may import it.
    Made(Arc<Shareable>),
    /// Imported from another process.
    Imported(Arc<Imported>),
}

impl Sharing {
    /// Creates the sharing state of a new pool for a set of `CUmemAllocationHandleType`s.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` for handle types that this device lacks and for managed memory, `INVALID_VALUE` for unknown
    /// handle types, `OPERATING_SYSTEM` if no file can be created.
    pub(crate) fn of(handle_types: u32, kind: PoolKind) -> Res<Sharing> {
        const KNOWN: u32 = 0xF;
        match handle_types {
            0 => Ok(Sharing::No),
            DESCRIPTOR if kind.1 != RegionKind::Managed => Ok(Sharing::Made(Shareable::new(kind)?)),
            _ if handle_types & !KNOWN == 0 => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// The handle types as which the pool can be exported.
    pub(crate) fn handle_types(&self) -> u32 {
        match self {
            Sharing::No => 0,
            Sharing::Made(_) | Sharing::Imported(_) => DESCRIPTOR,
        }
    }

    /// Whether the pool was imported from another process.
    pub(crate) fn is_imported(&self) -> bool {
        matches!(self, Sharing::Imported(_))
    }

    /// The file that allocations come from.
    pub(crate) fn arena(&self) -> Option<&Arc<Arena>> {
        match self {
            Sharing::Made(made) => Some(&made.arena),
            _ => None,
        }
    }
}

impl Shareable {
    fn new(kind: PoolKind) -> Res<Arc<Shareable>> {
        let id = files::nonce();
        let name = format!("{POOL}{:016x}{:016x}", id[0], id[1]);
        let arena = Arena::create(space(), &name, HEAD).map_err(Code::from)?;
        let maker = Process::current();
        let [place, kind] = pool::words_of(kind);
        let head = seal([
            POOL_MAGIC,
            id[0],
            id[1],
            maker.id.into(),
            maker.start,
            place,
            kind,
            0,
        ]);
        if !files::write_words(arena.file(), 0, &head) {
            return Err(Code::OUT_OF_MEMORY);
        }
        Ok(Arc::new(Shareable {
            arena,
            id,
            slots: Mutex::default(),
        }))
    }

    /// Adds an allocation to the file's list.
    fn export(self: &Arc<Self>, region: &Region) -> Res<Exported> {
        let offset = space()
            .offset_in(&self.arena, region.base)
            .ok_or(Code::INVALID_VALUE)?;
        let mut slots = self.slots.lock();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                slots.next += 1;
                slots.next - 1
            }
        };
        slots.ticket += 1;
        let exported = Exported {
            pool: self.clone(),
            slot,
            ticket: slots.ticket,
            offset,
            size: region.size,
        };
        drop(slots);
        let at = SLOTS + slot * SLOT;
        // The ticket is written last: a reader that sees it sees the whole entry.
        if at + SLOT > HEAD
            || !files::write_words(self.arena.file(), at + 8, &[offset, region.size])
            || !files::write_words(self.arena.file(), at, &[exported.ticket])
        {
            return Err(Code::OUT_OF_MEMORY);
        }
        Ok(exported)
    }
}

/// An allocation that other processes may import as long as this value lives.
pub(crate) struct Exported {
    pool: Arc<Shareable>,
    slot: u64,
    ticket: u64,
    offset: u64,
    size: u64,
}

impl Exported {
    /// The `CUmemPoolPtrExportData`.
    fn message(&self) -> Message {
        let [a, b] = self.pool.id;
        seal([
            POINTER_MAGIC,
            a,
            b,
            self.slot,
            self.ticket,
            self.offset,
            self.size,
            0,
        ])
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        files::write_words(self.pool.arena.file(), SLOTS + self.slot * SLOT, &[0]);
        self.pool.slots.lock().free.push(self.slot);
    }
}

/// Opens the pool of a shareable handle.
fn import_pool(descriptor: i32) -> Res<(Imported, PoolKind)> {
    let Some(known) = files::recognise(descriptor, POOL) else {
        return refuse(Code::INVALID_VALUE, || {
            let what = files::describe(descriptor);
            format!("{what} is not a memory pool of a CPU device")
        });
    };
    let head = files::read_words::<8>(&known.file, 0).ok_or(Code::INVALID_VALUE)?;
    if !is_sealed(&head, POOL_MAGIC) || known.size < HEAD {
        return refuse(Code::INVALID_VALUE, || {
            "the memory pool was exported by an incompatible version of the CPU device".into()
        });
    }
    let maker = Process {
        id: head[3] as u32,
        start: head[4],
    };
    if !maker.is_alive() {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "process {}, which exported the memory pool, has exited",
                maker.id
            )
        });
    }
    let kind = pool::kind_from_words([head[5], head[6]])?;
    let imported = Imported {
        file: known.file,
        size: known.size,
        id: [head[1], head[2]],
        maker,
    };
    Ok((imported, kind))
}

/// Maps an allocation of another process's pool.
fn import_pointer(pool: &Arc<Pool>, message: &Message) -> Res<Region> {
    let Sharing::Imported(imported) = &pool.sharing else {
        return refuse(Code::INVALID_VALUE, || {
            "a pointer can only be imported into an imported memory pool".into()
        });
    };
    let [_, a, b, slot, ticket, offset, size, _] = *message;
    if !is_sealed(message, POINTER_MAGIC) {
        return refuse(Code::INVALID_VALUE, || {
            "the data is not a pointer exported by a CPU device".into()
        });
    }
    if imported.id != [a, b] {
        return refuse(Code::INVALID_VALUE, || {
            "the pointer was exported from another memory pool".into()
        });
    }
    let at = slot
        .checked_mul(SLOT)
        .and_then(|n| n.checked_add(SLOTS))
        .filter(|n| n + SLOT <= HEAD)
        .ok_or(Code::INVALID_VALUE)?;
    let listed = files::read_words::<3>(&imported.file, at);
    if listed != Some([ticket, offset, size]) || ticket == 0 {
        return refuse(Code::INVALID_VALUE, || {
            "the exporting process has freed the allocation".into()
        });
    }
    if !imported.maker.is_alive() {
        return refuse(Code::INVALID_VALUE, || {
            format!(
                "process {}, which exported the allocation, has exited",
                imported.maker.id
            )
        });
    }
    let inside = offset >= HEAD && size <= imported.size && offset <= imported.size - size;
    if !inside {
        return Err(Code::INVALID_VALUE);
    }
    pool::add_imported(pool, |kind, reach| {
        space().map_foreign(&imported.file, offset, size, kind, 0, reach)
    })
}

/// The descriptors that a memory handle of this process names: of a file that describes the memory, and of the memory.
struct Token {
    file: OwnedFd,
    _memory: SharedRange,
    nonce: [u64; 2],
}

/// By region id.
static TOKENS: Mutex<Option<HashMap<u64, Token>>> = Mutex::new(None);
/// Number of entries; freeing skips the lookup if it is zero.
static KNOWN: AtomicU64 = AtomicU64::new(0);

/// Memory of another process that a context has opened.
struct Opened {
    context: u64,
    nonce: [u64; 2],
    ordinal: i32,
    base: u64,
    count: u64,
}

/// By region id.
static OPENED: Mutex<Option<HashMap<u64, Opened>>> = Mutex::new(None);

/// Invalidates the handles of a freed region.
pub(crate) fn remove_region(region: &Region) {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return;
    }
    let token = TOKENS.lock().get_or_insert_default().remove(&region.id);
    let opened = OPENED.lock().get_or_insert_default().remove(&region.id);
    if token.is_some() || opened.is_some() {
        KNOWN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the region was opened by a handle. Only `cuIpcCloseMemHandle` unmaps it.
pub(crate) fn is_opened(region: &Region) -> bool {
    KNOWN.load(Ordering::Relaxed) != 0
        && OPENED
            .lock()
            .get_or_insert_default()
            .contains_key(&region.id)
}

/// The device of memory opened by a handle.
pub(crate) fn device_of(region: &Region) -> Option<i32> {
    if KNOWN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let opened = OPENED.lock();
    Some(opened.as_ref()?.get(&region.id)?.ordinal)
}

/// Whether `cuIpcGetMemHandle` accepts the region: `cuMemAlloc` memory of this process.
pub(crate) fn has_handle(region: &Region) -> bool {
    region.kind == RegionKind::Device && !pool::is_member(region) && !is_opened(region)
}

fn get_handle(address: u64) -> Res<Message> {
    context::current()?;
    let region = space()
        .find(address)
        .filter(|r| r.base == address && has_handle(r))
        .ok_or(Code::INVALID_VALUE)?;
    let maker = Process::current();
    let message = |token: &Token| {
        let [a, b] = token.nonce;
        let descriptor = u64::from(token.file.as_raw_fd() as u32);
        seal([
            HANDLE_MAGIC,
            maker.id.into(),
            maker.start,
            descriptor,
            a,
            b,
            0,
            0,
        ])
    };
    if let Some(token) = TOKENS.lock().get_or_insert_default().get(&region.id) {
        return Ok(message(token));
    }
    let memory = match space().share(address) {
        Err(cupyrite_engine::memory::MemoryError::Busy) => {
            return refuse(Code::MAP_FAILED, || {
                "memory can only be shared while the device is idle; kernels or copies have been running for ten seconds".into()
            });
        }
        other => other?,
    };
    let nonce = files::nonce();
    let name = format!("{TOKEN}{:016x}{:016x}", nonce[0], nonce[1]);
    let file = files::create(&name, 4096).ok_or(Code::OUT_OF_MEMORY)?;
    // Processes agree on the hardware, not on the ordinals.
    let ordinal = context::device_of_owner(region.owner).unwrap_or(0);
    let hardware = device::by_ordinal(ordinal)?.hardware();
    let words = seal([
        TOKEN_MAGIC,
        nonce[0],
        nonce[1],
        memory.file.as_raw_fd() as u64,
        memory.offset,
        region.size,
        hardware.into(),
        0,
    ]);
    if !files::write_words(&file, 0, &words) {
        return Err(Code::OUT_OF_MEMORY);
    }
    let mut tokens = TOKENS.lock();
    let tokens = tokens.get_or_insert_default();
    // Keeps the token that another thread has created in the meantime.
    let token = tokens.entry(region.id).or_insert_with(|| {
        KNOWN.fetch_add(1, Ordering::Relaxed);
        Token {
            file,
            _memory: memory,
            nonce,
        }
    });
    let message = message(token);
    // Removes the token if the region was freed in the meantime.
    if space().find(address).is_none_or(|r| r.id != region.id) {
        tokens.remove(&region.id);
        KNOWN.fetch_sub(1, Ordering::Relaxed);
        return Err(Code::INVALID_VALUE);
    }
    Ok(message)
}

fn open_handle(handle: &Message, lazy_peers: bool) -> Res<u64> {
    let context = context::current()?;
    capture_state::reject_if_capturing()?;
    let [_, process, start, descriptor, a, b, ..] = *handle;
    if !is_sealed(handle, HANDLE_MAGIC) {
        return refuse(Code::INVALID_HANDLE, || {
            "the data is not a memory handle of a CPU device".into()
        });
    }
    let maker = Process {
        id: process as u32,
        start,
    };
    if maker == Process::current() {
        return refuse(Code::INVALID_CONTEXT, || {
            "a memory handle cannot be opened by the process that created it".into()
        });
    }
    let mut opened = OPENED.lock();
    let opened = opened.get_or_insert_default();
    let known = |o: &&mut Opened| o.context == context.id && o.nonce == [a, b];
    if let Some(again) = opened.values_mut().find(known) {
        again.count += 1;
        return Ok(again.base);
    }
    let (region, ordinal) = map_handle(&context, maker, descriptor as i32, [a, b], lazy_peers)?;
    KNOWN.fetch_add(1, Ordering::Relaxed);
    let entry = Opened {
        context: context.id,
        nonce: [a, b],
        ordinal,
        base: region.base,
        count: 1,
    };
    opened.insert(region.id, entry);
    Ok(region.base)
}

fn map_handle(
    context: &Context,
    maker: Process,
    descriptor: i32,
    nonce: [u64; 2],
    lazy_peers: bool,
) -> Res<(Region, i32)> {
    let void = || {
        format!(
            "process {}, which created the memory handle, has exited or has freed the memory",
            maker.id
        )
    };
    let label = format!("{TOKEN}{:016x}{:016x}", nonce[0], nonce[1]);
    let found = (maker.is_alive())
        .then(|| files::recognise_in(maker.id, descriptor, &label))
        .flatten()
        .and_then(|token| files::read_words::<8>(&token.file, 0));
    let Some(words) = found else {
        return refuse(Code::INVALID_HANDLE, void);
    };
    let [_, a, b, file, offset, size, hardware, _] = words;
    if !is_sealed(&words, TOKEN_MAGIC) || [a, b] != nonce {
        return refuse(Code::INVALID_HANDLE, void);
    }
    let Some(memory) =
        files::recognise_in(maker.id, file as i32, cupyrite_engine::memory::SHARED_NAME)
    else {
        return refuse(Code::INVALID_HANDLE, void);
    };
    if size > memory.size || offset > memory.size - size {
        return Err(Code::INVALID_HANDLE);
    }
    // The exporting process may have more devices than this one.
    let ordinal = device::on_hardware(hardware as u8)
        .ok_or(Code::INVALID_HANDLE)?
        .ordinal;
    let mut reach = Reach::of(ordinal).and_peers();
    if lazy_peers {
        reach = reach.with(context.device, Access::ReadWrite);
    }
    let region = space()
        .map_foreign(
            &memory.file,
            offset,
            size,
            RegionKind::Device,
            context.id,
            reach,
        )
        .map_err(|_| Code::MAP_FAILED)?;
    Ok((region, ordinal))
}

fn close_handle(address: u64) -> Res {
    let context = context::current()?;
    capture_state::reject_if_capturing()?;
    let region = space()
        .find(address)
        .filter(|r| r.base == address && is_opened(r))
        .ok_or(Code::INVALID_VALUE)?;
    context.synchronize()?;
    let last = {
        let mut opened = OPENED.lock();
        let entry = opened
            .get_or_insert_default()
            .get_mut(&region.id)
            .filter(|o| o.context == context.id)
            .ok_or(Code::INVALID_VALUE)?;
        entry.count -= 1;
        entry.count == 0
    };
    if last {
        space().free_if(address, |r| r.id == region.id)?;
        host_flags::remove_region(&region);
        remove_region(&region);
    }
    Ok(())
}

/// A `CUipcMemHandle`, passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct Handle([u8; 64]);

driver_entry_points! {
    fn pool_export "cuMemPoolExportToShareableHandle" (out: u64, pool: u64, kind: u32, flags: u64) {
        non_null(out)?;
        let pool = pool::find(pool)?;
        if flags != 0 || kind != DESCRIPTOR {
            return Err(Code::INVALID_VALUE);
        }
        let Sharing::Made(made) = &pool.sharing else {
            return refuse(Code::INVALID_VALUE, || {
                "the memory pool is not exportable or was imported".into()
            });
        };
        let descriptor = made.arena.file().try_clone().map_err(|_| Code::OUT_OF_MEMORY)?;
        put(out, descriptor.as_raw_fd())?;
        // The caller owns the descriptor.
        let _ = descriptor.into_raw_fd();
        Ok(())
    }
    fn pool_import "cuMemPoolImportFromShareableHandle" (out: u64, descriptor: u64, kind: u32, flags: u64) {
        non_null(out)?;
        if flags != 0 || kind != DESCRIPTOR {
            return Err(Code::INVALID_VALUE);
        }
        // The descriptor is passed as a pointer.
        let descriptor = i32::try_from(descriptor).map_err(|_| Code::INVALID_VALUE)?;
        let (imported, kind) = import_pool(descriptor)?;
        pool::install(out, kind, (0, false), Sharing::Imported(Arc::new(imported)))
    }
    fn pool_export_pointer "cuMemPoolExportPointer" (out: u64, address: u64) {
        non_null(out)?;
        let message = pool::exported(address, |made, region| made.export(region), Exported::message)?;
        put(out, message)
    }
    fn pool_import_pointer "cuMemPoolImportPointer" (out: u64, pool: u64, data: u64) {
        non_null(out)?;
        non_null(data)?;
        let pool = pool::find(pool)?;
        let region = import_pointer(&pool, &get(data)?)?;
        put(out, region.base).inspect_err(|_| { let _ = pool::return_block(&region, 0); })
    }
    fn ipc_get_memory "cuIpcGetMemHandle" (out: u64, address: u64) {
        non_null(out)?;
        put(out, get_handle(address)?)
    }
    fn ipc_open_memory "cuIpcOpenMemHandle_v2" (out: u64, handle: Handle, flags: u32) {
        /// Accepted without effect.
        const LAZY_PEERS: u32 = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;
        non_null(out)?;
        if flags & !LAZY_PEERS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let address = open_handle(&words(&handle.0), flags & LAZY_PEERS != 0)?;
        put(out, address).inspect_err(|_| { let _ = close_handle(address); })
    }
    fn ipc_open_memory_v1 "cuIpcOpenMemHandle" (out: u64, handle: Handle, flags: u32) {
        Err(match ipc_open_memory::<PER_THREAD>(out, handle, flags) {
            0 => return Ok(()),
            code => Code(code),
        })
    }
    fn ipc_close_memory "cuIpcCloseMemHandle" (address: u64) {
        close_handle(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_messages_are_detected() {
        let words = seal([POINTER_MAGIC, 1, 2, 3, 4, 5, 6, 0]);
        assert!(is_sealed(&words, POINTER_MAGIC));
        assert!(!is_sealed(&words, HANDLE_MAGIC));
        for i in 0..8 {
            let mut other = words;
            other[i] ^= 1 << (7 * i);
            assert!(!is_sealed(&other, POINTER_MAGIC));
        }
        let mut bytes = [0; 64];
        for (i, w) in words.iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&w.to_le_bytes());
        }
        assert_eq!(super::words(&bytes), words);
    }
}
