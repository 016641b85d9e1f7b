use std::os::fd::IntoRawFd;

use super::super::{Access, checked};
use super::*;

const UNIT: u64 = 2 << 20;

fn space() -> Arc<AddressSpace> {
    Arc::new(AddressSpace::new(1 << 30))
}

fn put(addr: u64, value: u64) {
    checked::write(addr, &value).unwrap();
}

fn get(addr: u64) -> u64 {
    // SAFETY: any eight bytes are a valid integer.
    unsafe { checked::read(addr) }.unwrap()
}

#[test]
fn mappings_show_physical_memory() {
    let s = space();
    let base = s.reserve(4 * UNIT, UNIT, 0).unwrap();
    assert_eq!(base % UNIT, 0);
    assert_eq!(s.reservation_of(base + 3 * UNIT), Some((base, 4 * UNIT)));
    assert_eq!(s.reservation_of(base + 4 * UNIT), None);
    assert!(!checked::is_mapped(base, 8, false));
    let a = s.create_physical(UNIT, "a", 0).unwrap();
    let b = s.create_physical(UNIT, "b", 0).unwrap();
    assert_eq!(s.used(), 2 * UNIT);
    s.map(base, UNIT, &a, 0).unwrap();
    s.map(base + UNIT, UNIT, &b, 0).unwrap();
    s.map(base + 3 * UNIT, UNIT, &a, 0).unwrap();
    // Not before a device has access.
    assert!(s.find(base).is_none());
    assert!(s.mapping_at(base).unwrap().reach.is_none());
    for at in [base, base + UNIT, base + 3 * UNIT] {
        s.set_mapping_reach(at, UNIT, |r| r.with(1, Access::ReadWrite))
            .unwrap();
    }
    assert!(s.find_range(base + UNIT - 8, 16).is_some());
    assert!(s.find_range(base, 2 * UNIT).is_some());
    assert!(s.find_range(base, 2 * UNIT + 1).is_none());
    let r = s.find(base).unwrap();
    assert_eq!(r.reach.access(1), Access::ReadWrite);
    assert_eq!(r.reach.access(0), Access::None);
    // Two addresses of the same memory.
    put(base, 42);
    assert_eq!(get(base + 3 * UNIT), 42);
    assert_eq!(get(base + UNIT), 0);
    drop((a, b));
    assert_eq!(s.used(), 2 * UNIT);
    assert_eq!(s.unreserve(base, 4 * UNIT), Err(MemoryError::Overlap));
    s.unmap(base, 2 * UNIT).unwrap();
    assert_eq!(s.used(), UNIT);
    assert!(!checked::is_mapped(base, 8, false));
    s.unmap(base + 3 * UNIT, UNIT).unwrap();
    assert_eq!(s.used(), 0);
    assert_eq!(s.unreserve(base, UNIT), Err(MemoryError::NotAllocated));
    s.unreserve(base, 4 * UNIT).unwrap();
    assert_eq!(s.unreserve(base, 4 * UNIT), Err(MemoryError::NotAllocated));
}

