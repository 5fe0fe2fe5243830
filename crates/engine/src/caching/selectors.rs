//! What the configuration sends to an application and no response can name in `Vary`: page keys
//! have its value.
//!
//! Owns which texts count. A text counts if it selects the script or the site by more than the URL,
//! and of others each variable of the configuration (`map`, `geo`, `set`, a regular expression).
//! What only says who the client is does not count, as in every cache.

use bolide_cache::rules::states_address;
use bolide_conf::model::{Handler, HeaderEdit, LocationConf, Protocol, SetTarget};
use bolide_conf::vars::{Template, TemplatePart, Var};
use bolide_http::Name;

use crate::caching::Caching;
use crate::vars::VariableScope;

/// Names of fields and parameters whose values select a script, a site or a client's rights; those
/// that state an address do, too.
const SELECTING: [&[u8]; 14] = [
    b"host",
    b"authorization",
    b"script-filename",
    b"script-name",
    b"document-root",
    b"document-uri",
    b"path-info",
    b"path-translated",
    b"request-uri",
    b"query-string",
    b"server-name",
    b"server-port",
    b"request-scheme",
    b"https",
];
/// Names whose values say who the client is, or belong to one connection or request.
const IDENTIFYING: [&[u8]; 30] = [
    b"x-real-ip",
    b"x-forwarded-for",
    b"x-original-forwarded-for",
    b"x-client-ip",
    b"x-client-port",
    b"x-remote-addr",
    b"x-cluster-client-ip",
    b"x-envoy-external-address",
    b"x-azure-clientip",
    b"true-client-ip",
    b"fastly-client-ip",
    b"cf-connecting-ip",
    b"remote-addr",
    b"remote-port",
    b"connection",
    b"upgrade",
    b"x-request-id",
    b"request-id",
    b"x-correlation-id",
    b"correlation-id",
    b"x-unique-id",
    b"unique-id",
    b"x-request-start",
    b"x-queue-start",
    b"traceparent",
    b"tracestate",
    b"x-trace-id",
    b"x-amzn-trace-id",
    b"x-cloud-trace-context",
    b"uber-trace-id",
];
/// The same as a prefix.
const TRACING: &[u8] = b"x-b3-";

/// What a location sends to its application.
#[derive(Debug, Default)]
pub(crate) struct SentTexts {
    /// The texts, in the order in which they are written: an expression sets captures for later
    /// ones.
    texts: Box<[SentText]>,
    /// Fields whose value is neither the client's nor in keys, by their names in lower case.
    replaced: Box<[Box<[u8]>]>,
}

#[derive(Debug)]
struct SentText {
    text: Template,
    /// Whether keys have it.
    counts: bool,
}

