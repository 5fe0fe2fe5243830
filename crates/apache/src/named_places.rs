//! `<Directory>`, `<Files>`, `<Location>` and what stands outside of them, as `apache_directory`.

use crate::access;
use crate::body::{self, SectionKind, closing, is_line, switches_php_off};
use crate::handlers;
use crate::import::ConfPlace;
use crate::matching;
use crate::out::ConfText;
use crate::tree::ApacheNode;

/// `apache_directory` for what stands outside of sections, and for each section. `conditions` are
/// the lines whose `<If>` sections hold here, after all others: those of the main server and those
/// of its own.
pub(crate) fn write(nodes: &[ApacheNode], conditions: &[&[ApacheNode]], out: &mut ConfText) {
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
        if is_files
            || is_plain
                && (is_line(node)
                    || node.lower == "options"
                    || handlers::is_line(node)
                    || node.lower == "requestheader"
                    || switches_php_off(node))
        {
            plain.push(node.clone());
        }
    }
    let mut body = body::lines(&plain, SectionKind::Server, out);
    for node in nodes.iter().filter(|node| access::is_location(node)) {
        body.extend(location(node, out));
    }
    let ifs: Vec<ApacheNode> = conditions
        .iter()
        .copied()
        .flatten()
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
            out.comment_closed(at, &fault.message);
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
    // Where a handler of the server itself answers, only the rest is about files.
    let is_left_out =
        |child: &ApacheNode| child.lower.starts_with("proxy") || handlers::is_status(node, child);
    let children: Vec<ApacheNode> =
        node.children.iter().filter(|child| !is_left_out(child)).cloned().collect();
    let inner = body::lines(&children, SectionKind::Other, out);
    if inner.is_empty() {
        return inner;
    }
    let opened = match matching::paths(node).regex() {
        None => "<If \"true\">".to_owned(),
        Some(regex) => {
            let marks = ["#", "!", ",", "|", "%", "@"];
            let mark = marks.into_iter().find(|mark| !regex.contains(mark)).unwrap_or("/");
            format!("<If %{{REQUEST_URI}} =~ m{mark}{regex}{mark}>")
        }
    };
    let within = |inner: body::SectionLines| {
        let mut all = vec![(node.place.clone(), opened.clone())];
        all.extend(inner);
        all.push((node.place.clone(), "</If>".to_owned()));
        all
    };
    let all = within(inner);
    let texts: Vec<String> = all.iter().map(|(_, text)| text.clone()).collect();
    match body::is_understood(&texts) {
        Ok(()) => all,
        // Lines that cannot stand in a condition close this place alone.
        Err(why) => {
            out.comment_closed(&node.place, format_args!("{} {}>: {why}", node.name, node.rest));
            for (own, line) in &all {
                out.note(own, line.clone());
            }
            within(closing(&node.place))
        }
    }
}
