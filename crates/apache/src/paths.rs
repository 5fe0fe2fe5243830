//! Locations: what is redirected, rewritten, passed on, aliased, and run by a program.

use crate::access;
use crate::body::is_engine;
use crate::error_pages;
use crate::expression::quoted_regex;
use crate::handlers;
use crate::heads::Heads;
use crate::matching::PlacePaths;
use crate::out::ConfText;
use crate::php;
use crate::proxy;
use crate::redirect;
use crate::rewrite;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::quoted;

const REDIRECTS: [&str; 4] = ["redirect", "redirectmatch", "redirectpermanent", "redirecttemp"];

/// What is about paths of requests.
pub(crate) fn write(server: &Server<'_>, root: Option<&str>, out: &mut ConfText) {
    let entries = proxy::entries(server);
    let before = proxy::prefixes(&entries);
    let programs = handlers::programs(server);
    if !programs.is_empty() {
        // Before the rules, which may end what comes after them.
        confinement(server, out);
    }
    if server.is_on("rewriteengine") && server.own.iter().any(|node| node.lower == "rewriteengine")
    {
        let rules = |node: &&ApacheNode| matches!(&node.lower[..], "rewritecond" | "rewriterule");
        let mut all: Vec<&ApacheNode> = server.own.iter().filter(rules).collect();
        let inherits = |node: &ApacheNode| {
            node.lower == "rewriteoptions" && node.rest.to_ascii_lowercase().contains("inherit")
        };
        if server.own.iter().chain(server.main).any(inherits) {
            all.extend(server.main.iter().filter(rules));
        }
        let goes_on = server.all(&REDIRECTS).next().is_some();
        rewrite::write(&all, server, root, goes_on, out);
    }
    for node in server.all(&REDIRECTS) {
        redirect::write(node, &before, out);
    }
    let pool = php::pool_name(server.account().as_ref().map(|(_, user, _)| &user[..]));
    let mut heads = Heads::default();
    handlers::write(&programs, &pool, out);
    status_pages(server, &entries, &mut heads, out);
    aliases(server, &entries, &mut heads, out);
    error_pages::page(server, out);
    proxy::write(server, &entries, &mut heads, out);
}

