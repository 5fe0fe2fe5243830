//! Checks that need the whole configuration: complete lists against one another.
//!
//! Nothing here reads words; messages belong to the end of the `http` block.

use std::collections::HashSet;
use std::sync::Arc;

use crate::ast::DirectiveNode;
use crate::auto_https;
use crate::diagnostic::Diagnostic;
use crate::model::{
    CachePurge, CacheSettings, CacheZoneId, CharsetOf, CpuAffinity, DirectiveFamily, Handler,
    Listen, ListenTransport, LocationConf, LocationId, LogLevel, Matcher, OriginSettings, Pass,
    ServerName, SourcePlace, TlsConf, VerifyClient, Workers, ZoneUse,
};
use crate::reader::{ConfReader, HttpDraft, show};
use crate::unguarded::{Unguarded, unguarded};

/// The prefix in the texts of [`wrong_sizes`].
const FASTCGI: &str = DirectiveFamily::Application.prefix();
/// The families with buffers and caches, in the order of nginx's checks.
const CHECKED: [DirectiveFamily; 4] = [
    DirectiveFamily::Proxy,
    DirectiveFamily::Application,
    DirectiveFamily::Uwsgi,
    DirectiveFamily::Scgi,
];

impl ConfReader {
    /// Checks the directives outside `http`, as nginx does when everything is read.
    pub(crate) fn finish_main(&mut self, ended: DirectiveNode) {
        let main = &self.main;
        if let (Workers::Count(workers), CpuAffinity::Masks(masks)) =
            (main.worker_processes, &main.worker_cpu_affinity)
            && !masks.is_empty()
            && workers as usize != masks.len()
        {
            let message = "the number of \"worker_processes\" is not equal to the number of \
                           \"worker_cpu_affinity\" masks, using last mask for remaining worker \
                           processes";
            self.note(ended, Diagnostic::new(LogLevel::Warn, message, None));
        }
        if !self.has_events {
            let message = "no \"events\" section in configuration";
            self.note(ended, Diagnostic::new(LogLevel::Emerg, message, None));
        } else if self.events.worker_connections as usize <= self.http.listens.len() {
            let (connections, listens) = (self.events.worker_connections, self.http.listens.len());
            let message = format!(
                "{connections} worker_connections are not enough for {listens} listening sockets"
            );
            self.note(ended, Diagnostic::new(LogLevel::Emerg, message, None));
        }
        let is_known =
            |name: &str| name == "default" || self.named.iter().any(|(_, known)| known == name);
        let unknown = self.wanted_pools.iter().find(|(name, _)| !is_known(name));
        if let Some((name, place)) = unknown {
            let message = format!("unknown thread pool \"{name}\"");
            let place = Some(place.clone());
            self.note(ended, Diagnostic::new(LogLevel::Emerg, message, place));
        }
    }

    /// Checks the `http` block as a whole, in nginx's order.
    pub(crate) fn finish_http(&mut self, ended: DirectiveNode) {
        if self.http.settings.is_none() {
            return;
        }
        settle_resolvers(&mut self.http);
        self.check_groups(ended);
        self.check_shared_limits();
        self.check_origins();
        crate::directives::check_traces(self);
        self.check_locations();
        for (level, text, place) in auto_https::settle(&mut self.http, &self.options) {
            self.say(level, text, Some(place));
        }
        self.check_certificates();
        check_secrets(self);
        self.check_charsets(ended);
        self.check_variables();
        if !self.diagnostics.has_failed() {
            self.check_names();
        }
        self.imply_params();
        self.settle_families();
    }

    /// Gives locations the settings written for the family of their protocol.
    fn settle_families(&mut self) {
        for location in &mut self.http.locations {
            let Handler::Pass(Pass { protocol, .. }) = location.handler else {
                settle_purge(location);
                continue;
            };
            let settings = Arc::make_mut(&mut location.settings);
            let Some(own) = settings.families.get(protocol.family()).cloned() else { continue };
            settings.origin = own.origin;
            // What is not `fastcgi_*` applies to locations of all families with caches.
            let (page, rfc9111) = (settings.cache.page.clone(), settings.cache.rfc9111);
            settings.cache = own.cache;
            if protocol.has_caches()
                && (settings.cache.page != page || settings.cache.rfc9111 != rfc9111)
            {
                let cache = Arc::make_mut(&mut settings.cache);
                (cache.page, cache.rfc9111) = (page, rfc9111);
            }
        }
    }

