//! `RequestHeader … early` and `Header … early` outside of sections: what Apache does to the fields
//! of a request before anything else reads them.

use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// The name of a line that is carried out early.
const EARLY: &str = "requestheaderearly";

/// Has the lines of a server that end with `early` count as those without it, which is later than
/// in Apache, and notes those about requests.
pub(crate) fn settle(nodes: &mut Vec<ApacheNode>) {
    for node in nodes.iter_mut().filter(|node| node.lower == "<virtualhost") {
        settle(&mut node.children);
    }
    let all = std::mem::take(nodes);
    for mut node in all {
        let bare = node.rest.trim_end();
        let start = bare.len().saturating_sub("early".len());
        let is_early = matches!(&node.lower[..], "header" | "requestheader")
            && bare.get(start..).is_some_and(|word| word.eq_ignore_ascii_case("early"))
            && bare[..start].ends_with(char::is_whitespace)
            // `unset early` is about a field of that name.
            && node.words().len() > 2;
        if is_early {
            node.rest = bare[..start].trim_end().to_owned();
            if node.lower == "requestheader" {
                let (name, lower) = ("RequestHeaderEarly".to_owned(), EARLY.to_owned());
                nodes.push(ApacheNode { name, lower, ..node.clone() });
            }
        }
        nodes.push(node);
    }
}

/// Takes fields away, and sets them, before rules and access see them.
pub(crate) fn write(server: &Server<'_>, out: &mut ConfText) {
    let is_name = |name: &str| name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    let is_plain = |text: &str| !text.contains(['%', '$', '\\']) && !text.starts_with("expr=");
    let nodes = server.main.iter().chain(server.own);
    for node in nodes.filter(|node| node.lower == EARLY) {
        let words = node.words();
        let words: Vec<&str> = words.iter().map(|word| word.trim_end_matches(':')).collect();
        match &words[..] {
            [action, name] if action.eq_ignore_ascii_case("unset") && is_name(name) => {
                out.put(&node.place, format!("more_clear_input_headers {};", quoted(name)));
            }
            [action, name, value]
                if action.eq_ignore_ascii_case("set") && is_name(name) && is_plain(value) =>
            {
                let text = quoted(&format!("{name}: {value}"));
                out.put(&node.place, format!("more_set_input_headers {text};"));
            }
            _ => out.note(&node.place, format!("{} early: as without `early`", node.rest)),
        }
    }
}
