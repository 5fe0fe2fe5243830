//! The whole configuration: the main block, `http`, and a `server` for each virtual host.

use std::collections::BTreeSet;

use crate::balancers;
use crate::early;
use crate::handlers;
use crate::import::{ConfPlace, ImportRequest, Imported};
use crate::listens::{self, ListenAt, ListenLine, VhostAddress};
use crate::logs::{self, Formats};
use crate::named_places;
use crate::names::STATIC_MODULES;
use crate::out::ConfText;
use crate::paths;
use crate::php::{self, Runner};
use crate::prepare::prepare;
use crate::proxy_protocol::ProxyProtocol;
use crate::read::SettledNames;
use crate::server::{Server, server_name};
use crate::settings;
use crate::tls;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// Puts it all together.
pub(crate) fn write(
    mut nodes: Vec<ApacheNode>,
    notes: Vec<(ConfPlace, String)>,
    names: &SettledNames,
    request: &ImportRequest<'_>,
) -> Imported {
    let mut out = ConfText::default();
    prepare(&mut nodes, request.types);
    let (vhosts, main): (Vec<ApacheNode>, Vec<ApacheNode>) =
        nodes.into_iter().partition(|node| node.lower == "<virtualhost");
    out.own(format!("# Made from {} by bolide import apache.", request.path.display()));
    out.own("# Lines \"# FILE:LINE:\" say what became of a line that has no counterpart.");
    out.own("# CLOSED marks places that answer with an error, because what restricts them is not");
    out.own("# understood. UNVERIFIED marks backends of whose certificate Apache checks more.");
    out.own("");
    let whole = Whole::new(&main, &vhosts);
    whole.main_block(&mut out);
    out.own("events { }");
    out.own("");
    out.own("http {");
    let mut inner = ConfText::default();
    known_names(names, &mut inner);
    whole.http(request, &mut inner);
    out.nest(inner);
    out.own("}");
    out.own("");
    for (place, text) in notes {
        out.note(&place, text);
    }
    let covered: BTreeSet<ConfPlace> = out.places().cloned().collect();
    for node in main.iter().chain(&vhosts) {
        node.each(&mut |node| {
            if !covered.contains(&node.place) && !out.covers(&node.place) {
                out.note(&node.place, format!("{} {}: without effect", node.name, node.rest));
            }
        });
    }
    out.finish()
}

/// What `<IfModule>` and `<IfDefine>` of `.htaccess` files find.
fn known_names(names: &SettledNames, out: &mut ConfText) {
    if !names.modules.is_empty() {
        let loaded = names.modules.iter().map(String::as_str);
        let all: BTreeSet<&str> = STATIC_MODULES.into_iter().chain(loaded).collect();
        let all: Vec<String> = all.into_iter().map(quoted).collect();
        out.own(format!("apache_modules {};", all.join(" ")));
    }
    if !names.defines.is_empty() {
        let all: Vec<String> = names.defines.iter().map(|name| quoted(name)).collect();
        out.own(format!("apache_define {};", all.join(" ")));
    }
}

/// The configuration in its parts.
struct Whole<'a> {
    main: &'a [ApacheNode],
    servers: Vec<Server<'a>>,
    lines: Vec<ListenLine>,
    others: Vec<VhostAddress>,
    protocol: ProxyProtocol<'a>,
}

impl<'a> Whole<'a> {
    fn new(main: &'a [ApacheNode], vhosts: &'a [ApacheNode]) -> Self {
        let servers: Vec<_> = vhosts
            .iter()
            .map(|node| Server {
                place: node.place.clone(),
                addresses: node.words().iter().flat_map(|word| listens::addresses(word)).collect(),
                own: &node.children,
                main,
            })
            .collect();
        let lines = main.iter().filter(|node| node.lower == "listen").flat_map(listens::listen);
        let others = servers.iter().flat_map(|server| server.addresses.clone()).collect();
        let protocol = ProxyProtocol::new(main, &servers);
        Self { main, lines: lines.collect(), servers, others, protocol }
    }

