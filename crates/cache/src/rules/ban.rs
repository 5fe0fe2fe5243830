//! Parses the fields of a `BAN` request, as plugins send it to Varnish.
//!
//! Owns which fields select by what. A list of tags is recognised, so that it goes through the
//! index and not through an expression.

use bolide_http::FieldMap;
use bolide_http::lscache::{CacheScope, PurgeEffect};

use crate::bans::{BanKind, BanTerm, ban_error, ban_text};
use crate::rules::asked::{PurgeRequest, select_nothing, unclear};
use crate::rules::line_protocol::{LISTS, ORDERS_MAX, PurgeOrder, PurgeTarget};

/// The field with conditions in Varnish's words.
const EXPRESSION: &[u8] = b"X-Ban";
/// Fields with a regular expression, and what it is for.
const PATTERNS: [(&[u8], &str); 6] = [
    (b"X-Ban-Url", "req.url"),
    (b"X-Url", "req.url"),
    (b"X-Ban-Host", "req.http.host"),
    (b"X-Host", "req.http.host"),
    (b"X-Ban-Content-Type", "obj.http.content-type"),
    (b"X-Content-Type", "obj.http.content-type"),
];

fn is_tags(name: &[u8]) -> bool {
    let is_list = LISTS.iter().any(|(list, _)| name.eq_ignore_ascii_case(list));
    is_list || name.eq_ignore_ascii_case(b"X-Ban-Tags")
}

/// Returns the targets of a `BAN` request; without any of these fields, its own URL.
#[must_use]
pub fn asked_bans(request: &FieldMap) -> PurgeRequest {
    let is_known = |name: &[u8]| {
        let is_pattern = PATTERNS.iter().any(|(known, _)| name.eq_ignore_ascii_case(known));
        is_pattern || is_tags(name) || name.eq_ignore_ascii_case(EXPRESSION)
    };
    let mut others = request.iter().filter(|field| !is_known(field.text));
    if let Some(unknown) = others.find(|field| !select_nothing(field.text, field.value)) {
        return unclear(&[b"the field \"", unknown.text, b"\" is not understood"]);
    }
    let found = if let Some(text) = request.get_text(EXPRESSION) {
        PurgeRequest::Matching(BanKind::Expression, text.to_vec())
    } else if let Some(field) = request.iter().find(|field| is_tags(field.text)) {
        of_tags(field.value)
    } else {
        let terms: Vec<_> = PATTERNS
            .iter()
            .filter_map(|(name, object)| Some(BanTerm(object, "~", request.get_text(name)?)))
            .collect();
        match terms.is_empty() {
            true => PurgeRequest::Url,
            false => PurgeRequest::Matching(BanKind::Expression, ban_text(&terms)),
        }
    };
    match &found {
        PurgeRequest::Matching(kind, text) => match ban_error(*kind, text) {
            Some(why) => unclear(&[b"not a ban: ", why.as_bytes()]),
            None => found,
        },
        _ => found,
    }
}

/// Objects with one of the tags of an expression.
fn of_tags(value: &[u8]) -> PurgeRequest {
    let Some(tags) = list_of_tags(value).filter(|tags| tags.len() <= ORDERS_MAX) else {
        return PurgeRequest::Matching(BanKind::Tag, value.to_vec());
    };
    let order = |tag: Vec<u8>| PurgeOrder {
        scope: CacheScope::Public,
        effect: PurgeEffect::Dead,
        target: PurgeTarget::Tag(tag.into()),
    };
    PurgeRequest::Tags(tags.into_iter().map(order).collect())
}

