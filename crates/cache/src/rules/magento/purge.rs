//! What a `PURGE` of Magento selects: `X-Magento-Tags-Pattern` and `X-Pool`.
//!
//! Owns the form in which Magento names tags, a list of `((^|,)TAG(,|$))`. Any other expression is
//! a ban, and `.*` is everything.

use bolide_http::FieldMap;

use crate::bans::BanKind;
use crate::rules::line_protocol::ORDERS_MAX;
use crate::tags::TagPurge;

/// Before and behind each tag of a pattern.
const BEFORE: &[u8] = b"((^|,)";
const BEHIND: &[u8] = b"(,|$))";

/// A purge of Magento.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MagentoPurge<'a> {
    /// The objects with one of these tags.
    Tags(Vec<&'a [u8]>),
    /// The objects whose field matches.
    Matching(BanKind, &'a [u8]),
    /// All objects.
    Everything,
}

/// A purge and its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MagentoOrder<'a> {
    /// What it selects, one after the other.
    pub purges: Vec<MagentoPurge<'a>>,
    /// `X-Magento-Purge-Soft: 1` makes stale.
    pub how: TagPurge,
}

/// The purge that the fields of a request ask for; none if they have neither of Magento's.
#[must_use]
pub fn magento_purge(fields: &FieldMap) -> Option<MagentoOrder<'_>> {
    let patterns = fields.all_text(b"X-Magento-Tags-Pattern").map(of_tags);
    let pools = fields.all_text(b"X-Pool").map(|pool| match pool {
        b".*" => MagentoPurge::Everything,
        _ => MagentoPurge::Matching(BanKind::MagentoPool, pool),
    });
    let purges: Vec<_> = patterns.chain(pools).collect();
    if purges.is_empty() {
        return None;
    }
    let is_soft = fields.get_text(b"X-Magento-Purge-Soft") == Some(b"1");
    let how = if is_soft { TagPurge::Stale } else { TagPurge::Dead };
    Some(MagentoOrder { purges, how })
}

/// What a pattern of tags selects.
fn of_tags(pattern: &[u8]) -> MagentoPurge<'_> {
    let mut tags = Vec::new();
    match pattern {
        b".*" => MagentoPurge::Everything,
        _ if push_tags(pattern, &mut tags) => MagentoPurge::Tags(tags),
        _ => MagentoPurge::Matching(BanKind::MagentoTags, pattern),
    }
}

/// Appends the tags of a pattern; false if it is not such a list.
fn push_tags<'a>(pattern: &'a [u8], tags: &mut Vec<&'a [u8]>) -> bool {
    let mut rest = pattern;
    loop {
        let Some(begun) = rest.strip_prefix(BEFORE) else { return false };
        let Some(end) = memchr::memmem::find(begun, BEHIND) else { return false };
        let tag = &begun[..end];
        if tag.is_empty() || !tag.iter().all(|byte| is_literal(*byte)) || tags.len() >= ORDERS_MAX {
            return false;
        }
        debug_assert!(!tag.contains(&b'*'), "a tag is no prefix");
        tags.push(tag);
        match &begun[end + BEHIND.len()..] {
            [] => return true,
            [b'|', next @ ..] => rest = next,
            _ => return false,
        }
    }
}

/// Whether a byte means itself in a regular expression, and is none between tags.
const fn is_literal(byte: u8) -> bool {
    !matches!(
        byte,
        b'\\'
            | b'.'
            | b'['
            | b']'
            | b'('
            | b')'
            | b'{'
            | b'}'
            | b'*'
            | b'+'
            | b'?'
            | b'^'
            | b'$'
            | b'|'
            | b','
            | b' '
            | b'\t'
    )
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;
    use proptest::prelude::*;

    use super::{MagentoPurge, magento_purge};
    use crate::bans::BanKind;
    use crate::tags::TagPurge;

    fn fields(rows: &[(&str, &str)]) -> FieldMap {
        let mut fields = FieldMap::new();
        rows.iter().for_each(|row| fields.push_text(row.0.as_bytes(), row.1.as_bytes()));
        fields
    }

    fn tags(pattern: &str) -> Option<Vec<String>> {
        let fields = fields(&[("X-Magento-Tags-Pattern", pattern)]);
        match &magento_purge(&fields)?.purges[..] {
            [MagentoPurge::Tags(tags)] => {
                Some(tags.iter().map(|tag| String::from_utf8_lossy(tag).into_owned()).collect())
            }
            [MagentoPurge::Everything] => (pattern == ".*").then(Vec::new),
            [MagentoPurge::Matching(BanKind::MagentoTags, text)] => {
                assert_eq!(*text, pattern.as_bytes());
                None
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_list_of_tags_is_one_and_everything_else_is_a_ban() {
        assert_eq!(tags("((^|,)cat_p_1(,|$))").unwrap(), ["cat_p_1"]);
        assert_eq!(tags("((^|,)cms_b_a-b(,|$))|((^|,)FPC(,|$))").unwrap(), ["cms_b_a-b", "FPC"]);
        for pattern in [
            "",
            "cat_p_1",
            "((^|,)cat_p.*(,|$))",
            "((^|,)(,|$))",
            "((^|,)a(,|$))|",
            "|((^|,)a(,|$))",
            "((^|,)a(,|$))((^|,)b(,|$))",
            "((^|,)a b(,|$))",
            "((^|,)a,b(,|$))",
            "((^|,)a(,|$)",
            "((^|,)a((^|,)b(,|$))",
        ] {
            assert_eq!(tags(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn a_purge_has_a_field_and_an_effect() {
        assert_eq!(magento_purge(&fields(&[("Host", "a"), ("X-Magento-Purge-Soft", "1")])), None);
        let soft = fields(&[("X-Pool", "web"), ("X-Magento-Purge-Soft", "1")]);
        let order = magento_purge(&soft).unwrap();
        let pool = MagentoPurge::Matching(BanKind::MagentoPool, b"web");
        assert_eq!((order.purges, order.how), (vec![pool.clone()], TagPurge::Stale));
        let list = ("X-Magento-Tags-Pattern", "((^|,)a(,|$))");
        let all = fields(&[list, ("X-Pool", "web"), ("X-Magento-Tags-Pattern", ".*")]);
        let order = magento_purge(&all).unwrap();
        let expected = vec![MagentoPurge::Tags(vec![b"a"]), MagentoPurge::Everything, pool];
        assert_eq!((order.purges, order.how), (expected, TagPurge::Dead));
    }

    proptest! {
        #[test]
        fn every_list_of_magento_is_read(
            names in proptest::collection::vec("[a-zA-Z0-9_:-]{1,20}", 1..50),
        ) {
            let patterns: Vec<_> = names.iter().map(|tag| format!("((^|,){tag}(,|$))")).collect();
            prop_assert_eq!(tags(&patterns.join("|")).unwrap(), names);
        }

        #[test]
        fn no_pattern_is_taken_for_tags_that_it_does_not_name(pattern in "[(^|,)$a.*\\\\]{0,40}") {
            if pattern != ".*" && let Some(tags) = tags(&pattern) {
                let again: Vec<_> = tags.iter().map(|tag| format!("((^|,){tag}(,|$))")).collect();
                prop_assert_eq!(again.join("|"), pattern);
            }
        }
    }
}
