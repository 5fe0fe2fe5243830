//! TLS: certificates, versions, ciphers, sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::cache_zone;
use crate::ast::Node;
use crate::choice::{chosen, say_once};
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, number, seconds, size,
    value,
};
use crate::drafts::{SharedZone, SharedZoneUse};
use crate::model::{
    CertificateCache, ConfCommands, LogLevel, Pem, Protocols, SessionCache, TlsConf, VerifyClient,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_value, show};
use crate::value::{self as values, Unit};

const HS: Contexts = Contexts::HS;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("ssl_certificate", HS, Args::ONE, |r, node| {
        plain_file(node)?;
        let (again, place) = (r.again, r.place(node));
        let list = &mut r.tls().certificates;
        if !again {
            list.clear();
        }
        list.push((node.arg(0).to_vec(), place));
        Ok(())
    })
    .doc("The file with a certificate and its chain.", "ssl_certificate a.com.crt;")
    .takes("FILE | TEXT")
    .without("none"),
    list("ssl_certificate_key", HS, Args::ONE, |r, node| {
        plain_file(node)?;
        let again = r.again;
        let list = &mut r.tls().keys;
        if !again {
            list.clear();
        }
        list.push(node.arg(0).to_vec());
        Ok(())
    })
    .doc("The file with the key of a certificate.", "ssl_certificate_key a.com.key;")
    .takes("FILE | TEXT | store:file:FILE")
    .without("none"),
    value("ssl_password_file", HS, Args::ONE, |r, node| {
        let file = (r.beside_conf(node.arg(0)), r.place(node));
        r.tls().conf.password_file = Some(file);
        Ok(())
    })
    .doc("The file with pass phrases for keys.", "ssl_password_file passwords;")
    .takes("FILE")
    .without("none"),
    list("ssl_protocols", HS, Args::at_least(1), |r, node| {
        read_protocols(r, node, |r| &mut r.tls().conf.protocols)
    })
    .doc("The TLS versions.", "ssl_protocols TLSv1.2 TLSv1.3;")
    .takes("SSLv2 | SSLv3 | TLSv1 | TLSv1.1 | TLSv1.2 | TLSv1.3…")
    .default("TLSv1.2 TLSv1.3"),
    value("ssl_ciphers", HS, Args::ONE, |r, node| {
        r.tls().conf.ciphers = show(node.arg(0)).into_owned();
        Ok(())
    })
    .doc("The TLS 1.2 ciphers, as an OpenSSL cipher string.", "ssl_ciphers HIGH:!aNULL;")
    .takes("CIPHERS")
    .default("HIGH:!aNULL:!MD5"),
    value("ssl_prefer_server_ciphers", HS, Args::ONE, |r, node| {
        let is_on = crate::reader::flag("ssl_prefer_server_ciphers", node.arg(0))?;
        r.tls().conf.prefer_server_ciphers = Some(is_on);
        Ok(())
    })
    .doc("Whether the server's order of ciphers takes precedence.", "ssl_prefer_server_ciphers on;")
    .takes("on | off")
    .without("off, in the client's order"),
    value("ssl_ecdh_curve", HS, Args::ONE, |r, node| {
        r.tls().conf.ecdh_curve = show(node.arg(0)).into_owned();
        Ok(())
    })
    .doc("The groups for key exchange.", "ssl_ecdh_curve X25519MLKEM768:X25519;")
    .takes("GROUP[:GROUP…] | auto")
    .default("auto"),
    value("ssl_dhparam", HS, Args::ONE, |r, node| file(r, node, |conf| &mut conf.dhparam))
        .doc("The file with DHE parameters; DHE is not supported.", "ssl_dhparam dhparam.pem;")
        .takes("FILE")
        .without("none"),
    list("ssl_conf_command", HS, Args::TWO, |r, node| {
        check_command(node)?;
        push_command(r, node, |r| &mut r.tls().conf.conf_commands)
    })
    .doc("An OpenSSL configuration command.", "ssl_conf_command Options KTLS;")
    .takes("NAME TEXT")
    .without("none"),
    list("ssl_session_cache", HS, Args::between(1, 2), session_cache)
        .doc("The session caches.", "ssl_session_cache shared:SSL:10m;")
        .takes("off | none | builtin[:NUMBER] | shared:NAME:SIZE…")
        .default("none"),
    seconds("ssl_session_timeout", HS, |r| &mut r.tls().conf.session_timeout)
        .doc("How long a session can be resumed.", "ssl_session_timeout 1d;"),
    flag("ssl_session_tickets", HS, |r| &mut r.tls().conf.session_tickets)
        .doc("Whether session tickets are used.", "ssl_session_tickets on;"),
    list("ssl_session_ticket_key", HS, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        let again = r.again;
        let keys = Arc::make_mut(&mut r.tls().conf.session_ticket_keys);
        if !again {
            keys.clear();
        }
        keys.push(path);
        Ok(())
    })
    .doc("A file with a key for session tickets.", "ssl_session_ticket_key ticket.key;")
    .takes("FILE")
    .without("random keys"),
    size("ssl_buffer_size", HS, |r| &mut r.tls().conf.buffer_size)
        .doc("The size of the buffer, and so of a TLS record.", "ssl_buffer_size 16k;"),
    flag("ssl_early_data", HS, |r| &mut r.tls().conf.early_data)
        .doc("Whether 0-RTT requests are accepted.", "ssl_early_data on;"),
    flag("ssl_reject_handshake", HS, |r| &mut r.tls().conf.reject_handshake)
        .doc("Whether handshakes for this server are rejected.", "ssl_reject_handshake on;"),
    flag("ssl_stapling", HS, |r| &mut r.tls().conf.stapling)
        .doc("Whether OCSP responses are stapled.", "ssl_stapling on;"),
    flag("ssl_stapling_verify", HS, |r| &mut r.tls().conf.stapling_verify)
        .doc("Whether OCSP responses are verified.", "ssl_stapling_verify on;"),
    value("ssl_stapling_file", HS, Args::ONE, |r, node| {
        file(r, node, |conf| &mut conf.stapling_file)
    })
    .doc("A file with the OCSP response to staple.", "ssl_stapling_file ocsp.der;")
    .takes("FILE")
    .without("none"),
    value("ssl_stapling_responder", HS, Args::ONE, |r, node| {
        r.tls().conf.stapling_responder = Some(show(node.arg(0)).into_owned());
        Ok(())
    })
    .doc("The URL of the OCSP responder.", "ssl_stapling_responder http://ocsp.a.com/;")
    .takes("URL")
    .without("the URL in the certificate"),
    value("ssl_trusted_certificate", HS, Args::ONE, |r, node| {
        file(r, node, |conf| &mut conf.trusted_certificate)
    })
    .doc(
        "The trusted authorities that are not announced to clients.",
        "ssl_trusted_certificate ca.crt;",
    )
    .takes("FILE")
    .without("none"),
    value("ssl_client_certificate", HS, Args::ONE, |r, node| {
        file(r, node, |conf| &mut conf.client_certificate)
    })
    .doc(
        "The trusted authorities of client certificates, announced to clients.",
        "ssl_client_certificate ca.crt;",
    )
    .takes("FILE")
    .without("none"),
    value("ssl_crl", HS, Args::ONE, |r, node| file(r, node, |conf| &mut conf.crl))
        .doc("The revocation lists for client certificates.", "ssl_crl revoked.pem;")
        .takes("FILE")
        .without("none"),
    value("ssl_verify_client", HS, Args::ONE, verify_client)
        .doc(
            "Whether client certificates are requested and verified.",
            "ssl_verify_client optional_no_ca;",
        )
        .takes("on | off | optional | optional_no_ca")
        .default("off"),
    number("ssl_verify_depth", HS, |r| &mut r.tls().conf.verify_depth)
        .doc("The longest certificate chain of a client.", "ssl_verify_depth 2;"),
    value("ssl_ocsp", HS, Args::ONE, |_, node| {
        let is_off = chosen(node, &[("off", true), ("on", false), ("leaf", false)])?;
        if is_off { Ok(()) } else { Err(closed_door("ssl_ocsp", node.arg(0))) }
    })
    .doc("Whether client certificates are verified by OCSP.", "ssl_ocsp off;")
    .takes("off")
    .default("off"),
    accepted("ssl_ocsp_cache", HS, Args::ONE, DirectiveForm::Check(ocsp_cache))
        .doc(
            "Without effect: the cache of OCSP responses about clients.",
            "ssl_ocsp_cache shared:ocsp:1m;",
        )
        .takes("off | shared:NAME:SIZE"),
    accepted("ssl_ocsp_responder", HS, Args::ONE, DirectiveForm::Any)
        .doc(
            "Without effect: the OCSP responder for client certificates.",
            "ssl_ocsp_responder http://ocsp.a.com/;",
        )
        .takes("URL"),
    value("ssl_certificate_cache", HS, Args::between(1, 3), |r, node| {
        r.tls().conf.certificate_cache = read_certificate_cache(node)?;
        Ok(())
    })
    .doc("The cache of certificates named by variables.", "ssl_certificate_cache max=100;")
    .takes("max=NUMBER [inactive=SECONDS] [valid=SECONDS] | off")
    .default("off"),
    flag("ssl_certificate_compression", HS, |r| &mut r.tls().conf.certificate_compression)
        .doc("Whether certificates are sent compressed.", "ssl_certificate_compression on;"),
    list("ssl_ech_file", HS, Args::ONE, ignored)
        .doc("The file with keys for Encrypted Client Hello.", "ssl_ech_file ech.pem;")
        .takes("FILE")
        .without("none; without effect, with a warning"),
];

