//! A small part of libclang's C interface (`clang-c/Index.h`, LLVM 18), loaded at run time.
//!
//! Only what reading plain C declarations needs. Everything is wrapped in [`Cursor`] and [`Ty`], which borrow the
//! translation unit, so that no raw libclang value outlives it.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::marker::PhantomData;
use std::path::Path;

#[repr(C)]
#[derive(Clone, Copy)]
struct RawCursor {
    kind: c_int,
    xdata: c_int,
    data: [*const c_void; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawType {
    kind: c_int,
    data: [*mut c_void; 2],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawString {
    data: *const c_void,
    flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawLocation {
    ptr_data: [*const c_void; 2],
    int_data: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawRange {
    ptr_data: [*const c_void; 2],
    begin: c_uint,
    end: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawToken {
    int_data: [c_uint; 4],
    ptr_data: *mut c_void,
}

type FieldVisitor = extern "C" fn(RawCursor, *mut c_void) -> c_int;
type Visitor = extern "C" fn(RawCursor, RawCursor, *mut c_void) -> c_int;

/// Declares the functions used, and loads them all by name.
macro_rules! functions {
    ($($name:ident: fn($($ty:ty),*) $(-> $ret:ty)?;)*) => {
        #[allow(non_snake_case)]
        struct Functions { $($name: unsafe extern "C" fn($($ty),*) $(-> $ret)?,)* }

        impl Functions {
            fn load(lib: &libloading::Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    $($name: {
                        // SAFETY: the signatures are those of clang-c/Index.h; the library stays loaded (see `Clang`).
                        let symbol = unsafe {
                            lib.get::<unsafe extern "C" fn($($ty),*) $(-> $ret)?>(stringify!($name))
                        }?;
                        *symbol
                    },)*
                })
            }
        }
    };
}

functions! {
    clang_createIndex: fn(c_int, c_int) -> *mut c_void;
    clang_disposeIndex: fn(*mut c_void);
    clang_parseTranslationUnit2: fn(*mut c_void, *const c_char, *const *const c_char, c_int, *mut c_void, c_uint, c_uint, *mut *mut c_void) -> c_int;
    clang_disposeTranslationUnit: fn(*mut c_void);
    clang_getTranslationUnitCursor: fn(*mut c_void) -> RawCursor;
    clang_visitChildren: fn(RawCursor, Visitor, *mut c_void) -> c_uint;
    clang_getCursorSpelling: fn(RawCursor) -> RawString;
    clang_getCString: fn(RawString) -> *const c_char;
    clang_disposeString: fn(RawString);
    clang_getCursorType: fn(RawCursor) -> RawType;
    clang_getCanonicalType: fn(RawType) -> RawType;
    clang_getTypeSpelling: fn(RawType) -> RawString;
    clang_getPointeeType: fn(RawType) -> RawType;
    clang_isConstQualifiedType: fn(RawType) -> c_uint;
    clang_getTypeDeclaration: fn(RawType) -> RawCursor;
    clang_getArrayElementType: fn(RawType) -> RawType;
    clang_getArraySize: fn(RawType) -> c_longlong;
    clang_getResultType: fn(RawType) -> RawType;
    clang_getNumArgTypes: fn(RawType) -> c_int;
    clang_getArgType: fn(RawType, c_uint) -> RawType;
    clang_Type_getNamedType: fn(RawType) -> RawType;
    clang_Cursor_getNumArguments: fn(RawCursor) -> c_int;
    clang_Cursor_getArgument: fn(RawCursor, c_uint) -> RawCursor;
    clang_Type_getSizeOf: fn(RawType) -> c_longlong;
    clang_Type_getAlignOf: fn(RawType) -> c_longlong;
    clang_Type_visitFields: fn(RawType, FieldVisitor, *mut c_void) -> c_uint;
    clang_Cursor_getOffsetOfField: fn(RawCursor) -> c_longlong;
    clang_Cursor_isBitField: fn(RawCursor) -> c_uint;
    clang_getFieldDeclBitWidth: fn(RawCursor) -> c_int;
    clang_getTypedefDeclUnderlyingType: fn(RawCursor) -> RawType;
    clang_getEnumDeclIntegerType: fn(RawCursor) -> RawType;
    clang_getEnumConstantDeclValue: fn(RawCursor) -> c_longlong;
    clang_Cursor_isAnonymous: fn(RawCursor) -> c_uint;
    clang_Cursor_isMacroFunctionLike: fn(RawCursor) -> c_uint;
    clang_isCursorDefinition: fn(RawCursor) -> c_uint;
    clang_Cursor_getStorageClass: fn(RawCursor) -> c_int;
    clang_getCursorLocation: fn(RawCursor) -> RawLocation;
    clang_getExpansionLocation: fn(RawLocation, *mut *mut c_void, *mut c_uint, *mut c_uint, *mut c_uint);
    clang_getFileName: fn(*mut c_void) -> RawString;
    clang_getCursorExtent: fn(RawCursor) -> RawRange;
    clang_tokenize: fn(*mut c_void, RawRange, *mut *mut RawToken, *mut c_uint);
    clang_getTokenSpelling: fn(*mut c_void, RawToken) -> RawString;
    clang_disposeTokens: fn(*mut c_void, *mut RawToken, c_uint);
    clang_getNumDiagnostics: fn(*mut c_void) -> c_uint;
    clang_getDiagnostic: fn(*mut c_void, c_uint) -> *mut c_void;
    clang_getDiagnosticSeverity: fn(*mut c_void) -> c_int;
    clang_formatDiagnostic: fn(*mut c_void, c_uint) -> RawString;
    clang_disposeDiagnostic: fn(*mut c_void);
    clang_getClangVersion: fn() -> RawString;
}

/// libclang itself.
pub struct Clang {
    f: Functions,
    index: *mut c_void,
    _lib: libloading::Library,
}

impl Clang {
    /// Loads libclang from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be loaded or lacks a function.
    pub fn load(path: &Path) -> Result<Clang, String> {
        let fail = |e: libloading::Error| format!("{}: {e}", path.display());
        // SAFETY: libclang's initialisers have no precondition.
        let lib = unsafe { libloading::Library::new(path) }.map_err(fail)?;
        let f = Functions::load(&lib).map_err(fail)?;
        // SAFETY: plain call; 0, 0: no PCH exclusion, no diagnostics printed.
        let index = unsafe { (f.clang_createIndex)(0, 0) };
        Ok(Clang {
            f,
            index,
            _lib: lib,
        })
    }

    /// Version text.
    pub fn version(&self) -> String {
        // SAFETY: plain call.
        self.string(unsafe { (self.f.clang_getClangVersion)() })
    }

    fn string(&self, raw: RawString) -> String {
        // SAFETY: `raw` was just returned by libclang and is disposed of exactly once; the C string may be null.
        unsafe {
            let p = (self.f.clang_getCString)(raw);
            let s = if p.is_null() {
                String::new()
            } else {
                CStr::from_ptr(p).to_string_lossy().into_owned()
            };
            (self.f.clang_disposeString)(raw);
            s
        }
    }

    /// Parses a file as C with a record of its macros.
    ///
    /// # Errors
    ///
    /// The diagnostics, when there is an error among them.
    pub fn parse(&self, file: &Path, args: &[String]) -> Result<Unit<'_>, String> {
        let c_file = CString::new(file.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        let args: Vec<CString> = args
            .iter()
            .map(|a| CString::new(a.as_bytes()).map_err(|e| e.to_string()))
            .collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = args.iter().map(|a| a.as_ptr()).collect();
        let mut tu = std::ptr::null_mut();
        // SAFETY: the strings live until the call returns; no unsaved files; flag 1 asks for the preprocessing record.
        let code = unsafe {
            (self.f.clang_parseTranslationUnit2)(
                self.index,
                c_file.as_ptr(),
                pointers.as_ptr(),
                pointers.len() as c_int,
                std::ptr::null_mut(),
                0,
                1,
                &mut tu,
            )
        };
        if code != 0 || tu.is_null() {
            return Err(format!(
                "libclang cannot parse {} (code {code})",
                file.display()
            ));
        }
        let unit = Unit { clang: self, tu };
        let errors = unit.errors();
        if errors.is_empty() {
            Ok(unit)
        } else {
            Err(errors.join("\n"))
        }
    }
}

impl Drop for Clang {
    fn drop(&mut self) {
        // SAFETY: the index is ours and every unit borrowed `self`, so none is left.
        unsafe { (self.f.clang_disposeIndex)(self.index) }
    }
}

/// A parsed file.
pub struct Unit<'c> {
    clang: &'c Clang,
    tu: *mut c_void,
}

impl Unit<'_> {
    fn errors(&self) -> Vec<String> {
        let f = &self.clang.f;
        let mut out = Vec::new();
        // SAFETY: the unit is alive; every diagnostic is disposed of once. Severity 3 is an error, 4 fatal; the option
        // bits 7 show file, line and column.
        unsafe {
            for i in 0..(f.clang_getNumDiagnostics)(self.tu) {
                let d = (f.clang_getDiagnostic)(self.tu, i);
                if (f.clang_getDiagnosticSeverity)(d) >= 3 {
                    out.push(self.clang.string((f.clang_formatDiagnostic)(d, 7)));
                }
                (f.clang_disposeDiagnostic)(d);
            }
        }
        out
    }

    /// Declarations and macro definitions at file level.
    pub fn children(&self) -> Vec<Cursor<'_>> {
        // SAFETY: the unit is alive.
        let raw = unsafe { (self.clang.f.clang_getTranslationUnitCursor)(self.tu) };
        Cursor {
            unit_tu: self.tu,
            clang: self.clang,
            raw,
            unit: PhantomData,
        }
        .children()
    }
}

impl Drop for Unit<'_> {
    fn drop(&mut self) {
        // SAFETY: ours; cursors and types borrowed the unit.
        unsafe { (self.clang.f.clang_disposeTranslationUnit)(self.tu) }
    }
}

