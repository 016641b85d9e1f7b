//! Units of numbers, for the reference pages.

use crate::interface::overlay::Overlay;
use crate::ir::LibraryApi;

/// Fills in [`LibraryApi::units`].
///
/// # Errors
///
/// An entry matches no parameter and no member.
pub fn note(lib: &mut LibraryApi, overlay: &Overlay) -> Result<(), String> {
    lib.units = overlay.units.clone();
    for key in overlay.units.keys() {
        let one = LibraryApi {
            units: [(key.clone(), "some".to_owned())].into(),
            ..LibraryApi::default()
        };
        let parameter = (lib.functions.iter()).any(|f| {
            f.params
                .iter()
                .any(|p| one.unit(&f.name, &p.name).is_some())
        });
        let member = (lib.records.iter()).any(|r| {
            r.fields
                .iter()
                .any(|x| one.unit(&r.name, &x.name).is_some())
        });
        if !parameter && !member {
            return Err(format!(
                "overlay of {}, units: no parameter or member has the unit {key}",
                lib.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ir::{Builtin, Field, Record, Type};

    fn library() -> LibraryApi {
        let field = |name: &str| Field {
            name: name.into(),
            anonymous: false,
            ty: Type::Builtin {
                builtin: Builtin::UInt,
            },
            offset: 0,
            size: 4,
            bits: None,
        };
        LibraryApi {
            records: vec![Record {
                name: "S".into(),
                c_name: None,
                union: false,
                size: 4,
                align: 4,
                fields: vec![field("clockMHz"), field("power"), field("numItems")],
                parent: None,
                nested: false,
                header: String::new(),
                majors: vec![13],
            }],
            ..LibraryApi::default()
        }
    }

    fn overlay(units: &[(&str, &str)]) -> Overlay {
        Overlay {
            units: units
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
            ..Overlay::default()
        }
    }

    #[test]
    fn suffixes_match_words_and_whole_names_win() {
        let mut lib = library();
        let units = [("MHz", "MHz"), ("power", "mW"), ("S.clockMHz", "GHz")];
        note(&mut lib, &overlay(&units)).unwrap();
        assert_eq!(lib.unit("S", "clockMHz").as_deref(), Some("GHz"));
        assert_eq!(lib.unit("T", "clockMHz").as_deref(), Some("MHz"));
        assert_eq!(lib.unit("S", "power").as_deref(), Some("mW"));
        assert_eq!(lib.unit("S", "superpower"), None);
        assert_eq!(lib.unit("S", "numItems"), None);
        lib.units = BTreeMap::from([("Ms".into(), "ms".into()), ("S.Ms".into(), String::new())]);
        assert_eq!(lib.unit("S", "numItems"), None);
        assert_eq!(lib.unit("T", "timeMs").as_deref(), Some("ms"));
        assert_eq!(lib.unit("S", "Ms"), None);
    }

    #[test]
    fn an_unused_entry_is_an_error() {
        let error = note(&mut library(), &overlay(&[("Ns", "ns")])).unwrap_err();
        assert!(error.contains("Ns"), "{error}");
    }
}
