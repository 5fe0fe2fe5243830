//! The purges of objects on disk, by name and purge number.
//!
//! The store's own table drops tags that no object in memory has. This table keeps them until every
//! file older than the purge was checked.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bans::{BanKind, BanPattern, BanSubject};
use crate::disk::format::{Record, iter_tags};
use crate::key::Hash;
use crate::object::ObjectKind;
use crate::tags::{TagPurge, TagVerdict};

/// LIMIT: purges by prefix, and by expression; one more becomes a purge of everything.
const BEGINNINGS_MAX: usize = 256;
/// LIMIT: purges by name; one more becomes a purge of everything.
const NAMES_MAX: usize = 1 << 20;

/// The target of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskPurgeTarget<'a> {
    /// Objects with this tag.
    Tag(&'a [u8]),
    /// Objects with a tag that has this prefix.
    TagsFrom(&'a [u8]),
    /// All variants of a URL.
    Url(&'a [u8]),
    /// All URLs with this prefix.
    UrlsFrom(&'a [u8]),
    /// All public objects, or all objects of the session.
    All,
    /// The private objects of all sessions.
    Private,
    /// Every object: the targets of earlier purges are unknown.
    Everything,
    /// Objects that a ban is about.
    Matching(BanKind, &'a [u8]),
}

impl<'a> DiskPurgeTarget<'a> {
    pub(crate) const fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Tag(text) => (0, text),
            Self::TagsFrom(text) => (1, text),
            Self::Url(text) => (2, text),
            Self::UrlsFrom(text) => (3, text),
            Self::All => (4, b""),
            Self::Private => (5, b""),
            Self::Everything => (6, b""),
            Self::Matching(BanKind::MagentoTags, text) => (7, text),
            Self::Matching(BanKind::MagentoPool, text) => (8, text),
            Self::Matching(BanKind::Tag, text) => (9, text),
            Self::Matching(BanKind::Expression, text) => (10, text),
        }
    }

    pub(crate) const fn of_parts(kind: u8, text: &'a [u8]) -> Option<Self> {
        Some(match kind {
            0 => Self::Tag(text),
            1 => Self::TagsFrom(text),
            2 => Self::Url(text),
            3 => Self::UrlsFrom(text),
            4 => Self::All,
            5 => Self::Private,
            6 => Self::Everything,
            7 => Self::Matching(BanKind::MagentoTags, text),
            8 => Self::Matching(BanKind::MagentoPool, text),
            9 => Self::Matching(BanKind::Tag, text),
            10 => Self::Matching(BanKind::Expression, text),
            _ => return None,
        })
    }
}

/// One purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPurge<'a> {
    /// The name of the namespace.
    pub namespace: &'a [u8],
    /// The session of the objects; empty for public ones.
    pub session: &'a [u8],
    /// The target.
    pub target: DiskPurgeTarget<'a>,
    /// The effect.
    pub how: TagPurge,
    /// The purge number. It hits objects with a smaller number.
    pub sequence: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    dead: u64,
    stale: u64,
}

impl Mark {
    const fn strike(&mut self, how: TagPurge, sequence: u64) {
        let number = match how {
            TagPurge::Dead => &mut self.dead,
            TagPurge::Stale => &mut self.stale,
        };
        if *number < sequence {
            *number = sequence;
        }
    }

    const fn verdict(self, sequence: u64) -> TagVerdict {
        if self.dead > sequence {
            TagVerdict::Dead
        } else if self.stale > sequence {
            TagVerdict::Stale
        } else {
            TagVerdict::Good
        }
    }
}

#[derive(Debug)]
struct Beginning {
    namespace: Box<[u8]>,
    session: Box<[u8]>,
    is_url: bool,
    text: Box<[u8]>,
    mark: Mark,
}

#[derive(Debug)]
struct DiskBan {
    namespace: Box<[u8]>,
    pattern: Arc<BanPattern>,
    mark: Mark,
}

/// The purges that files are checked against.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    names: HashMap<[u64; 2], Mark>,
    beginnings: Vec<Beginning>,
    bans: Vec<DiskBan>,
    /// Objects with a smaller number are dead.
    floor: u64,
}

