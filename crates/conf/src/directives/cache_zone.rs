//! `fastcgi_cache_path` and its kin: zones, and their directories, which must not be shared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::drafts::{HeldPath, SharedZone, SharedZoneUse};
use crate::model::{CachePace, CacheZone, CacheZoneId, LogLevel, SourcePlace};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::value::{self as values, Unit};

/// The smallest memory that nginx accepts for keys: two pages.
const KEYS_MIN: u64 = 8192;

/// Names shared memory; `size` is 0 for a mere reference.
pub(super) fn declare(r: &mut ConfReader, name: &[u8], size: u64) -> ReadResult {
    let used_by = SharedZoneUse::Cache(r.family);
    share(r, name, SharedZone { size, used_by })
}

/// Names shared memory and refuses a contradicting earlier definition.
pub(super) fn share(r: &mut ConfReader, name: &[u8], zone: SharedZone) -> ReadResult {
    let known = r.http.zones.entry(name.into()).or_insert(SharedZone { size: 0, ..zone });
    let (size, shown) = (zone.size, show(name));
    if known.used_by != zone.used_by {
        return Err(ReadFault::Text(format!(
            "the shared memory zone \"{shown}\" is already declared for a different use"
        )));
    }
    if size != 0 && known.size != 0 && size != known.size {
        return Err(ReadFault::Text(format!(
            "the size {size} of shared memory zone \"{shown}\" conflicts with already declared \
             size {}",
            known.size
        )));
    }
    known.size = size.max(known.size);
    Ok(())
}

/// The number of a zone's name.
pub(super) fn id(r: &mut ConfReader, name: &[u8]) -> CacheZoneId {
    let zones = &mut r.http.cache_zones;
    let known = zones.iter().position(|(known, _)| **known == *name);
    let index = known.unwrap_or_else(|| {
        zones.push((name.into(), None));
        zones.len() - 1
    });
    CacheZoneId(index as u32)
}

/// Records a directory that the server stores files in, and refuses one that is taken.
pub(super) fn hold(r: &mut ConfReader, node: &Node, path: &Path, levels: Vec<u8>) {
    let (order, place) = (r.order(), r.place(node));
    take(r, path, HeldPath { is_cache: false, levels, order, place });
}

/// Records the directory of a cache, which must not be shared.
pub(super) fn occupy(r: &mut ConfReader, node: &Node, path: &Path, levels: Vec<u8>) {
    let (order, place) = (r.order(), r.place(node));
    take(r, path, HeldPath { is_cache: true, levels, order, place });
}

fn take(r: &mut ConfReader, path: &Path, held: HeldPath) {
    let Some(known) = r.http.held_paths.get(path) else {
        r.http.held_paths.insert(path.to_owned(), held);
        r.http.temp_paths.push(path.to_owned());
        return;
    };
    // Inner blocks are read after the directives that follow them; the fault is the one written
    // later.
    let (first, second) = if known.order <= held.order { (known, &held) } else { (&held, known) };
    let (shown, SourcePlace { file, line }) = (path.display(), &first.place);
    let text = if first.is_cache || second.is_cache {
        format!("the same path name \"{shown}\" used in {file}:{line} and")
    } else if first.levels != second.levels {
        format!("the same path name \"{shown}\" in {file}:{line} has the different levels than")
    } else {
        return;
    };
    let (order, place) = (second.order, second.place.clone());
    r.note(order, Diagnostic::new(LogLevel::Emerg, text, Some(place)));
}

/// A path below the prefix without a slash at its end.
pub(super) fn directory(r: &ConfReader, word: &[u8]) -> PathBuf {
    let slashes = word.iter().rev().take_while(|byte| **byte == b'/').count();
    let trimmed = &word[..word.len() - slashes];
    // A word of slashes only is the root.
    let path = r.below_prefix(if trimmed.is_empty() { word } else { trimmed });
    path.components().collect()
}

/// Reads `1:2`: up to three numbers of one or two letters.
pub(super) fn levels(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let levels: Option<Vec<u8>> = text
        .split(|byte| *byte == b':')
        .map(|level| match level {
            [digit @ (b'1' | b'2')] => Some(digit - b'0'),
            _ => None,
        })
        .collect();
    levels.filter(|levels| levels.len() <= 3)
}