    /// Records a message about the whole block.
    pub(crate) fn say(&mut self, level: LogLevel, message: String, place: Option<SourcePlace>) {
        self.note(self.http.closed, Diagnostic::new(level, message, place));
    }

    /// Refuses zones that are to be shared where there is no cluster.
    fn check_shared_limits(&mut self) {
        if self.http.cluster.is_some() {
            return;
        }
        for (name, place) in std::mem::take(&mut self.http.shared_limits) {
            let message =
                format!("zone \"{name}\" is \"shared\", but there is no \"cluster\" block");
            self.say(LogLevel::Emerg, message, Some(place));
        }
    }

    /// Reports the errors of groups, and refuses zones without a size.
    fn check_groups(&mut self, ended: DirectiveNode) {
        let mut faults = std::mem::take(&mut self.http.upstream_faults);
        faults.sort_by_key(|(order, _, _)| *order);
        for (_, message, place) in faults {
            self.say(LogLevel::Emerg, message, place);
        }
        let sizeless = self.http.zones.iter().filter(|(_, zone)| zone.size == 0);
        let mut sizeless: Vec<_> = sizeless.map(|(name, _)| show(name).into_owned()).collect();
        sizeless.sort();
        for name in sizeless {
            let message = format!("zero size shared memory zone \"{name}\"");
            self.note(ended, Diagnostic::new(LogLevel::Emerg, message, None));
        }
    }

    /// Refuses upstream buffer sizes that do not fit one another, and malformed parameters.
    fn check_origins(&mut self) {
        let mut faults: Vec<(LogLevel, String)> = Vec::new();
        for location in &self.http.locations {
            for family in CHECKED {
                let sizes = wrong_sizes(location.settings.origin_of(family));
                let own = |text: &str| text.replace(FASTCGI, family.prefix());
                faults.extend(sizes.map(|text| (LogLevel::Emerg, own(text))));
                faults.extend(self.wrong_cache(location.settings.cache_of(family), family));
            }
        }
        let params = std::mem::take(&mut self.http.param_faults);
        faults.extend(params.into_iter().map(|text| (LogLevel::Emerg, text)));
        faults.dedup();
        for (level, message) in faults {
            let place = Some(self.http.closed_at.clone());
            self.say(level, message, place);
        }
    }

    /// The error in the zone of a location, or in its key.
    fn wrong_cache(
        &self,
        cache: &CacheSettings,
        family: DirectiveFamily,
    ) -> Option<(LogLevel, String)> {
        let prefix = family.prefix();
        let unknown = |directive: &str, id: CacheZoneId| {
            let (name, zone) = &self.http.cache_zones[id.index()];
            let text = || format!("\"{prefix}{directive}\" zone \"{}\" is unknown", show(name));
            zone.is_none().then(|| (LogLevel::Emerg, text()))
        };
        let zone = match &cache.zone {
            ZoneUse::Zone(id) => unknown("cache", *id),
            ZoneUse::Off | ZoneUse::Text(_) => None,
        };
        let purged = match &cache.purge {
            CachePurge::Key { zone, .. } => unknown("cache_purge", *zone),
            CachePurge::Off | CachePurge::When(_) | CachePurge::Method { .. } => None,
        };
        // The key of `proxy_cache` has a default.
        let keyless = cache.zone != ZoneUse::Off && cache.key.is_none();
        let warning = || {
            let text = format!("no \"{prefix}cache_key\" for \"{prefix}cache\"");
            keyless.then_some((LogLevel::Warn, text))
        };
        zone.or(purged).or_else(warning)
    }