fn name(order: (&[u8], &[u8]), kind: u8, text: &[u8]) -> [u64; 2] {
    let mut hash = Hash::new(u32::from(kind));
    hash.add(order.0);
    hash.add(order.1);
    hash.add(text);
    hash.finish()
}

const fn worse(a: TagVerdict, b: TagVerdict) -> TagVerdict {
    match (a, b) {
        (TagVerdict::Dead, _) | (_, TagVerdict::Dead) => TagVerdict::Dead,
        (TagVerdict::Stale, _) | (_, TagVerdict::Stale) => TagVerdict::Stale,
        (TagVerdict::Good, TagVerdict::Good) => TagVerdict::Good,
    }
}

impl Purges {
    /// The number of remembered purges.
    pub(crate) fn len(&self) -> usize {
        self.names.len() + self.beginnings.len() + self.bans.len()
    }

    /// The number below which all objects are dead.
    pub(crate) const fn floor(&self) -> u64 {
        self.floor
    }

    /// Remembers a purge.
    pub(crate) fn add(&mut self, order: &DiskPurge<'_>) {
        let DiskPurge { namespace, session, target, how, sequence } = *order;
        let (kind, text) = target.parts();
        match target {
            DiskPurgeTarget::Everything => self.raise(sequence),
            DiskPurgeTarget::Matching(kind, text) => self.ban(kind, text, order),
            DiskPurgeTarget::TagsFrom(_) | DiskPurgeTarget::UrlsFrom(_) => {
                let is_url = matches!(target, DiskPurgeTarget::UrlsFrom(_));
                let same = self.beginnings.iter_mut().find(|known| {
                    known.is_url == is_url
                        && *known.text == *text
                        && *known.namespace == *namespace
                        && *known.session == *session
                });
                if let Some(known) = same {
                    known.mark.strike(how, sequence);
                } else if self.beginnings.len() < BEGINNINGS_MAX {
                    let mut mark = Mark::default();
                    mark.strike(how, sequence);
                    self.beginnings.push(Beginning {
                        namespace: namespace.into(),
                        session: session.into(),
                        is_url,
                        text: text.into(),
                        mark,
                    });
                } else {
                    self.raise(sequence);
                }
            }
            DiskPurgeTarget::Tag(_)
            | DiskPurgeTarget::Url(_)
            | DiskPurgeTarget::All
            | DiskPurgeTarget::Private => {
                if self.names.len() >= NAMES_MAX {
                    self.raise(sequence);
                }
                let mark = self.names.entry(name((namespace, session), kind, text)).or_default();
                mark.strike(how, sequence);
            }
        }
    }

    fn ban(&mut self, kind: BanKind, text: &[u8], order: &DiskPurge<'_>) {
        let same = self
            .bans
            .iter_mut()
            .find(|known| *known.namespace == *order.namespace && known.pattern.is(kind, text));
        if let Some(known) = same {
            return known.mark.strike(order.how, order.sequence);
        }
        let pattern = BanPattern::new(kind, text).filter(|_| self.bans.len() < BEGINNINGS_MAX);
        let Some(pattern) = pattern.map(Arc::new) else { return self.raise(order.sequence) };
        debug_assert!(self.bans.len() < BEGINNINGS_MAX, "bans are bounded");
        let mut mark = Mark::default();
        mark.strike(order.how, order.sequence);
        self.bans.push(DiskBan { namespace: order.namespace.into(), pattern, mark });
    }

    /// Makes all objects with a smaller number dead, and drops the purges that this covers.
    pub(crate) fn raise(&mut self, sequence: u64) {
        self.floor = self.floor.max(sequence);
        let floor = self.floor;
        self.names.retain(|_, mark| mark.dead.max(mark.stale) > floor);
        self.beginnings.retain(|known| known.mark.dead.max(known.mark.stale) > floor);
        self.bans.retain(|known| known.mark.dead.max(known.mark.stale) > floor);
        debug_assert!(
            self.len() <= NAMES_MAX + 2 * BEGINNINGS_MAX,
            "remembered purges are bounded"
        );
    }

