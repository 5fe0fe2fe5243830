//! What purges say of objects that only a disk has: by name, with the number of the purge.
//!
//! The store's own table forgets tags that no object in memory carries; this one does not, until
//! every file that is older than a purge was looked at.

use std::collections::HashMap;

use crate::disk::format::{Record, iter_tags};
use crate::key::Hash;
use crate::object::Kind;
use crate::tags::{Purge, Verdict};

/// LIMIT: purges by the beginning of a name; one more is a purge of everything.
const BEGINNINGS_MAX: usize = 256;
/// LIMIT: names; one more is a purge of everything.
const NAMES_MAX: usize = 1 << 20;

/// What a purge is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// Objects with this tag.
    Tag(&'a [u8]),
    /// Objects with a tag that begins so.
    TagsFrom(&'a [u8]),
    /// All copies of a URL.
    Url(&'a [u8]),
    /// All URLs that begin so.
    UrlsFrom(&'a [u8]),
    /// All objects of everybody, or of the session.
    All,
    /// The private objects of all sessions.
    Private,
    /// Every object that is there: what was purged is not known any more.
    Everything,
}

impl<'a> Target<'a> {
    pub(crate) const fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Tag(text) => (0, text),
            Self::TagsFrom(text) => (1, text),
            Self::Url(text) => (2, text),
            Self::UrlsFrom(text) => (3, text),
            Self::All => (4, b""),
            Self::Private => (5, b""),
            Self::Everything => (6, b""),
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
            _ => return None,
        })
    }
}

/// One purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    /// The name of the namespace.
    pub namespace: &'a [u8],
    /// Whose objects; empty for those of everybody.
    pub session: &'a [u8],
    /// Which.
    pub target: Target<'a>,
    /// What becomes of them.
    pub how: Purge,
    /// Its number. Objects with a smaller one are hit.
    pub sequence: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    dead: u64,
    stale: u64,
}

impl Mark {
    const fn strike(&mut self, how: Purge, sequence: u64) {
        let number = match how {
            Purge::Dead => &mut self.dead,
            Purge::Stale => &mut self.stale,
        };
        if *number < sequence {
            *number = sequence;
        }
    }

