//! Program caches and keys.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cupyrite::cache::{CompileLock, Expression, FileCache, KeyRequest, MemoryCache, ProgramCache};
use cupyrite::{CodeKind, Error, Program};

const KERNEL: &str = r#"extern "C" __global__ void k(int *a) { *a = 1; }"#;

/// Temporary directory, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("cupyrite-cache-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn entries(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for directory in std::fs::read_dir(self.0.join("entries")).unwrap() {
            for file in std::fs::read_dir(directory.unwrap().path()).unwrap() {
                found.push(file.unwrap().path());
            }
        }
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn keeps(cache: &dyn ProgramCache) {
    assert!(cache.is_empty().unwrap());
    cache.put(b"a", b"12345").unwrap();
    cache.put(b"b", b"12345").unwrap();
    assert_eq!(cache.get(b"a").unwrap().unwrap(), b"12345");
    // The limit is ten bytes: evicts `b`, the least recently used entry.
    cache.put(b"c", b"1").unwrap();
    assert_eq!(cache.get(b"b").unwrap(), None);
    assert_eq!(cache.get(b"c").unwrap().unwrap(), b"1");
    cache.put(b"c", &[0; 11]).unwrap();
    assert_eq!(cache.get(b"c").unwrap(), None);
    assert_eq!(
        (cache.len().unwrap(), cache.hits(), cache.misses()),
        (1, 2, 2)
    );
    assert!(cache.remove(b"a").unwrap() && !cache.remove(b"a").unwrap());
    cache.put(b"", b"").unwrap();
    assert_eq!(cache.get(b"").unwrap().unwrap(), b"");
    cache.clear().unwrap();
    assert!(cache.is_empty().unwrap());
}

#[test]
fn caches_evict_beyond_their_limit() {
    let folder = Folder::new("keep");
    let limit = NonZeroU64::new(10);
    keeps(&MemoryCache::new(limit));
    keeps(&FileCache::open(&folder.0, limit).unwrap());
}

#[test]
fn a_damaged_entry_is_a_miss() {
    let folder = Folder::new("damage");
    let cache = FileCache::open(&folder.0, None).unwrap();
    let code: Vec<u8> = (0..2000u32).map(|n| (n * 7) as u8).collect();
    for at in [0usize, 1000, 1999, 2005, 2025] {
        cache.put(b"k", &code).unwrap();
        assert_eq!(cache.get(b"k").unwrap().as_ref(), Some(&code));
        let [path] = folder.entries().try_into().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] ^= 16;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get(b"k").unwrap(), None, "byte {at}");
        assert!(folder.entries().is_empty());
    }
}