    /// Drops the purges that every remaining file was checked against.
    pub(crate) fn forget_until(&mut self, sequence: u64) {
        self.names.retain(|_, mark| mark.dead.max(mark.stale) > sequence);
        self.beginnings.retain(|known| known.mark.dead.max(known.mark.stale) > sequence);
        self.bans.retain(|known| known.mark.dead.max(known.mark.stale) > sequence);
    }

    /// The effect of the purges on a file.
    pub(crate) fn verdict(&self, record: &Record<'_>) -> TagVerdict {
        let hits = self.bans_about(record).filter(|known| known.pattern.hits(record));
        hits.fold(self.verdict_but_bans(record), |verdict, known| {
            worse(verdict, known.mark.verdict(record.sequence))
        })
    }

    /// The patterns of bans that came behind a file: what they match takes a while to tell.
    pub(crate) fn newer_bans(&self, record: &Record<'_>) -> Vec<Arc<BanPattern>> {
        self.bans_about(record).map(|known| known.pattern.clone()).collect()
    }

    fn bans_about(&self, record: &Record<'_>) -> impl Iterator<Item = &DiskBan> {
        self.bans.iter().filter(|known| {
            record.kind == ObjectKind::Content
                && *known.namespace == *record.namespace
                && known.mark.verdict(record.sequence) != TagVerdict::Good
        })
    }

    /// The effect of all other purges on a file.
    pub(crate) fn verdict_but_bans(&self, record: &Record<'_>) -> TagVerdict {
        if record.sequence < self.floor {
            return TagVerdict::Dead;
        }
        let own = (record.namespace, record.session);
        let public = (record.namespace, &b""[..]);
        let of = |owner: (&[u8], &[u8]), target: DiskPurgeTarget<'_>| {
            let (kind, text) = target.parts();
            let mark = self.names.get(&name(owner, kind, text));
            mark.map_or(TagVerdict::Good, |mark| mark.verdict(record.sequence))
        };
        let mut verdict = of(own, DiskPurgeTarget::Url(record.url));
        if record.kind == ObjectKind::Content {
            verdict = worse(verdict, of(own, DiskPurgeTarget::All));
            if !record.session.is_empty() {
                verdict = worse(verdict, of(public, DiskPurgeTarget::Private));
            }
            for (tag, is_public) in iter_tags(record.tags) {
                let owner = if is_public { public } else { own };
                verdict = worse(verdict, of(owner, DiskPurgeTarget::Tag(tag)));
            }
        }
        let hits = |known: &&Beginning| {
            let is_ours =
                |owner: (&[u8], &[u8])| *known.namespace == *owner.0 && *known.session == *owner.1;
            if known.is_url {
                return is_ours(own) && record.url.starts_with(&known.text);
            }
            record.kind == ObjectKind::Content
                && iter_tags(record.tags).any(|(tag, is_public)| {
                    is_ours(if is_public { public } else { own }) && tag.starts_with(&known.text)
                })
        };
        self.beginnings
            .iter()
            .filter(hits)
            .fold(verdict, |verdict, known| worse(verdict, known.mark.verdict(record.sequence)))
    }
}

