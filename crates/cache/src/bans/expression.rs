//! The language of bans, Varnish's (`ban(…)`, varnish-cli(7)): conditions joined by `&&`.
//!
//! Refuses what an object does not know by itself: fields of requests other than `Host`, ages.

use bolide_regex::Pcre;

use crate::bans::pattern::{BanSubject, matches, regex};
use crate::rules::controls::is_for_cache_alone;

/// LIMIT: conditions of one ban.
const TERMS_MAX: usize = 16;

/// What a condition is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BanObject {
    /// `req.url`: path and query.
    Url,
    /// `req.http.host`
    Host,
    /// `obj.status`
    Status,
    /// `obj.http.NAME`
    Field(Box<[u8]>),
}

#[derive(Debug)]
enum BanValue {
    Text(Box<[u8]>),
    Pattern(Pcre),
}

impl BanValue {
    fn passes(&self, value: &[u8]) -> bool {
        match self {
            Self::Text(text) => **text == *value,
            Self::Pattern(regex) => matches(regex, value),
        }
    }
}

#[derive(Debug)]
struct BanCondition {
    object: BanObject,
    value: BanValue,
    /// `!=` or `!~`.
    is_negated: bool,
}

/// The conditions of a ban, all of which an object has to meet.
#[derive(Debug)]
pub(super) struct BanExpression(Vec<BanCondition>);

/// A condition to be written as text: what it is about, its operator, and its value.
#[derive(Clone, Copy, Debug)]
pub struct BanTerm<'a>(pub &'a str, pub &'a str, pub &'a [u8]);

/// The text of a ban with these conditions.
#[must_use]
pub fn ban_text(terms: &[BanTerm<'_>]) -> Vec<u8> {
    debug_assert!(!terms.is_empty(), "a ban has a condition");
    let mut out = Vec::new();
    for (at, BanTerm(object, operator, value)) in terms.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"" } else { b" && " });
        out.extend_from_slice(object.as_bytes());
        out.push(b' ');
        out.extend_from_slice(operator.as_bytes());
        out.extend_from_slice(b" \"");
        for byte in *value {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out
}

/// Host, and path with query, in the URL part of a key as the page cache builds it; none of another
/// one.
#[must_use]
pub fn url_parts(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let scheme = url.windows(3).position(|three| three == b"://")?;
    let rest = &url[scheme + 3..];
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'/'))?;
    let port = rest[..end].iter().rposition(|byte| *byte == b':')?;
    let path = match rest[end] {
        b'/' => &rest[end..],
        // Where host and server differ, the server's name stands between blanks.
        _ => &rest[rest.iter().rposition(|byte| *byte == b' ')? + 1..],
    };
    path.starts_with(b"/").then_some((&rest[..port], path))
}

impl BanExpression {
    /// Reads conditions. The error says which word is wrong.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut words = split(text)?.into_iter();
        let mut conditions = Vec::new();
        loop {
            if conditions.len() >= TERMS_MAX {
                return Err(format!("more than {TERMS_MAX} conditions"));
            }
            let object = words.next().ok_or("a condition is missing")?;
            let operator = words.next().ok_or("an operator is missing")?;
            let value = words.next().ok_or("a value is missing")?;
            conditions.push(condition(&object, &operator, &value)?);
            match words.next() {
                None => return Ok(Self(conditions)),
                Some(word) if word == b"&&" => {}
                Some(word) => return Err(format!("\"{}\" instead of \"&&\"", word.escape_ascii())),
            }
        }
    }

    /// Whether an object meets all conditions. One about an address that its key does not show
    /// counts as met.
    pub(super) fn hits(&self, subject: &impl BanSubject) -> bool {
        debug_assert!(!self.0.is_empty(), "a ban has a condition");
        self.0.iter().all(|condition| {
            let BanCondition { object, value, is_negated } = condition;
            let address = url_parts(subject.url());
            let found = match (object, address) {
                (BanObject::Url | BanObject::Host, None) => return true,
                (BanObject::Url, Some((_, path))) => value.passes(path),
                (BanObject::Host, Some((host, _))) => value.passes(host),
                (BanObject::Status, _) => value.passes(subject.status().to_string().as_bytes()),
                (BanObject::Field(name), _) => {
                    subject.has_field(name, &|field| value.passes(field))
                }
            };
            found != *is_negated
        })
    }
}

fn condition(object: &[u8], operator: &[u8], value: &[u8]) -> Result<BanCondition, String> {
    let (is_pattern, is_negated) = match operator {
        b"==" => (false, false),
        b"!=" => (false, true),
        b"~" => (true, false),
        b"!~" => (true, true),
        _ => {
            let shown = operator.escape_ascii();
            return Err(format!("\"{shown}\" is none of the operators ==, !=, ~ and !~"));
        }
    };
    let object = match object {
        b"req.url" => BanObject::Url,
        _ if object.eq_ignore_ascii_case(b"req.http.host") => BanObject::Host,
        b"obj.status" => BanObject::Status,
        _ => match object.strip_prefix(b"obj.http.") {
            Some(name) if is_for_cache_alone(name) => {
                let shown = name.escape_ascii();
                return Err(format!("\"{shown}\" is not stored: purge by tags instead"));
            }
            Some(name) if !name.is_empty() => BanObject::Field(name.into()),
            _ => return Err(format!("\"{}\" cannot be banned by", object.escape_ascii())),
        },
    };
    let value = match is_pattern {
        true => BanValue::Pattern(
            regex(value).map_err(|why| format!("\"{}\": {why}", value.escape_ascii()))?,
        ),
        false => BanValue::Text(value.into()),
    };
    Ok(BanCondition { object, value, is_negated })
}

