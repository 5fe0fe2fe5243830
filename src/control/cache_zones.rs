//! Whether the cache zones of a new configuration continue those in force.

use bolide_conf::model::{CacheZone, Config};

/// Checks the zones that have the name and the size of one in force.
///
/// # Errors
///
/// In nginx's words: such a zone has another directory, or other levels.
pub(super) fn check(old: &Config, new: &Config) -> Result<(), Vec<String>> {
    let zones = |config: &'_ Config| -> Vec<CacheZone> {
        config.http.as_ref().map(|http| http.cache_zones.clone()).unwrap_or_default()
    };
    let old = zones(old);
    let mut texts = Vec::new();
    for zone in zones(new) {
        let is_it = |old: &&CacheZone| (&old.name, old.keys_size) == (&zone.name, zone.keys_size);
        let Some(before) = old.iter().find(is_it) else { continue };
        if before.path != zone.path {
            texts.push(format!(
                "cache \"{}\" uses the \"{}\" cache path while previously it used the \"{}\" cache \
                 path",
                zone.name,
                zone.path.display(),
                before.path.display()
            ));
        } else if before.levels != zone.levels {
            texts.push(format!("cache \"{}\" had previously different levels", zone.name));
        }
    }
    if texts.is_empty() { Ok(()) } else { Err(texts) }
}