/// Kinds of cursor that matter here (`CXCursorKind`).
pub mod cursor {
    #![allow(missing_docs)]
    pub const STRUCT: i32 = 2;
    pub const UNION: i32 = 3;
    pub const ENUM: i32 = 5;
    pub const FIELD: i32 = 6;
    pub const ENUM_CONSTANT: i32 = 7;
    pub const FUNCTION: i32 = 8;
    pub const TYPEDEF: i32 = 20;
    pub const MACRO: i32 = 501;
}

/// Kinds of type that matter here (`CXTypeKind`).
pub mod kind {
    #![allow(missing_docs)]
    pub const VOID: i32 = 2;
    pub const BOOL: i32 = 3;
    pub const CHAR_U: i32 = 4;
    pub const UCHAR: i32 = 5;
    pub const USHORT: i32 = 8;
    pub const UINT: i32 = 9;
    pub const ULONG: i32 = 10;
    pub const ULONGLONG: i32 = 11;
    pub const CHAR_S: i32 = 13;
    pub const SCHAR: i32 = 14;
    pub const SHORT: i32 = 16;
    pub const INT: i32 = 17;
    pub const LONG: i32 = 18;
    pub const LONGLONG: i32 = 19;
    pub const FLOAT: i32 = 21;
    pub const DOUBLE: i32 = 22;
    pub const POINTER: i32 = 101;
    pub const RECORD: i32 = 105;
    pub const ENUM: i32 = 106;
    pub const TYPEDEF: i32 = 107;
    pub const FUNCTION_NO_PROTO: i32 = 110;
    pub const FUNCTION_PROTO: i32 = 111;
    pub const CONSTANT_ARRAY: i32 = 112;
    pub const INCOMPLETE_ARRAY: i32 = 114;
    pub const ELABORATED: i32 = 119;
}

