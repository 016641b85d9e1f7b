//! libclang of the pinned package, loaded at run time, and short accessors for what plain C declarations have.

use std::path::Path;

use clang::diagnostic::Severity;
use clang::{Clang, Entity, Index, StorageClass, TranslationUnit, Type, TypeKind};

/// Loads libclang from a file.
///
/// # Safety
///
/// No other thread reads or writes the environment during the call: `clang-sys` takes the path from `LIBCLANG_PATH`.
///
/// # Errors
///
/// The file cannot be loaded, or another [`Clang`] exists.
pub unsafe fn load(libclang: &Path) -> Result<Clang, String> {
    // SAFETY: the caller guarantees that no other thread uses the environment.
    unsafe { std::env::set_var("LIBCLANG_PATH", libclang) };
    Clang::new()
}

/// Parses a file as C with a record of its macros.
///
/// # Errors
///
/// The diagnostics, if one of them is an error.
pub fn parse<'i>(
    index: &'i Index<'_>,
    file: &Path,
    arguments: &[String],
) -> Result<TranslationUnit<'i>, String> {
    let mut parser = index.parser(file);
    parser
        .arguments(arguments)
        .detailed_preprocessing_record(true);
    let unit = parser
        .parse()
        .map_err(|e| format!("libclang cannot parse {}: {e}", file.display()))?;
    let errors: Vec<String> = (unit.get_diagnostics().into_iter())
        .filter(|d| d.get_severity() >= Severity::Error)
        .map(|d| d.formatter().format())
        .collect();
    if errors.is_empty() {
        Ok(unit)
    } else {
        Err(errors.join("\n"))
    }
}

/// Accessors of declarations and macro definitions.
pub(super) trait EntityExt<'tu> {
    /// Name; empty for anonymous declarations.
    fn name(&self) -> String;
    /// Type of the declaration.
    fn ty(&self) -> Type<'tu>;
    /// Type that a typedef names.
    fn typedef_underlying(&self) -> Type<'tu>;
    /// Name of the file that contains the declaration, without its folder; empty for built-in macros.
    fn file_name(&self) -> String;
    /// Tokens of the declaration.
    fn tokens(&self) -> Vec<String>;
    /// Whether a function is `static`: compiled into its callers, exported by no library.
    fn is_static(&self) -> bool;
    /// Offset of a field in bits.
    fn field_offset_bits(&self) -> usize;
}

impl<'tu> EntityExt<'tu> for Entity<'tu> {
    fn name(&self) -> String {
        self.get_name().unwrap_or_default()
    }

    fn ty(&self) -> Type<'tu> {
        self.get_type().expect("a C declaration has a type")
    }

    fn typedef_underlying(&self) -> Type<'tu> {
        self.get_typedef_underlying_type()
            .expect("a typedef names a type")
    }

    fn file_name(&self) -> String {
        let file = (self.get_location()).and_then(|at| at.get_expansion_location().file);
        file.and_then(|file| Some(file.get_path().file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default()
    }

    fn tokens(&self) -> Vec<String> {
        let tokens = self.get_range().map(|range| range.tokenize());
        (tokens.into_iter().flatten())
            .map(|token| token.get_spelling())
            .collect()
    }

    fn is_static(&self) -> bool {
        self.get_storage_class() == Some(StorageClass::Static)
    }

    fn field_offset_bits(&self) -> usize {
        self.get_offset_of_field().unwrap_or(0)
    }
}

/// Accessors of types.
pub(super) trait TypeExt<'tu> {
    /// C spelling.
    fn spelling(&self) -> String;
    /// The declaration of a record, enum or typedef.
    fn declaration(&self) -> Entity<'tu>;
    /// The type without the `struct X`, `enum X` or typedef use around it.
    fn without_elaboration(self) -> Type<'tu>;
    /// Target of a pointer.
    fn pointee(&self) -> Type<'tu>;
    /// Element type of an array.
    fn element(&self) -> Type<'tu>;
    /// Size in bytes; `None` for incomplete types.
    fn size(&self) -> Option<usize>;
}

impl<'tu> TypeExt<'tu> for Type<'tu> {
    fn spelling(&self) -> String {
        self.get_display_name()
    }

    fn declaration(&self) -> Entity<'tu> {
        self.get_declaration().expect("a named type is declared")
    }

    fn without_elaboration(self) -> Type<'tu> {
        match self.get_kind() {
            TypeKind::Elaborated => self.get_elaborated_type().unwrap_or(self),
            _ => self,
        }
    }

    fn pointee(&self) -> Type<'tu> {
        self.get_pointee_type().expect("a pointer has a target")
    }

    fn element(&self) -> Type<'tu> {
        self.get_element_type().expect("an array has elements")
    }

    fn size(&self) -> Option<usize> {
        self.get_sizeof().ok()
    }
}
