//! Rewrites URLs and cookies in responses of HTTP upstreams: `proxy_redirect`,
//! `proxy_cookie_domain`, `proxy_cookie_path`, `proxy_cookie_flags`.

mod rules;

use std::borrow::Cow;

use bolide_conf::vars::Template;
use bolide_http::{FieldMap, Name, OriginHead};

use crate::filter::headers::push_absolute;
use crate::vars::VariableScope;
use bolide_patterns::CapturePattern;

pub(crate) use rules::Rewriter;
use rules::{CookieSelector, Rule};

impl Rewriter {
    /// Whether there is a rule about cookies.
    fn has_cookies(&self) -> bool {
        !self.domains.is_empty() || !self.paths.is_empty() || !self.flags.is_empty()
    }

    /// The head for the client.
    pub(crate) fn apply<'a>(
        &self,
        head: &'a OriginHead,
        scope: &VariableScope<'_>,
    ) -> Cow<'a, OriginHead> {
        let has = |name| head.fields.get(name).is_some();
        let is_redirected =
            !self.redirects.is_empty() && (has(Name::Location) || has_refresh(&head.fields));
        if !(is_redirected || self.has_cookies() && has(Name::SetCookie)) {
            return Cow::Borrowed(head);
        }
        let mut fields = FieldMap::new();
        for field in head.fields.iter() {
            let changed = match field.name {
                Name::Location => self.location(field.value, scope),
                Name::SetCookie if self.has_cookies() => self.cookie(field.value, scope),
                _ if field.text.eq_ignore_ascii_case(b"refresh") => {
                    self.refresh(field.value, scope)
                }
                _ => None,
            };
            let value = changed.as_deref().unwrap_or(field.value);
            fields.push_parsed(field.name, field.text, value);
        }
        Cow::Owned(OriginHead {
            status: head.status,
            reason: head.reason.clone(),
            fields,
            wire_size: head.wire_size,
        })
    }

    fn location(&self, value: &[u8], scope: &VariableScope<'_>) -> Option<Vec<u8>> {
        let made = self.redirects.iter().find_map(|rule| rule.redirect(value, scope))?;
        let mut out = Vec::new();
        // As in nginx, a rewritten URL that is a path becomes absolute.
        push_absolute(scope, &made, &mut out);
        Some(out)
    }

    fn refresh(&self, value: &[u8], scope: &VariableScope<'_>) -> Option<Vec<u8>> {
        let at = value.windows(4).position(|word| word.eq_ignore_ascii_case(b"url="))? + 4;
        let made = self.redirects.iter().find_map(|rule| rule.redirect(&value[at..], scope))?;
        Some([&value[..at], &made].concat())
    }

    fn cookie(&self, value: &[u8], scope: &VariableScope<'_>) -> Option<Vec<u8>> {
        let mut cookie = Cookie::cut(value);
        // As in nginx, an invalid cookie is unchanged.
        cookie.parts[0].value.as_ref()?;
        let mut is_changed = false;
        for (name, rules) in [(&b"domain"[..], &self.domains), (b"path", &self.paths)] {
            for part in cookie.parts.iter_mut().skip(1).filter(|part| part.is(name)) {
                let old = part.value.clone().unwrap_or_default();
                let is_domain = name == b"domain";
                let made = rules.iter().find_map(|rule| rule.cookie(&old, is_domain, scope));
                if let Some(made) = made {
                    part.value = Some(made);
                    is_changed = true;
                }
            }
        }
        for (selector, flags) in &self.flags {
            if selector.is(&cookie.parts[0].name, scope) {
                let mut text = Vec::new();
                for flag in flags {
                    text.clear();
                    scope.expand(flag, &mut text);
                    cookie.set(&text);
                }
                is_changed = true;
                break;
            }
        }
        is_changed.then(|| cookie.joined())
    }
}

fn has_refresh(fields: &FieldMap) -> bool {
    fields.get_text(b"refresh").is_some()
}

impl CookieSelector {
    fn is(&self, name: &[u8], scope: &VariableScope<'_>) -> bool {
        match self {
            Self::Text(text) => {
                let mut wanted = Vec::new();
                scope.expand(text, &mut wanted);
                wanted.eq_ignore_ascii_case(name)
            }
            Self::Pattern(pattern) => scope.request.captures.borrow_mut().capture(pattern, name),
        }
    }
}

fn expanded(template: &Template, scope: &VariableScope<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    scope.expand(template, &mut out);
    out
}

