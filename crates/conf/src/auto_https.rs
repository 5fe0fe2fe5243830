//! `auto_https`: adds a certificate, port 443 and redirects to servers with public names.
//!
//! It runs when all servers are known: a site written as two servers, one for each port, keeps its
//! own settings. It parses no arguments.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::drafts::{AutoHttps, AutoIssuers, AutoServer, ListenedParams};
use crate::identifiers::{is_dns_name, of_dotted, only_www};
use crate::model::{
    CertificateConf, DemandedRate, IssuedConf, IssuedKey, IssuerAuthority, IssuerChallenge,
    IssuerConf, IssuerKey, Listen, ListenAddress, ListenTransport, LogLevel, Pem, ServerId,
    ServerName, SocketOptions, SourcePlace,
};
use crate::reader::HttpDraft;
use crate::source::LoadOptions;

/// The issuer of `auto_https on`; the configuration may define it.
const IMPLIED: &str = "letsencrypt";
/// Its directory URL, unless the configuration defines another.
const IMPLIED_URI: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The issuer that needs no block: an authority of this server.
pub(crate) const LOCAL: &str = "local";
/// The default lifetime of its certificates.
pub(crate) const LOCAL_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Names below these have no certificates of public issuers (RFC 6761, RFC 6762, RFC 8375).
const PRIVATE: [&str; 8] =
    ["localhost", "local", "internal", "lan", "home.arpa", "invalid", "onion", "arpa"];
/// Names for examples and tests (RFC 2606): allowed only for an issuer that the configuration
/// names.
const RESERVED: [&str; 2] = ["test", "example"];
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// An issuer with default values.
pub(crate) fn issuer(options: &LoadOptions, name: &str, place: SourcePlace) -> IssuerConf {
    let parent = options.prefix.join(&options.state_dir);
    IssuerConf {
        name: name.into(),
        authority: IssuerAuthority::default(),
        uri: String::new(),
        account_key: IssuerKey::Made(IssuedKey::default()),
        challenge: IssuerChallenge::default(),
        contacts: Vec::new(),
        external_account: None,
        preferred_chain: None,
        profile: None,
        trusted_certificate: None,
        verify: true,
        state_path: Some(parent.join(format!("acme_{name}"))),
        state_parent: Some(parent),
        accepts_terms: false,
        on_demand_ask: None,
        on_demand_rate: DemandedRate { count: 10, seconds: 60 },
        on_demand_names: 1000,
        place,
    }
}