/// Refuses certificates and keys from unsupported sources.
pub(super) fn plain_file(node: &Node) -> ReadResult {
    let (name, word) = (show(node.name()), node.arg(0));
    // A certificate with such a name is a file in nginx, too.
    if !name.ends_with("_key") {
        return Ok(());
    }
    if word.starts_with(b"engine:") {
        return Err(ReadFault::Text(format!("engines in \"{name}\" are not implemented yet")));
    }
    match word.strip_prefix(b"store:") {
        Some(uri) if Pem::file_of_store(uri).is_none() => {
            let scheme = show(uri.split(|byte| *byte == b':').next().unwrap_or_default());
            let text = format!("scheme \"{scheme}\" of stores in \"{name}\" is not supported");
            Err(ReadFault::Text(text))
        }
        _ => Ok(()),
    }
}

/// Warns that a hardening setting has no effect.
pub(super) fn ignored(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = show(node.name()).into_owned();
    r.warn(format!("the \"{name}\" directive is not supported, ignored"));
    Ok(())
}

/// Refuses an access restriction that is not implemented: with a mere warning the server would be
/// open.
fn closed_door(name: &str, word: &[u8]) -> ReadFault {
    ReadFault::Text(format!("\"{name} {}\" is not implemented yet", show(word)))
}