/// The words of a text: separated by blanks, or in quotes with `\` before quotes and itself.
fn split(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_ascii_start();
    while let Some((first, behind)) = rest.split_first() {
        let mut word = Vec::new();
        if *first == b'"' {
            let mut bytes = behind.iter();
            loop {
                match bytes.next() {
                    None => return Err("a quote is not closed".to_owned()),
                    Some(b'"') => break,
                    Some(b'\\') => match bytes.next() {
                        Some(byte @ (b'"' | b'\\')) => word.push(*byte),
                        Some(byte) => word.extend_from_slice(&[b'\\', *byte]),
                        None => return Err("a quote is not closed".to_owned()),
                    },
                    Some(byte) => word.push(*byte),
                }
            }
            rest = bytes.as_slice();
        } else {
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            word.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BanExpression, BanTerm, ban_text, split, url_parts};
    use crate::bans::pattern::BanSubject;

    struct Page {
        url: &'static str,
        status: u16,
        fields: &'static [(&'static str, &'static str)],
    }

    impl BanSubject for Page {
        fn url(&self) -> &[u8] {
            self.url.as_bytes()
        }

        fn status(&self) -> u16 {
            self.status
        }

        fn has_field(&self, name: &[u8], passes: &dyn Fn(&[u8]) -> bool) -> bool {
            let is = |row: &&(&str, &str)| row.0.as_bytes().eq_ignore_ascii_case(name);
            self.fields.iter().filter(is).any(|row| passes(row.1.as_bytes()))
        }

        fn has_tag(&self, _: &dyn Fn(&[u8]) -> bool) -> bool {
            false
        }
    }

    #[test]
    fn an_object_meets_all_conditions() {
        let page = Page {
            url: "https://shop.test:443/a/b?c=1",
            status: 404,
            fields: &[("Content-Type", "text/html"), ("X-Shop", "one"), ("X-Shop", "two")],
        };
        for (text, is_hit) in [
            ("req.url == /a/b?c=1", true),
            ("req.url ~ ^/a/", true),
            ("req.url ~ ^/b", false),
            ("req.url !~ ^/b", true),
            ("req.http.host == shop.test", true),
            ("req.http.Host != shop.test", false),
            ("obj.status == 404", true),
            ("obj.status ~ ^[45]", true),
            ("obj.status != 404", false),
            ("obj.http.x-shop == two", true),
            ("obj.http.x-shop != two", false),
            ("obj.http.x-none ~ .", false),
            ("obj.http.x-none !~ .", true),
            (r#"obj.http.content-type ~ "^text/" && req.url ~ "b\?c=1$""#, true),
            ("obj.http.content-type ~ ^text/ && req.url ~ ^/c", false),
        ] {
            let ban =
                BanExpression::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(ban.hits(&page), is_hit, "{text}");
        }
        let keyed = Page { url: "a key of the configuration", ..page };
        let ban = |text: &str| BanExpression::parse(text.as_bytes()).unwrap().hits(&keyed);
        assert!(ban("req.url == /x") && ban("req.http.host != a"), "nobody knows its address");
        assert!(!ban("req.url == /x && obj.status == 200"));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for (text, why) in [
            ("", "a condition is missing"),
            ("req.url", "an operator is missing"),
            ("req.url ~", "a value is missing"),
            ("req.url = /a", "none of the operators"),
            ("req.url ~ (", "\"(\": "),
            ("req.url ~ \"a", "a quote is not closed"),
            ("req.url ~ a || obj.status == 200", "\"||\" instead of"),
            ("req.url ~ a &&", "a condition is missing"),
            ("req.http.user-agent ~ x", "cannot be banned by"),
            ("obj.age > 1h", "none of the operators"),
            ("obj.age == 1h", "cannot be banned by"),
            ("obj.http. == 1h", "cannot be banned by"),
            ("obj.http.xkey ~ a", "purge by tags"),
        ] {
            let error = BanExpression::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let many = ["req.url ~ a"; 17].join(" && ");
        assert!(BanExpression::parse(many.as_bytes()).unwrap_err().contains("16 conditions"));
    }

    #[test]
    fn the_parts_of_a_key_are_found() {
        for (url, parts) in [
            ("http://a.test:80/", Some(("a.test", "/"))),
            ("https://[::1]:443/x", Some(("[::1]", "/x"))),
            ("http://b.test:8080 a.test /p?q", Some(("b.test", "/p?q"))),
            ("http://b.test:80 ~^(a|b) /c$ /p", Some(("b.test", "/p"))),
            ("/p?q", None),
            ("http://a.test/p", None),
            ("", None),
        ] {
            let parts = parts.map(|(host, path): (&str, &str)| (host.as_bytes(), path.as_bytes()));
            assert_eq!(url_parts(url.as_bytes()), parts, "{url}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let terms = [BanTerm("req.url", "==", &value), BanTerm("obj.status", "~", b"2")];
            let text = ban_text(&terms);
            let words = split(&text).unwrap();
            prop_assert_eq!(words.len(), 7);
            prop_assert_eq!(&words[2], &value);
            prop_assert!(BanExpression::parse(&text).is_ok());
        }

        #[test]
        fn any_bytes_are_a_ban_or_an_error(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _read = BanExpression::parse(&text);
        }
    }
}
