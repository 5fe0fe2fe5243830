//! The `server` block, and the settings that apply in it before a location is known.

use std::path::Path;
use std::sync::Arc;

use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, block, flag, millis, number, size,
    value,
};
use crate::drafts::AutoServer;
use crate::model::{
    CertificateConf, IssuedId, ListenAddress, ListenTransport, LocationConf, LocationId, LogLevel,
    Pem, ServerConf, ServerName, SocketOptions,
};
use crate::reader::{BlockScope, ConfReader, ReadFault, ReadResult, buffers, show, size as bytes};

const HS: Contexts = Contexts::HS;

pub(super) const TABLE: &[DirectiveSpec] = &[
    block("server", Contexts::HTTP, Args::NONE, server)
        .doc("One site: its addresses, names and locations.", "server { listen 80; }"),
    millis("client_header_timeout", HS, |r| &mut r.server().client_header_timeout)
        .doc("The timeout for reading a request's head.", "client_header_timeout 60s;"),
    size("client_header_buffer_size", HS, |r| &mut r.server().client_header_buffer_size)
        .doc("The buffer size for a request's head.", "client_header_buffer_size 1k;"),
    value("large_client_header_buffers", HS, Args::TWO, large_client_header_buffers)
        .doc(
            "Number and size of buffers for larger heads; no line may be longer than one.",
            "large_client_header_buffers 4 8k;",
        )
        .takes("NUMBER SIZE")
        .default("4 8k"),
    number("max_headers", HS, |r| &mut r.server().max_headers)
        .doc("The most header fields of a request.", "max_headers 1000;"),
    flag("ignore_invalid_headers", HS, |r| &mut r.server().ignore_invalid_headers)
        .doc("Whether header fields with invalid names are dropped.", "ignore_invalid_headers on;"),
    flag("underscores_in_headers", HS, |r| &mut r.server().underscores_in_headers)
        .doc("Whether `_` is valid in the name of a header field.", "underscores_in_headers on;"),
    flag("merge_slashes", HS, |r| &mut r.server().merge_slashes)
        .doc("Whether adjacent slashes in a path are merged.", "merge_slashes on;"),
    value("connection_pool_size", HS, Args::ONE, |r, node| {
        r.server().connection_pool_size = pool(node)?;
        Ok(())
    })
    .doc("Without effect: the memory sizes itself.", "connection_pool_size 512;")
    .takes("SIZE")
    .default("512"),
    value("request_pool_size", HS, Args::ONE, |r, node| {
        r.server().request_pool_size = pool(node)?;
        Ok(())
    })
    .doc("Without effect: the memory sizes itself.", "request_pool_size 4k;")
    .takes("SIZE")
    .default("4k"),
    accepted("server_names_hash_max_size", Contexts::HTTP, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "server_names_hash_max_size 512;"),
    accepted("server_names_hash_bucket_size", Contexts::HTTP, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "server_names_hash_bucket_size 64;"),
];

fn server(r: &mut ConfReader, node: &mut Node) -> ReadResult {
    let place = r.place(node);
    let scope = r.inner_scope(Contexts::SERVER);
    let root = reserve(r, node, &scope);
    let mut scope = r.read_inner(node, scope);
    super::referer::check(r, &scope);
    r.share_origin(&mut scope);
    if !scope.has_listen {
        let port = if r.options.privileged { 80 } else { 8000 };
        let address = ListenAddress::Inet(([0, 0, 0, 0], port).into());
        let plain = super::listen::ListenOptions::default();
        super::listen::add(r, address, ListenTransport::Tcp, &plain, &SocketOptions::default())?;
    }
    check_buffers(r, &scope);
    let issued = super::acme::settle(r, &scope.acme, &scope.names);
    pair_certificates(r, &mut scope, issued);
    if let Some(auto) = scope.acme.auto.take() {
        r.http.acme.auto_servers.push(AutoServer { server: r.http.servers.len(), auto });
    }
    fill(&mut r.http.locations[root.index()], &mut scope);
    if scope.names.is_empty() {
        scope.names.push(ServerName::Exact(Box::from("")));
    }
    r.http.servers.push(ServerConf {
        names: scope.names,
        primary_name: scope.primary_name.unwrap_or_else(|| Arc::from("")),
        http2: scope.http2,
        http3: scope.http3,
        redirects_to: None,
        tls: Arc::new(scope.tls.conf.clone()),
        root,
        settings: scope.server,
        place,
        closed: r.closing_place(node),
    });
    Ok(())
}

