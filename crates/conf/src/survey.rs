//! The support of each directive of a configuration, for users who come from nginx.
//!
//! It judges by the tables and by the reader's messages; it reads no value itself.

use std::path::Path;

use crate::ast::{self, Node};
use crate::diagnostic::Diagnostic;
use crate::directive::{DirectiveMatch, DirectiveSpec};
use crate::directives;
use crate::model::SourcePlace;
use crate::source::{ConfSource, LoadOptions};

/// The support of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectiveSupport {
    /// It has nginx's meaning.
    Supported,
    /// It is checked, but has no effect, for the given reason.
    Approximated(&'static str),
    /// The server does not start with it.
    Refused,
}

/// One directive, its place and its support.
#[derive(Clone, Debug)]
pub struct Finding {
    /// File and line.
    pub place: SourcePlace,
    /// Its name.
    pub name: String,
    /// Its support.
    pub support: DirectiveSupport,
    /// Whether it restricts access: without it more would be open than in nginx.
    pub guards: bool,
    /// The reader's messages about it.
    pub messages: Vec<Diagnostic>,
}

/// The support of a whole configuration.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Every directive in the order of reading, without the entries of value blocks (`types`,
    /// `map`).
    pub findings: Vec<Finding>,
    /// Messages about no directive.
    pub others: Vec<Diagnostic>,
}

impl Survey {
    /// Whether the configuration can be served by.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.findings.iter().all(|finding| finding.support != DirectiveSupport::Refused)
            && !self.others.iter().any(Diagnostic::is_fatal)
    }
}

/// Prefixes of directives that restrict access.
const GUARDS: &[&str] = &[
    // Third-party modules of nginx, too: attack filters and access checks by programs.
    "CheckRule",
    "SecRulesEnabled",
    "access_by_lua",
    "allow",
    "auth_",
    "client_max_body_size",
    "dav_access",
    "deny",
    "disable_symlinks",
    "geo",
    "grpc_ssl_verify",
    "internal",
    "limit_conn",
    "limit_except",
    "limit_req",
    "modsecurity",
    "proxy_ssl_verify",
    "real_ip_",
    "satisfy",
    "secure_link",
    "set_real_ip_from",
    "ssl_client_certificate",
    "ssl_conf_command",
    "ssl_crl",
    "ssl_ocsp",
    "ssl_reject_handshake",
    "ssl_trusted_certificate",
    "ssl_verify_",
    "uwsgi_ssl_verify",
    "valid_referers",
];

/// Reads the configuration at `path` as [`crate::parse`] does, and reports the support of each of
/// its directives.
pub fn survey(source: &impl ConfSource, path: &Path, options: &LoadOptions) -> Survey {
    let path = options.prefix.join(path);
    let tree = ast::load(source, &path, &options.globals);
    let mut findings = Vec::new();
    list(&tree.nodes, &tree.names, &mut findings);
    let mut others = Vec::new();
    for diagnostic in crate::read(tree, &path, options).diagnostics {
        match owner(&mut findings, &diagnostic) {
            Some(finding) => {
                if diagnostic.is_fatal() {
                    finding.support = DirectiveSupport::Refused;
                }
                finding.messages.push(diagnostic);
            }
            None => others.push(diagnostic),
        }
    }
    Survey { findings, others }
}

fn list(nodes: &[Node], files: &[std::sync::Arc<str>], findings: &mut Vec<Finding>) {
    for node in nodes {
        let name = String::from_utf8_lossy(node.name()).into_owned();
        let (support, inside) = match directives::find_anywhere(node.name()) {
            DirectiveMatch::Row(_, row) if directives::is_unbuilt(row) => {
                (DirectiveSupport::Refused, None)
            }
            DirectiveMatch::Row(_, row) => {
                (by_row(row), node.block.as_ref().filter(|_| row.holds_rows()))
            }
            DirectiveMatch::Elsewhere | DirectiveMatch::Later | DirectiveMatch::Unknown => {
                (DirectiveSupport::Refused, None)
            }
        };
        let guards = GUARDS.iter().any(|start| name.starts_with(start));
        let file = files.get(node.file as usize).cloned().unwrap_or_default();
        let place = SourcePlace { file, line: node.line };
        findings.push(Finding { place, name, support, guards, messages: Vec::new() });
        if let Some(block) = inside {
            list(&block.nodes, files, findings);
        }
    }
}

fn by_row(row: &DirectiveSpec) -> DirectiveSupport {
    if row.has_no_effect() {
        DirectiveSupport::Approximated(row.doc)
    } else {
        DirectiveSupport::Supported
    }
}

/// The directive that a message is about: the one on its line that it names, or the last, which is
/// the innermost where a block stands on one line.
fn owner<'a>(findings: &'a mut [Finding], diagnostic: &Diagnostic) -> Option<&'a mut Finding> {
    let place = diagnostic.place.as_ref()?;
    let here = |finding: &Finding| finding.place == *place;
    let named = |finding: &Finding| diagnostic.message.contains(&format!("\"{}\"", finding.name));
    let at = findings.iter().position(|finding| here(finding) && named(finding));
    at.or_else(|| findings.iter().rposition(here)).map(|at| &mut findings[at])
}
