//! Every library, on every platform, at every location, and each location against each later one.

mod libraries_support;

use std::collections::BTreeSet;

use cupyrite_pathfinder::{FoundVia, LIBRARIES, LoadErrorKind, Platform, SearchOutcome};
use libraries_support::expected::{ExpectedLocation, LibraryRow, rows};
use libraries_support::{PLATFORMS, World};

/// Calls `test` with every library on every platform it exists for.
fn for_each(mut test: impl FnMut(&[LibraryRow], &LibraryRow, Platform)) {
    let rows = rows();
    for platform in PLATFORMS {
        for row in rows.iter().filter(|row| !row.names(platform).is_empty()) {
            test(&rows, row, platform);
        }
    }
}

/// A library's name at a location: of the location's major, or of CUDA 13.
fn name_at(row: &LibraryRow, platform: Platform, place: &ExpectedLocation) -> &'static str {
    row.name_for(platform, place.major.unwrap_or(13))
}

/// Checks that loading and locating both return this file.
fn expect(world: &World, row: &LibraryRow, path: &str, via: FoundVia, what: &str) {
    let told = format!("{} on {}, {what}", row.name, world.platform);
    match world.locate(row.name) {
        Ok(located) => {
            assert_eq!(located.path.to_str(), Some(path), "{told}");
            assert_eq!(located.found_via, via, "{told}");
        }
        Err(error) => panic!("{told}: {error}"),
    }
    match world.load(row.name) {
        Ok(loaded) => {
            assert_eq!(loaded.path.to_str(), Some(path), "{told}");
            assert_eq!(loaded.found_via, via, "{told}");
        }
        Err(error) => panic!("{told}: {error}"),
    }
}

#[test]
fn the_table_matches_the_expectations() {
    let expected: BTreeSet<_> = rows().iter().map(|row| row.name).collect();
    let known: BTreeSet<_> = LIBRARIES.iter().map(|row| row.name).collect();
    assert_eq!(expected, known);
    assert_eq!(expected.len(), 50);
}

#[test]
fn every_library_at_every_location() {
    let mut count = 0;
    for_each(|rows, row, platform| {
        for place in row.places(platform) {
            // Each of its names is accepted; in a folder for one CUDA major, the name of that major.
            let names = match place.major {
                Some(_) => vec![name_at(row, platform, &place)],
                None => row.names(platform).to_vec(),
            };
            for name in names {
                let world = place.put(row, name, row.world(platform, rows));
                expect(&world, row, &place.path(name), place.via, place.label);
                count += 1;
            }
        }
    });
    assert!(count > 1500, "{count}");
}

#[test]
fn every_location_precedes_every_later_one() {
    let mut count = 0;
    for_each(|rows, row, platform| {
        let places = row.places(platform);
        for (index, first) in places.iter().enumerate() {
            for second in &places[index + 1..] {
                let name = name_at(row, platform, first);
                let world = first.put(row, name, row.world(platform, rows));
                let world = second.put(row, name_at(row, platform, second), world);
                let what = format!("{} before {}", first.label, second.label);
                expect(&world, row, &first.path(name), first.via, &what);
                count += 1;
            }
        }
    });
    assert!(count > 5000, "{count}");
}

#[test]
fn at_one_location_the_newest_major_wins_unless_one_is_requested() {
    let mut count = 0;
    for_each(|rows, row, platform| {
        if !row.has_majors(platform) {
            return;
        }
        for place in row.places(platform) {
            // A wheel folder is for one major, and an override is one file.
            if place.major.is_some() || place.label == "override" {
                continue;
            }
            for asked in [None, Some(13), Some(12)] {
                let new = row.name_for(platform, 13);
                let old = row.name_for(platform, 12);
                let world = place.put(row, old, row.world(platform, rows));
                let world = place.put(row, new, world).with(|env| env.major = asked);
                let name = if asked == Some(12) { old } else { new };
                let what = format!("{} with {asked:?}", place.label);
                expect(&world, row, &place.path(name), place.via, &what);
                count += 1;
            }
        }
    });
    assert!(count > 1000, "{count}");
}

/// A wheel folder or a name implies the major; files for another major are rejected at every location.
#[test]
fn a_requested_major_is_found_at_a_later_location_or_reported() {
    let mut count = 0;
    for_each(|rows, row, platform| {
        let places = row.places(platform);
        let last = places.last().unwrap();
        for place in &places {
            let (asked, other) = match place.major {
                Some(13) => (12, 13),
                Some(_) => (13, 12),
                None if row.has_majors(platform) => (12, 13),
                None => continue,
            };
            // An override applies to exactly this library.
            if place.label == "override" {
                continue;
            }
            let name = row.name_for(platform, other);
            let world = || {
                let world = row
                    .world(platform, rows)
                    .with(|env| env.major = Some(asked));
                place.put(row, name, world)
            };
            let told = format!("{} on {platform}, {}", row.name, place.label);

            let alone = world();
            let error = alone.load(row.name).expect_err(&told);
            assert_eq!(error.kind, LoadErrorKind::NotFound, "{told}: {error}");
            // Loaded libraries and those that the system finds under another name are not listed.
            if !["process", "system"].contains(&place.label) {
                let wrong = error.searched.iter().any(|searched| {
                    searched.location == place.path(name)
                        && searched.outcome
                            == SearchOutcome::OtherMajor {
                                found: other,
                                wanted: asked,
                            }
                });
                assert!(wrong, "{told}: {error}");
            }
            if place.label != last.label {
                let right = row.name_for(platform, asked);
                let both = last.put(row, right, world());
                expect(&both, row, &last.path(right), last.via, place.label);
            }
            count += 1;
        }
    });
    assert!(count > 700, "{count}");
}

#[test]
fn a_missing_library_lists_every_location() {
    for_each(|rows, row, platform| {
        let error = row.world(platform, rows).load(row.name).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::NotFound, "{error}");
        assert_eq!(error.names(), row.names(platform));
        let text = error.to_string();
        for place in row.places(platform) {
            let root = match place.label {
                "process" | "override" => continue,
                "system" => row.names(platform)[0].to_owned(),
                "ProgramFiles" => "C:/Program Files/NVIDIA".to_owned(),
                "canary" => place.folder,
                _ => {
                    let parts: Vec<&str> = place.folder.split('/').collect();
                    parts[..2].join("/")
                }
            };
            let row = row.name;
            assert!(
                text.contains(&root),
                "{row} on {platform}: no {root} in:\n{text}"
            );
        }
        assert!(text.contains("CUPYRITE_LIB_"), "{text}");
    });
}

#[test]
fn libraries_without_windows_support_are_not_available() {
    let mut count = 0;
    for platform in PLATFORMS {
        for row in rows().iter().filter(|row| row.names(platform).is_empty()) {
            let error = World::new(platform).load(row.name).unwrap_err();
            assert_eq!(error.kind, LoadErrorKind::NotAvailable, "{error}");
            let error = World::new(platform).locate(row.name).unwrap_err();
            assert_eq!(error.kind, LoadErrorKind::NotAvailable, "{error}");
            count += 1;
        }
    }
    // 36 libraries exist for Windows, one of them on AArch64 alone.
    assert_eq!(count, 2 * (50 - 36) + 1);
}