/// Creates the location of a block before reading it, so that blocks inside it get larger numbers;
/// [`fill`] supplies its contents.
pub(super) fn reserve(r: &mut ConfReader, node: &Node, scope: &BlockScope) -> LocationId {
    let id = LocationId(r.http.locations.len() as u32);
    let place = r.place(node);
    r.http.locations.push(LocationConf {
        matcher: scope.matcher.clone(),
        name: Arc::clone(&scope.name),
        nested: Vec::new(),
        internal: false,
        settings: Arc::clone(&scope.settings),
        rewrite: Vec::new(),
        handler: scope.handler.clone(),
        try_files: None,
        place,
        rewrite_places: Vec::new(),
        written: Vec::new(),
        except: None,
    });
    id
}

/// Moves the settings of a block into its location.
pub(super) fn fill(location: &mut LocationConf, scope: &mut BlockScope) {
    location.nested = std::mem::take(&mut scope.nested);
    location.internal = scope.internal;
    location.settings = Arc::clone(&scope.settings);
    (location.rewrite, location.rewrite_places) = super::rewrite::program(&mut scope.rewrite);
    location.written = std::mem::take(&mut scope.written);
    location.written.shrink_to_fit();
    location.nested.shrink_to_fit();
    location.handler = scope.handler.clone();
    location.try_files = scope.try_files.take();
    location.except = scope.except.take();
}

fn check_buffers(r: &mut ConfReader, scope: &BlockScope) {
    if scope.server.large_client_header_buffer_size < scope.server.connection_pool_size {
        let message = "the \"large_client_header_buffers\" size must be equal to or greater than \
                       \"connection_pool_size\"";
        let place = Some(r.http.closed_at.clone());
        r.note(r.http.closed, Diagnostic::new(LogLevel::Emerg, message, place));
    }
}

/// Whether a word is that variable and nothing else.
fn is_variable(word: &[u8], name: &str) -> bool {
    let bare = word.strip_prefix(b"$").unwrap_or_default();
    let braced = bare.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
    braced.unwrap_or(bare) == name.as_bytes()
}

fn pair_certificates(r: &mut ConfReader, scope: &mut BlockScope, issued: Option<IssuedId>) {
    let draft = Arc::make_mut(&mut scope.tls);
    if let Some((alone, _)) = draft.certificates.get(draft.keys.len()) {
        let shown = show(alone);
        let message = format!("no \"ssl_certificate_key\" is defined for certificate \"{shown}\"");
        r.note(r.http.closed, Diagnostic::new(LogLevel::Emerg, message, None));
        return;
    }
    let is_issued = |(chain, key): (&[u8], &[u8])| {
        is_variable(chain, "acme_certificate") && is_variable(key, "acme_certificate_key")
    };
    let words = draft.certificates.iter().zip(&draft.keys);
    let words = words.map(|((chain, _), key)| (&**chain, &**key)).filter(|pair| !is_issued(*pair));
    // As soon as one name has variables, the others are resolved per request too; in nginx the only
    // visible difference is when a missing file is reported.
    let computes = words.into_iter().any(|(chain, key)| [chain, key].concat().contains(&b'$'));
    let mut pem = |text: &Vec<u8>, of: fn(&[u8], &Path) -> Pem| match computes {
        true => r.computed_pem(text),
        false => Ok(of(text, &r.beside_conf(b""))),
    };
    let mut pairs = Vec::new();
    let mut unissued = None;
    for ((chain, place), key) in draft.certificates.iter().zip(&draft.keys) {
        if is_issued((chain, key)) {
            match issued {
                Some(id) => pairs.push(CertificateConf {
                    chain: Pem::Issued(id),
                    key: Pem::Issued(id),
                    place: Some(place.clone()),
                }),
                None => unissued = Some(place.clone()),
            }
            continue;
        }
        match (pem(chain, Pem::of), pem(key, Pem::of_key)) {
            (Ok(chain), Ok(key)) => {
                pairs.push(CertificateConf { chain, key, place: Some(place.clone()) });
            }
            (Err(fault), _) | (_, Err(fault)) => return r.judge_closed(fault),
        }
    }
    draft.conf.certificates = Arc::new(pairs);
    r.http.acme.unissued.extend(unissued.map(|place| (r.http.servers.len(), place)));
}

fn large_client_header_buffers(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (count, size) = buffers(node)?;
    r.server().large_client_header_buffers = count;
    r.server().large_client_header_buffer_size = size;
    Ok(())
}

/// The size of a pool of memory.
pub(super) fn pool(node: &Node) -> Result<usize, ReadFault> {
    let size = bytes(node.arg(0))?;
    if size < 112 {
        return Err(ReadFault::Text("the pool size must be no less than 112".to_owned()));
    }
    if size % 16 != 0 {
        return Err(ReadFault::Text("the pool size must be a multiple of 16".to_owned()));
    }
    Ok(size)
}
