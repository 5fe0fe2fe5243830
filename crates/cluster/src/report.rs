//! The encoding of a report of limits: the counts of one server, by zone and key.

use bolide_cache::disk::format::sum;

/// The common prefix of all versions, and the version.
const MAGIC: [u8; 8] = *b"bolideL2";
/// Magic and checksum.
const HEAD: usize = 16;
/// LIMIT: bytes of a key or a name; longer ones are not reported.
const TEXT_MAX: usize = 4096;

/// The kind of count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReportKind {
    /// Requests since the previous report.
    Counted,
    /// Requests in progress: the total, which replaces earlier reports.
    Held,
}

/// A zone of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportZone<'a> {
    /// The kind of count.
    pub kind: ReportKind,
    /// Its name.
    pub name: &'a [u8],
    /// The text of its key, as configured.
    pub key_text: &'a [u8],
    /// Keys with their counts.
    pub keys: Vec<(&'a [u8], u32)>,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReport<'a> {
    /// The name of the cluster.
    pub cluster: &'a [u8],
    /// The server that sends it.
    pub node: &'a [u8],
    /// Its process, a random number.
    pub life: u64,
    /// The number of the report in that process, increasing.
    pub number: u64,
    /// When it was made, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Zones.
    pub zones: Vec<ReportZone<'a>>,
}

impl<'a> LimitReport<'a> {
    /// The encoding.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.resize(HEAD, 0);
        for number in [self.life, self.number, self.unix_ms] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        push(&mut out, self.cluster);
        push(&mut out, self.node);
        for zone in &self.zones {
            out.push(match zone.kind {
                ReportKind::Counted => 1,
                ReportKind::Held => 2,
            });
            push(&mut out, zone.name);
            push(&mut out, zone.key_text);
            let reported = || zone.keys.iter().filter(|(key, _)| key.len() <= TEXT_MAX);
            out.extend_from_slice(&(reported().count() as u32).to_le_bytes());
            for (key, number) in reported() {
                push(&mut out, key);
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        let sum = sum(&out);
        out[8..HEAD].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Parses bytes. `None` if they are not a complete report of this version.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (written, rest) = rest.split_first_chunk()?;
        let mut copy = bytes.to_vec();
        copy[8..HEAD].fill(0);
        if u64::from_le_bytes(*written) != sum(&copy) {
            return None;
        }
        let mut rest = rest;
        let (life, number, unix_ms) =
            (take_long(&mut rest)?, take_long(&mut rest)?, take_long(&mut rest)?);
        let (cluster, node) = (take(&mut rest)?, take(&mut rest)?);
        let mut zones = Vec::new();
        while !rest.is_empty() {
            zones.push(take_zone(&mut rest)?);
        }
        Some(Self { cluster, node, life, number, unix_ms, zones })
    }
}

fn push(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(TEXT_MAX)];
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (text, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
    *rest = behind;
    Some(text)
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_le_bytes(*number))
}

fn take_long(rest: &mut &[u8]) -> Option<u64> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*number))
}

fn take_zone<'a>(rest: &mut &'a [u8]) -> Option<ReportZone<'a>> {
    let (kind, behind) = rest.split_first()?;
    *rest = behind;
    let kind = match kind {
        1 => ReportKind::Counted,
        2 => ReportKind::Held,
        _ => return None,
    };
    let (name, key_text) = (take(rest)?, take(rest)?);
    // The count in the report reserves no memory.
    let mut keys = Vec::new();
    for _ in 0..take_number(rest)? {
        keys.push((take(rest)?, take_number(rest)?));
    }
    Some(ReportZone { kind, name, key_text, keys })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LimitReport, ReportKind, ReportZone};

    type Keys = Vec<(Vec<u8>, u32)>;

    fn zones(made: &[(bool, Vec<u8>, Keys)]) -> Vec<ReportZone<'_>> {
        let kind = |held: bool| if held { ReportKind::Held } else { ReportKind::Counted };
        made.iter()
            .map(|(held, name, keys)| ReportZone {
                kind: kind(*held),
                name,
                key_text: b"$k",
                keys: keys.iter().map(|(key, number)| (&**key, *number)).collect(),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_and_what_was_changed_is_not(
            made in prop::collection::vec((any::<bool>(), any::<Vec<u8>>(), any::<Keys>()), 0..4),
            stamp: (u64, u64, u64), at: usize, bit in 0..8_u8,
        ) {
            let (life, number, unix_ms) = stamp;
            let (cluster, node, zones) = (b"shop", b"one", zones(&made));
            let report = LimitReport { cluster, node, life, number, unix_ms, zones };
            let mut bytes = report.write();
            prop_assert_eq!(LimitReport::read(&bytes), Some(report));
            let at = at % bytes.len();
            prop_assert_eq!(LimitReport::read(&bytes[..at]), None);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(LimitReport::read(&bytes), None);
        }

        #[test]
        fn arbitrary_bytes_are_no_report(bytes: Vec<u8>) {
            prop_assert_eq!(LimitReport::read(&bytes), None);
        }
    }

    #[test]
    fn a_key_that_is_too_long_is_not_reported() {
        let long = vec![b'k'; 5000];
        let keys = vec![(&*long, 1), (&b"a"[..], 2)];
        let zone = ReportZone { kind: ReportKind::Held, name: b"z", key_text: b"$k", keys };
        let (cluster, node, zones) = (b"c", b"n", vec![zone]);
        let report = LimitReport { cluster, node, life: 1, number: 2, unix_ms: 3, zones };
        assert_eq!(LimitReport::read(&report.write()).unwrap().zones[0].keys, [(&b"a"[..], 2)]);
    }
}
