//! Tests of every format, intact and corrupted.

use object::elf::SHT_PROGBITS;

use super::*;

const PTX: &[u8] = b".version 9.0\n.target sm_89\n\0";

fn unit(name: &str, text: &str) -> Unit {
    Unit::new(name, text)
}

/// A fat binary with entries (kind, flags, architecture, contents).
fn fatbin(entries: &[(u16, u64, u32, &[u8])]) -> Vec<u8> {
    let mut all = Vec::new();
    for &(kind, flags, arch, payload) in entries {
        let mut entry = vec![0u8; 64];
        entry[0..2].copy_from_slice(&kind.to_le_bytes());
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&arch.to_le_bytes());
        entry[40..48].copy_from_slice(&flags.to_le_bytes());
        all.extend_from_slice(&entry);
        all.extend_from_slice(payload);
    }
    let mut file = Vec::new();
    file.extend_from_slice(&(fatbin::MAGIC as u32).to_le_bytes());
    file.extend_from_slice(&1u16.to_le_bytes());
    file.extend_from_slice(&16u16.to_le_bytes());
    file.extend_from_slice(&(all.len() as u64).to_le_bytes());
    file.extend_from_slice(&all);
    file
}

fn text(bytes: &[u8]) -> Option<String> {
    match content(CodeSource::Slice(bytes), "n") {
        Ok(Content::Ptx(units)) => Some(units.iter().map(|u| u.text.as_str()).collect()),
        _ => None,
    }
}

fn problem(bytes: &[u8]) -> CodeError {
    // By slice, and by address if other data follows.
    let by_slice = content(CodeSource::Slice(bytes), "").expect_err("no code");
    let padded = [bytes, &[0; 64]].concat();
    let by_address = units_at(padded.as_ptr() as u64).expect_err("no code");
    assert_eq!(
        std::mem::discriminant(&by_slice),
        std::mem::discriminant(&by_address)
    );
    by_slice
}

#[test]
fn ptx_text() {
    let loaded = units_at(PTX.as_ptr() as u64).unwrap();
    assert_eq!(loaded, [unit("", ".version 9.0\n.target sm_89\n")]);
    assert!(text(b"/* c */ // d\n .version 9.0").is_some());
    assert!(matches!(problem(b"hello"), CodeError::Invalid(_)));
    assert!(matches!(problem(b""), CodeError::Invalid(_)));
    assert_eq!(units_at(5), Err(CodeError::Unreadable));
    assert_eq!(units_at(0), Err(CodeError::Unreadable));
}

#[test]
fn fat_binaries() {
    let newest = fatbin(&[
        (1, 0x11, 80, b".version 8.0"),
        (1, 0x11, 89, PTX),
        (2, 0x11, 90, b"\x7fELF"),
    ]);
    assert_eq!(text(&newest).unwrap(), ".version 9.0\n.target sm_89\n");
    assert!(matches!(
        problem(&fatbin(&[(2, 0x11, 89, b"\x7fELF")])),
        CodeError::NoPtx(_)
    ));
    let cubin = wrap(&[unit("", "carried")]);
    assert_eq!(text(&fatbin(&[(2, 0x11, 89, &cubin)])).unwrap(), "carried");
    let mut broken = fatbin(&[(1, 0, 89, PTX)]);
    broken[24..32].fill(0xFF);
    assert!(matches!(problem(&broken), CodeError::Invalid(_)));
    // nvJitLink receives LTO IR in its fat binary.
    let lto = fatbin(&[(8, 0, 89, b"\xED\x43\x4E\x7F")]);
    assert_eq!(
        content(CodeSource::Slice(&lto), ""),
        Ok(Content::Lto(lto.clone()))
    );
    assert_eq!(
        content(CodeSource::Slice(b"\xED\x43\x4E\x7F.."), ""),
        Ok(Content::Lto(b"\xED\x43\x4E\x7F..".to_vec()))
    );
    assert!(matches!(
        units_at(b"\xED\x43\x4E\x7F..".as_ptr() as u64),
        Err(CodeError::NoPtx(_))
    ));
}

/// As [`fatbin`], with one entry that is compressed with Zstandard or LZ4.
fn compressed_fatbin(kind: u16, zstd: bool, contents: &[u8]) -> Vec<u8> {
    let (flag, mut data) = if zstd {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        (0x8000, ruzstd::encoding::compress_to_vec(contents, level))
    } else {
        (0x2000, lz4_flex::block::compress(contents))
    };
    let size = data.len() as u32;
    // Entries are aligned.
    data.resize(data.len().next_multiple_of(8), 0);
    let mut file = fatbin(&[(kind, 0x11 | flag, 89, &data)]);
    file[16 + 16..16 + 20].copy_from_slice(&size.to_le_bytes());
    file[16 + 56..16 + 64].copy_from_slice(&(contents.len() as u64).to_le_bytes());
    file
}

