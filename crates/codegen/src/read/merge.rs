//! Header sets (configurations, CUDA majors) to the C half of the IR.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use clang::Clang;

use crate::ir::{
    Api, Constant, EntryPoint, Enum, Function, LibraryApi, Param, Record, Role, StreamMode, Type,
    Typedef,
};
use crate::read::declarations::{self, Declarations, Macro, Pfn, Prototype, Request};
use crate::read::foreign;
use crate::read::macros;
use crate::read::manual::Manual;
use crate::read::sources::{Internal, OLDER_VERSIONS, Source};

/// One CUDA major's headers.
pub struct Toolkit {
    /// 13
    pub major: u32,
    /// Include directories.
    pub dirs: Vec<PathBuf>,
}

/// The declarations of one major: the default view, and the view with older versions and per-thread variants.
struct Major {
    major: u32,
    current: Declarations,
    all: Declarations,
}

fn parse(
    clang: &Clang,
    source: &Source,
    toolkit: &Toolkit,
    stubs: &Path,
    scratch: &Path,
) -> Result<Major, String> {
    let mut dirs: Vec<&Path> = vec![stubs];
    dirs.extend(toolkit.dirs.iter().map(PathBuf::as_path));
    let wanted = |f: &str| source.wanted.contains(&f);
    let mut request = Request {
        includes: source.includes,
        dirs: &dirs,
        defines: source.defines,
        wanted: &wanted,
        scratch,
        major: toolkit.major,
    };
    let context = |e: String| format!("{} of CUDA {}: {e}", source.name, toolkit.major);
    let current = declarations::read(clang, &request).map_err(context)?;
    let all = if source.internal != Internal::Nothing {
        request.defines = OLDER_VERSIONS;
        declarations::read(clang, &request).map_err(context)?
    } else {
        current.clone()
    };
    Ok(Major {
        major: toolkit.major,
        current,
        all,
    })
}

/// A library, and the records of each CUDA major as declared in its headers.
pub struct Read {
    /// The joined description.
    pub library: LibraryApi,
    /// CUDA major and its records.
    pub records: Vec<(u32, Vec<Record>)>,
}

/// Reads a library from the toolkits that contain it (newest first) and joins their declarations. `known` contains
/// the libraries read before it, whose types it may use.
///
/// # Errors
///
/// The headers cannot be parsed, or contradict each other in a way this generator does not handle.
pub fn library(
    clang: &Clang,
    source: &Source,
    toolkits: &[Toolkit],
    stubs: &Path,
    scratch: &Path,
    known: &Api,
) -> Result<Read, String> {
    let mut majors = toolkits
        .iter()
        .filter(|t| source.majors.contains(&t.major))
        .map(|t| parse(clang, source, t, stubs, scratch))
        .collect::<Result<Vec<_>, _>>()?;
    let records = majors
        .iter()
        .map(|m| (m.major, m.all.records.clone()))
        .collect();
    let mut lib = LibraryApi {
        name: source.name.to_owned(),
        doc_url: source.doc_url.to_owned(),
        ..LibraryApi::default()
    };
    for m in &mut majors {
        type_macros(&mut m.current);
        type_macros(&mut m.all);
    }
    merge_types(&mut lib, &mut majors);
    merge_constants(&mut lib, &majors);
    for declarations in majors.iter().flat_map(|m| [&m.current, &m.all]) {
        for f in &declarations.functions {
            let prototype = lib.prototypes.entry(f.symbol.clone());
            prototype.or_insert_with(|| f.spelled.clone());
        }
        for (name, declared) in &declarations.type_names {
            let known = lib.type_names.entry(name.clone());
            known.or_insert_with(|| declared.clone());
        }
    }
    let names = Names::new(&majors, source.prefix);
    lib.entry_points = entry_points(&majors, &names, source.internal == Internal::Versions)?;
    merge_functions(&mut lib, &majors, &names)?;
    if lib.functions.is_empty() {
        return Err(format!("{}: the headers declare no function", source.name));
    }
    // Internal symbols, which the headers' inline functions call.
    lib.functions.retain(|f| !f.name.starts_with("__"));
    lib.entry_points.retain(|e| !e.symbol.starts_with("__"));
    foreign::note(&mut lib, source.uses, known)?;
    let manual = manual(source, toolkits, &lib)?;
    lib.manual = manual.functions;
    lib.sections = manual.titles;
    Ok(Read {
        library: lib,
        records,
    })
}