/// A zone with default values.
fn empty(path: PathBuf, place: SourcePlace) -> CacheZone {
    let pace = |files, sleep, threshold| CachePace {
        files,
        sleep: Duration::from_millis(sleep),
        threshold: Duration::from_millis(threshold),
    };
    CacheZone {
        name: "".into(),
        keys_size: 0,
        path,
        levels: Vec::new(),
        use_temp_path: true,
        inactive: Duration::from_secs(600),
        max_size: None,
        min_free: 0,
        manager: pace(100, 50, 200),
        loader: pace(100, 50, 200),
        purger: false,
        purger_pace: pace(10, 50, 50),
        place,
    }
}

/// `fastcgi_cache_path` and its kin.
pub(super) fn path(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut zone = empty(directory(r, node.arg(0)), r.place(node));
    let mut name: &[u8] = b"";
    for word in node.args().skip(1) {
        if let Some(rest) = word.strip_prefix(b"keys_zone=") {
            (name, zone.keys_size) = keys_zone(word, rest)?;
        } else {
            parameter(&mut zone, word)?;
        }
    }
    if name.is_empty() {
        let text = format!("\"{}\" must have \"keys_zone\" parameter", show(node.name()));
        return Err(ReadFault::Text(text));
    }
    let shown = show(name);
    zone.name = (&*shown).into();
    occupy(r, node, &zone.path, zone.levels.clone());
    declare(r, name, zone.keys_size)?;
    let id = id(r, name);
    let slot = &mut r.http.cache_zones[id.index()].1;
    if slot.is_some() {
        return Err(ReadFault::Text(format!("duplicate zone \"{shown}\"")));
    }
    *slot = Some(zone);
    Ok(())
}

fn keys_zone<'w>(word: &[u8], rest: &'w [u8]) -> Result<(&'w [u8], u64), ReadFault> {
    let shown = show(word);
    let invalid = || ReadFault::Text(format!("invalid keys zone size \"{shown}\""));
    let colon = rest.iter().position(|byte| *byte == b':').ok_or_else(invalid)?;
    let size = values::size(&rest[colon + 1..]).ok_or_else(invalid)?;
    if size < KEYS_MIN {
        return Err(ReadFault::Text(format!("keys zone \"{shown}\" is too small")));
    }
    Ok((&rest[..colon], size))
}

fn parameter(zone: &mut CacheZone, word: &[u8]) -> ReadResult {
    let Some(equals) = word.iter().position(|byte| *byte == b'=') else {
        return Err(invalid_parameter(word));
    };
    let (name, value) = (&word[..equals], &word[equals + 1..]);
    let shown = show(word);
    let invalid = || ReadFault::Text(format!("invalid {} value \"{shown}\"", show(name)));
    let files = || values::number(value).and_then(|files| u32::try_from(files).ok());
    let millis = || values::time(value, Unit::Millis);
    let switch = || match value {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(ReadFault::Text(format!(
            "invalid {} value \"{shown}\", it must be \"on\" or \"off\"",
            show(name)
        ))),
    };
    match name {
        b"levels" => {
            zone.levels = levels(value)
                .ok_or_else(|| ReadFault::Text(format!("invalid \"levels\" \"{shown}\"")))?;
        }
        b"use_temp_path" => zone.use_temp_path = switch()?,
        b"inactive" => {
            zone.inactive = values::time(value, Unit::Seconds).ok_or_else(invalid)?;
        }
        // As in nginx, a size of 0 means no limit.
        b"max_size" => {
            zone.max_size = Some(values::offset(value).ok_or_else(invalid)?).filter(|max| *max > 0);
        }
        b"min_free" => zone.min_free = values::offset(value).ok_or_else(invalid)?,
        b"manager_files" => zone.manager.files = files().ok_or_else(invalid)?,
        b"manager_sleep" => zone.manager.sleep = millis().ok_or_else(invalid)?,
        b"manager_threshold" => zone.manager.threshold = millis().ok_or_else(invalid)?,
        b"loader_files" => zone.loader.files = files().ok_or_else(invalid)?,
        b"loader_sleep" => zone.loader.sleep = millis().ok_or_else(invalid)?,
        b"loader_threshold" => zone.loader.threshold = millis().ok_or_else(invalid)?,
        b"purger" => zone.purger = switch()?,
        b"purger_files" => zone.purger_pace.files = files().ok_or_else(invalid)?,
        b"purger_sleep" => zone.purger_pace.sleep = millis().ok_or_else(invalid)?,
        b"purger_threshold" => zone.purger_pace.threshold = millis().ok_or_else(invalid)?,
        _ => return Err(invalid_parameter(word)),
    }
    Ok(())
}
