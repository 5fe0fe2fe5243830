//! Formatting for text and JSON output.

use bolide_engine::explain::{Candidate, StaleSeconds, machine::freshness};

/// Bytes as text, with controls escaped for terminals.
pub(super) fn show(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for one in String::from_utf8_lossy(bytes).chars() {
        if one.is_control() {
            out.extend(one.escape_default());
        } else {
            out.push(one);
        }
    }
    out
}

/// A number of bytes.
pub(super) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in units {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

/// A number of seconds.
pub(super) fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m{}s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A number and its noun.
pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Words joined by blanks.
pub(super) fn joined(all: &[Vec<u8>]) -> String {
    let all: Vec<String> = all.iter().map(|one| show(one).trim_end().to_owned()).collect();
    all.join(" ")
}

/// An entry of the store in a line, after its URL.
pub(super) fn entry_line(one: &Candidate) -> String {
    let mut text = match one.kind {
        bolide_cache::ObjectKind::Vary => {
            return format!("responses vary on {}", joined(&one.vary));
        }
        bolide_cache::ObjectKind::Pass => "hit-for-pass".to_owned(),
        bolide_cache::ObjectKind::Failed => format!("the upstream failed, {}", one.status),
        bolide_cache::ObjectKind::Content => format!("{}, {}", freshness(one), one.status),
    };
    let mut add = |more: &str| {
        text.push_str(", ");
        text.push_str(more);
    };
    if one.kind == bolide_cache::ObjectKind::Content {
        add(&format!("age {}", seconds(one.age)));
    }
    match one.ttl {
        Some(left) if left >= 0 => add(&format!("{} left", seconds(left.unsigned_abs()))),
        Some(left) => add(&format!("{} over its time", seconds(left.unsigned_abs()))),
        None => {}
    }
    if matches!(one.kind, bolide_cache::ObjectKind::Pass | bolide_cache::ObjectKind::Failed) {
        return text;
    }
    match one.stale {
        Some(StaleSeconds { updating: 0, errors: 0 }) => {}
        Some(StaleSeconds { updating, errors }) => {
            let (updating, errors) = (seconds(updating.into()), seconds(errors.into()));
            add(&format!("serves stale for {updating}, on errors {errors}"));
        }
        None => add("serves stale as its location says"),
    }
    add(&size(one.size));
    for (coding, bytes) in &one.variants {
        add(&format!("{coding} {}", size(*bytes)));
    }
    add(&count(one.hits.into(), "hit"));
    add(if one.is_on_disk { "in memory and on disk" } else { "in memory" });
    if one.is_private {
        add("of one session");
    }
    if !one.purged_by.is_empty() {
        add(&format!("purged by {}", joined(&one.purged_by)));
    } else if one.is_softly_purged {
        add("made stale by a purge");
    }
    if !one.vary.is_empty() {
        add(&format!("for {}", joined(&one.vary)));
    }
    if !one.tags.is_empty() {
        add(&format!("tags {}", joined(&one.tags)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{count, seconds, show, size};

    #[test]
    fn figures_are_put_for_people() {
        assert_eq!(
            (size(1023), size(1536), size(5 << 30)),
            ("1023 B".into(), "1.5 KiB".into(), "5.0 GiB".into())
        );
        assert_eq!(seconds(119), "119s");
        assert_eq!(
            (seconds(150), seconds(7260), seconds(200_000)),
            ("2m30s".into(), "2h1m".into(), "2d7h".into())
        );
        assert_eq!((count(1, "hit"), count(0, "hit")), ("1 hit".into(), "0 hits".into()));
        assert_eq!(show(b"a\x1b[2J\xff"), "a\\u{1b}[2J\u{fffd}");
    }
}