/// The documentation comments of the library's headers, newest first.
fn manual(source: &Source, toolkits: &[Toolkit], lib: &LibraryApi) -> Result<Manual, String> {
    let mut manual = Manual::default();
    // Which enum has the statuses is known to the overlay only.
    let members = lib.enums.iter().flat_map(|e| &e.members);
    let members = members.map(|m| m.name.as_str()).collect();
    for toolkit in toolkits {
        for header in source.wanted {
            let Some(path) = toolkit
                .dirs
                .iter()
                .map(|d| d.join(header))
                .find(|p| p.exists())
            else {
                continue;
            };
            let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            manual.read(&String::from_utf8_lossy(&text), source.prefix, &members);
        }
    }
    Ok(manual)
}

// ------------------------------------------------------------------------------------------------------- types

/// `#define cudaStreamAttrValue cudaLaunchAttributeValue` acts as a typedef.
fn type_macros(set: &mut Declarations) {
    for m in &set.macros {
        let [of] = m.body.as_slice() else {
            continue;
        };
        let record = set.records.iter().find(|r| r.name == *of);
        let enumeration = set.enums.iter().find(|e| e.name == *of);
        let Some(majors) = (record.map(|r| &r.majors)).or(enumeration.map(|e| &e.majors)) else {
            continue;
        };
        if set.typedefs.iter().all(|t| t.name != m.name) {
            set.typedefs.push(Typedef {
                name: m.name.clone(),
                ty: Type::Named { name: of.clone() },
                majors: majors.clone(),
            });
        }
    }
}

fn merge_types(lib: &mut LibraryApi, majors: &mut [Major]) {
    // Records whose layout differs from the newest one are renamed in the older header set, with the typedefs that
    // name them. Functions are not: the driver expects the layout of the symbol, whichever header is newer.
    let newest: HashMap<String, Record> = (majors[0].current.records.iter())
        .chain(&majors[0].all.records)
        .map(|r| (r.name.clone(), r.clone()))
        .collect();
    for older in &mut majors[1..] {
        let mut changed: BTreeSet<String> = older
            .all
            .records
            .iter()
            .filter(|r| newest.get(&r.name).is_some_and(|n| !extends(n, r)))
            .map(|r| r.name.clone())
            .collect();
        // Typedefs follow the types they name, so one pass resolves chains.
        for t in &older.all.typedefs {
            if matches!(&t.ty, Type::Named { name } if changed.contains(name)) {
                changed.insert(t.name.clone());
            }
        }
        let suffix = format!("_cuda{}", older.major);
        for set in [&mut older.current, &mut older.all] {
            rename_types(set, &changed, &suffix);
        }
    }
    for m in majors.iter() {
        for set in [&m.current, &m.all] {
            for r in &set.records {
                match lib.records.iter_mut().find(|x| x.name == r.name) {
                    Some(x) => push_major(&mut x.majors, m.major),
                    None => lib.records.push(r.clone()),
                }
            }
            for t in &set.typedefs {
                match lib.typedefs.iter_mut().find(|x| x.name == t.name) {
                    Some(x) => push_major(&mut x.majors, m.major),
                    None => lib.typedefs.push(t.clone()),
                }
            }
            for e in &set.enums {
                match lib.enums.iter_mut().find(|x| x.name == e.name) {
                    Some(x) => merge_enum(x, e, m.major),
                    None => lib.enums.push(e.clone()),
                }
            }
            for o in &set.opaques {
                if !lib.opaques.contains(o) {
                    lib.opaques.push(o.clone());
                }
            }
        }
    }
    let defined: BTreeSet<&str> = lib.records.iter().map(|r| r.name.as_str()).collect();
    lib.opaques.retain(|o| !defined.contains(o.as_str()));
    lib.opaques.sort();
}