fn aliases(
    server: &Server<'_>,
    entries: &[proxy::ProxyEntry<'_>],
    heads: &mut Heads,
    out: &mut ConfText,
) {
    let mut done: Vec<String> = Vec::new();
    for node in server.all(&["alias", "scriptalias", "aliasmatch", "scriptaliasmatch"]) {
        let words = node.words();
        let [path, to] = &words[..] else {
            out.note(&node.place, format!("{} {}: not understood", node.name, node.rest));
            continue;
        };
        let plain = if node.lower == "aliasmatch" { plain_alias(path, to) } else { None };
        let is_plain = plain.is_some();
        let (path, to) = &plain.unwrap_or_else(|| (path.clone(), to.clone()));
        if node.lower.ends_with("match") && !is_plain || !path.starts_with('/') {
            out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
            out.own(format!("location ~ {} {{ return 503; }}", quoted_regex(path)));
            continue;
        }
        let is_late = done.iter().any(|known| redirect::covers(known, path));
        if is_late || proxy::answers(entries, path) {
            out.note(&node.place, format!("{} {path}: one before answers there", node.name));
            continue;
        }
        done.push(path.clone());
        if node.lower == "scriptalias" {
            out.note(&node.place, format!("ScriptAlias {path}: no CGI program is run"));
            let head = format!("^~ {}", quoted(&format!("{}/", path.trim_end_matches('/'))));
            if heads.take(&head) {
                out.put(&node.place, format!("location {head} {{ return 503; }}"));
            }
            continue;
        }
        let mut passed = [ConfText::default(), ConfText::default()];
        let below = PlacePaths::Below(format!("{}/", path.trim_end_matches('/')));
        for (paths, out) in [PlacePaths::One(path.clone()), below].iter().zip(&mut passed) {
            proxy::close_passed(server, entries, paths, out);
        }
        alias(node, (path, to), passed, heads, out);
    }
}

/// What an expression and its target say that only carry over what stands behind a prefix.
fn plain_alias(regex: &str, to: &str) -> Option<(String, String)> {
    let (rest, to) = (regex.strip_prefix('^')?, to.strip_suffix("$1")?);
    let rest = rest.strip_suffix('$').unwrap_or(rest);
    let (text, is_closed) = match (rest.strip_suffix("(/.*)?"), rest.strip_suffix("(.*)")) {
        (Some(text), _) => (text, false),
        (None, Some(text)) if text.ends_with('/') && to.ends_with('/') => (text, true),
        _ => return None,
    };
    let mut path = String::new();
    let mut all = text.chars();
    while let Some(one) = all.next() {
        match one {
            '\\' => path.push(all.next().filter(char::is_ascii_punctuation)?),
            one if one.is_ascii_alphanumeric() || "/-_~%,:@=".contains(one) => path.push(one),
            _ => return None,
        }
    }
    let is_whole = is_closed == path.ends_with('/') && is_closed == to.ends_with('/');
    (is_whole && path.starts_with('/') && path.len() > 1 && !to.contains('$'))
        .then(|| (path, to.to_owned()))
}

/// The locations of an alias.
fn alias(
    node: &ApacheNode,
    (path, to): (&str, &str),
    [of_one, of_below]: [ConfText; 2],
    heads: &mut Heads,
    out: &mut ConfText,
) {
    let bare = (path.trim_end_matches('/'), to.trim_end_matches('/'));
    let closed = (format!("{}/", bare.0), format!("{}/", bare.1));
    let (exact, below) = (format!("= {}", quoted(path)), format!("^~ {}", quoted(&closed.0)));
    if !path.ends_with('/') && heads.take(&exact) {
        out.open(&node.place, format!("location {exact}"));
        out.append(of_one);
        out.put(&node.place, format!("alias {};", quoted(bare.1)));
        out.close();
    }
    if !heads.take(&below) {
        return out.note(&node.place, format!("{} {path}: a handler is there", node.name));
    }
    out.open(&node.place, format!("location {below}"));
    out.append(of_below);
    out.put(&node.place, format!("alias {};", quoted(&closed.1)));
    out.close();
}

/// The server's status, where a `<Location>` has it.
fn status_pages(
    server: &Server<'_>,
    entries: &[proxy::ProxyEntry<'_>],
    heads: &mut Heads,
    out: &mut ConfText,
) {
    let mut done: Vec<String> = Vec::new();
    // Of several sections for one path the last one counts.
    for section in server.main.iter().chain(server.own).rev() {
        let last = section.children.iter().rfind(|node| node.lower == "sethandler");
        let Some(handler) = last.filter(|_| section.lower == "<location") else { continue };
        let (word, path) = (handler.first(), section.first());
        let is_later = done.contains(&path);
        done.push(path.clone());
        if !handlers::is_status(section, handler) {
            continue;
        }
        if proxy::answers(entries, &path) {
            out.note(&handler.place, format!("SetHandler {word}: the proxy answers there"));
            continue;
        }
        let head = format!("= {}", quoted(&path));
        if is_later || !heads.take(&head) {
            out.note(&handler.place, format!("SetHandler {word}: a later one counts"));
            continue;
        }
        out.open(&section.place, format!("location {head}"));
        access::write(&access::sections(server, &PlacePaths::One(path), None, &[]), out);
        out.put(&handler.place, "stub_status;");
        out.close();
    }
}

/// `php_admin_value` and `php_admin_flag`, wherever they stand, for all scripts of a server: they
/// confine scripts.
fn confinement(server: &Server<'_>, out: &mut ConfText) {
    let mut all: Vec<(&ApacheNode, String, String)> = Vec::new();
    let mut clash = None;
    for node in server.main.iter().chain(server.own) {
        node.each(&mut |node| {
            if !matches!(&node.lower[..], "php_admin_value" | "php_admin_flag") {
                return;
            }
            if is_engine(node) {
                return;
            }
            let words = node.words();
            let [name, value] = &words[..] else { return clash = Some(node) };
            let is_plain = |text: &str| !text.contains(['$', '\n', '"', '\\']);
            let known = all.iter().find(|(_, known, _)| known == name);
            if known.is_some_and(|(_, _, known)| known != value)
                || !is_plain(name)
                || !is_plain(value)
            {
                return clash = Some(node);
            }
            all.push((node, name.clone(), value.clone()));
        });
    }
    if let Some(node) = clash {
        out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
        return out.own("return 503;");
    }
    let names_itself = |nodes: &[ApacheNode]| {
        let last = nodes.iter().rfind(|node| node.lower == "usecanonicalname");
        last.is_some_and(|node| node.keyword() == "on")
    };
    if all.is_empty() && server.is_on("usecanonicalname") == names_itself(server.main) {
        return;
    }
    let script = "$document_root$fastcgi_script_name";
    php::parameters(script, server).into_iter().for_each(|line| out.own(line));
    let value: Vec<String> = all.iter().map(|(_, name, value)| format!("{name}={value}")).collect();
    for (node, ..) in &all {
        out.note(&node.place, "in PHP_ADMIN_VALUE");
    }
    if value.is_empty() {
        return;
    }
    out.own(format!("fastcgi_param PHP_ADMIN_VALUE \"{}\";", value.join("\\n")));
}

#[cfg(test)]
mod tests {
    use super::plain_alias;

    #[test]
    fn an_expression_that_is_a_prefix_is_an_alias() {
        let rows = [
            ("^/icons/(.*)$", "/srv/i/$1", Some(("/icons/", "/srv/i/"))),
            ("^/i\\.x(/.*)?$", "/srv/i$1", Some(("/i.x", "/srv/i"))),
            ("^/icons(.*)", "/srv/i$1", None),
            ("^/icons/(.*)", "/srv/i$1", None),
            ("/icons/(.*)", "/srv/i/$1", None),
            ("^/~([^/]+)(/.*)?$", "/home/$1/www$2", None),
            ("^/a./(.*)", "/srv/$1", None),
            ("^/(.*)", "/srv/$1", None),
        ];
        for (regex, to, wanted) in rows {
            let wanted = wanted.map(|(path, to)| (path.to_owned(), to.to_owned()));
            assert_eq!(plain_alias(regex, to), wanted, "{regex}");
        }
    }
}