#[test]
fn compressed_fat_binaries() {
    let lines = (0..5000).map(|i| format!("// line {} of {i}\n", i % 7));
    let ptx = format!(".version 9.0\n.target sm_89\n{}", lines.collect::<String>());
    let cubin = wrap(&[unit("", "carried")]);
    for zstd in [false, true] {
        let file = compressed_fatbin(1, zstd, ptx.as_bytes());
        assert!(file.len() < ptx.len() / 2);
        assert_eq!(text(&file).as_ref(), Some(&ptx));
        let padded = [file.as_slice(), &[0; 64]].concat();
        let units = units_at(padded.as_ptr() as u64).unwrap();
        assert_eq!(units, [unit("", &ptx)]);
        assert_eq!(
            text(&compressed_fatbin(2, zstd, &cubin)).unwrap(),
            "carried"
        );
        // Damage of any byte is an error or other text, never a crash.
        let header = 16 + 64;
        for at in (16..header).chain((header..file.len()).step_by(97)) {
            let mut broken = file.clone();
            broken[at] ^= 0x5A;
            let _ = content(CodeSource::Slice(&broken), "");
        }
        for (at, bytes) in [(16 + 16, 4), (16 + 56, 8)] {
            let mut broken = file.clone();
            broken[at..at + bytes].fill(0xFF);
            assert!(matches!(problem(&broken), CodeError::Invalid(_)));
            broken[at..at + bytes].fill(0);
            assert!(matches!(problem(&broken), CodeError::Invalid(_)));
        }
    }
}

/// The structure that `nvcc` generates for a fat binary at `data`.
fn wrapper(version: u32, data: &[u8], last: u64) -> [u64; 3] {
    let head = WRAPPER | u64::from(version) << 32;
    [head, data.as_ptr() as u64, last]
}

#[test]
fn wrapped_fat_binaries() {
    let ptx = |text: &[u8]| fatbin(&[(1, 0, 89, text)]);
    let (one, two) = (ptx(b".one"), ptx(b".two"));
    let machine_code = fatbin(&[(2, 0, 89, b"\x7fELF")]);
    let texts = |wrapper: [u64; 3]| {
        units_at(wrapper.as_ptr() as u64).map(|units| {
            let texts = units.iter().map(|unit| unit.text.as_str().to_owned());
            texts.collect::<Vec<_>>()
        })
    };
    assert_eq!(texts(wrapper(1, &one, 0)).unwrap(), [".one"]);
    // The linked code is machine code; the PTX is that of the translation units.
    let units = [one.as_ptr() as u64, two.as_ptr() as u64, 0];
    let list = units.as_ptr() as u64;
    assert_eq!(
        texts(wrapper(2, &machine_code, list)).unwrap(),
        [".one", ".two"]
    );
    // Only that version has a list.
    assert!(matches!(
        texts(wrapper(1, &machine_code, list)),
        Err(CodeError::NoPtx(_))
    ));
    let no_units = [0u64];
    assert!(matches!(
        texts(wrapper(2, &machine_code, no_units.as_ptr() as u64)),
        Err(CodeError::NoPtx(_))
    ));
    let without_ptx = [one.as_ptr() as u64, machine_code.as_ptr() as u64, 0];
    assert!(matches!(
        texts(wrapper(2, &machine_code, without_ptx.as_ptr() as u64)),
        Err(CodeError::NoPtx(_))
    ));
    let lto = fatbin(&[(8, 0, 89, b"\xED\x43\x4E\x7F")]);
    let with_lto = [lto.as_ptr() as u64, 0];
    let error = texts(wrapper(2, &machine_code, with_lto.as_ptr() as u64)).unwrap_err();
    assert!(error.text().contains("LTO IR"), "{}", error.text());
    assert_eq!(
        texts(wrapper(2, &machine_code, 8)),
        Err(CodeError::Unreadable)
    );
    assert!(matches!(
        texts(wrapper(1, b"none of them", 0)),
        Err(CodeError::Invalid(_))
    ));
}