fn push_major(majors: &mut Vec<u32>, major: u32) {
    if !majors.contains(&major) {
        majors.push(major);
        majors.sort_unstable();
    }
}

/// Same size and alignment, and no shared member moved: the newer record only names more of the bytes. Padding
/// members may shrink, and members of a union may grow.
fn extends(new: &Record, old: &Record) -> bool {
    let filler = |name: &str| {
        name.starts_with("reserved") || name.starts_with("pad") || name.starts_with('_')
    };
    new.size == old.size
        && new.align == old.align
        && old.fields.iter().filter(|o| !filler(&o.name)).all(|o| {
            match new.fields.iter().find(|n| n.name == o.name) {
                Some(n) => {
                    n.offset == o.offset && n.bits == o.bits && (new.union || n.size == o.size)
                }
                None => true,
            }
        })
}

fn rename_type(ty: &mut Type, names: &BTreeSet<String>, suffix: &str) {
    match ty {
        Type::Named { name } if names.contains(name) => name.push_str(suffix),
        Type::Pointer { to, .. } => rename_type(to, names, suffix),
        Type::Array { of, .. } => rename_type(of, names, suffix),
        Type::Function { ret, params } => {
            rename_type(ret, names, suffix);
            for p in params {
                rename_type(p, names, suffix);
            }
        }
        _ => {}
    }
}

fn rename_types(set: &mut Declarations, names: &BTreeSet<String>, suffix: &str) {
    for r in set.records.iter_mut().filter(|r| names.contains(&r.name)) {
        for f in &mut r.fields {
            rename_type(&mut f.ty, names, suffix);
        }
        r.name.push_str(suffix);
        if let Some((parent, _)) = &mut r.parent
            && names.contains(parent)
        {
            parent.push_str(suffix);
        }
    }
    for t in set.typedefs.iter_mut().filter(|t| names.contains(&t.name)) {
        rename_type(&mut t.ty, names, suffix);
        t.name.push_str(suffix);
    }
}

fn merge_enum(into: &mut Enum, from: &Enum, major: u32) {
    push_major(&mut into.majors, major);
    for m in &from.members {
        match into.members.iter_mut().find(|x| x.name == m.name) {
            Some(x) => {
                push_major(&mut x.majors, major);
                if x.value != m.value {
                    x.value_cuda12 = Some(m.value);
                }
            }
            None => into.members.push(m.clone()),
        }
    }
}

fn merge_constants(lib: &mut LibraryApi, majors: &[Major]) {
    let mut out: BTreeMap<String, Constant> = BTreeMap::new();
    for m in majors {
        let known: HashMap<String, i64> = (m.current.enums.iter())
            .flat_map(|e| e.members.iter().map(|x| (x.name.clone(), x.value)))
            .collect();
        for (name, v) in macros::evaluate(&m.current.macros, &known) {
            if name == "CUDA_VERSION" && v.value > 0 {
                lib.versions.push(v.value as u32);
            }
            match out.get_mut(&name) {
                Some(c) => push_major(&mut c.majors, m.major),
                None => {
                    let c = Constant {
                        name: name.clone(),
                        value: v.value,
                        unsigned: v.unsigned,
                        cast: v.cast,
                        majors: vec![m.major],
                    };
                    out.insert(name, c);
                }
            }
        }
    }
    lib.constants = out.into_values().collect();
}

// --------------------------------------------------------------------------------------------------- functions

/// Function names from `#define` lines.
struct Names {
    /// By CUDA major: exported symbol to the name in C programs.
    public: Vec<HashMap<String, String>>,
    /// Symbols with a per-thread variant.
    streams: HashMap<String, StreamMode>,
}

