//! What stands in `<Directory>` and its kin, as lines that `apache_directory` takes. One line that
//! is not understood and may keep clients out closes the section.

use bolide_htaccess::ServerPlace;

use crate::handlers;
use crate::import::ConfPlace;
use crate::names;
use crate::out::ConfText;
use crate::tree::ApacheNode;

/// SectionLines with where they stand.
pub(crate) type SectionLines = Vec<(ConfPlace, String)>;

/// What kind of section it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// Outside of sections.
    Server,
    /// `<Directory>`: the only one where `AllowOverride` may stand.
    Directory,
    /// `<Files>`, `<Location>`, `<If>` and the others.
    Other,
}

/// Directives that are understood within `<Directory>`, but by another part of the configuration.
const ELSEWHERE: [&str; 7] = [
    "suexecusergroup",
    "assignuserid",
    "ruidgid",
    "suphp_usergroup",
    "limitrequestbody",
    "php_admin_value",
    "php_admin_flag",
];

/// Whether the lines are understood.
pub(crate) fn is_understood(lines: &[String]) -> Result<(), String> {
    let mut words: Vec<&[u8]> = vec![b"-"];
    words.extend(lines.iter().map(|line| line.as_bytes()));
    ServerPlace::parse(&words).map(drop).map_err(|fault| fault.message)
}

/// Whether one directive is understood.
pub(crate) fn is_line(node: &ApacheNode) -> bool {
    !node.is_section() && is_understood(&[line_of(node)]).is_ok()
}

fn line_of(node: &ApacheNode) -> String {
    format!("{} {}", node.name, node.rest).trim_end().to_owned()
}

/// SectionLines that keep every client out, whatever else is said about the place.
pub(crate) fn closing(place: &ConfPlace) -> SectionLines {
    // What stands deeper may say "Satisfy any", but cannot take a redirect back.
    ["<If \"true\">", "Satisfy all", "Require all denied", "Redirect 403 /", "</If>"]
        .map(|line| (place.clone(), line.to_owned()))
        .into()
}

/// The lines of `nodes`. Notes go to `out`.
pub(crate) fn lines(nodes: &[ApacheNode], kind: SectionKind, out: &mut ConfText) -> SectionLines {
    let mut all = SectionLines::new();
    for node in nodes {
        match one(node, kind, out) {
            Ok(lines) => all.extend(lines),
            Err(why) => {
                out.comment_closed(&node.place, format_args!("{}: {why}", line_of(node)));
                all.extend(closing(&node.place));
            }
        }
    }
    all
}

/// The lines of one directive or section.
///
/// # Errors
///
/// Why it cannot be said, where it may keep clients out.
fn one(node: &ApacheNode, kind: SectionKind, out: &mut ConfText) -> Result<SectionLines, String> {
    if node.is_section() {
        return section(node, out);
    }
    if node.lower == "allowoverride" && kind == SectionKind::Directory {
        return Ok(vec![(node.place.clone(), line_of(node))]);
    }
    if node.lower == "options" {
        return Ok(options(node, out));
    }
    if is_of_old_clients(node) {
        out.note(
            &node.place,
            format!("{}: no part of HTTP depends on the client's name", node.name),
        );
        return Ok(SectionLines::new());
    }
    if switches_php_off(node) {
        // What stands deeper cannot switch it on again.
        return Ok(vec![(node.place.clone(), "php_value engine never".to_owned())]);
    }
    if handlers::is_line(node) {
        let lines = handlers::line(node, out);
        let texts: Vec<String> = lines.iter().map(|(_, text)| text.clone()).collect();
        return is_understood(&texts).map(|()| lines);
    }
    if let Some(why) = names::idle(&node.lower).filter(|_| !searches_bodies(node)) {
        out.note(&node.place, format!("{}: {why}", node.name));
        return Ok(SectionLines::new());
    }
    let text = line_of(node);
    match is_understood(std::slice::from_ref(&text)) {
        Ok(()) => Ok(vec![(node.place.clone(), text)]),
        Err(why) if closes(node) => Err(why),
        Err(_) if node.lower == "requestheader" => Ok(without_field(node, out)),
        Err(_) => {
            out.note(&node.place, format!("{text}: not translated"));
            Ok(SectionLines::new())
        }
    }
}

/// What a `RequestHeader` becomes that is not understood: what a client says for itself must not
/// get through in its place.
fn without_field(node: &ApacheNode, out: &mut ConfText) -> SectionLines {
    let words = node.words();
    let name = words.iter().filter(|word| !word.eq_ignore_ascii_case("early")).nth(1);
    let line = name.map(|name| format!("RequestHeader unset {}", name.trim_end_matches(':')));
    match line.filter(|line| is_understood(std::slice::from_ref(line)).is_ok()) {
        Some(line) => {
            out.note(&node.place, format!("{}: the field is taken away", line_of(node)));
            vec![(node.place.clone(), line)]
        }
        None => {
            out.note(&node.place, format!("{}: not translated", line_of(node)));
            SectionLines::new()
        }
    }
}