impl Rule {
    /// The rewritten URL, if the rule matches `value`.
    fn redirect(&self, value: &[u8], scope: &VariableScope<'_>) -> Option<Vec<u8>> {
        match self {
            Self::Default(url) if url.uri.is_some() => {
                Some([&*url.replaces, value.strip_prefix(&*url.written)?].concat())
            }
            Self::Default(url) => {
                let rest = value.strip_prefix(&*url.written)?;
                rest.starts_with(b"/").then(|| rest.to_vec())
            }
            Self::Text(from, to) => {
                let rest = value.strip_prefix(expanded(from, scope).as_slice())?;
                Some([expanded(to, scope).as_slice(), rest].concat())
            }
            Self::Pattern(pattern, to) => self.matched(pattern, to, value, scope),
        }
    }

    /// The rewritten domain or path, if the rule matches `value`.
    fn cookie(&self, value: &[u8], is_domain: bool, scope: &VariableScope<'_>) -> Option<Vec<u8>> {
        match self {
            Self::Text(from, to) if is_domain => {
                // RFC 6265 §5.2.3: a leading dot is ignored.
                let bare = value.strip_prefix(b".").unwrap_or(value);
                let from = expanded(from, scope);
                let from = from.strip_prefix(b".").unwrap_or(&from);
                let dot = &value[..value.len() - bare.len()];
                bare.eq_ignore_ascii_case(from).then(|| [dot, &expanded(to, scope)].concat())
            }
            _ => self.redirect(value, scope),
        }
    }

    fn matched(
        &self,
        pattern: &CapturePattern,
        to: &Template,
        value: &[u8],
        scope: &VariableScope<'_>,
    ) -> Option<Vec<u8>> {
        let is_match = scope.request.captures.borrow_mut().capture(pattern, value);
        is_match.then(|| expanded(to, scope))
    }
}

/// A parsed `Set-Cookie`.
struct Cookie {
    parts: Vec<Part>,
}

struct Part {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Part {
    fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Cookie {
    fn cut(text: &[u8]) -> Self {
        let cut = |part: &[u8]| {
            let part = part.trim_ascii();
            match memchr::memchr(b'=', part) {
                Some(at) => Part {
                    name: part[..at].trim_ascii_end().into(),
                    value: Some(part[at + 1..].trim_ascii_start().into()),
                },
                None => Part { name: part.into(), value: None },
            }
        };
        Self { parts: text.split(|byte| *byte == b';').map(cut).collect() }
    }

    /// Sets or removes a flag.
    fn set(&mut self, word: &[u8]) {
        let word = word.to_ascii_lowercase();
        let (name, value): (&[u8], Option<Option<&[u8]>>) = match &*word {
            b"secure" => (b"Secure", Some(None)),
            b"nosecure" => (b"Secure", None),
            b"httponly" => (b"HttpOnly", Some(None)),
            b"nohttponly" => (b"HttpOnly", None),
            b"samesite=strict" => (b"SameSite", Some(Some(b"Strict"))),
            b"samesite=lax" => (b"SameSite", Some(Some(b"Lax"))),
            b"samesite=none" => (b"SameSite", Some(Some(b"None"))),
            b"nosamesite" => (b"SameSite", None),
            _ => return,
        };
        let mut at = 0;
        let mut is_there = false;
        self.parts.retain_mut(|part| {
            at += 1;
            if at == 1 || !part.is(name) {
                return true;
            }
            is_there = true;
            if let Some(Some(value)) = value {
                part.value = Some(value.into());
            }
            value.is_some()
        });
        if let (Some(value), false) = (value, is_there) {
            self.parts.push(Part { name: name.into(), value: value.map(Into::into) });
        }
    }

    fn joined(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &self.parts {
            if !out.is_empty() {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(&part.name);
            if let Some(value) = &part.value {
                out.push(b'=');
                out.extend_from_slice(value);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Cookie;

    #[test]
    fn a_cookie_gets_and_loses_flags_and_keeps_the_rest() {
        let set = |text: &str, words: &[&str]| {
            let mut cookie = Cookie::cut(text.as_bytes());
            words.iter().for_each(|word| cookie.set(word.as_bytes()));
            String::from_utf8(cookie.joined()).unwrap()
        };
        assert_eq!(set("a=b; Path=/", &["secure", "httponly"]), "a=b; Path=/; Secure; HttpOnly");
        assert_eq!(set("a=b; secure; SameSite=Lax", &["nosecure"]), "a=b; SameSite=Lax");
        assert_eq!(set("a=b;samesite=lax", &["samesite=strict"]), "a=b; samesite=Strict");
        assert_eq!(set("secure=1", &["nosecure", "unknown"]), "secure=1");
    }
}