impl Names {
    fn new(majors: &[Major], prefix: &str) -> Names {
        let mut streams = HashMap::new();
        let mut public = Vec::new();
        for m in majors {
            let mut map = HashMap::new();
            for mac in m.current.macros.iter().chain(&m.all.macros) {
                if let Some((symbol, mode)) = renaming(mac, prefix) {
                    if let Some(mode) = mode {
                        streams.insert(symbol.clone(), mode);
                    }
                    if symbol != mac.name {
                        map.insert(symbol, mac.name.clone());
                    }
                }
            }
            public.push(map);
        }
        Names { public, streams }
    }
}

/// `#define cuMemAlloc cuMemAlloc_v2`, `#define cuMemcpyHtoD __CUDA_API_PTDS(cuMemcpyHtoD_v2)`.
fn renaming(m: &Macro, prefix: &str) -> Option<(String, Option<StreamMode>)> {
    if !m.name.starts_with(prefix) {
        return None;
    }
    let body: Vec<&str> = m.body.iter().map(String::as_str).collect();
    match body.as_slice() {
        [symbol] if symbol.starts_with(prefix) => Some(((*symbol).to_owned(), None)),
        ["__CUDA_API_PTDS" | "__CUDART_API_PTDS", "(", symbol, ")"] => {
            Some(((*symbol).to_owned(), Some(StreamMode::Ptds)))
        }
        ["__CUDA_API_PTSZ" | "__CUDART_API_PTSZ", "(", symbol, ")"] => {
            Some(((*symbol).to_owned(), Some(StreamMode::Ptsz)))
        }
        _ => None,
    }
}

/// `cuMemcpyHtoD_v2_ptds` is (`cuMemcpyHtoD`, 2, Ptds).
fn split_symbol(symbol: &str) -> (&str, u32, StreamMode) {
    let (rest, mode) = if let Some(r) = symbol.strip_suffix("_ptds") {
        (r, StreamMode::Ptds)
    } else if let Some(r) = symbol.strip_suffix("_ptsz") {
        (r, StreamMode::Ptsz)
    } else {
        (symbol, StreamMode::Legacy)
    };
    match rest.rsplit_once("_v") {
        Some((base, n)) => match n.parse() {
            Ok(n) => (base, n, mode),
            Err(_) => (rest, 1, mode),
        },
        None => (rest, 1, mode),
    }
}

