//! Apache's directives for directories: `.htaccess` files, and what a server's configuration says
//! itself. What they may say is described in [htaccess.md](../htaccess.md).

use std::sync::Arc;

use bolide_htaccess::ServerPlace;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, added, flag};
use crate::model::{ApacheDirectory, ApacheHandler, ApacheProxy};
use crate::reader::{ConfReader, ReadFault, ReadResult};

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("apache_htaccess", Contexts::HSL, |r| &mut r.settings().apache_htaccess).doc(
        "Whether `.htaccess` files are read in the directories that lead to a file, from the \
         location's `root` on, and are obeyed as Apache obeys them. A change is noticed without a \
         reload. A file with a line that is not understood is answered with 500, one that cannot \
         be read with 403. Files whose names begin with `.ht` are not served.",
        "apache_htaccess on;",
    ),
    added("apache_directory", Contexts::HSL, Args::at_least(2), directory)
        .doc(
            "What Apache's configuration has in `<Directory>` (with wildcards), or with `~` \
             in `<DirectoryMatch>`, or with `-` outside of them: each argument is one line of it. \
             Lines are those of `.htaccess` files, and `AllowOverride`, which has them \
             read or not from that directory on. It holds for files and scripts, not for \
             `proxy_pass`.",
            "apache_directory /srv/www/private 'AllowOverride None' 'Require ip 192.0.2.0/24';",
        )
        .takes("DIRECTORY TEXT… | ~ REGEX TEXT… | - TEXT…")
        .without("none"),
    added("apache_define", Contexts::HTTP, Args::at_least(1), define)
        .doc(
            "The names for which `<IfDefine>` of `.htaccess` files is true, as by Apache's \
             `Define` and its option `-D`.",
            "apache_define PRODUCTION;",
        )
        .takes("NAME…")
        .without("none"),
    added("apache_modules", Contexts::HTTP, Args::at_least(1), modules)
        .doc(
            "The modules for which `<IfModule>` of `.htaccess` files is true, without the `mod_` \
             and the `_module` of their names, in place of those whose directives are known. In \
             a section that is true for another module, a directive that is not known is an \
             error (500).",
            "apache_modules core authz_core rewrite security2;",
        )
        .takes("NAME…")
        .without("those whose directives are known"),
    added("apache_proxy", Contexts::HSL, Args::TWO, proxy)
        .doc(
            "Where rules of `.htaccess` files with `[P]` may lead: addresses that begin with URL \
             are answered by the named location, with the path and the query that the rule made. A \
             rule with `[P]` that leads elsewhere is answered with 500.",
            "apache_proxy http://127.0.0.1:3000 @node;",
        )
        .takes("URL @NAME")
        .without("none"),
    added("apache_handler", Contexts::HSL, Args::TWO, handler)
        .doc(
            "The named location that answers for files whose handler is TEXT, by \
             `apache_directory` and `.htaccess` files: by `SetHandler`, `AddHandler`, a type of \
             `AddType`, or `[H=…]`. It gets the file as `SCRIPT_FILENAME`, and `PATH_INFO` begins \
             behind the file. Access is decided where the request was, not by that location. Names \
             of handlers count in any case. Where a handler is named so, a script that a later \
             section takes its handler from is answered with 403.",
            "apache_handler proxy:unix:/run/php.sock|fcgi://localhost @php;",
        )
        .takes("TEXT @NAME")
        .without("none"),
];

fn handler(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (name, location) = (node.arg(0), node.arg(1));
    if location.first() != Some(&b'@') || location.len() < 2 {
        return Err(ReadFault::Text("\"apache_handler\" needs a named location".to_owned()));
    }
    if matches!(&name.to_ascii_lowercase()[..], b"" | b"none" | b"default-handler") {
        let name = String::from_utf8_lossy(name);
        let text = format!("\"apache_handler\": no program is called \"{name}\"");
        return Err(ReadFault::Text(text));
    }
    let one = ApacheHandler { name: name.to_ascii_lowercase().into(), location: location.into() };
    Arc::make_mut(&mut r.settings().apache_handlers).push(one);
    Ok(())
}

fn define(r: &mut ConfReader, node: &Node) -> ReadResult {
    Arc::make_mut(&mut r.settings().apache_names).defines.extend(node.args().map(Box::from));
    Ok(())
}

fn modules(r: &mut ConfReader, node: &Node) -> ReadResult {
    let modules = &mut Arc::make_mut(&mut r.settings().apache_names).modules;
    modules.get_or_insert_default().extend(node.args().map(Box::from));
    Ok(())
}

fn proxy(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (url, location) = (node.arg(0), node.arg(1));
    let bad = |why: &str| {
        let url = String::from_utf8_lossy(url);
        ReadFault::Text(format!("\"apache_proxy\": {why} (\"{url}\")"))
    };
    let scheme = url.windows(3).position(|three| three == b"://").filter(|at| *at > 0);
    let host = scheme.ok_or_else(|| bad("a URL begins with its scheme"))? + 3;
    let len = url[host..].iter().position(|byte| *byte == b'/').unwrap_or(url.len() - host);
    if len == 0 || url.iter().any(|byte| b"?#".contains(byte)) {
        return Err(bad("a URL has a host, and neither \"?\" nor \"#\""));
    }
    if location.first() != Some(&b'@') || location.len() < 2 {
        return Err(ReadFault::Text("\"apache_proxy\" needs a named location".to_owned()));
    }
    let (origin, path) = url.split_at(host + len);
    let one = ApacheProxy {
        origin: origin.to_ascii_lowercase().into(),
        path: path.into(),
        location: location.into(),
    };
    Arc::make_mut(&mut r.settings().apache_proxies).push(one);
    Ok(())
}

fn directory(r: &mut ConfReader, node: &Node) -> ReadResult {
    let words: Vec<&[u8]> = node.args().collect();
    let place = ServerPlace::parse(&words).map_err(|fault| {
        let line = words.iter().rev().nth(words_behind(&words, fault.line)).copied();
        let line = line.map(String::from_utf8_lossy).unwrap_or_default();
        ReadFault::Text(format!("\"apache_directory\": {} (\"{line}\")", fault.message))
    })?;
    let words = words.into_iter().map(Box::from).collect();
    let one = ApacheDirectory { words, place: Arc::new(place) };
    Arc::make_mut(&mut r.settings().apache_directories).push(one);
    Ok(())
}

/// How many words stand behind a line of a section.
fn words_behind(words: &[&[u8]], line: u32) -> usize {
    let before = if words.first() == Some(&&b"~"[..]) { 2 } else { 1 };
    (words.len() - before).saturating_sub(line as usize)
}
