//! `modern_browser`, `ancient_browser`: the rules that classify a User-Agent.

use std::sync::Arc;

/// The browsers of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Browsers {
    /// `modern_browser NAME VERSION`, each with its lowest version.
    pub modern: Vec<(BrowserName, u64)>,
    /// `modern_browser unlisted`: a browser that is neither listed nor ancient is modern.
    pub unlisted: bool,
    /// `ancient_browser`: texts in `User-Agent`.
    pub ancient: Vec<Box<[u8]>>,
    /// `ancient_browser netscape4`
    pub netscape4: bool,
    /// `modern_browser_value`
    pub modern_value: Arc<[u8]>,
    /// `ancient_browser_value`
    pub ancient_value: Arc<[u8]>,
}

/// A browser with known versions, in matching order: each also has the names of later ones in its
/// `User-Agent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrowserName {
    /// `opera`
    Opera,
    /// `msie`
    Msie,
    /// `gecko`
    Gecko,
    /// `safari`
    Safari,
    /// `konqueror`
    Konqueror,
}

impl Default for Browsers {
    fn default() -> Self {
        let value: Arc<[u8]> = Arc::from(&b"1"[..]);
        Self {
            modern: Vec::new(),
            unlisted: false,
            ancient: Vec::new(),
            netscape4: false,
            modern_value: Arc::clone(&value),
            ancient_value: value,
        }
    }
}

/// The number that represents a version in comparisons: four parts of two digits. Parses up to the
/// first byte that is neither a digit nor a dot; returns whether that was the end.
#[must_use]
pub fn browser_version(text: &[u8]) -> (u64, bool) {
    let (mut version, mut part, mut scale) = (0_u64, 0_u64, 1_000_000_u64);
    let read = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let len = read.clone().count();
    for byte in read {
        if *byte == b'.' {
            version = version.saturating_add(part.saturating_mul(scale));
            (part, scale) = (0, scale / 100);
        } else {
            part = part.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
        }
    }
    (version.saturating_add(part.saturating_mul(scale)), len == text.len())
}

#[cfg(test)]
mod tests {
    use super::browser_version;

    #[test]
    fn versions_are_compared_part_by_part() {
        let of = |text: &str| browser_version(text.as_bytes());
        assert_eq!(of("5.5"), (5_050_000, true));
        assert_eq!(of("5.49; x"), (5_490_000, false));
        assert_eq!(of("1.2.3.4.5"), (1_020_304, true));
        assert_eq!((of(""), of("x"), of(".5")), ((0, true), (0, false), (50_000, true)));
        assert_eq!(of("99999999999999999999999999"), (u64::MAX, true));
    }
}