#[test]
fn threads_share_a_directory() {
    let folder = Folder::new("threads");
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let root = folder.0.clone();
            scope.spawn(move || {
                // Each thread opens its own cache object, as separate processes do.
                let cache = FileCache::open(root, NonZeroU64::new(8_000)).unwrap();
                for turn in 0..100u8 {
                    let key = [(turn.wrapping_mul(thread + 3)) % 5];
                    if let Some(found) = cache.get(&key).unwrap() {
                        assert_eq!(found, vec![key[0]; 2000]);
                    }
                    cache.put(&key, &[key[0]; 2000]).unwrap();
                    if turn % 17 == 16 {
                        cache.remove(&key).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(folder.0.join("tmp")).unwrap().count(), 0);
}

const LONG: Duration = Duration::from_secs(60);

fn lock(cache: &dyn ProgramCache, key: &[u8], timeout: Duration) -> CompileLock {
    cache.compile_lock(key, timeout, &mut || false)
}

/// Looks up a key in all caches at once, and counts compilations; a compilation fails if `fails`.
fn compile_at_once(caches: &[&dyn ProgramCache], fails: bool) -> u32 {
    let (compilations, barrier) = (AtomicU32::new(0), Barrier::new(caches.len()));
    std::thread::scope(|scope| {
        for &cache in caches {
            let (compilations, barrier) = (&compilations, &barrier);
            scope.spawn(move || {
                assert_eq!(cache.get(b"key").unwrap(), None);
                barrier.wait();
                let lock = lock(cache, b"key", LONG);
                let found = cache.get(b"key").unwrap();
                cache.uncount_miss();
                if let Some(found) = found {
                    assert_eq!(found, b"code");
                    return;
                }
                assert!(lock.is_held());
                compilations.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(5));
                if !fails {
                    cache.put(b"key", b"code").unwrap();
                }
            });
        }
    });
    compilations.into_inner()
}

#[test]
fn of_threads_that_miss_a_key_one_compiles() {
    let memory = MemoryCache::new(None);
    assert_eq!(
        compile_at_once(&[&memory as &dyn ProgramCache; 20], false),
        1
    );
    assert_eq!((memory.hits(), memory.misses()), (19, 1));

    // Each thread has its own cache object, as separate processes do.
    let folder = Folder::new("once");
    let files: Vec<FileCache> = (0..20)
        .map(|_| FileCache::open(&folder.0, None).unwrap())
        .collect();
    let caches: Vec<&dyn ProgramCache> = files.iter().map(|cache| cache as _).collect();
    assert_eq!(compile_at_once(&caches, false), 1);
    let misses: u64 = files.iter().map(FileCache::misses).sum();
    let hits: u64 = files.iter().map(FileCache::hits).sum();
    assert_eq!((hits, misses), (19, 1));
}

#[test]
fn failed_compilations_release_their_locks() {
    let memory = MemoryCache::new(None);
    assert_eq!(compile_at_once(&[&memory as &dyn ProgramCache; 4], true), 4);
    let folder = Folder::new("fail");
    let file = FileCache::open(&folder.0, None).unwrap();
    assert_eq!(compile_at_once(&[&file as &dyn ProgramCache; 4], true), 4);
}

#[test]
fn the_wait_for_a_lock_is_limited() {
    let folder = Folder::new("limit");
    let memory = MemoryCache::new(None);
    let file = FileCache::open(&folder.0, None).unwrap();
    for cache in [&memory as &dyn ProgramCache, &file] {
        let held = lock(cache, b"key", LONG);
        assert!(held.is_held());
        for timeout in [Duration::from_millis(150), Duration::ZERO] {
            let started = Instant::now();
            assert!(!lock(cache, b"key", timeout).is_held());
            let waited = started.elapsed();
            assert!(waited >= timeout && waited < timeout + Duration::from_secs(5));
        }
        assert!(lock(cache, b"other key", LONG).is_held());
        drop(held);
        assert!(lock(cache, b"key", LONG).is_held());
    }
}

#[test]
fn the_wait_for_a_lock_can_be_cancelled() {
    let folder = Folder::new("cancel");
    let (memory, file) = (
        MemoryCache::new(None),
        FileCache::open(&folder.0, None).unwrap(),
    );
    for cache in [&memory as &dyn ProgramCache, &file] {
        let held = lock(cache, b"key", LONG);
        let started = Instant::now();
        let mut calls = 0;
        let second = cache.compile_lock(b"key", LONG, &mut || {
            calls += 1;
            // The cache is usable meanwhile.
            cache.put(b"other", b"code").unwrap();
            calls == 3
        });
        assert!(held.is_held() && !second.is_held());
        assert!(calls == 3 && started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn a_folder_without_locks_is_a_cache() {
    let folder = Folder::new("no-locks");
    std::fs::write(folder.0.join("locks"), "").unwrap();
    let cache = FileCache::open(&folder.0, None).unwrap();
    assert!(!lock(&cache, b"key", LONG).is_held());
    cache.put(b"key", b"code").unwrap();
    assert_eq!(cache.get(b"key").unwrap().unwrap(), b"code");
}

#[test]
fn a_removed_folder_is_created_for_a_lock() {
    let folder = Folder::new("removed");
    let cache = FileCache::open(&folder.0, None).unwrap();
    std::fs::remove_dir_all(&folder.0).unwrap();
    assert!(lock(&cache, b"key", LONG).is_held());
    cache.put(b"key", b"code").unwrap();
    cache.clear().unwrap();
    assert!(lock(&cache, b"key", LONG).is_held());
}

#[test]
fn keys_follow_headers() {
    let folder = Folder::new("headers");
    let header = folder.0.join("h.h");
    let mut options = cupyrite::ProgramOptions {
        arch: Some("sm_80".into()),
        include_path: vec![folder.0.to_string_lossy().into_owned()],
        ..Default::default()
    };
    let program = Program::new(format!("#include <h.h>\n{KERNEL}")).with_options(options.clone());
    let request = |reads_files, extra_digest| KeyRequest {
        program: &program,
        target: CodeKind::Cubin,
        expressions: &[],
        extra_digest,
        reads_files,
    };
    let none = match request(true, None).key() {
        Err(Error::Load(e)) => {
            eprintln!("skipped: {e}");
            return;
        }
        other => other.unwrap(),
    };
    std::fs::write(&header, "#define A 1\n").unwrap();
    let first = request(true, None).key().unwrap();
    std::fs::write(&header, "#define A 2\n").unwrap();
    let second = request(true, None).key().unwrap();
    assert!(none != first && first != second);
    let expressions = [
        Expression::Text("k".into()),
        Expression::Bytes(b"k".to_vec()),
    ];
    let named = KeyRequest {
        expressions: &expressions,
        ..request(true, None)
    };
    assert_ne!(named.key().unwrap(), second);
    let error = request(false, None).key().unwrap_err().to_string();
    assert!(
        error.contains("include_path") && error.contains("extra_digest"),
        "{error}"
    );
    let given = request(false, Some(b"mine")).key().unwrap();
    std::fs::write(&header, "#include NAME\n").unwrap();
    assert_eq!(request(false, Some(b"mine")).key().unwrap(), given);
    let error = request(true, None).key().unwrap_err().to_string();
    assert!(error.contains("NAME"), "{error}");
    for option in [
        "-Ix",
        "--include-path=x",
        "-include=x",
        "--use-pch=x",
        "--pch",
    ] {
        let program = Program::new(KERNEL).arch("sm_80").option(option);
        let request = KeyRequest {
            program: &program,
            ..request(true, None)
        };
        let error = request.key().unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
    }
    options.create_pch = Some("x.pch".into());
    let program = Program::new(KERNEL).with_options(options);
    let request = KeyRequest {
        program: &program,
        target: CodeKind::Ptx,
        expressions: &[],
        extra_digest: Some(b"x"),
        reads_files: true,
    };
    assert!(
        request
            .key()
            .unwrap_err()
            .to_string()
            .contains("create_pch")
    );
}