    /// Refuses two locations with the same prefix in one block; the inner ones come first.
    fn check_locations(&mut self) {
        let mut twice = Vec::new();
        for server in &self.http.servers {
            self.find_twice(server.root, &mut twice);
        }
        for id in twice {
            let location = &self.http.locations[id.index()];
            // nginx writes the place into the text here.
            let (name, place) = (show(&location.name), location.place.clone());
            let message = format!("duplicate location \"{name}\"");
            self.say(LogLevel::Emerg, message, Some(place));
        }
        for Unguarded { level, message, place } in unguarded(&self.http) {
            self.say(level, message, Some(place));
        }
    }

    fn find_twice(&self, id: LocationId, twice: &mut Vec<LocationId>) {
        let nested = &self.http.locations[id.index()].nested;
        let mut plain: Vec<(&[u8], bool, LocationId)> = Vec::new();
        for inner in nested {
            match &self.http.locations[inner.index()].matcher {
                Matcher::Exact(path) => plain.push((path, false, *inner)),
                Matcher::Prefix { path, .. } => plain.push((path, true, *inner)),
                Matcher::Root | Matcher::If | Matcher::Regex(_) | Matcher::Named(_) => {}
            }
        }
        // A stable sort: of two equal ones the later is the duplicate.
        plain.sort_by_key(|(path, is_prefix, _)| (*path, *is_prefix));
        for (_, _, inner) in &plain {
            self.find_twice(*inner, twice);
        }
        for pair in plain.windows(2) {
            if pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1 {
                twice.push(pair[1].2);
            }
        }
    }

    /// Refuses charsets between which no map leads, and finds out where bodies may be recoded.
    fn check_charsets(&mut self, ended: DirectiveNode) {
        let text = |charset: &CharsetOf| match charset {
            CharsetOf::Name(name) => name.as_text().map(<[u8]>::to_vec),
            CharsetOf::Off => None,
        };
        let charsets = &self.http.charsets;
        let wanted = self.http.locations.iter().find_map(|location| {
            let charset = &location.settings.charset;
            let (from, to) = (text(&charset.source)?, text(&charset.charset)?);
            let is_covered =
                from.eq_ignore_ascii_case(&to) || charsets.between(&from, &to).is_some();
            (!is_covered).then_some((from, to))
        });
        if let Some((from, to)) = wanted {
            let (from, to) = (show(&from), show(&to));
            let message =
                format!("no \"charset_map\" between the charsets \"{from}\" and \"{to}\"");
            self.note(ended, Diagnostic::new(LogLevel::Emerg, message, None));
        }
        let has_maps = !self.http.charsets.maps.is_empty();
        for location in &mut self.http.locations {
            let charset = &location.settings.charset;
            let varies =
                |of: &CharsetOf| matches!(of, CharsetOf::Name(name) if name.as_text().is_none());
            if charset.source != CharsetOf::Off
                && (has_maps || varies(&charset.source) || varies(&charset.charset))
            {
                let settings = Arc::make_mut(&mut location.settings);
                Arc::make_mut(&mut settings.charset).recodes = true;
            }
        }
    }

    /// Requires a certificate for every server that a TLS connection may select.
    fn check_certificates(&mut self) {
        let lacks_authority = |tls: &TlsConf| {
            let wants = matches!(tls.verify_client, VerifyClient::On | VerifyClient::Optional);
            let has = tls.client_certificate.is_some() || tls.trusted_certificate.is_some();
            wants && !has && !tls.certificates.is_empty()
        };
        if self.http.servers.iter().any(|server| lacks_authority(&server.tls)) {
            let message =
                "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client";
            self.say(LogLevel::Emerg, message.to_owned(), None);
        }
        let clashes = |tls: &TlsConf| {
            tls.stapling && tls.certificate_compression && !tls.certificates.is_empty()
        };
        if self.http.servers.iter().any(|server| clashes(&server.tls)) {
            let message = "\"ssl_stapling\" is incompatible with \"ssl_certificate_compression\"";
            self.say(LogLevel::Emerg, message.to_owned(), None);
        }
        let mut faults = Vec::new();
        for listen in self.http.listens.iter().filter(|listen| listen.tls) {
            let word = if listen.transport == ListenTransport::Quic { "quic" } else { "ssl" };
            let default = &self.http.servers[listen.default_server.index()];
            if listen.transport == ListenTransport::Quic && !default.tls.protocols.tls13 {
                let message = format!(
                    "\"ssl_protocols\" must enable TLSv1.3 for the \"listen ... {word}\" directive"
                );
                faults.push((message, default.place.clone()));
                continue;
            }
            let lacking = if default.tls.certificates.is_empty() && !default.tls.reject_handshake {
                Some(default)
            } else if default.tls.certificates.is_empty() {
                let mut servers = listen.servers.iter().map(|id| &self.http.servers[id.index()]);
                servers.find(|server| {
                    server.tls.certificates.is_empty() && !server.tls.reject_handshake
                })
            } else {
                None
            };
            if let Some(server) = lacking {
                let message = format!(
                    "no \"ssl_certificate\" is defined for the \"listen ... {word}\" directive"
                );
                faults.push((message, server.place.clone()));
            }
        }
        for (message, place) in faults {
            self.say(LogLevel::Emerg, message, Some(place));
        }
    }