/// Whether a public issuer could validate a name; `implied`: the issuer is the default one, which
/// issues for no test names.
fn is_public(name: &str, implied: bool) -> bool {
    let is_below = |parent: &&str| {
        name.strip_suffix(*parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let top_is_word = name
        .rsplit('.')
        .next()
        .is_some_and(|top| top.bytes().any(|byte| byte.is_ascii_alphabetic()));
    is_dns_name(name)
        && name.contains('.')
        && top_is_word
        && !PRIVATE.iter().any(is_below)
        && !(implied && RESERVED.iter().any(is_below))
}

impl HttpDraft {
    /// The listens of a server over TCP.
    fn listens_of(&self, server: usize) -> impl Iterator<Item = &Listen> {
        let id = ServerId(server as u32);
        let over_tcp = self.listens.iter().filter(|one| one.transport == ListenTransport::Tcp);
        over_tcp.filter(move |listen| listen.servers.contains(&id))
    }
}

/// The names of one server.
#[derive(Default)]
struct SortedNames {
    /// Those of its certificate.
    covered: Vec<Box<str>>,
    /// Those that it cannot have.
    others: Vec<String>,
    /// Hosts of `.host` for which it has `www` as the only name below.
    only_www: Vec<Box<str>>,
}

impl SortedNames {
    fn cover(&mut self, name: Box<str>) {
        if !self.covered.contains(&name) {
            self.covered.push(name);
        }
    }
}

/// Adds what servers with `auto_https` lack, and refuses those for which that is impossible.
/// Returns the messages.
pub(crate) fn settle(http: &mut HttpDraft, options: &LoadOptions) -> Vec<SaidOfBlock> {
    let mut settler = Settler { http, options, said: Vec::new() };
    settler.settle();
    settler.said
}

/// A message about an `http` block.
pub(crate) type SaidOfBlock = (LogLevel, String, SourcePlace);

struct Settler<'a> {
    http: &'a mut HttpDraft,
    options: &'a LoadOptions,
    said: Vec<SaidOfBlock>,
}

impl Settler<'_> {
    fn say(&mut self, level: LogLevel, text: String, place: SourcePlace) {
        self.said.push((level, text, place));
    }

    fn settle(&mut self) {
        let servers = std::mem::take(&mut self.http.acme.auto_servers);
        let secured = self.secured_names();
        for one in &servers {
            if let Err(text) = self.automate(one, &secured)
                && one.auto.is_own
            {
                self.say(LogLevel::Emerg, text, one.auto.place.clone());
            }
        }
        for (server, place) in std::mem::take(&mut self.http.acme.unissued) {
            let lacks = !self.http.servers[server].tls.is_issued();
            let listens = self.http.listens.iter();
            let is_reached = listens
                .filter(|listen| listen.tls)
                .any(|listen| listen.servers.contains(&ServerId(server as u32)));
            if lacks && is_reached {
                let text = "no \"acme_certificate\" is defined for \"$acme_certificate\"";
                self.say(LogLevel::Emerg, text.to_owned(), place);
            }
        }
    }

    /// Names of servers that are reached by a `listen` with TLS.
    fn secured_names(&self) -> HashSet<Box<str>> {
        let listens = self.http.listens.iter().filter(|listen| listen.tls);
        let servers: HashSet<ServerId> =
            listens.flat_map(|listen| listen.servers.clone()).collect();
        let names = servers.iter().flat_map(|id| &self.http.servers[id.index()].names);
        names.filter_map(|name| exact(name).map(Box::from)).collect()
    }

    /// Processes one server; `Err` says why that is impossible.
    fn automate(&mut self, one: &AutoServer, secured: &HashSet<Box<str>>) -> Result<(), String> {
        let AutoServer { server, auto } = one;
        let conf = &self.http.servers[*server];
        let has_certificate = !conf.tls.certificates.is_empty();
        if has_certificate && !conf.tls.is_issued() {
            return Err("\"auto_https\" and \"ssl_certificate\" are in one server".to_owned());
        }
        let is_secure = self.http.listens_of(*server).any(|listen| listen.tls);
        let mut issuers = auto.issuers.clone();
        let mut names = self.sort_names(*server, &issuers);
        if let Some(private) = auto.private.filter(|_| names.covered.is_empty()) {
            issuers = AutoIssuers::Named(vec![private]);
            names = self.sort_names(*server, &issuers);
        }
        if !has_certificate && names.covered.is_empty() {
            return Err("no name of the server can get a certificate by \"auto_https\"".to_owned());
        }
        let mut own = conf.names.iter().filter_map(exact);
        let is_taken = |name: &&str| {
            secured.contains(*name) && names.covered.iter().any(|one| &**one == *name)
        };
        if !is_secure && let Some(name) = own.find(is_taken) {
            let text = "\"auto_https\" cannot listen: another server has the name";
            return Err(format!("{text} \"{name}\" with \"ssl\""));
        }
        if !is_secure {
            self.listen_by_tls(*server, auto)?;
        }
        if !has_certificate {
            self.certify(*server, auto, issuers, names);
        }
        let tls_ports = self.http.listens_of(*server).filter(|listen| listen.tls);
        let ports: Vec<_> = tls_ports.map(|listen| listen.address.port()).collect();
        let port = ports.iter().find(|port| **port == HTTPS).or(ports.first());
        self.http.servers[*server].redirects_to = port.copied();
        Ok(())
    }

    fn sort_names(&self, server: usize, issuers: &AutoIssuers) -> SortedNames {
        let is_implied = matches!(issuers, AutoIssuers::Implied);
        let all_asked = |is_fit: fn(&IssuerConf) -> bool| match issuers {
            AutoIssuers::Implied => false,
            AutoIssuers::Named(all) => {
                all.iter().all(|at| is_fit(&self.http.acme.conf.issuers[*at]))
            }
        };
        let proves_wildcards = all_asked(IssuerConf::takes_wildcards);
        let is_local = all_asked(IssuerConf::is_local);
        let is_issued = |name: &str| match is_local {
            true => is_dns_name(name),
            false => is_public(name, is_implied),
        };
        let mut sorted = SortedNames::default();
        for name in &self.http.servers[server].names {
            let (bare, shown) = match name {
                ServerName::Exact(text) => (Some(text.clone()), text.to_string()),
                ServerName::SuffixOrSelf(text)
                    if is_issued(&text[1..]) && address(&text[1..]).is_none() =>
                {
                    for one in of_dotted(&text[1..], proves_wildcards) {
                        sorted.cover(one);
                    }
                    if !proves_wildcards {
                        sorted.only_www.push(text[1..].into());
                    }
                    continue;
                }
                ServerName::SuffixOrSelf(text) => (Some(text[1..].into()), text.to_string()),
                ServerName::Suffix(text) => {
                    let wildcard = format!("*{text}");
                    if proves_wildcards && is_issued(&text[1..]) {
                        sorted.cover(wildcard.into());
                        continue;
                    }
                    (None, wildcard)
                }
                ServerName::Prefix(text) => (None, format!("{text}*")),
                ServerName::Regex(regex) => {
                    (None, format!("~{}", String::from_utf8_lossy(regex.source())))
                }
            };
            // No public issuer of `auto_https` is used for an address.
            let address = bare.as_deref().filter(|_| is_local).and_then(address);
            let bare = address.or_else(|| bare.filter(|bare| is_issued(bare)));
            match bare {
                Some(bare) => sorted.cover(bare),
                None if matches!(&*shown, "" | "_") => {}
                None => sorted.others.push(shown),
            }
        }
        sorted
    }

    /// Orders a certificate for a server.
    fn certify(
        &mut self,
        server: usize,
        auto: &AutoHttps,
        issuers: AutoIssuers,
        names: SortedNames,
    ) {
        let issuers = match issuers {
            AutoIssuers::Named(issuers) => issuers,
            AutoIssuers::Implied => vec![self.implied_issuer(&auto.place)],
        };
        let none =
            |name: String| format!("\"auto_https\" orders no certificate for the name \"{name}\"");
        let only_www = names.only_www.iter().map(|host| only_www("auto_https", host));
        for text in names.others.into_iter().map(none).chain(only_www) {
            let place = self.http.servers[server].place.clone();
            self.say(LogLevel::Warn, text, place);
        }
        let (key, place) = (IssuedKey::default(), auto.place.clone());
        let id = self.http.acme.order(IssuedConf { issuers, names: names.covered, key, place });
        let pair = CertificateConf {
            chain: Pem::Issued(id),
            key: Pem::Issued(id),
            place: Some(auto.place.clone()),
        };
        let tls = &mut self.http.servers[server].tls;
        Arc::make_mut(tls).certificates = Arc::new(vec![pair]);
    }

    /// Let's Encrypt, as configured or by default.
    fn implied_issuer(&mut self, place: &SourcePlace) -> usize {
        let issuers = &self.http.acme.conf.issuers;
        let at = issuers.iter().position(|issuer| &*issuer.name == IMPLIED).unwrap_or_else(|| {
            let mut made = issuer(self.options, IMPLIED, place.clone());
            IMPLIED_URI.clone_into(&mut made.uri);
            let plain = |one: &Listen| !one.tls && one.address.port() == HTTP;
            if !self.http.listens.iter().any(plain) {
                made.challenge = IssuerChallenge::TlsAlpn;
            }
            self.http.acme.conf.issuers.push(made);
            self.http.acme.conf.issuers.len() - 1
        });
        // The documentation of the directive says that it accepts the terms.
        self.http.acme.conf.issuers[at].accepts_terms = true;
        at
    }

    /// Has a server listen on port 443 of the addresses that it listens on.
    fn listen_by_tls(&mut self, server: usize, auto: &AutoHttps) -> Result<(), String> {
        let mut hosts: Vec<IpAddr> = Vec::new();
        for listen in self.http.listens_of(server) {
            if let ListenAddress::Inet(address) = listen.address
                && !hosts.contains(&address.ip())
            {
                hosts.push(address.ip());
            }
        }
        if hosts.is_empty() {
            return Err("\"auto_https\" needs a server with an IP address".to_owned());
        }
        let conf = &self.http.servers[server];
        let (speaks_http3, root) = (conf.http3 && conf.tls.protocols.tls13, conf.root);
        let mut said = self.http.locations[root.index()].written.iter().chain(&self.http.written);
        let says_http2 = said.any(|one| one.name == "http2");
        if !says_http2 {
            self.http.servers[server].http2 = true;
        }
        for host in hosts {
            let address = SocketAddr::new(host, HTTPS);
            self.join(server, address, ListenTransport::Tcp, auto);
            if speaks_http3 {
                self.join(server, address, ListenTransport::Quic, auto);
            }
        }
        Ok(())
    }

    /// Adds a server to an address, new or existing, with TLS.
    fn join(
        &mut self,
        server: usize,
        address: SocketAddr,
        transport: ListenTransport,
        auto: &AutoHttps,
    ) {
        let (id, key) = (ServerId(server as u32), (transport, ListenAddress::Inet(address)));
        let Some(&at) = self.http.listen_index.get(&key) else {
            let address = key.1.clone();
            self.http.listen_index.insert(key, self.http.listens.len());
            self.http.listens.push(Listen {
                address,
                transport,
                tls: true,
                http2: false,
                proxy_protocol: false,
                default_server: id,
                servers: vec![id],
                options: SocketOptions::default(),
            });
            self.http.listened.push(ListenedParams::default());
            return;
        };
        let listen = &mut self.http.listens[at];
        if !listen.tls {
            let text = format!("\"auto_https\" needs {address}, which another server has as HTTP");
            return self.say(LogLevel::Emerg, text, auto.place.clone());
        }
        // If several servers have one name, the first in the file gets the requests.
        let before = listen.servers.partition_point(|other| *other < id);
        listen.servers.insert(before, id);
    }
}

/// The IP address of a name, in the form of certificates.
fn address(name: &str) -> Option<Box<str>> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().ok().map(|address| address.to_string().into())
}

/// The name, if it is exact.
fn exact(name: &ServerName) -> Option<&str> {
    match name {
        ServerName::Exact(text) => Some(text),
        ServerName::SuffixOrSelf(text) => Some(&text[1..]),
        ServerName::Suffix(_) | ServerName::Prefix(_) | ServerName::Regex(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn public_names_are_those_that_a_public_issuer_can_reach() {
        for name in ["a.com", "www.a.co.uk", "xn--bcher-kva.de", "local.a.com", "1.a.com"] {
            assert!(is_public(name, true), "{name}");
        }
        for name in [
            "localhost",
            "a",
            "10.0.0.1",
            "1.2.3",
            "a.local",
            "b.localhost",
            "x.home.arpa",
            "_",
            "a.internal",
            "a..com",
            "*.a.com",
            "",
            "a.com.",
        ] {
            assert!(!is_public(name, false), "{name}");
        }
        assert!(is_public("a.test", false) && !is_public("a.test", true));
    }
}