#[test]
fn cubin_embeds_its_ptx() {
    let bare = elf::empty();
    assert!(elf::sections(CodeSource::Slice(&bare)).is_some());
    assert!(elf::sections(CodeSource::Slice(&bare[..bare.len() - 1])).is_none());
    assert!(matches!(problem(&bare), CodeError::NoPtx(_)));
    let units = [unit("a", "one"), unit("b", "two")];
    let cubin = attach(&bare, &units).unwrap();
    assert_eq!(
        content(CodeSource::Slice(&cubin), ""),
        Ok(Content::Ptx(units.to_vec()))
    );
    // A loader receives an address without a length.
    let padded = [cubin.as_slice(), b"whatever comes next"].concat();
    assert_eq!(units_at(padded.as_ptr() as u64), Ok(units.to_vec()));
    // Existing sections keep their names.
    let names: Vec<_> = elf::sections(CodeSource::Slice(&cubin))
        .unwrap()
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert_eq!(names, [".shstrtab", ".cupyrite.ptx"]);
    // If linked again, the later section takes precedence.
    let again = attach(&cubin, &[unit("c", "three")]).unwrap();
    assert_eq!(text(&again).unwrap(), "three");
    let reason = attach_reason(&bare, "the library 'x' has no PTX").unwrap();
    assert_eq!(
        problem(&reason),
        CodeError::NoPtx("the library 'x' has no PTX".into())
    );
    assert_eq!(attach(b"no ELF", &units), None);
}

#[test]
fn corrupted_cubins() {
    let whole = wrap(&[unit("a", "text")]);
    // Truncated anywhere, or with any byte inverted: no panic, and no allocation larger than the file.
    for n in 4..whole.len() {
        assert!(content(CodeSource::Slice(&whole[..n]), "").is_err(), "{n}");
    }
    for n in 0..whole.len() {
        let mut other = whole.clone();
        other[n] ^= 0xFF;
        let _ = content(CodeSource::Slice(&other), "");
    }
}

/// A host object file: an ELF file for another machine with one section.
fn object(section: &str, contents: &[u8]) -> Vec<u8> {
    let mut file = elf::with_section(&elf::empty(), section, SHT_PROGBITS, contents).unwrap();
    file[0x12] = 62;
    file
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        file.extend_from_slice(
            format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
                0,
                0,
                0,
                644,
                contents.len()
            )
            .as_bytes(),
        );
        file.extend_from_slice(contents);
        if contents.len() % 2 == 1 {
            file.push(b'\n');
        }
    }
    file
}

#[test]
fn host_objects_and_libraries() {
    let mut two = fatbin(&[(1, 0, 89, b".one")]);
    two.resize(two.len().next_multiple_of(8), 0);
    two.extend(fatbin(&[(1, 0, 89, b".two")]));
    let with_code = object("__nv_relfatbin", &two);
    assert_eq!(text(&with_code).unwrap(), ".one.two");
    let without = object(".text", b"\x90");
    assert!(matches!(problem(&without), CodeError::NoPtx(_)));
    let long = b"a_name_without_code.o/\na_name_with_more_than_sixteen_bytes.o/\n";
    let library = archive(&[
        ("/", b"odd"),
        ("//", long),
        ("plain.o/", &without),
        ("/0", &without),
        ("code.o/", &with_code),
        ("/23", &with_code),
    ]);
    let Ok(Content::Ptx(units)) = content(CodeSource::Slice(&library), "lib.a") else {
        panic!("library");
    };
    assert_eq!(
        units,
        [
            unit("lib.a(code.o)", ".one"),
            unit("lib.a(code.o)", ".two"),
            unit("lib.a(a_name_with_more_than_sixteen_bytes.o)", ".one"),
            unit("lib.a(a_name_with_more_than_sixteen_bytes.o)", ".two"),
        ]
    );
    let runtime = archive(&[("//", b"cuda_device_runtime.o/\n"), ("/0", &with_code)]);
    let none = content(CodeSource::Slice(&runtime), "libcudadevrt.a");
    assert_eq!(none, Ok(Content::Ptx(Vec::new())));
    for name in ["/24x", "/9999", "/-1"] {
        let library = archive(&[("//", long), (name, &with_code)]);
        let damaged = content(CodeSource::Slice(&library), "lib.a");
        assert!(matches!(damaged, Err(CodeError::Invalid(_))), "{name}");
    }
    let sass = object("__nv_relfatbin", &fatbin(&[(2, 0, 89, b"\x7fELF")]));
    let Err(CodeError::NoPtx(why)) =
        content(CodeSource::Slice(&archive(&[("sass.o/", &sass)])), "lib.a")
    else {
        panic!("machine code");
    };
    assert!(why.contains("sass.o") && why.contains("lib.a"), "{why}");
    assert!(matches!(
        content(CodeSource::Slice(&library[..90]), "l"),
        Err(CodeError::Invalid(_))
    ));
}