fn entry_points(
    majors: &[Major],
    names: &Names,
    versioned: bool,
) -> Result<Vec<EntryPoint>, String> {
    let mut by_symbol: BTreeMap<&str, (Vec<u32>, &Prototype)> = BTreeMap::new();
    let mut pfns: BTreeMap<(String, StreamMode), BTreeMap<u32, &Pfn>> = BTreeMap::new();
    for m in majors {
        for f in m.all.functions.iter().chain(&m.current.functions) {
            let entry = by_symbol
                .entry(&f.symbol)
                .or_insert_with(|| (Vec::new(), f));
            push_major(&mut entry.0, m.major);
        }
        for p in m.all.pfns.iter().chain(&m.current.pfns) {
            let mode = match p.suffix.as_str() {
                "_ptds" => StreamMode::Ptds,
                "_ptsz" => StreamMode::Ptsz,
                _ => StreamMode::Legacy,
            };
            pfns.entry((p.base.clone(), mode))
                .or_default()
                .entry(p.version)
                .or_insert(p);
        }
    }
    let mut groups: BTreeMap<(String, StreamMode), Vec<(u32, &str)>> = BTreeMap::new();
    for symbol in by_symbol.keys() {
        let (base, n, mode) = split_symbol(symbol);
        groups
            .entry((base.to_owned(), mode))
            .or_default()
            .push((n, symbol));
    }
    let mut out = Vec::new();
    for (key, mut symbols) in groups {
        symbols.sort_unstable();
        let empty = BTreeMap::new();
        let versions = pfns.get(&key).unwrap_or(&empty);
        let prototypes: Vec<&str> = symbols
            .iter()
            .map(|(_, s)| by_symbol[s].1.canonical.as_str())
            .collect();
        let known: Vec<(u32, &str)> = versions
            .values()
            .map(|p| (p.version, p.canonical.as_str()))
            .collect();
        let matched = match_versions(&prototypes, &known);
        for ((_, symbol), version) in symbols.into_iter().zip(matched) {
            let (declared_in, proto) = &by_symbol[symbol];
            if versioned
                && !known
                    .iter()
                    .any(|k| version == Some(k.0) && k.1 == proto.canonical)
            {
                return Err(format!(
                    "{symbol}: no typedef PFN_{}_vVERSION of the header of typedefs has its signature, {} ({version:?} of {known:?})",
                    key.0, proto.canonical
                ));
            }
            let row = EntryPoint {
                symbol: symbol.to_owned(),
                base: key.0.clone(),
                abi_version: version.unwrap_or(0),
                stream: key.1,
                majors: declared_in.clone(),
                ret: proto.ret.clone(),
                params: proto.params.clone(),
            };
            // `cuGetProcAddress` also accepts a public name that is not the stem of its symbol (cuGraphInstantiate ->
            // cuGraphInstantiateWithFlags), for the majors whose headers define it.
            let oldest = (majors.iter().zip(&names.public))
                .filter(|(_, map)| map.contains_key(symbol))
                .map(|(m, _)| m.major)
                .min();
            if let Some(public) = names.public.iter().find_map(|m| m.get(symbol))
                && *public != key.0
            {
                out.push(EntryPoint {
                    base: public.clone(),
                    abi_version: row.abi_version.max(oldest.unwrap_or(0) * 1000),
                    ..row.clone()
                });
            }
            out.push(row);
        }
    }
    out.sort_by(|a, b| {
        (&a.base, a.stream, a.abi_version, &a.symbol).cmp(&(
            &b.base,
            b.stream,
            b.abi_version,
            &b.symbol,
        ))
    });
    Ok(out)
}

/// Assigns CUDA versions (ascending) to the symbols of a base name (ascending `_vN`): pairwise if the counts agree,
/// else by the order-preserving assignment that matches most signatures, latest versions first.
fn match_versions(symbols: &[&str], versions: &[(u32, &str)]) -> Vec<Option<u32>> {
    if symbols.len() == versions.len() {
        return versions.iter().map(|(v, _)| Some(*v)).collect();
    }
    let mut out = vec![None; symbols.len()];
    let mut limit = versions.len();
    for (i, symbol) in symbols.iter().enumerate().rev() {
        if let Some(j) = versions[..limit].iter().rposition(|(_, s)| s == symbol) {
            out[i] = Some(versions[j].0);
            limit = j;
        }
    }
    out
}

fn merge_functions(lib: &mut LibraryApi, majors: &[Major], names: &Names) -> Result<(), String> {
    let mut out: BTreeMap<String, (Function, String)> = BTreeMap::new();
    for (index, m) in majors.iter().enumerate() {
        for f in &m.current.functions {
            // `#define cuFileDriverClose cuFileDriverClose_v2` follows the declaration of both: C programs cannot
            // call the first one.
            if names.public[index].values().any(|p| *p == f.symbol) {
                continue;
            }
            let name = names.public[index]
                .get(&f.symbol)
                .cloned()
                .unwrap_or_else(|| f.symbol.clone());
            let function = make_function(lib, m.major, f, &name, names)?;
            // An older header may declare the newest ABI by its versioned name (cuCtxCreate_v4).
            let same_abi = out
                .values_mut()
                .find(|(known, _)| known.symbol == f.symbol && known.majors[0] > m.major);
            if let Some((known, canonical)) = same_abi
                && known.name != name
                && *canonical == f.canonical
            {
                push_major(&mut known.majors, m.major);
                continue;
            }
            match out.get_mut(&name) {
                None => {
                    out.insert(name, (function, f.canonical.clone()));
                }
                Some((known, canonical))
                    if known.symbol == f.symbol
                        && *canonical == f.canonical
                        && same_types(known, &function) =>
                {
                    push_major(&mut known.majors, m.major);
                }
                Some(_) => {
                    let name = format!("{name}_cuda{}", m.major);
                    let function = Function {
                        name: name.clone(),
                        ..function
                    };
                    out.insert(name, (function, f.canonical.clone()));
                }
            }
        }
    }
    lib.functions = out.into_values().map(|(f, _)| f).collect();
    Ok(())
}

