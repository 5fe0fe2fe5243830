//! `bolide cache list`: the objects of the store, by space, tag and URL.

use std::sync::Arc;

use bolide_cache::{NamespaceId, Object, ObjectKind};
use bolide_engine::explain::machine::entry;
use bolide_engine::explain::{Candidate, ExplainSpace, Json, Url};

use super::format::{entry_line, show};
use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

/// The default number of entries.
const LIMIT: usize = 100;
/// LIMIT: entries that are shown.
const LIMIT_MAX: usize = 100_000;

/// Which entries are meant.
pub(super) struct Filter {
    spaces: Vec<ExplainSpace>,
    tag: Option<bolide_cache::Tagged>,
    prefix: Option<Vec<u8>>,
}

impl Filter {
    /// From the words `vhost=`, `zone=`, `tag=` and `prefix=`.
    pub(super) fn new(desk: &AdminDesk, words: &Words) -> Result<Self, String> {
        let store = desk.store()?;
        Ok(Self {
            spaces: desk.spaces(words)?,
            tag: words.value("tag").map(|tag| store.tags().tagged(tag)),
            prefix: words.value("prefix").map(<[u8]>::to_vec),
        })
    }

    pub(super) fn covers(&self, object: &Object) -> bool {
        self.spaces.iter().any(|space| space.id == object.namespace())
            && self.tag.as_ref().is_none_or(|tag| tag.covers(object))
            && self.prefix.as_ref().is_none_or(|prefix| begins(object.url(), prefix))
    }

    /// The name of a part.
    fn name(&self, id: NamespaceId) -> String {
        let space = self.spaces.iter().find(|space| space.id == id);
        space.map_or_else(String::new, |space| {
            format!("{} {}", if space.is_zone { "zone" } else { "vhost" }, space.name)
        })
    }
}

/// The path and query of the URL part of a key as the page cache builds it; the whole of another
/// one.
pub(super) fn path_of(url: &[u8]) -> &[u8] {
    bolide_cache::url_parts(url).map_or(url, |(_, path)| path)
}

fn is_url(text: &[u8]) -> bool {
    text.starts_with(b"http://") || text.starts_with(b"https://")
}

/// Whether the URL part of a key begins with the typed text: a path, or a whole URL.
pub(super) fn begins(url: &[u8], typed: &[u8]) -> bool {
    // `http://a.test:80` is a prefix of `http://a.test:8080`, which is another origin.
    let is_place = typed.split(|byte| *byte == b'/').count() == 3 && is_url(typed);
    let rest = url.strip_prefix(typed);
    let is_begin =
        rest.is_some_and(|rest| !is_place || matches!(rest.first(), None | Some(b'/' | b' ')));
    if is_begin || typed.starts_with(b"/") && path_of(url).starts_with(typed) {
        return true;
    }
    let Ok(wanted) = Url::parse(typed) else { return false };
    let scheme: &[u8] =
        if wanted.scheme == bolide_http::Scheme::Https { b"https://" } else { b"http://" };
    let port = format!(":{}", wanted.port);
    let place = [scheme, &wanted.host, port.as_bytes()].concat();
    url.strip_prefix(&place[..]).is_some_and(|rest| matches!(rest.first(), Some(b'/' | b' ')))
        && path_of(url).starts_with(&wanted.target)
}

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    let store = desk.store()?;
    let limit = match words.text("limit") {
        Some(text) => text.parse().map_err(|_| format!("\"{text}\" is not a number"))?,
        None => LIMIT,
    };
    let filter = Filter::new(desk, words)?;
    let mut found: Vec<Arc<Object>> = Vec::new();
    let (mut part, mut more) = (0, 0_u64);
    let limit = limit.min(LIMIT_MAX);
    while store.index().list(part, &mut |object| {
        if object.kind() != ObjectKind::Content || !filter.covers(object) {
            return;
        }
        if found.len() < limit {
            found.push(object.clone());
        } else {
            more += 1;
        }
    }) {
        part += 1;
    }
    found.sort_by(|a, b| (a.url(), a.vary()).cmp(&(b.url(), b.vary())));
    let now_ms = bolide_io::process::now().unix_millis;
    let tags = store.tags().texts_of_all(&found);
    let entries: Vec<(String, Candidate)> = found
        .iter()
        .zip(tags)
        .map(|(object, tags)| {
            let entry = Candidate::new(store, object, tags, false, now_ms);
            (filter.name(object.namespace()), entry)
        })
        .collect();
    if words.has("json") {
        let list = Json::list(&entries, |(space, one)| match entry(one) {
            Json::Object(mut all) => {
                all.retain(|field| field.0 != "own");
                all.insert(0, ("space", Json::text(space)));
                Json::Object(all)
            }
            other => other,
        });
        let all = vec![("entries", list), ("more", Json::number(more))];
        return Ok(Json::Object(all).line());
    }
    let mut out = String::new();
    for (space, one) in &entries {
        let (url, line) = (show(&one.url), entry_line(one));
        out.push_str(&format!("{url}\n    {space}: {line}\n"));
    }
    match (entries.is_empty(), more) {
        (true, 0) => out.push_str("no matching entries\n"),
        (_, 0) => {}
        _ => out.push_str(&format!("and {more} more; --limit shows them\n")),
    }
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::{begins, path_of};

    #[test]
    fn what_was_typed_is_found_at_the_begin_of_keys() {
        let key = b"http://a.test:8080/shop/x?y=1";
        let other = b"http://b.test:80 a.test /shop/x";
        assert_eq!(path_of(key), b"/shop/x?y=1");
        assert_eq!(path_of(other), b"/shop/x");
        assert_eq!(path_of(b"own key"), b"own key");
        for (typed, fits) in [
            ("/shop", true),
            ("/x", false),
            ("http://a.test:8080/shop", true),
            ("http://a.test:8080", true),
            ("http://a.test/shop", false),
            ("https://a.test:8080/shop", false),
            ("http://a.test:80", false),
        ] {
            assert_eq!(begins(key, typed.as_bytes()), fits, "{typed}");
        }
        assert!(begins(other, b"http://B.test/shop") && begins(b"/raw/key", b"/raw"));
    }
}
