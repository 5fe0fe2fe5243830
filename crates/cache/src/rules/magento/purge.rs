//! What a `PURGE` of Magento selects: `X-Magento-Tags-Pattern` and `X-Pool`.
//!
//! Owns the form in which Magento names tags, a list of `((^|,)TAG(,|$))`. What it does not know to
//! be such a list selects everything: a purge may drop too much, never too little.

use bolide_http::FieldMap;

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
    /// All objects.
    Everything,
}

/// A purge and its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MagentoOrder<'a> {
    /// What it selects.
    pub purge: MagentoPurge<'a>,
    /// `X-Magento-Purge-Soft: 1` makes stale.
    pub how: TagPurge,
}

/// The purge that the fields of a request ask for; none if they have neither of Magento's.
#[must_use]
pub fn magento_purge(fields: &FieldMap) -> Option<MagentoOrder<'_>> {
    let is_pool = fields.get_text(b"X-Pool").is_some();
    let mut patterns = fields.all_text(b"X-Magento-Tags-Pattern").peekable();
    if !is_pool && patterns.peek().is_none() {
        return None;
    }
    let mut tags = Vec::new();
    // Which pool an object came from is not known of what lies on disk.
    let is_list = !is_pool && patterns.all(|pattern| push_tags(pattern, &mut tags));
    let purge = if is_list { MagentoPurge::Tags(tags) } else { MagentoPurge::Everything };
    let is_soft = fields.get_text(b"X-Magento-Purge-Soft") == Some(b"1");
    let how = if is_soft { TagPurge::Stale } else { TagPurge::Dead };
    Some(MagentoOrder { purge, how })
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
    use crate::tags::TagPurge;

    fn fields(rows: &[(&str, &str)]) -> FieldMap {
        let mut fields = FieldMap::new();
        rows.iter().for_each(|row| fields.push_text(row.0.as_bytes(), row.1.as_bytes()));
        fields
    }

    fn tags(pattern: &str) -> Option<Vec<String>> {
        let fields = fields(&[("X-Magento-Tags-Pattern", pattern)]);
        match magento_purge(&fields)?.purge {
            MagentoPurge::Tags(tags) => {
                Some(tags.iter().map(|tag| String::from_utf8_lossy(tag).into_owned()).collect())
            }
            MagentoPurge::Everything => None,
        }
    }

    #[test]
    fn a_list_of_tags_is_one_and_everything_else_is_everything() {
        assert_eq!(tags("((^|,)cat_p_1(,|$))").unwrap(), ["cat_p_1"]);
        assert_eq!(tags("((^|,)cms_b_a-b(,|$))|((^|,)FPC(,|$))").unwrap(), ["cms_b_a-b", "FPC"]);
        for pattern in [
            ".*",
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
        assert_eq!((order.purge, order.how), (MagentoPurge::Everything, TagPurge::Stale));
        let both = fields(&[("X-Magento-Tags-Pattern", "((^|,)a(,|$))"), ("X-Pool", "web")]);
        assert_eq!(magento_purge(&both).unwrap().purge, MagentoPurge::Everything);
        let twice = [("X-Magento-Tags-Pattern", "((^|,)a(,|$))"); 2];
        let two = fields(&twice);
        let order = magento_purge(&two).unwrap();
        assert_eq!(
            (order.purge, order.how),
            (MagentoPurge::Tags(vec![b"a", b"a"]), TagPurge::Dead)
        );
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
            if let Some(tags) = tags(&pattern) {
                let again: Vec<_> = tags.iter().map(|tag| format!("((^|,){tag}(,|$))")).collect();
                prop_assert_eq!(again.join("|"), pattern);
            }
        }
    }
}