fn same_types(a: &Function, b: &Function) -> bool {
    a.params.len() == b.params.len() && a.params.iter().zip(&b.params).all(|(x, y)| x.ty == y.ty)
}

fn make_function(
    lib: &LibraryApi,
    major: u32,
    f: &Prototype,
    name: &str,
    names: &Names,
) -> Result<Function, String> {
    let rows = || lib.entry_points.iter().filter(|e| e.symbol == f.symbol);
    let (stem, _, _) = split_symbol(&f.symbol);
    // By its stem: a renamed public name with an older version may denote another ABI.
    let row = rows()
        .find(|e| e.base == stem)
        .ok_or_else(|| format!("{name}: no entry point {}", f.symbol))?;
    let mode = names.streams.get(&f.symbol).copied();
    let per_thread = mode.and_then(|mode| {
        let suffix = if mode == StreamMode::Ptds {
            "_ptds"
        } else {
            "_ptsz"
        };
        let symbol = format!("{}{suffix}", f.symbol);
        lib.entry_points.iter().find(|e| e.symbol == symbol)
    });
    Ok(Function {
        name: name.to_owned(),
        base: row.base.clone(),
        symbol: f.symbol.clone(),
        abi_version: row.abi_version,
        per_thread_symbol: per_thread.map(|e| e.symbol.clone()),
        per_thread_abi_version: per_thread.map_or(0, |e| e.abi_version),
        header: f.header.clone(),
        majors: vec![major],
        ret: f.ret.clone(),
        params: f
            .params
            .iter()
            .map(|(name, ty)| Param {
                name: name.clone(),
                ty: ty.clone(),
                role: Role::Unknown,
            })
            .collect(),
        python: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_split() {
        assert_eq!(
            split_symbol("cuMemcpyHtoD_v2_ptds"),
            ("cuMemcpyHtoD", 2, StreamMode::Ptds)
        );
        assert_eq!(
            split_symbol("cuStreamQuery_ptsz"),
            ("cuStreamQuery", 1, StreamMode::Ptsz)
        );
        assert_eq!(split_symbol("cuInit"), ("cuInit", 1, StreamMode::Legacy));
        assert_eq!(
            split_symbol("cu_vector"),
            ("cu_vector", 1, StreamMode::Legacy)
        );
    }

    #[test]
    fn renamings() {
        let m = |name: &str, body: &str| Macro {
            name: name.into(),
            body: body.split(' ').map(str::to_owned).collect(),
        };
        assert_eq!(
            renaming(&m("cuMemAlloc", "cuMemAlloc_v2"), "cu"),
            Some(("cuMemAlloc_v2".into(), None))
        );
        assert_eq!(
            renaming(&m("cuMemcpy", "__CUDA_API_PTDS ( cuMemcpy )"), "cu"),
            Some(("cuMemcpy".into(), Some(StreamMode::Ptds)))
        );
        assert_eq!(renaming(&m("CUDA_VERSION", "13050"), "cu"), None);
    }

    #[test]
    fn versions_match_by_count_then_by_signature() {
        let known = [(2000, "a"), (3020, "b")];
        assert_eq!(
            match_versions(&["x", "y"], &known),
            [Some(2000), Some(3020)]
        );
        assert_eq!(match_versions(&["b"], &known), [Some(3020)]);
        assert_eq!(
            match_versions(&["a", "q", "b"], &known),
            [Some(2000), None, Some(3020)]
        );
    }
}