/// Refuses OpenSSL settings that restrict access and are not implemented; the others get a warning.
fn check_command(node: &Node) -> ReadResult {
    let name = node.arg(0).to_ascii_lowercase();
    let is_met = match &*name {
        // TLS 1.2 is the oldest version supported.
        b"minprotocol" => !node.arg(1).eq_ignore_ascii_case(b"TLSv1.3"),
        b"clientsignaturealgorithms" | b"protocol" => false,
        _ => ![&b"clientca"[..], b"requestca", b"verify"].iter().any(|kind| name.starts_with(kind)),
    };
    if is_met { Ok(()) } else { Err(closed_door("ssl_conf_command", node.arg(0))) }
}

fn file(
    r: &mut ConfReader,
    node: &Node,
    slot: fn(&mut TlsConf) -> &mut Option<PathBuf>,
) -> ReadResult {
    // As in nginx, an empty name is that of no file.
    let path = (!node.arg(0).is_empty()).then(|| r.beside_conf(node.arg(0)));
    *slot(&mut r.tls().conf) = path;
    Ok(())
}

/// Appends a setting in OpenSSL's own words to those of the same block.
pub(super) fn push_command(
    r: &mut ConfReader,
    node: &Node,
    slot: fn(&mut ConfReader) -> &mut ConfCommands,
) -> ReadResult {
    let pair = (show(node.arg(0)).into_owned(), show(node.arg(1)).into_owned());
    let again = r.again;
    let commands = Arc::make_mut(slot(r));
    if !again {
        commands.clear();
    }
    commands.push(pair);
    Ok(())
}

/// Reads versions, which are added to those of the same block.
pub(super) fn read_protocols(
    r: &mut ConfReader,
    node: &Node,
    slot: fn(&mut ConfReader) -> &mut Protocols,
) -> ReadResult {
    let none = Protocols { tls12: false, tls13: false, obsolete: false };
    let mut protocols = if r.again { *slot(r) } else { none };
    for word in node.args() {
        match &*word.to_ascii_lowercase() {
            b"sslv2" | b"sslv3" | b"tlsv1" | b"tlsv1.1" => protocols.obsolete = true,
            b"tlsv1.2" => protocols.tls12 = true,
            b"tlsv1.3" => protocols.tls13 = true,
            _ => return Err(invalid_value(word)),
        }
        say_once(r, node, word);
    }
    *slot(r) = protocols;
    Ok(())
}

