//! What a ban is about: one field of Magento's, the tags of an object, or an expression in
//! Varnish's words.

use bolide_regex::{MatchWork, Pcre, PcreOptions};

use crate::bans::expression::BanExpression;

/// LIMIT: bytes of the text of a ban.
const PATTERN_MAX: usize = 8 * 1024;

/// How the text of a ban is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanKind {
    /// A regular expression for `X-Magento-Tags`.
    MagentoTags,
    /// A regular expression for `X-Pool`.
    MagentoPool,
    /// A regular expression for each public tag of an object.
    Tag,
    /// Conditions in Varnish's words: `req.url ~ ^/shop && obj.status != 404`.
    Expression,
}

/// What a ban looks at: an object in memory, or its file.
pub(crate) trait BanSubject {
    /// The URL part of its key.
    fn url(&self) -> &[u8];
    fn status(&self) -> u16;
    /// Whether a field of this name has a value that passes.
    fn has_field(&self, name: &[u8], passes: &dyn Fn(&[u8]) -> bool) -> bool;
    /// Whether a public tag passes, as far as tags are at hand: those of objects in memory are
    /// struck by name.
    fn has_tag(&self, passes: &dyn Fn(&[u8]) -> bool) -> bool;
}

#[derive(Debug)]
enum BanTest {
    Field(&'static [u8], Pcre),
    Tag(Pcre),
    Expression(BanExpression),
}

/// The text of a ban, read.
#[derive(Debug)]
pub(crate) struct BanPattern {
    kind: BanKind,
    text: Box<[u8]>,
    test: BanTest,
}

/// A regular expression whose matches end. The error is the library's.
pub(super) fn regex(text: &[u8]) -> Result<Pcre, String> {
    Pcre::new(text, PcreOptions::trusted()).map_err(|error| error.to_string())
}

/// Whether a value matches. What takes too many steps does.
pub(super) fn matches(regex: &Pcre, value: &[u8]) -> bool {
    regex.is_match(value, &mut MatchWork::default()).unwrap_or(true)
}

impl BanPattern {
    /// Reads a text; none if it is not of its kind, or too long.
    pub(crate) fn new(kind: BanKind, text: &[u8]) -> Option<Self> {
        Self::read(kind, text).ok()
    }

    fn read(kind: BanKind, text: &[u8]) -> Result<Self, String> {
        if text.len() > PATTERN_MAX {
            return Err(format!("longer than {PATTERN_MAX} bytes"));
        }
        let test = match kind {
            BanKind::MagentoTags => BanTest::Field(b"X-Magento-Tags", regex(text)?),
            BanKind::MagentoPool => BanTest::Field(b"X-Pool", regex(text)?),
            BanKind::Tag => BanTest::Tag(regex(text)?),
            BanKind::Expression => BanTest::Expression(BanExpression::parse(text)?),
        };
        debug_assert!(text.len() <= PATTERN_MAX, "texts of bans are bounded");
        Ok(Self { kind, text: text.into(), test })
    }

    pub(crate) const fn kind(&self) -> BanKind {
        self.kind
    }

    pub(crate) const fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether it is the one with this text.
    pub(crate) fn is(&self, kind: BanKind, text: &[u8]) -> bool {
        self.kind == kind && *self.text == *text
    }

    /// Whether it is about this object. What takes too many steps to tell is.
    pub(crate) fn hits(&self, subject: &impl BanSubject) -> bool {
        match &self.test {
            BanTest::Field(name, regex) => subject.has_field(name, &|value| matches(regex, value)),
            BanTest::Tag(regex) => subject.has_tag(&|tag| matches(regex, tag)),
            BanTest::Expression(expression) => expression.hits(subject),
        }
    }

    /// Whether a ban of tags is about this one.
    pub(crate) fn hits_tag(&self, tag: &[u8]) -> bool {
        matches!(&self.test, BanTest::Tag(regex) if matches(regex, tag))
    }
}

/// Why `text` bans nothing; none if it may ban.
#[must_use]
pub fn ban_error(kind: BanKind, text: &[u8]) -> Option<String> {
    BanPattern::read(kind, text).err()
}

#[cfg(test)]
mod tests {
    use super::{BanKind, BanPattern, BanSubject, ban_error};

    /// One field, or one tag.
    struct Subject(&'static [u8], &'static [u8]);

    impl BanSubject for Subject {
        fn url(&self) -> &[u8] {
            b""
        }

        fn status(&self) -> u16 {
            200
        }

        fn has_field(&self, name: &[u8], passes: &dyn Fn(&[u8]) -> bool) -> bool {
            self.0.eq_ignore_ascii_case(name) && passes(self.1)
        }

        fn has_tag(&self, passes: &dyn Fn(&[u8]) -> bool) -> bool {
            self.0 == b"tag" && passes(self.1)
        }
    }

    #[test]
    fn an_expression_is_matched_against_its_field() {
        let ban = BanPattern::new(BanKind::MagentoTags, b"(^|,)cat_p_[0-9]+(,|$)").unwrap();
        assert!(ban.hits(&Subject(b"x-magento-tags", b"a,cat_p_12")));
        assert!(!ban.hits(&Subject(b"X-Magento-Tags", b"a,cat_p_x")));
        assert!(!ban.hits(&Subject(b"X-Pool", b"cat_p_12")));
        for text in ["(", "a{2,1}", "[b-a]"] {
            assert!(ban_error(BanKind::MagentoPool, text.as_bytes()).is_some(), "{text}");
        }
        assert!(ban_error(BanKind::MagentoPool, &[b'a'; 9000]).is_some());
        // What cannot be decided is hit.
        let slow = BanPattern::new(BanKind::MagentoTags, b"^(a+)+$").unwrap();
        let value: &'static [u8] = Box::leak([vec![b'a'; 64], vec![b'b']].concat().into());
        assert!(slow.hits(&Subject(b"X-Magento-Tags", value)));
    }

    #[test]
    fn a_tag_is_matched_by_itself() {
        let ban = BanPattern::new(BanKind::Tag, b"(^|,)node-[0-9]+(,|$)").unwrap();
        for (tag, is_hit) in [(&b"node-12"[..], true), (b"a-node-1", false), (b"node-x", false)] {
            assert_eq!(ban.hits_tag(tag), is_hit);
            assert_eq!(ban.hits(&Subject(b"tag", Box::leak(tag.into()))), is_hit);
        }
    }
}