    fn last(&self, name: &str) -> Option<&'a ApacheNode> {
        self.main.iter().rfind(|node| node.lower == name)
    }

    fn main_block(&self, out: &mut ConfText) {
        if let Some(user) = self.last("user") {
            let group = self.last("group");
            let text =
                group.map(|group| format!(" {}", quoted(&group.first()))).unwrap_or_default();
            if let Some(group) = group {
                out.note(&group.place, format!("Group {}: in user", group.rest));
            }
            let is_number = user.first().starts_with('#');
            match is_number {
                true => out.note(&user.place, format!("User {}: not translated", user.rest)),
                false => out.put(&user.place, format!("user {}{text};", quoted(&user.first()))),
            }
        }
        if let Some(node) = self.last("pidfile") {
            let path = node.first();
            let is_of_system = ["/run/", "/var/run/"].iter().any(|start| path.starts_with(start));
            // The directory of Apache's may be gone when Apache does not start any more.
            let path = if is_of_system { "/run/bolide.pid".to_owned() } else { path };
            if path.starts_with('/') {
                out.put(&node.place, format!("pid {};", quoted(&path)));
            }
        }
        out.own("worker_processes auto;");
        if let Some(node) = self.last("errorlog") {
            logs::error_log(node, self.last("loglevel"), out);
        }
    }

    fn http(&self, request: &ImportRequest<'_>, out: &mut ConfText) {
        let server = Server {
            place: ConfPlace { file: request.path.to_string_lossy().into(), line: 1 },
            addresses: Vec::new(),
            own: self.main,
            main: &[],
        };
        out.own("default_type \"\";");
        out.own("server_names_hash_bucket_size 128;");
        out.own("port_in_redirect host;");
        let mut formats: Vec<&ApacheNode> = Vec::new();
        for nodes in std::iter::once(self.main).chain(self.servers.iter().map(|it| it.own)) {
            let is_format =
                |node: &&ApacheNode| matches!(&node.lower[..], "logformat" | "customlog");
            formats.extend(nodes.iter().filter(is_format));
        }
        let formats = logs::formats(&formats, out);
        let writes_log =
            |node: &ApacheNode| node.lower == "customlog" && !node.first().starts_with('|');
        if !self.main.iter().any(writes_log) {
            out.own("access_log off;");
        }
        settings::common(self.main, &formats, out);
        if let Some(node) = self.last("typesconfig") {
            out.note(&node.place, format!("TypesConfig {}: the types are below", node.rest));
        }
        let has_own_body =
            |nodes: &[ApacheNode]| nodes.iter().any(|node| node.lower == "limitrequestbody");
        if !has_own_body(self.main) {
            out.own("client_max_body_size 1g;");
        }
        self.pools(out);
        let runs = self
            .servers
            .iter()
            .chain([&server])
            .any(|server| !handlers::programs(server).is_empty());
        if runs || self.everywhere("proxypassmatch") {
            out.own("");
            let script = "$document_root$fastcgi_script_name";
            php::parameters(script, &server).into_iter().for_each(|line| out.own(line));
        }
        if self.everywhere("proxypass") || self.everywhere("proxypassmatch") {
            for (name, own) in [("host", "$http_host"), ("server", "$server_name")] {
                out.own(format!(
                    "map $http_x_forwarded_{name} $apache_forwarded_{name} {{ \"\" {own}; \
                     default \"$http_x_forwarded_{name}, {own}\"; }}"
                ));
            }
        }
        if self.everywhere("proxypass") {
            out.own("map $http_upgrade $apache_connection { default upgrade; \"\" close; }");
        }
        settings::real_ip(self.main, &[], out);
        balancers::write(self.main, self.servers.iter().map(|it| it.own), out);
        out.own("");
        named_places::write(self.main, &[], out);
        let mut seen = Vec::new();
        let closed = settings::unknown(self.main, out);
        for one in &self.servers {
            let at = listens::places(&self.lines, &one.addresses, &self.others);
            self.server(one, &at, &formats, closed, &mut seen, out);
        }
        let left = listens::left_over(&self.lines, &self.others);
        if !left.is_empty() {
            self.server(&server, &left, &formats, closed, &mut seen, out);
        }
        out.own("");
        request.types.lines().for_each(|line| out.own(line));
    }

    fn everywhere(&self, name: &str) -> bool {
        let mut found = false;
        for node in self.main.iter().chain(self.servers.iter().flat_map(|it| it.own)) {
            node.each(&mut |node| found |= node.lower == name);
        }
        found
    }

    /// A pool for each account whose scripts a handler of the server itself runs.
    fn pools(&self, out: &mut ConfText) {
        let mut done = BTreeSet::new();
        for server in &self.servers {
            let rules = handlers::programs(server);
            let Some(rule) = rules.iter().find(|rule| rule.runner == Runner::Pool) else {
                continue;
            };
            let account = server.account();
            let user = account.as_ref().map(|(_, user, _)| &user[..]);
            if !done.insert(php::pool_name(user)) {
                continue;
            }
            self.pool(&rule.place, account.as_ref(), out);
        }
        let has_main = self.main.iter().any(|node| node.lower == "listen");
        if done.is_empty() && has_main && self.servers.is_empty() {
            let server = Server {
                place: self.main[0].place.clone(),
                addresses: vec![],
                own: self.main,
                main: &[],
            };
            let rules = handlers::programs(&server);
            if let Some(rule) = rules.iter().find(|rule| rule.runner == Runner::Pool) {
                self.pool(&rule.place, None, out);
            }
        }
    }

    fn pool(
        &self,
        place: &ConfPlace,
        account: Option<&(&ApacheNode, String, Option<String>)>,
        out: &mut ConfText,
    ) {
        let name = php::pool_name(account.map(|(_, user, _)| &user[..]));
        out.open(place, format!("php_pool {name}"));
        match account {
            Some((node, user, group)) => {
                let group = group.as_ref().map(|group| format!(" {}", quoted(group)));
                out.put(
                    &node.place,
                    format!("user {}{};", quoted(user), group.unwrap_or_default()),
                );
            }
            None => {
                let main = |name| self.last(name).map(|node| quoted(&node.first()));
                if let Some(user) = main("user").filter(|user| !user.starts_with(['#', '"'])) {
                    let group = main("group").map(|it| format!(" {it}")).unwrap_or_default();
                    out.own(format!("user {user}{group};"));
                }
            }
        }
        out.close();
    }

    fn server(
        &self,
        server: &Server<'_>,
        at: &[ListenAt],
        formats: &Formats,
        closed: bool,
        seen: &mut Vec<(ListenAt, String)>,
        out: &mut ConfText,
    ) {
        out.own("");
        if at.is_empty() {
            out.note(&server.place, "<VirtualHost>: no Listen is for its addresses");
            return;
        }
        out.open(&server.place, "server");
        self.addresses(server, at, seen, out);
        let root = server.root();
        match &root {
            Some((node, path)) => out.put(&node.place, format!("root {};", quoted(path))),
            None => out.own("root /nonexistent;"),
        }
        let takes_address = self.protocol.write(server, at, out);
        if !std::ptr::eq(server.own, self.main) {
            settings::common(server.own, formats, out);
            if !takes_address {
                settings::real_ip(server.own, self.main, out);
            }
            named_places::write(server.own, &[self.main, server.own], out);
        } else {
            named_places::write(&[], &[self.main], out);
        }
        if !std::ptr::eq(server.own, self.main) && settings::unknown(server.own, out) || closed {
            out.own("return 503;");
        }
        if listens::is_unclear(&self.lines, &server.addresses) {
            out.comment_closed(
                &server.place,
                "<VirtualHost>: the addresses of a name are not known",
            );
            out.own("return 503;");
        }
        if let Some(node) = server.last("usecanonicalname").filter(|it| it.keyword() == "on") {
            out.put(&node.place, "server_name_in_redirect on;");
        }
        early::write(server, out);
        paths::write(server, root.as_ref().map(|(_, path)| &path[..]), out);
        out.close();
    }

    fn addresses(
        &self,
        server: &Server<'_>,
        at: &[ListenAt],
        seen: &mut Vec<(ListenAt, String)>,
        out: &mut ConfText,
    ) {
        let has_tls = server.is_on("sslengine");
        let ssl = if has_tls { " ssl" } else { "" };
        for listen in at {
            let line = self
                .lines
                .iter()
                .find(|line| listen.to_string().ends_with(&format!(":{}", line.port)));
            let protocol = if self.protocol.at(listen).is_some() { " proxy_protocol" } else { "" };
            for words in listen.words() {
                let text = format!("listen {words}{ssl}{protocol};");
                out.put(line.map_or(&server.place, |line| &line.place), text);
            }
        }
        if let Some(node) = server.last("protocols") {
            match node.words().iter().any(|word| word.eq_ignore_ascii_case("h2")) {
                true => out.put(&node.place, "http2 on;"),
                false => out.note(&node.place, format!("Protocols {}", node.rest)),
            }
        }
        let mut names = Vec::new();
        for (place, name) in server.names() {
            let taken = |(listen, known): &(ListenAt, String)| {
                at.contains(listen) && bolide_htaccess::fits(known.as_bytes(), name.as_bytes())
            };
            if seen.iter().any(taken) {
                out.note(&place, format!("{name}: a server before has this name"));
            } else {
                names.push((place, name));
            }
        }
        for (_, name) in &names {
            seen.extend(at.iter().map(|listen| (listen.clone(), name.clone())));
        }
        match names.first() {
            Some((place, _)) => {
                let all: Vec<_> = names.iter().map(|(_, name)| server_name(name)).collect();
                let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
                all.dedup();
                out.put(place, format!("server_name {};", all.join(" ")));
                for (other, name) in &names[1..] {
                    if other != place {
                        out.note(other, format!("ServerAlias {name}"));
                    }
                }
            }
            None => out.put(&server.place, format!("server_name _{};", server.place.line)),
        }
        if has_tls {
            tls::write(server, out);
        }
    }
}