impl SentTexts {
    /// What counts of this location; nothing without a page cache.
    pub(crate) fn new(conf: &LocationConf, caching: Option<&Caching>) -> Self {
        match &conf.handler {
            Handler::Pass(pass) if caching.is_some_and(Caching::is_page) => {
                let mut sent = Gathered::default();
                sent.gather(conf, pass.protocol);
                sent.finish()
            }
            _ => Self::default(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether the client's field of this name is not what the application gets.
    pub(crate) fn replaces(&self, name: &[u8]) -> bool {
        self.replaced.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Appends the values that count, each with its length.
    pub(crate) fn push(&self, scope: &VariableScope<'_>, out: &mut Vec<u8>) {
        for sent in &self.texts {
            let start = out.len();
            scope.expand(&sent.text, out);
            let len = (out.len() - start) as u64;
            match sent.counts {
                true => out.extend_from_slice(&len.to_be_bytes()),
                false => out.truncate(start),
            }
        }
    }
}

#[derive(Default)]
struct Gathered {
    /// Variables of `auth_request_set`: they say what the client has proved, and a response to a
    /// client that has proved something is shared only if it says so (RFC 9111 §3.5).
    proved: Vec<u16>,
    texts: Vec<SentText>,
    replaced: Vec<Box<[u8]>>,
}

impl Gathered {
    fn gather(&mut self, conf: &LocationConf, protocol: Protocol) {
        let settings = &conf.settings;
        if settings.auth_request.uri.is_some() {
            let named = settings.auth_request.set.iter().filter_map(|(target, _)| match target {
                SetTarget::Named(id) => Some(*id),
                _ => None,
            });
            self.proved = named.collect();
        }
        for edit in settings.input_edits.iter().flat_map(|edits| &edits.edits) {
            if let HeaderEdit::Set { text, value, .. } = edit {
                self.add(text, value, true);
            }
        }
        let proxy = &settings.origin.proxy;
        match protocol {
            Protocol::Http | Protocol::Http2 => {
                proxy.method.iter().for_each(|text| self.add(b"", text, false));
                proxy.fields.iter().for_each(|field| self.add(&field.name, &field.value, true));
                proxy.body.iter().for_each(|text| self.add(b"", text, false));
            }
            Protocol::FastCgi | Protocol::Lsapi | Protocol::Uwsgi | Protocol::Scgi => {
                for param in settings.origin.params.iter() {
                    let is_field = param.name.starts_with(b"HTTP_");
                    self.add(&param.name, &param.value, is_field);
                }
            }
            Protocol::Memcached => {}
        }
    }

    fn add(&mut self, name: &[u8], value: &Template, is_field: bool) {
        let lower: Vec<u8> = name.to_ascii_lowercase().iter().map(dashed).collect();
        let name = lower.strip_prefix(b"http-").unwrap_or(&lower);
        let part = self.part_that_counts(name, value);
        let is_whole = part.as_ref() == Some(value);
        let is_known = value.vars().all(is_of_url) || is_clients_own(name, value);
        if is_field && !is_whole && !is_known {
            self.replaced.push(name.into());
        }
        match part {
            Some(text) => self.texts.push(SentText { text, counts: true }),
            None if value.vars().next().is_some() => {
                self.texts.push(SentText { text: value.clone(), counts: false });
            }
            None => {}
        }
    }

    /// The part of a text that counts, if any does.
    fn part_that_counts(&self, name: &[u8], value: &Template) -> Option<Template> {
        if IDENTIFYING.contains(&name) || name.starts_with(TRACING) {
            return None;
        }
        let selects = SELECTING.contains(&name) || states_address(name);
        if selects && !value.vars().all(is_of_url) && !is_clients_own(name, value) {
            return Some(value.clone());
        }
        let counts = |var: &Var| match var {
            Var::Named(id) => !self.proved.contains(id),
            var => is_of_configuration(var),
        };
        // The whole of a Cookie is the client's, filtered; of a composed one, what is added counts.
        let is_filtered = name == b"cookie" && value.parts().len() == 1;
        if is_filtered || !value.vars().any(counts) {
            return None;
        }
        if value.vars().all(counts) {
            return Some(value.clone());
        }
        let own = value.vars().filter(|var| counts(var));
        Some(Template::new(own.cloned().map(TemplatePart::Var).collect()))
    }

    fn finish(mut self) -> SentTexts {
        let is_captured =
            |sent: &SentText| sent.text.vars().any(|var| matches!(var, Var::Capture(_)));
        if !self.texts.iter().any(is_captured) {
            self.texts.retain(|sent| sent.counts);
        }
        if !self.texts.iter().any(|sent| sent.counts) {
            self.texts.clear();
        }
        SentTexts { texts: self.texts.into(), replaced: self.replaced.into() }
    }
}

const fn dashed(byte: &u8) -> u8 {
    if *byte == b'_' { b'-' } else { *byte }
}

/// Whether the value is the client's field of the same name: keys have those that count, and `Vary`
/// may name them.
fn is_clients_own(name: &[u8], value: &Template) -> bool {
    match value.parts() {
        [TemplatePart::Var(Var::RequestField(field))] => {
            field.text.as_bytes().eq_ignore_ascii_case(name) && name != b"authorization"
        }
        _ => false,
    }
}

/// Whether the configuration gives the value, besides variables that it names. A number names a
/// part of what the last expression matched, whatever that was.
const fn is_of_configuration(var: &Var) -> bool {
    matches!(
        var,
        Var::Capture(_)
            | Var::InvalidReferer
            | Var::ModernBrowser
            | Var::AncientBrowser
            | Var::Msie
    )
}

/// Whether the value is the same for all requests for one URL, which keys have.
fn is_of_url(var: &Var) -> bool {
    match var {
        Var::RequestField(field) => {
            field.name == Name::Host || states_address(field.text.as_bytes())
        }
        Var::Scheme
        | Var::Https
        | Var::ServerPort
        | Var::RequestPort
        | Var::IsRequestPort
        | Var::RequestFilename
        | Var::RealpathRoot
        | Var::FastcgiScriptName
        | Var::FastcgiPathInfo
        | Var::ProxyHost
        | Var::ProxyPort => true,
        other => other.follows_target(),
    }
}

#[cfg(test)]
mod tests {
    use bolide_conf::vars::{FieldName, Template, TemplatePart, Var};

    use super::Gathered;

    fn of(vars: &[Var]) -> Template {
        Template::new(vars.iter().cloned().map(TemplatePart::Var).collect())
    }

    fn field(name: &str) -> Var {
        Var::RequestField(FieldName::from_variable(name))
    }

    fn counts(name: &str, value: &Template) -> bool {
        Gathered::default().part_that_counts(name.as_bytes(), value).is_some()
    }

    #[test]
    fn what_selects_or_is_computed_counts_and_who_the_client_is_does_not() {
        let cookie = of(&[Var::Cookie("t".into())]);
        let selecting = [
            "host",
            "script-filename",
            "document-root",
            "server-name",
            "x-forwarded-host",
            "x-original-url",
            "authorization",
        ];
        for name in selecting {
            assert!(counts(name, &cookie), "{name}");
            let url = [Var::DocumentRoot, Var::Uri, Var::FastcgiScriptName, Var::Host];
            assert!(!counts(name, &of(&url)), "{name}");
        }
        assert!(!counts("host", &of(&[field("host"), Var::ServerPort])));
        assert!(!counts("x-forwarded-proto", &of(&[field("x_forwarded_proto")])));
        assert!(counts("x-forwarded-host", &of(&[field("x_site")])));
        assert!(!counts("x-lang", &cookie), "the application can name the cookie");
        let mapped = of(&[Var::Named(3)]);
        assert!(counts("x-device", &mapped) && counts("role", &of(&[Var::Capture(1)])));
        for name in ["x-real-ip", "remote-addr", "x-forwarded-for", "connection", "x-b3-traceid"] {
            assert!(!counts(name, &mapped), "{name}");
        }
        assert!(!counts("cookie", &mapped), "a filter of the client's");
        let composed = of(&[field("cookie"), Var::Named(3)]);
        let part = Gathered::default().part_that_counts(b"cookie", &composed);
        assert_eq!(part, Some(mapped.clone()));
        let proved = Gathered { proved: vec![3], ..Gathered::default() };
        assert_eq!(proved.part_that_counts(b"remote-user", &mapped), None);
        assert!(proved.part_that_counts(b"host", &mapped).is_some());
    }

    #[test]
    fn a_field_that_the_client_does_not_give_is_not_compared_with_the_clients() {
        let rows = [
            ("X-T", of(&[Var::Cookie("lang".into())]), true),
            ("HTTP_X_T", of(&[Var::RemoteAddr]), true),
            ("Accept-Encoding", Template::text(b"gzip"), false),
            ("Origin", of(&[field("origin")]), false),
            ("X-Forwarded-Proto", of(&[Var::Scheme]), false),
            ("X-Device", of(&[Var::Named(1)]), false),
            ("X-Both", of(&[Var::Named(1), Var::RemoteAddr]), true),
            ("Authorization", of(&[Var::Cookie("t".into())]), false),
        ];
        for (name, value, is_replaced) in rows {
            let mut sent = Gathered::default();
            sent.add(name.as_bytes(), &value, true);
            let plain = name.trim_start_matches("HTTP_").replace('_', "-");
            assert_eq!(sent.finish().replaces(plain.as_bytes()), is_replaced, "{name}");
        }
    }
}