/// A declaration.
#[derive(Clone, Copy)]
pub struct Cursor<'u> {
    clang: &'u Clang,
    unit_tu: *mut c_void,
    raw: RawCursor,
    unit: PhantomData<&'u ()>,
}

impl<'u> Cursor<'u> {
    fn with(&self, raw: RawCursor) -> Cursor<'u> {
        Cursor { raw, ..*self }
    }

    fn ty_of(&self, raw: RawType) -> Ty<'u> {
        Ty { from: *self, raw }
    }

    /// Kind, see [`cursor`].
    pub fn kind(&self) -> i32 {
        self.raw.kind
    }

    /// Name, empty for anonymous declarations.
    pub fn name(&self) -> String {
        // SAFETY: the cursor's unit is alive (lifetime).
        self.clang
            .string(unsafe { (self.clang.f.clang_getCursorSpelling)(self.raw) })
    }

    /// Direct children, in order.
    pub fn children(&self) -> Vec<Cursor<'u>> {
        extern "C" fn visit(c: RawCursor, _parent: RawCursor, data: *mut c_void) -> c_int {
            // SAFETY: `data` is the vector below, alive and unshared during the visit.
            unsafe { (*data.cast::<Vec<RawCursor>>()).push(c) };
            1 // CXChildVisit_Continue
        }
        let mut raw: Vec<RawCursor> = Vec::new();
        // SAFETY: the callback only pushes into `raw`.
        unsafe {
            (self.clang.f.clang_visitChildren)(self.raw, visit, (&raw mut raw).cast());
        }
        raw.into_iter().map(|r| self.with(r)).collect()
    }

    /// Type of the declaration.
    pub fn ty(&self) -> Ty<'u> {
        // SAFETY: as for `name`; so are the calls below.
        self.ty_of(unsafe { (self.clang.f.clang_getCursorType)(self.raw) })
    }

    /// What a typedef stands for.
    pub fn typedef_underlying(&self) -> Ty<'u> {
        // SAFETY: see `ty`.
        self.ty_of(unsafe { (self.clang.f.clang_getTypedefDeclUnderlyingType)(self.raw) })
    }

    /// Underlying integer type of an enum.
    pub fn enum_type(&self) -> Ty<'u> {
        // SAFETY: see `ty`.
        self.ty_of(unsafe { (self.clang.f.clang_getEnumDeclIntegerType)(self.raw) })
    }

    /// Value of an enumerator.
    pub fn enum_value(&self) -> i64 {
        // SAFETY: see `ty`.
        unsafe { (self.clang.f.clang_getEnumConstantDeclValue)(self.raw) }
    }

    /// Parameters of a function.
    pub fn arguments(&self) -> Vec<Cursor<'u>> {
        // SAFETY: see `ty`; indices below the count.
        unsafe {
            let n = (self.clang.f.clang_Cursor_getNumArguments)(self.raw).max(0) as c_uint;
            (0..n)
                .map(|i| self.with((self.clang.f.clang_Cursor_getArgument)(self.raw, i)))
                .collect()
        }
    }

    /// Offset of a field in bits.
    pub fn field_offset_bits(&self) -> i64 {
        // SAFETY: see `ty`.
        unsafe { (self.clang.f.clang_Cursor_getOffsetOfField)(self.raw) }
    }

    /// Width of a bit-field.
    pub fn bit_width(&self) -> Option<usize> {
        // SAFETY: see `ty`.
        unsafe {
            ((self.clang.f.clang_Cursor_isBitField)(self.raw) != 0)
                .then(|| (self.clang.f.clang_getFieldDeclBitWidth)(self.raw) as usize)
        }
    }

    /// Whether this is the definition and not a mere declaration.
    pub fn is_definition(&self) -> bool {
        // SAFETY: see `ty`.
        unsafe { (self.clang.f.clang_isCursorDefinition)(self.raw) != 0 }
    }

    /// Whether a macro takes arguments.
    pub fn is_function_like_macro(&self) -> bool {
        // SAFETY: see `ty`.
        unsafe { (self.clang.f.clang_Cursor_isMacroFunctionLike)(self.raw) != 0 }
    }

    /// Whether a function is `static`: it is compiled into its callers, no library exports it.
    pub fn is_static(&self) -> bool {
        // SAFETY: see `ty`. 3 is CX_SC_Static.
        unsafe { (self.clang.f.clang_Cursor_getStorageClass)(self.raw) == 3 }
    }

    /// File name (last component) and line.
    pub fn location(&self) -> (String, u32) {
        let (mut file, mut line) = (std::ptr::null_mut(), 0);
        let (mut column, mut offset) = (0, 0);
        // SAFETY: see `ty`; the out pointers are valid. A null file gives an empty name.
        let path = unsafe {
            let at = (self.clang.f.clang_getCursorLocation)(self.raw);
            (self.clang.f.clang_getExpansionLocation)(
                at,
                &mut file,
                &mut line,
                &mut column,
                &mut offset,
            );
            if file.is_null() {
                return (String::new(), 0);
            }
            self.clang.string((self.clang.f.clang_getFileName)(file))
        };
        let name = Path::new(&path)
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        (name.unwrap_or_default(), line)
    }

    /// The tokens of the declaration's text.
    pub fn tokens(&self) -> Vec<String> {
        let mut tokens = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: see `ty`; the token array has `count` elements and is disposed of once.
        unsafe {
            let range = (self.clang.f.clang_getCursorExtent)(self.raw);
            (self.clang.f.clang_tokenize)(self.unit_tu, range, &mut tokens, &mut count);
            let out = (0..count as usize)
                .map(|i| {
                    self.clang.string((self.clang.f.clang_getTokenSpelling)(
                        self.unit_tu,
                        *tokens.add(i),
                    ))
                })
                .collect();
            (self.clang.f.clang_disposeTokens)(self.unit_tu, tokens, count);
            out
        }
    }

    /// Whether a record or enum has neither a tag nor (as libclang sees it) a name.
    pub fn is_anonymous(&self) -> bool {
        // SAFETY: see `ty`.
        unsafe { (self.clang.f.clang_Cursor_isAnonymous)(self.raw) != 0 }
    }

    /// Identity within the unit.
    pub fn same(&self, other: &Cursor<'_>) -> bool {
        self.raw.kind == other.raw.kind && self.raw.data[0] == other.raw.data[0]
    }
}