    /// Refuses variables that neither the server nor a capture defines.
    fn check_variables(&mut self) {
        let named = self.http.named.iter().zip(&self.http.named_first).enumerate();
        let unknown = named.filter(|(id, _)| !self.http.defined.contains(&(*id as u16)));
        let mut unknown: Vec<_> =
            unknown.map(|(_, (name, first))| (*first, name.clone())).collect();
        // Variables of one directive keep their order, which is that of their numbers.
        unknown.sort_by_key(|(first, _)| *first);
        for (_, name) in unknown {
            self.say(LogLevel::Emerg, format!("unknown \"{name}\" variable"), None);
        }
    }

    /// Warns about names that two servers of one address claim; refuses stars in the middle.
    fn check_names(&mut self) {
        let mut said = Vec::new();
        for listen in &self.http.listens {
            // With a single server every name leads to it.
            if listen.servers.len() > 1 || self.has_captures(listen) {
                self.check_names_of(listen, &mut said);
            }
        }
        for (level, message) in said {
            self.say(level, message, None);
        }
    }

    /// Whether the last expression among the names captures: as in nginx, names of an only server
    /// are looked at then.
    fn has_captures(&self, listen: &Listen) -> bool {
        let names = self.http.servers[listen.default_server.index()].names.iter();
        let last = names.rev().find_map(|name| match name {
            ServerName::Regex(regex) => Some(regex),
            _ => None,
        });
        last.is_some_and(|regex| regex.groups() > 1)
    }

    fn check_names_of(&self, listen: &Listen, said: &mut Vec<(LogLevel, String)>) {
        // Names in use: exact names, suffixes (`.a.com`), prefixes (`a.`).
        let mut exact: HashSet<&str> = HashSet::new();
        let mut suffixes: HashSet<&str> = HashSet::new();
        let mut prefixes: HashSet<&str> = HashSet::new();
        for id in &listen.servers {
            for name in &self.http.servers[id.index()].names {
                let (fresh, shown) = match name {
                    ServerName::Regex(_) => continue,
                    ServerName::Exact(text) => (exact.insert(text), text.to_string()),
                    ServerName::Prefix(text) => (prefixes.insert(text), format!("{text}*")),
                    ServerName::Suffix(text) => (suffixes.insert(text), format!("*{text}")),
                    ServerName::SuffixOrSelf(text) => {
                        let free = !exact.contains(&text[1..]) && !suffixes.contains(&**text);
                        if free {
                            exact.insert(&text[1..]);
                            suffixes.insert(text);
                        }
                        (free, text.to_string())
                    }
                };
                let address = &listen.address;
                if is_malformed(name) {
                    let message =
                        format!("invalid server name or wildcard \"{shown}\" on {address}");
                    said.push((LogLevel::Emerg, message));
                    return;
                }
                if !fresh {
                    let message =
                        format!("conflicting server name \"{shown}\" on {address}, ignored");
                    said.push((LogLevel::Warn, message));
                }
            }
        }
    }
}

