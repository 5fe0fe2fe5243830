//! What the configuration sends to an application and no response can name in `Vary`: page keys
//! have its value.
//!
//! Owns which texts count. A text counts if it selects the script or the site by more than the
//! target, or if it has a variable of the configuration (`map`, `geo`, `set`). What only says who
//! the client is does not count, as in every cache.

use bolide_conf::model::{Handler, HeaderEdit, LocationConf, Protocol};
use bolide_conf::vars::{Template, Var};
use bolide_http::Name;

use crate::caching::Caching;

/// Names of fields and parameters whose values select a script or a site.
const SELECTING: [&[u8]; 8] = [
    b"host",
    b"script-filename",
    b"script-name",
    b"document-root",
    b"path-info",
    b"path-translated",
    b"request-uri",
    b"query-string",
];
/// Names whose values say who the client is, or belong to one connection or request.
const IDENTIFYING: [&[u8]; 13] = [
    b"x-real-ip",
    b"x-forwarded-for",
    b"x-client-ip",
    b"true-client-ip",
    b"cf-connecting-ip",
    b"forwarded",
    b"remote-addr",
    b"remote-port",
    b"cookie",
    b"connection",
    b"upgrade",
    b"x-request-id",
    b"x-correlation-id",
];

/// The texts of upstream requests that count for page keys, in order; none without a page cache.
pub(crate) fn selectors(conf: &LocationConf, caching: Option<&Caching>) -> Box<[Template]> {
    let mut all: Vec<Template> = Vec::new();
    let Handler::Pass(pass) = &conf.handler else { return all.into() };
    if !caching.is_some_and(Caching::is_page) {
        return all.into();
    }
    let settings = &conf.settings;
    let mut add = |name: &[u8], value: &Template| {
        if counts(name, value) && !all.contains(value) {
            all.push(value.clone());
        }
    };
    let proxy = &settings.origin.proxy;
    match pass.protocol {
        Protocol::Http | Protocol::Http2 => {
            proxy.fields.iter().for_each(|field| add(&field.name, &field.value));
            proxy.method.iter().chain(&proxy.body).for_each(|text| add(b"", text));
        }
        Protocol::FastCgi | Protocol::Lsapi | Protocol::Uwsgi | Protocol::Scgi => {
            settings.origin.params.iter().for_each(|param| add(&param.name, &param.value));
        }
        Protocol::Memcached => {}
    }
    for edit in settings.input_edits.iter().flat_map(|edits| &edits.edits) {
        if let HeaderEdit::Set { text, value, .. } = edit {
            add(text, value);
        }
    }
    all.into()
}

fn counts(name: &[u8], value: &Template) -> bool {
    let name = name.to_ascii_lowercase().iter().map(dashed).collect::<Vec<u8>>();
    let name = name.strip_prefix(b"http-").unwrap_or(&name);
    let is_in = |names: &[&[u8]]| names.contains(&name);
    !is_in(&IDENTIFYING)
        && (value.vars().any(is_of_configuration)
            || is_in(&SELECTING) && !value.vars().all(is_of_url))
}

const fn dashed(byte: &u8) -> u8 {
    if *byte == b'_' { b'-' } else { *byte }
}

/// Whether the configuration, or a database that it names, gives the value.
const fn is_of_configuration(var: &Var) -> bool {
    matches!(
        var,
        Var::Named(_) | Var::InvalidReferer | Var::ModernBrowser | Var::AncientBrowser | Var::Msie
    )
}

/// Whether the value is the same for all requests for one URL, which keys have.
fn is_of_url(var: &Var) -> bool {
    var.follows_target()
        || match var {
            Var::RequestField(field) => field.name == Name::Host,
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
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use bolide_conf::vars::{FieldName, Template, TemplatePart, Var};

    use super::counts;

    fn of(vars: &[Var]) -> Template {
        Template::new(vars.iter().cloned().map(TemplatePart::Var).collect())
    }

    #[test]
    fn what_selects_or_is_computed_counts_and_who_the_client_is_does_not() {
        let cookie = of(&[Var::Cookie("t".into())]);
        for name in ["Host", "HTTP_HOST", "SCRIPT_FILENAME", "Document_Root"] {
            assert!(counts(name.as_bytes(), &cookie), "{name}");
            let url = [Var::DocumentRoot, Var::Uri, Var::FastcgiScriptName, Var::Host];
            assert!(!counts(name.as_bytes(), &of(&url)), "{name}");
        }
        let host = Var::RequestField(FieldName::from_variable("host"));
        assert!(!counts(b"Host", &of(&[host, Var::ServerPort])));
        assert!(!counts(b"X-Lang", &cookie), "the application can name the cookie");
        let mapped = of(&[Var::Named(3)]);
        assert!(counts(b"X-Device", &mapped) && counts(b"ROLE", &mapped));
        for name in ["X-Real-IP", "REMOTE_ADDR", "HTTP_X_FORWARDED_FOR", "Connection"] {
            assert!(!counts(name.as_bytes(), &mapped), "{name}");
        }
        assert!(!counts(b"X-Real-IP", &of(&[Var::RemoteAddr])));
    }
}
