//! `<Directory>`, `<Files>`, `<Location>` and what stands outside of them, as `apache_directory`.

use crate::access;
use crate::body::{self, SectionKind, closing, is_line};
use crate::import::ConfPlace;
use crate::out::ConfText;
use crate::php;
use crate::tree::ApacheNode;
use crate::words::escaped;

/// `apache_directory` for what stands outside of sections, and for each section.
pub(crate) fn write(nodes: &[ApacheNode], out: &mut ConfText) {
    const OWN: [&str; 12] = [
        "customlog",
        "errorlog",
        "redirect",
        "redirectmatch",
        "redirectpermanent",
        "redirecttemp",
        "rewriterule",
        "rewritecond",
        "rewriteengine",
        "rewriteoptions",
        "rewritebase",
        "limitrequestbody",
    ];
    let mut plain = Vec::new();
    for node in nodes {
        let is_url = node.lower == "errordocument"
            && node.words().get(1).is_some_and(|to| to.starts_with('/') || to.contains("://"));
        let is_files = matches!(&node.lower[..], "<files" | "<filesmatch");
        let is_plain = !node.is_section() && !OWN.contains(&&node.lower[..]) && !is_url;
        if is_files || is_plain && (is_line(node) || node.lower == "options") {
            plain.push(node.clone());
        }
    }
    let mut body = body::lines(&plain, SectionKind::Server, out);
    for node in nodes.iter().filter(|node| access::is_location(node)) {
        body.extend(location(node, out));
    }
    let ifs: Vec<ApacheNode> = nodes
        .iter()
        .filter(|node| matches!(&node.lower[..], "<if" | "<elseif" | "<else"))
        .cloned()
        .collect();
    body.extend(body::lines(&ifs, SectionKind::Other, out));
    if let Some((place, _)) = body.first().cloned() {
        checked(&place, &["-".to_owned()], &body, out);
    }
    for node in
        nodes.iter().filter(|node| matches!(&node.lower[..], "<directory" | "<directorymatch"))
    {
        let words = node.words();
        let is_regex = node.lower == "<directorymatch" || words.first().is_some_and(|it| it == "~");
        let skipped = usize::from(words.first().is_some_and(|it| it == "~"));
        let path = words.get(skipped).cloned().unwrap_or_default();
        let mut body = body::lines(&node.children, access::kind(node), out);
        if body.is_empty() {
            out.note(
                &node.place,
                format!("{} {}>: nothing that has an effect", node.name, node.rest),
            );
            continue;
        }
        if is_regex {
            body.retain(|(_, line)| !line.to_ascii_lowercase().starts_with("allowoverride"));
            checked(&node.place, &["~".to_owned(), path], &body, out);
        } else {
            checked(&node.place, &[path], &body, out);
        }
    }
}

/// Writes a section; one that is not understood is closed.
fn checked(place: &ConfPlace, head: &[String], body: &body::SectionLines, out: &mut ConfText) {
    let mut words: Vec<&[u8]> = head.iter().map(String::as_bytes).collect();
    words.extend(body.iter().map(|(_, line)| line.as_bytes()));
    match bolide_htaccess::ServerPlace::parse(&words) {
        Ok(_) if !body.is_empty() => out.directory(place, head, body),
        Ok(_) => {}
        Err(fault) => {
            let at = body.get((fault.line as usize).saturating_sub(1)).map_or(place, |(at, _)| at);
            out.note_closed(at, &fault.message);
            for (own, line) in body {
                out.note(own, line.clone());
            }
            let empty: [&[u8]; 2] = [words[0], b""];
            let is_path = bolide_htaccess::ServerPlace::parse(&empty).is_ok();
            let head =
                if is_path && head.len() == 1 { head.to_vec() } else { vec!["-".to_owned()] };
            out.directory(place, &head, &closing(place));
        }
    }
}

/// `<Location>` as a condition about the address.
fn location(node: &ApacheNode, out: &mut ConfText) -> body::SectionLines {
    let words = node.words();
    let is_regex = node.lower == "<locationmatch" || words.first().is_some_and(|it| it == "~");
    let path = words.get(usize::from(words.first().is_some_and(|it| it == "~"))).cloned();
    let path = path.unwrap_or_default();
    let handler = node.children.iter().find(|child| child.lower == "sethandler");
    if handler.is_some_and(|it| {
        php::runner(&it.first()).is_none() && !it.first().eq_ignore_ascii_case("none")
    }) {
        return Vec::new();
    }
    let of_proxy =
        |child: &ApacheNode| child.lower.starts_with("proxy") || child.lower == "requestheader";
    let children: Vec<ApacheNode> =
        node.children.iter().filter(|child| !of_proxy(child)).cloned().collect();
    let inner = body::lines(&children, SectionKind::Other, out);
    if inner.is_empty() {
        return inner;
    }
    let regex = match is_regex {
        true => path,
        false => {
            let glob: String = path
                .trim_end_matches('/')
                .chars()
                .map(|one| match one {
                    '*' => "[^/]*".to_owned(),
                    '?' => "[^/]".to_owned(),
                    '[' | ']' => one.to_string(),
                    other => escaped(&other.to_string()),
                })
                .collect();
            let end = if path.ends_with('/') && path != "/" { "/" } else { "(?:/|$)" };
            format!("^{glob}{end}")
        }
    };
    let mark = ["#", "!", ",", "|", "%", "@"].into_iter().find(|mark| !regex.contains(mark));
    let opened = format!("<If %{{REQUEST_URI}} =~ m{0}{regex}{0}>", mark.unwrap_or("/"));
    let mut all = vec![(node.place.clone(), opened)];
    all.extend(inner);
    all.push((node.place.clone(), "</If>".to_owned()));
    all
}