/// Reads the cache settings of certificates named by variables.
pub(super) fn read_certificate_cache(node: &Node) -> Result<Option<CertificateCache>, ReadFault> {
    let (mut max, mut is_off) = (None, false);
    let (mut inactive, mut valid) = (Duration::from_secs(10), Duration::from_secs(60));
    for word in node.args() {
        let invalid = || ReadFault::Text(format!("invalid parameter \"{}\"", show(word)));
        let time = |text| values::time(text, Unit::Seconds).ok_or_else(invalid);
        if let Some(digits) = word.strip_prefix(b"max=") {
            let number = values::number(digits).and_then(|number| usize::try_from(number).ok());
            max = Some(number.filter(|number| *number > 0).ok_or_else(invalid)?);
        } else if let Some(text) = word.strip_prefix(b"inactive=") {
            inactive = time(text)?;
        } else if let Some(text) = word.strip_prefix(b"valid=") {
            valid = time(text)?;
        } else if word == b"off" {
            is_off = true;
        } else {
            return Err(invalid());
        }
    }
    if max.is_none() && !is_off {
        let name = show(node.name());
        return Err(ReadFault::Text(format!("\"{name}\" must have the \"max\" parameter")));
    }
    let directive = node.order.0;
    let max = max.filter(|_| !is_off);
    Ok(max.map(|max| CertificateCache { max, inactive, valid, directive }))
}

impl ConfReader {
    /// The place of a certificate whose name may have variables.
    pub(super) fn computed_pem(&mut self, text: &[u8]) -> Result<Pem, ReadFault> {
        let template = self.template(text)?;
        Ok(Pem::Computed { template, beside: self.beside_conf(b"") })
    }

    /// Reports a fault found at the end of a block.
    pub(super) fn judge_closed(&mut self, fault: ReadFault) {
        let text = match fault {
            ReadFault::Text(text) => text,
            ReadFault::Value(text) => text.to_owned(),
        };
        let place = Some(self.http.closed_at.clone());
        self.note(self.http.closed, Diagnostic::new(LogLevel::Emerg, text, place));
    }
}

fn session_cache(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut cache = SessionCache::Off;
    for word in node.args() {
        let text = show(word);
        let invalid = || ReadFault::Text(format!("invalid session cache \"{text}\""));
        let next = match word {
            b"off" => SessionCache::Off,
            b"none" => SessionCache::None,
            b"builtin" => SessionCache::Builtin(None),
            _ => {
                if let Some(sessions) = text.strip_prefix("builtin:") {
                    let count = values::number(sessions.as_bytes()).ok_or_else(invalid)?;
                    SessionCache::Builtin(u64::try_from(count).ok())
                } else {
                    let zone = text.strip_prefix("shared:").ok_or_else(invalid)?;
                    let (name, size) = zone.split_once(':').ok_or_else(invalid)?;
                    let size = values::size(size.as_bytes()).ok_or_else(invalid)?;
                    if name.is_empty() {
                        return Err(invalid());
                    }
                    // Eight pages, the least that nginx accepts for a cache.
                    if size < 8 * 4096 {
                        let message = format!("session cache \"{text}\" is too small");
                        return Err(ReadFault::Text(message));
                    }
                    let zone = SharedZone { size, used_by: SharedZoneUse::Sessions };
                    cache_zone::share(r, name.as_bytes(), zone)?;
                    SessionCache::Shared(name.into(), size)
                }
            }
        };
        // Of `builtin` and `shared` together, the one shared by all workers suffices.
        let is_shared = matches!(cache, SessionCache::Shared(..));
        if !(is_shared && matches!(next, SessionCache::Builtin(_))) {
            cache = next;
        }
    }
    r.tls().conf.session_cache = cache;
    Ok(())
}

fn ocsp_cache(r: &mut ConfReader, node: &Node) -> ReadResult {
    let text = show(node.arg(0));
    if text == "off" {
        return Ok(());
    }
    let invalid = || ReadFault::Text(format!("invalid OCSP cache \"{text}\""));
    let zone = text.strip_prefix("shared:").ok_or_else(invalid)?;
    let (name, size) = zone.split_once(':').ok_or_else(invalid)?;
    let size = values::size(size.as_bytes()).ok_or_else(invalid)?;
    if name.is_empty() {
        return Err(invalid());
    }
    if size < 8 * 4096 {
        return Err(ReadFault::Text(format!("OCSP cache \"{text}\" is too small")));
    }
    cache_zone::share(r, name.as_bytes(), SharedZone { size, used_by: SharedZoneUse::Revocations })
}

fn verify_client(r: &mut ConfReader, node: &Node) -> ReadResult {
    let choices = [
        ("off", VerifyClient::Off),
        ("on", VerifyClient::On),
        ("optional", VerifyClient::Optional),
        ("optional_no_ca", VerifyClient::OptionalNoCa),
    ];
    r.tls().conf.verify_client = chosen(node, &choices)?;
    Ok(())
}