/// Whether a directive has bodies searched, which `apache_directory` does; compression is said in
/// nginx's words.
fn searches_bodies(node: &ApacheNode) -> bool {
    let is_filter = node.lower.contains("outputfilter");
    let names_it = || node.rest.to_ascii_lowercase().contains("substitute");
    node.lower.starts_with("substitute") || is_filter && names_it()
}

/// Whether the place is closed when a directive of it is not understood.
fn closes(node: &ApacheNode) -> bool {
    let lower = &node.lower[..];
    if lower == "allowoverridelist" {
        return !node.rest.eq_ignore_ascii_case("none");
    }
    // Rules decide what is served, too.
    let decides = lower.starts_with("rewrite") || lower.starts_with("redirect");
    !ELSEWHERE.contains(&lower) && (names::guards(lower) || decides || is_removal(lower))
}

/// Directives that take something away that a client could see.
fn is_removal(lower: &str) -> bool {
    matches!(lower, "php_flag" | "removehandler" | "removetype")
}

/// Whether a directive of the server has scripts not run.
pub(crate) fn switches_php_off(node: &ApacheNode) -> bool {
    let words = node.words();
    let [name, value] = &words[..] else { return false };
    let is_on = matches!(&value.to_ascii_lowercase()[..], "on" | "1" | "true" | "yes");
    is_engine(node) && name.eq_ignore_ascii_case("engine") && !is_on
}

/// Whether a directive of the server says whether scripts run.
pub(crate) fn is_engine(node: &ApacheNode) -> bool {
    matches!(&node.lower[..], "php_admin_flag" | "php_admin_value")
        && node.first().eq_ignore_ascii_case("engine")
}

/// Whether a directive only sets what changes HTTP for old clients. It would have every answer
/// depend on `User-Agent`.
fn is_of_old_clients(node: &ApacheNode) -> bool {
    const NAMES: [&str; 7] = [
        "nokeepalive",
        "downgrade-1.0",
        "force-response-1.0",
        "redirect-carefully",
        "ssl-unclean-shutdown",
        "gzip-only-text/html",
        "no-gzip",
    ];
    node.lower.starts_with("browsermatch")
        && node.words().iter().skip(1).all(|word| NAMES.contains(&word.trim_start_matches('!')))
}

/// `Options` without what is not there; that is never laxer.
fn options(node: &ApacheNode, out: &mut ConfText) -> SectionLines {
    let mut kept = Vec::new();
    for word in node.words() {
        let bare = word.trim_start_matches('+').to_ascii_lowercase();
        match &bare[..] {
            "multiviews" => out.note(&node.place, "Options MultiViews: no names are negotiated"),
            "includes" | "includesnoexec" => {
                out.note(&node.place, "Options Includes: ssi on has files run through SSI");
            }
            "execcgi" => out.note(&node.place, "Options ExecCGI: no CGI program is run"),
            _ => kept.push(word),
        }
    }
    // Without any word left, nothing is permitted, which is what was said besides.
    let is_change = node.words().first().is_some_and(|word| word.starts_with(['+', '-']));
    match (kept.is_empty(), is_change) {
        (true, true) => SectionLines::new(),
        (true, false) => vec![(node.place.clone(), "Options None".to_owned())],
        (false, _) => vec![(node.place.clone(), format!("Options {}", kept.join(" ")))],
    }
}

/// A section within.
fn section(node: &ApacheNode, out: &mut ConfText) -> Result<SectionLines, String> {
    let rest = &node.rest;
    let is_regex = matches!(&node.lower[..], "<files") && rest.starts_with('~');
    let opened = match is_regex {
        true => format!("<FilesMatch {}>", rest[1..].trim()),
        false => format!("{} {rest}>", node.name).replace(" >", ">"),
    };
    let name = if is_regex { "FilesMatch" } else { &node.name[1..] };
    let inner = match &node.lower[..] {
        "<files" | "<filesmatch" | "<if" | "<elseif" | "<else" => {
            lines(&node.children, SectionKind::Other, out)
        }
        // Of these every line counts.
        "<limit" | "<limitexcept" | "<requireall" | "<requireany" | "<requirenone" => {
            exact(&node.children)
        }
        _ => return Err("this section is not understood".to_owned()),
    };
    let mut all = vec![(node.place.clone(), opened)];
    all.extend(inner);
    all.push((node.place.clone(), format!("</{name}>")));
    let texts: Vec<String> = all.iter().map(|(_, text)| text.clone()).collect();
    let alone = matches!(&node.lower[..], "<elseif" | "<else");
    let texts = match alone {
        true => [vec!["<If \"true\">".to_owned(), "</If>".to_owned()], texts].concat(),
        false => texts,
    };
    is_understood(&texts)?;
    Ok(all)
}

fn exact(nodes: &[ApacheNode]) -> SectionLines {
    let mut all = SectionLines::new();
    for node in nodes {
        if node.is_section() {
            all.push((
                node.place.clone(),
                format!("{} {}>", node.name, node.rest).replace(" >", ">"),
            ));
            all.extend(exact(&node.children));
            all.push((node.place.clone(), format!("</{}>", &node.name[1..])));
        } else {
            all.push((node.place.clone(), line_of(node)));
        }
    }
    all
}