/// A location that only purges belongs to the family of its directive.
fn settle_purge(location: &mut LocationConf) {
    if location.settings.cache.purge != CachePurge::Off {
        return;
    }
    let purges = CHECKED.map(|family| &location.settings.cache_of(family).purge);
    let found = purges.into_iter().find(|purge| matches!(purge, CachePurge::Key { .. }));
    if let Some(purge) = found.cloned() {
        Arc::make_mut(&mut location.settings).cache_mut(DirectiveFamily::Application).purge = purge;
    }
}

/// Warns of keys of secrets where there is nothing secret to share.
fn check_secrets(r: &mut ConfReader) {
    let keys = r.http.cluster.as_ref().map(|cluster| &cluster.secrets_keys[..]);
    let Some((_, place)) = keys.and_then(<[_]>::first).cloned() else { return };
    let has_tls = r.http.listens.iter().any(|listen| listen.tls);
    if !has_tls && r.http.shared_limits.is_empty() {
        let text = "\"secrets_key\" has no effect: no server listens with \"ssl\" or \"quic\", \
                    and no zone is \"shared\"";
        r.say(LogLevel::Warn, text.to_owned(), Some(place));
    }
}

/// Groups with names that are looked up while serving ask as the `http` block does.
fn settle_resolvers(http: &mut HttpDraft) {
    let Some(settings) = http.settings.clone() else { return };
    for group in &mut http.upstreams {
        if group.servers.iter().all(|server| server.resolve.is_none()) {
            continue;
        }
        group.resolver = group.resolver.take().or_else(|| settings.resolver.clone());
        group.resolver_timeout.get_or_insert(settings.resolver_timeout);
        let (name, place) = (&group.name, &group.place);
        let shown = format!("upstream \"{name}\" in {}:{}", place.file, place.line);
        let message = if !group.is_shared {
            format!("resolving names at run time requires {shown} to be in shared memory")
        } else if group.resolver.is_none() {
            format!("no resolver defined to resolve names at run time in {shown}")
        } else {
            continue;
        };
        // The order of the block does not matter: nginx ends at the first one.
        // The message has the place already.
        http.upstream_faults.push((DirectiveNode::default(), message, None));
    }
}

/// The error in the sizes of buffers; the rules are nginx's.
fn wrong_sizes(origin: &OriginSettings) -> Option<&'static str> {
    let (count, size) = origin.buffers;
    let largest = origin.buffer_size.max(size);
    let all_but_one = (count.saturating_sub(1) as usize).saturating_mul(size);
    if count < 2 {
        Some("there must be at least 2 \"fastcgi_buffers\"")
    } else if origin.busy_buffers_size < largest {
        Some(
            "\"fastcgi_busy_buffers_size\" must be equal to or greater than the maximum of the \
             value of \"fastcgi_buffer_size\" and one of the \"fastcgi_buffers\"",
        )
    } else if origin.busy_buffers_size > all_but_one {
        Some(
            "\"fastcgi_busy_buffers_size\" must be less than the size of all \
             \"fastcgi_buffers\" minus one buffer",
        )
    } else if origin.temp_file_write_size < largest {
        Some(
            "\"fastcgi_temp_file_write_size\" must be equal to or greater than the maximum of \
             the value of \"fastcgi_buffer_size\" and one of the \"fastcgi_buffers\"",
        )
    } else if origin.max_temp_file_size != 0 && origin.max_temp_file_size < largest as u64 {
        Some(
            "\"fastcgi_max_temp_file_size\" must be equal to zero to disable temporary files \
             usage or must be equal to or greater than the maximum of the value of \
             \"fastcgi_buffer_size\" and one of the \"fastcgi_buffers\"",
        )
    } else {
        None
    }
}

/// A star that is neither the first nor the last label, or two dots in a row; nginx's definition.
fn is_malformed(name: &ServerName) -> bool {
    match name {
        ServerName::Exact(text) | ServerName::Suffix(text) | ServerName::Prefix(text) => {
            text.contains('*') || text.contains("..")
        }
        ServerName::SuffixOrSelf(text) => text.matches('*').count() > 1 || text.contains(".."),
        ServerName::Regex(_) => false,
    }
}