#[test]
fn invalid_requests_are_refused() {
    let s = space();
    let bad = Err(MemoryError::InvalidRequest);
    assert_eq!(s.reserve(0, UNIT, 0), bad);
    assert_eq!(s.reserve(100, UNIT, 0), bad);
    assert_eq!(s.reserve(UNIT, 3, 0), bad);
    assert_eq!(s.reserve(1 << 60, UNIT, 0), Err(MemoryError::OutOfMemory));
    assert!(s.create_physical(0, "", 0).is_err());
    assert!(s.create_physical(1 << 40, "", 0).is_err());
    let base = s.reserve(2 * UNIT, UNIT, 0).unwrap();
    // A requested address that is in use is ignored.
    let other = s.reserve(UNIT, UNIT, base).unwrap();
    assert_ne!(other, base);
    s.unreserve(other, UNIT).unwrap();
    let p = s.create_physical(2 * UNIT, "", 0).unwrap();
    let map = |at, size, offset| s.map(at, size, &p, offset);
    assert_eq!(map(base, 0, 0), Err(MemoryError::InvalidRequest));
    assert_eq!(map(base, 4 * UNIT, 0), Err(MemoryError::InvalidRequest));
    assert_eq!(
        map(base, UNIT, u64::MAX - 4095),
        Err(MemoryError::InvalidRequest)
    );
    assert_eq!(
        map(base + UNIT, 2 * UNIT, 0),
        Err(MemoryError::NotAllocated)
    );
    assert_eq!(map(4096, UNIT, 0), Err(MemoryError::NotAllocated));
    map(base, 2 * UNIT, 0).unwrap();
    assert_eq!(map(base + UNIT, UNIT, 0), Err(MemoryError::Overlap));
    assert_eq!(s.unmap(base, UNIT), Err(MemoryError::NotMapped));
    assert_eq!(s.unmap(base + UNIT, UNIT), Err(MemoryError::NotMapped));
    assert_eq!(s.unmap(base, u64::MAX), Err(MemoryError::NotMapped));
    assert_eq!(s.unmap(0, UNIT), Err(MemoryError::NotMapped));
    assert_eq!(
        s.set_mapping_reach(base, UNIT, |r| r),
        Err(MemoryError::NotMapped)
    );
    s.unmap(base, 2 * UNIT).unwrap();
    // Nothing remains to be unmapped, in whole or in part.
    s.unmap(base, 2 * UNIT).unwrap();
    s.unmap(base + UNIT, UNIT).unwrap();
    assert_eq!(s.unmap(base + UNIT, 2 * UNIT), Err(MemoryError::NotMapped));
    map(base + UNIT, UNIT, 0).unwrap();
    assert_eq!(s.unmap(base, 2 * UNIT), Err(MemoryError::NotMapped));
    s.unmap(base, UNIT).unwrap();
    s.unmap(base + UNIT, UNIT).unwrap();
    s.unreserve(base, 2 * UNIT).unwrap();
}

#[test]
fn pins_keep_unmapped_windows_until_they_are_replaced() {
    let s = space();
    let base = s.reserve(2 * UNIT, UNIT, 0).unwrap();
    let p = s.create_physical(2 * UNIT, "", 0).unwrap();
    s.map(base, 2 * UNIT, &p, 0).unwrap();
    put(base, 1);
    put(base + UNIT, 2);
    let pin = s.pin();
    s.unmap(base, 2 * UNIT).unwrap();
    assert_eq!((get(base), get(base + UNIT)), (1, 2));
    let q = s.create_physical(UNIT, "", 0).unwrap();
    s.map(base, UNIT, &q, 0).unwrap();
    assert_eq!((get(base), get(base + UNIT)), (0, 2));
    drop(pin);
    put(base, 3);
    assert_eq!(get(base), 3);
    assert!(!checked::is_mapped(base + UNIT, 8, false));
    drop(p);
    assert_eq!(s.used(), UNIT);
    s.unmap(base, UNIT).unwrap();
    let pin = s.pin();
    s.unreserve(base, 2 * UNIT).unwrap();
    drop(pin);
    drop(q);
    assert_eq!(s.used(), 0);
}

#[test]
fn descriptors_share_memory() {
    let (s, t) = (space(), space());
    let p = s.create_physical(UNIT, "label", 0).unwrap();
    let fd = p.export().unwrap().into_raw_fd();
    let (q, label) = t.import_physical(fd, 5).unwrap();
    assert_eq!((q.size(), label.as_str()), (UNIT, "label"));
    assert_eq!((t.used(), q.tag()), (0, 5));
    let (a, b) = (
        s.reserve(UNIT, UNIT, 0).unwrap(),
        t.reserve(UNIT, UNIT, 0).unwrap(),
    );
    s.map(a, UNIT, &p, 0).unwrap();
    t.map(b, UNIT, &q, 0).unwrap();
    put(a + 8, 99);
    assert_eq!(get(b + 8), 99);
    // The size is sealed, so no process can truncate the file.
    // SAFETY: the descriptor is open, and the call fails.
    assert_ne!(unsafe { libc::ftruncate(fd, 0) }, 0);
    // SAFETY: closes a descriptor that `export` returned to this test.
    unsafe { libc::close(fd) };
    for bad in [-1, fd, 0, i32::MAX] {
        assert!(t.import_physical(bad, 0).is_err());
    }
}