impl BanSubject for Record<'_> {
    fn url(&self) -> &[u8] {
        self.url
    }

    fn status(&self) -> u16 {
        self.status
    }

    fn has_field(&self, name: &[u8], passes: &dyn Fn(&[u8]) -> bool) -> bool {
        self.fields().any(|(text, value)| text.eq_ignore_ascii_case(name) && passes(value))
    }

    fn has_tag(&self, passes: &dyn Fn(&[u8]) -> bool) -> bool {
        iter_tags(self.tags)
            .any(|(tag, is_public)| (is_public || self.session.is_empty()) && passes(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::{BEGINNINGS_MAX, DiskPurge, DiskPurgeTarget, Purges};
    use crate::disk::format::{Record, pack_tags};
    use crate::object::{ObjectKind, Times};
    use crate::tags::{TagPurge, TagVerdict, Tags};

    fn record<'a>(session: &'a [u8], tags: &'a [u8]) -> Record<'a> {
        Record {
            seal: 0,
            sequence: 10,
            kind: ObjectKind::Content,
            is_stale: false,
            status: 200,
            times: Times::default(),
            body_len: 0,
            namespace: b"a",
            url: b"/shop/1",
            vary: b"",
            session,
            etag: b"",
            tags,
            head: &[0; 8],
            sums: b"",
        }
    }

    fn after(
        namespace: &[u8],
        session: &[u8],
        target: DiskPurgeTarget<'_>,
        sequence: u64,
    ) -> Purges {
        let mut purges = Purges::default();
        purges.add(&DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence });
        purges
    }

    #[test]
    fn a_purge_hits_what_is_older_and_nothing_else() {
        let mut tags = Tags::default();
        tags.push(b"post-1");
        tags.push_public(b"menu");
        let tags = pack_tags(&tags);
        let (public, private) = (record(b"", &tags), record(b"me", &tags));
        type Case<'a> = (&'a [u8], &'a [u8], DiskPurgeTarget<'a>, bool, bool);
        let cases: &[Case<'_>] = &[
            (b"a", b"", DiskPurgeTarget::Tag(b"post-1"), true, false),
            (b"a", b"", DiskPurgeTarget::Tag(b"menu"), true, true),
            (b"a", b"me", DiskPurgeTarget::Tag(b"post-1"), false, true),
            (b"a", b"you", DiskPurgeTarget::Tag(b"post-1"), false, false),
            (b"b", b"", DiskPurgeTarget::Tag(b"post-1"), false, false),
            (b"a", b"", DiskPurgeTarget::Tag(b"post"), false, false),
            (b"a", b"", DiskPurgeTarget::TagsFrom(b"post"), true, false),
            (b"a", b"", DiskPurgeTarget::Url(b"/shop/1"), true, false),
            (b"a", b"me", DiskPurgeTarget::Url(b"/shop/1"), false, true),
            (b"a", b"", DiskPurgeTarget::Url(b"/shop"), false, false),
            (b"a", b"", DiskPurgeTarget::UrlsFrom(b"/shop"), true, false),
            (b"a", b"", DiskPurgeTarget::All, true, false),
            (b"a", b"me", DiskPurgeTarget::All, false, true),
            (b"a", b"", DiskPurgeTarget::Private, false, true),
            (b"", b"", DiskPurgeTarget::Everything, true, true),
        ];
        for (namespace, session, target, hits_public, hits_private) in cases {
            let purges = after(namespace, session, *target, 11);
            let dead = |record| purges.verdict(record) == TagVerdict::Dead;
            assert_eq!(
                (dead(&public), dead(&private)),
                (*hits_public, *hits_private),
                "{target:?}"
            );
            let purges = after(namespace, session, *target, 10);
            assert_eq!(purges.verdict(&public), TagVerdict::Good, "{target:?} is not newer");
        }
    }

    #[test]
    fn a_soft_purge_makes_stale_and_a_marker_knows_its_url_only() {
        let mut purges = Purges::default();
        let all = DiskPurge {
            namespace: b"a",
            session: b"",
            target: DiskPurgeTarget::All,
            how: TagPurge::Stale,
            sequence: 11,
        };
        purges.add(&all);
        assert_eq!(purges.verdict(&record(b"", b"")), TagVerdict::Stale);
        let marker = Record { kind: ObjectKind::Vary, ..record(b"", b"") };
        assert_eq!(purges.verdict(&marker), TagVerdict::Good);
        purges.add(&DiskPurge {
            target: DiskPurgeTarget::Url(b"/shop/1"),
            how: TagPurge::Dead,
            ..all
        });
        assert_eq!(purges.verdict(&marker), TagVerdict::Dead);
        purges.forget_until(11);
        assert_eq!((purges.verdict(&marker), purges.len()), (TagVerdict::Good, 0));
    }

    #[test]
    fn too_many_beginnings_are_everything() {
        let mut purges = Purges::default();
        for sequence in 11..=BEGINNINGS_MAX as u64 + 11 {
            let text = sequence.to_string();
            let target = DiskPurgeTarget::TagsFrom(text.as_bytes());
            let (namespace, session) = (&b"z"[..], &b""[..]);
            purges.add(&DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence });
        }
        assert_eq!(purges.verdict(&record(b"", b"")), TagVerdict::Dead);
        assert_eq!(purges.len(), 0);
    }
}