/// The tags of `(^|,)(TAG|TAG)(,|$)`, where a tag has no special character, or one behind `\\`.
fn list_of_tags(pattern: &[u8]) -> Option<Vec<Vec<u8>>> {
    let inner = pattern.strip_prefix(b"(^|,)(")?.strip_suffix(b")(,|$)")?;
    let (mut tags, mut tag) = (Vec::new(), Vec::new());
    let mut bytes = inner.iter();
    loop {
        match bytes.next() {
            Some(b'\\') => match bytes.next() {
                Some(byte) if !byte.is_ascii_alphanumeric() => tag.push(*byte),
                _ => return None,
            },
            Some(b'|') | None if tag.is_empty() => return None,
            Some(b'|') => tags.push(std::mem::take(&mut tag)),
            Some(byte) if b".[](){}*+?^$,".contains(byte) => return None,
            Some(byte) => tag.push(*byte),
            None => {
                tags.push(tag);
                return Some(tags);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;
    use proptest::prelude::*;

    use super::{asked_bans, list_of_tags};
    use crate::bans::BanKind;
    use crate::rules::asked::PurgeRequest;
    use crate::rules::line_protocol::PurgeTarget;

    fn asked(rows: &[(&str, &str)]) -> PurgeRequest {
        let mut fields = FieldMap::new();
        fields.push_text(b"Host", b"a.test");
        rows.iter().for_each(|row| fields.push_text(row.0.as_bytes(), row.1.as_bytes()));
        asked_bans(&fields)
    }

    fn expression(rows: &[(&str, &str)]) -> String {
        match asked(rows) {
            PurgeRequest::Matching(BanKind::Expression, text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields_of_plugins_select() {
        assert_eq!(asked(&[("User-Agent", "x")]), PurgeRequest::Url);
        assert_eq!(expression(&[("X-Ban", "req.url ~ ^/a")]), "req.url ~ ^/a");
        assert_eq!(expression(&[("x-ban-url", "^/a\"")]), "req.url ~ \"^/a\\\"\"");
        let all = [("X-Host", "^a"), ("X-Url", ".*"), ("X-Content-Type", "text/")];
        let text = "req.url ~ \".*\" && req.http.host ~ \"^a\" && \
                    obj.http.content-type ~ \"text/\"";
        assert_eq!(expression(&all), text);
        let tags = asked(&[("X-Cache-Tags", r"(^|,)(a|node\-1)(,|$)"), ("X-Url", ".*")]);
        let PurgeRequest::Tags(orders) = tags else { panic!("{tags:?}") };
        let targets: Vec<_> = orders.into_iter().map(|order| order.target).collect();
        let tag = |name: &[u8]| PurgeTarget::Tag(name.into());
        assert_eq!(targets, [tag(b"a"), tag(b"node-1")]);
        let other = asked(&[("Cache-Tags", "node:1|user")]);
        assert_eq!(other, PurgeRequest::Matching(BanKind::Tag, b"node:1|user".to_vec()));
    }

    #[test]
    fn what_is_not_understood_bans_nothing() {
        for (name, value, why) in [
            ("X-Ban-Method", "GET", "the field \"X-Ban-Method\" is not understood"),
            ("X-Purge-Regex", "/a", "the field \"X-Purge-Regex\""),
            ("X-Ban", "obj.age > 1h", "not a ban: "),
            ("X-Ban-Url", "(", "not a ban: \"(\""),
            ("Cache-Tags", "(", "not a ban: "),
        ] {
            let PurgeRequest::Unclear(error) = asked(&[(name, value)]) else { panic!("{name}") };
            let error = String::from_utf8(error).unwrap();
            assert!(error.starts_with("Nothing is purged: ") && error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_list_means_its_tags(tags in proptest::collection::vec("[a-z0-9:._-]{1,8}", 1..5)) {
            let quoted: Vec<_> =
                tags.iter().map(|tag| tag.replace('.', "\\.").replace('-', "\\-")).collect();
            let pattern = format!("(^|,)({})(,|$)", quoted.join("|"));
            let found = list_of_tags(pattern.as_bytes()).unwrap();
            let found: Vec<_> =
                found.into_iter().map(|tag| String::from_utf8(tag).unwrap()).collect();
            prop_assert_eq!(found, tags);
        }
    }
}