    const fn verdict(self, sequence: u64) -> Verdict {
        if self.dead > sequence {
            Verdict::Dead
        } else if self.stale > sequence {
            Verdict::Stale
        } else {
            Verdict::Good
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

/// The purges that files are held against.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    names: HashMap<[u64; 2], Mark>,
    beginnings: Vec<Beginning>,
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

const fn worse(a: Verdict, b: Verdict) -> Verdict {
    match (a, b) {
        (Verdict::Dead, _) | (_, Verdict::Dead) => Verdict::Dead,
        (Verdict::Stale, _) | (_, Verdict::Stale) => Verdict::Stale,
        (Verdict::Good, Verdict::Good) => Verdict::Good,
    }
}

impl Purges {
    /// How many there are to be remembered.
    pub(crate) fn len(&self) -> usize {
        self.names.len() + self.beginnings.len()
    }

    /// Objects with a smaller number are dead, whatever they are.
    pub(crate) const fn floor(&self) -> u64 {
        self.floor
    }

    /// Remembers a purge.
    pub(crate) fn add(&mut self, order: &Order<'_>) {
        let Order { namespace, session, target, how, sequence } = *order;
        let (kind, text) = target.parts();
        match target {
            Target::Everything => self.raise(sequence),
            Target::TagsFrom(_) | Target::UrlsFrom(_) => {
                let is_url = matches!(target, Target::UrlsFrom(_));
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
            Target::Tag(_) | Target::Url(_) | Target::All | Target::Private => {
                if self.names.len() >= NAMES_MAX {
                    self.raise(sequence);
                }
                let mark = self.names.entry(name((namespace, session), kind, text)).or_default();
                mark.strike(how, sequence);
            }
        }
    }

    /// Kills whatever has a smaller number; older purges then have nothing left to say.
    pub(crate) fn raise(&mut self, sequence: u64) {
        self.floor = self.floor.max(sequence);
        let floor = self.floor;
        self.names.retain(|_, mark| mark.dead.max(mark.stale) > floor);
        self.beginnings.retain(|known| known.mark.dead.max(known.mark.stale) > floor);
    }

    /// Forgets what every file that is left was held against.
    pub(crate) fn forget_until(&mut self, sequence: u64) {
        self.names.retain(|_, mark| mark.dead.max(mark.stale) > sequence);
        self.beginnings.retain(|known| known.mark.dead.max(known.mark.stale) > sequence);
    }

    /// What they say of a file.
    pub(crate) fn verdict(&self, record: &Record<'_>) -> Verdict {
        if record.sequence < self.floor {
            return Verdict::Dead;
        }
        let own = (record.namespace, record.session);
        let public = (record.namespace, &b""[..]);
        let of = |owner: (&[u8], &[u8]), target: Target<'_>| {
            let (kind, text) = target.parts();
            let mark = self.names.get(&name(owner, kind, text));
            mark.map_or(Verdict::Good, |mark| mark.verdict(record.sequence))
        };
        let mut verdict = of(own, Target::Url(record.url));
        if record.kind == Kind::Content {
            verdict = worse(verdict, of(own, Target::All));
            if !record.session.is_empty() {
                verdict = worse(verdict, of(public, Target::Private));
            }
            for (tag, is_public) in iter_tags(record.tags) {
                let owner = if is_public { public } else { own };
                verdict = worse(verdict, of(owner, Target::Tag(tag)));
            }
        }
        let hits = |known: &&Beginning| {
            let is_ours =
                |owner: (&[u8], &[u8])| *known.namespace == *owner.0 && *known.session == *owner.1;
            if known.is_url {
                return is_ours(own) && record.url.starts_with(&known.text);
            }
            record.kind == Kind::Content
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

#[cfg(test)]
mod tests {
    use super::{BEGINNINGS_MAX, Order, Purges, Target};
    use crate::disk::format::{Record, pack_tags};
    use crate::object::{Kind, Times};
    use crate::tags::{Purge, Tags, Verdict};

    fn record<'a>(session: &'a [u8], tags: &'a [u8]) -> Record<'a> {
        Record {
            seal: 0,
            sequence: 10,
            kind: Kind::Content,
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

    fn after(namespace: &[u8], session: &[u8], target: Target<'_>, sequence: u64) -> Purges {
        let mut purges = Purges::default();
        purges.add(&Order { namespace, session, target, how: Purge::Dead, sequence });
        purges
    }

    #[test]
    fn a_purge_hits_what_is_older_and_nothing_else() {
        let mut tags = Tags::default();
        tags.push(b"post-1");
        tags.push_public(b"menu");
        let tags = pack_tags(&tags);
        let (public, private) = (record(b"", &tags), record(b"me", &tags));
        type Case<'a> = (&'a [u8], &'a [u8], Target<'a>, bool, bool);
        let cases: &[Case<'_>] = &[
            (b"a", b"", Target::Tag(b"post-1"), true, false),
            (b"a", b"", Target::Tag(b"menu"), true, true),
            (b"a", b"me", Target::Tag(b"post-1"), false, true),
            (b"a", b"you", Target::Tag(b"post-1"), false, false),
            (b"b", b"", Target::Tag(b"post-1"), false, false),
            (b"a", b"", Target::Tag(b"post"), false, false),
            (b"a", b"", Target::TagsFrom(b"post"), true, false),
            (b"a", b"", Target::Url(b"/shop/1"), true, false),
            (b"a", b"me", Target::Url(b"/shop/1"), false, true),
            (b"a", b"", Target::Url(b"/shop"), false, false),
            (b"a", b"", Target::UrlsFrom(b"/shop"), true, false),
            (b"a", b"", Target::All, true, false),
            (b"a", b"me", Target::All, false, true),
            (b"a", b"", Target::Private, false, true),
            (b"", b"", Target::Everything, true, true),
        ];
        for (namespace, session, target, hits_public, hits_private) in cases {
            let purges = after(namespace, session, *target, 11);
            let dead = |record| purges.verdict(record) == Verdict::Dead;
            assert_eq!(
                (dead(&public), dead(&private)),
                (*hits_public, *hits_private),
                "{target:?}"
            );
            let purges = after(namespace, session, *target, 10);
            assert_eq!(purges.verdict(&public), Verdict::Good, "{target:?} is not newer");
        }
    }

    #[test]
    fn a_soft_purge_makes_stale_and_a_marker_knows_its_url_only() {
        let mut purges = Purges::default();
        let all = Order {
            namespace: b"a",
            session: b"",
            target: Target::All,
            how: Purge::Stale,
            sequence: 11,
        };
        purges.add(&all);
        assert_eq!(purges.verdict(&record(b"", b"")), Verdict::Stale);
        let marker = Record { kind: Kind::Vary, ..record(b"", b"") };
        assert_eq!(purges.verdict(&marker), Verdict::Good);
        purges.add(&Order { target: Target::Url(b"/shop/1"), how: Purge::Dead, ..all });
        assert_eq!(purges.verdict(&marker), Verdict::Dead);
        purges.forget_until(11);
        assert_eq!((purges.verdict(&marker), purges.len()), (Verdict::Good, 0));
    }

    #[test]
    fn too_many_beginnings_are_everything() {
        let mut purges = Purges::default();
        for sequence in 11..=BEGINNINGS_MAX as u64 + 11 {
            let text = sequence.to_string();
            let target = Target::TagsFrom(text.as_bytes());
            let (namespace, session) = (&b"z"[..], &b""[..]);
            purges.add(&Order { namespace, session, target, how: Purge::Dead, sequence });
        }
        assert_eq!(purges.verdict(&record(b"", b"")), Verdict::Dead);
        assert_eq!(purges.len(), 0);
    }
}