/// A type.
#[derive(Clone, Copy)]
pub struct Ty<'u> {
    from: Cursor<'u>,
    raw: RawType,
}

impl<'u> Ty<'u> {
    fn with(&self, raw: RawType) -> Ty<'u> {
        Ty { raw, ..*self }
    }

    fn f(&self) -> &'u Functions {
        &self.from.clang.f
    }

    /// Kind, see [`kind`].
    pub fn kind(&self) -> i32 {
        self.raw.kind
    }

    /// As C writes it.
    pub fn spelling(&self) -> String {
        // SAFETY: the type's unit is alive (lifetime); so for the calls below.
        self.from
            .clang
            .string(unsafe { (self.f().clang_getTypeSpelling)(self.raw) })
    }

    /// Without typedefs.
    pub fn canonical(&self) -> Ty<'u> {
        // SAFETY: see `spelling`.
        self.with(unsafe { (self.f().clang_getCanonicalType)(self.raw) })
    }

    /// The type behind `struct X`, `enum X` or a typedef's use (`CXType_Elaborated`).
    pub fn named(&self) -> Ty<'u> {
        // SAFETY: see `spelling`.
        self.with(unsafe { (self.f().clang_Type_getNamedType)(self.raw) })
    }

    /// Pointee.
    pub fn pointee(&self) -> Ty<'u> {
        // SAFETY: see `spelling`.
        self.with(unsafe { (self.f().clang_getPointeeType)(self.raw) })
    }

    /// `const` at the top level.
    pub fn is_const(&self) -> bool {
        // SAFETY: see `spelling`.
        unsafe { (self.f().clang_isConstQualifiedType)(self.raw) != 0 }
    }

    /// The declaration.
    pub fn declaration(&self) -> Cursor<'u> {
        // SAFETY: see `spelling`.
        self.from
            .with(unsafe { (self.f().clang_getTypeDeclaration)(self.raw) })
    }

    /// Element type and length of an array.
    pub fn array(&self) -> (Ty<'u>, i64) {
        // SAFETY: see `spelling`.
        unsafe {
            (
                self.with((self.f().clang_getArrayElementType)(self.raw)),
                (self.f().clang_getArraySize)(self.raw),
            )
        }
    }

    /// Result and parameter types of a function type.
    pub fn function(&self) -> (Ty<'u>, Vec<Ty<'u>>) {
        // SAFETY: see `spelling`; indices below the count.
        unsafe {
            let ret = self.with((self.f().clang_getResultType)(self.raw));
            let n = (self.f().clang_getNumArgTypes)(self.raw).max(0) as c_uint;
            let params = (0..n)
                .map(|i| self.with((self.f().clang_getArgType)(self.raw, i)))
                .collect();
            (ret, params)
        }
    }

    /// The fields of a record, nameless struct and union members included.
    pub fn fields(&self) -> Vec<Cursor<'u>> {
        extern "C" fn visit(c: RawCursor, data: *mut c_void) -> c_int {
            // SAFETY: `data` is the vector below, alive and unshared during the visit.
            unsafe { (*data.cast::<Vec<RawCursor>>()).push(c) };
            1 // CXVisit_Continue
        }
        let mut raw: Vec<RawCursor> = Vec::new();
        // SAFETY: see `spelling`; the callback only pushes into `raw`.
        unsafe {
            (self.f().clang_Type_visitFields)(self.raw, visit, (&raw mut raw).cast());
        }
        raw.into_iter().map(|r| self.from.with(r)).collect()
    }

    /// Size in bytes; negative where there is none.
    pub fn size(&self) -> i64 {
        // SAFETY: see `spelling`.
        unsafe { (self.f().clang_Type_getSizeOf)(self.raw) }
    }

    /// Alignment in bytes.
    pub fn align(&self) -> i64 {
        // SAFETY: see `spelling`.
        unsafe { (self.f().clang_Type_getAlignOf)(self.raw) }
    }
}
