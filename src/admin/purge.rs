//! `bolide cache purge`: drops cached objects, or makes them stale.

use std::collections::{BTreeSet, HashSet};

use bolide_cache::disk::{DiskPurgeTarget, file_hash, shared_bits, url_bits};
use bolide_cache::{CacheKey, KeyBuilder, ObjectKind, SessionKey, Store, TagPurge, TagScope};
use bolide_engine::explain::{ExplainSpace, Json, UrlReach, tags_from};
use bolide_io::epoll::Epoll;

use super::format::count;
use super::line_protocol::Words;
use super::list::begins;
use super::{AdminDesk, CommandResult};

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    let store = desk.store()?;
    let how = if words.has("stale") { TagPurge::Stale } else { TagPurge::Dead };
    let mut hit = 0;
    let is_all = words.has("all");
    let is_narrow = ["url", "tag", "prefix"].iter().any(|word| words.has(word));
    if is_all == is_narrow {
        let what = "nothing to purge: give --url, --tag or --prefix, or --all alone";
        return Err(what.to_owned());
    }
    let nodes = nodes_to_wait_for(words)?;
    let spaces = desk.spaces(words)?;
    for space in &spaces {
        if is_all {
            hit += store.purge_all(space.id, how) + store.purge_private(space.id, None, how);
        }
        for tag in words.all("tag") {
            hit += match tag {
                b"*" => return Err("\"*\" is not a tag: use --all".to_owned()),
                tag => store.purge_tag(space.id, TagScope::Public, tag, how),
            };
        }
        for prefix in words.all("prefix") {
            if prefix.is_empty() {
                return Err("an empty prefix matches everything: use --all".to_owned());
            }
            // Other nodes have other pages, and a prefix of a path is no prefix of a key. Their
            // purge is sent first, so that it applies to objects that this node gets from them
            // during the walk.
            store.nodes().send_purge(space.id, b"", DiskPurgeTarget::All, how);
            store.nodes().send_purge(space.id, b"", DiskPurgeTarget::Private, how);
            hit += purge_where(store, space, how, None, |url| begins(url, prefix))?;
            let place = place_of(prefix).filter(|_| !space.is_zone);
            for start in place.map(tags_from).unwrap_or_default() {
                let start = [&*start, b"*"].concat();
                hit += store.purge_tag(space.id, TagScope::Public, &start, how);
            }
        }
    }
    for url in words.all("url") {
        hit += purge_url(desk, words, url, &spaces, how)?;
    }
    if let Some(nodes) = nodes {
        desk.write_purges()?;
        let waited = super::cluster::wait(desk.cluster()?, store, nodes);
        waited.map_err(|why| format!("purged {}: {why}", count(hit, "object")))?;
    }
    if words.has("json") {
        return Ok(Json::Object(vec![("purged", Json::number(hit))]).line());
    }
    let what = match how {
        TagPurge::Dead => "purged",
        TagPurge::Stale => "made stale",
    };
    Ok(format!("{what}: {}\n", count(hit, "object")).into_bytes())
}

/// `--wait`
fn nodes_to_wait_for(words: &Words) -> Result<Option<usize>, String> {
    let Some(text) = words.text("wait") else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| format!("\"{text}\" is no number of nodes"))
}

/// The path and query of a typed prefix; none if it is the text of another key.
fn place_of(prefix: &[u8]) -> Option<&[u8]> {
    if prefix.starts_with(b"/") {
        return Some(prefix);
    }
    let start = prefix.windows(3).position(|part| part == b"://")? + 3;
    let path = prefix[start..].iter().position(|byte| *byte == b'/');
    Some(path.map_or(b"/", |path| &prefix[start + path..]))
}

/// Every copy of one page, public and private.
fn purge_url(
    desk: &AdminDesk,
    words: &Words,
    url: &[u8],
    spaces: &[ExplainSpace],
    how: TagPurge,
) -> Result<u64, String> {
    let explained = |method: &[u8]| {
        let mut asked = Words::new("explain");
        asked.push("url", url);
        asked.push("method", method);
        asked.push_some("listen", words.value("listen"));
        super::explain::explanation(desk, &asked)
    };
    let get = explained(b"GET")?;
    if get.key.is_none() {
        return Err(format!("{} has no key in the store: {}", get.request, get.reason));
    }
    let Some(space) = spaces.iter().find(|space| Some(space.id) == get.space) else {
        return Err(format!("{} is stored in another space", get.request));
    };
    let UrlReach { mut urls, .. } = get.reach.clone();
    if space.is_zone {
        // Its key may have the method.
        urls.extend(explained(b"HEAD")?.reach.urls);
    }
    let store = desk.store()?;
    // The sessions on other nodes are not known here.
    store.nodes().send_purge(space.id, b"", DiskPurgeTarget::Private, how);
    let is_meant = |other: &[u8]| urls.iter().any(|url| **url == *other);
    let mut hit = purge_where(store, space, how, Some(&urls), is_meant)?;
    for tag in get.reach.tags.iter().cloned().chain(get.reach.private_tags()) {
        hit += store.purge_tag(space.id, TagScope::Public, &tag, how);
    }
    Ok(hit)
}

/// Purges that are written to the journals together: a journal's queue is bounded.
const TOGETHER: usize = 256;

/// The matching objects of a space: in memory, in transit and on disk.
#[derive(Default)]
struct Found {
    /// URLs, and their sessions.
    pages: BTreeSet<(Vec<u8>, Option<Vec<u8>>)>,
    /// The file names of the objects in memory.
    in_memory: HashSet<u128>,
    /// Objects that are on disk only.
    only_on_disk: u64,
}

/// All objects of a space with a matching URL; visits all of it. If only some URLs can match, they
/// are `urls`.
fn purge_where(
    store: &Store,
    space: &ExplainSpace,
    how: TagPurge,
    urls: Option<&[Vec<u8>]>,
    is_meant: impl Fn(&[u8]) -> bool,
) -> Result<u64, String> {
    let mut door = super::door()?;
    let mut found = find(store, space, &mut door, urls, is_meant);
    // An object in transit is not found; its URL is purged anyway.
    found.pages.extend(urls.into_iter().flatten().map(|url| (url.clone(), None)));
    let mut keys = KeyBuilder::default();
    let mut hit = found.only_on_disk;
    for (number, (url, session)) in found.pages.iter().enumerate() {
        keys.start(space.id);
        keys.push_url(url);
        let session = session.as_deref().and_then(SessionKey::new);
        let key: CacheKey<'_> =
            session.map_or_else(|| keys.public(), |session| keys.private(session));
        hit += store.strike_url(&key, how);
        if number % TOGETHER == TOGETHER - 1 {
            bolide_worker::write_purges(&mut door, store);
        }
    }
    Ok(hit)
}

/// Searches the place that a page comes from before the one it moves to, so that none is missed.
fn find(
    store: &Store,
    space: &ExplainSpace,
    door: &mut Epoll,
    urls: Option<&[Vec<u8>]>,
    is_meant: impl Fn(&[u8]) -> bool,
) -> Found {
    let mut found = Found::default();
    let text = |session: SessionKey<'_>| session.text().to_vec();
    store.list_coming(space.id, &mut |url, session| {
        if is_meant(url) {
            found.pages.insert((url.to_vec(), session.map(text)));
        }
    });
    let tree = store.namespaces().tree_and_name(space.id);
    let mut part = 0;
    while store.index().list(part, &mut |object| {
        if object.namespace() == space.id
            && object.kind() != ObjectKind::Pass
            && is_meant(object.url())
        {
            let session = object.session().map(text);
            if let Some((_, name)) = &tree {
                let session = session.as_deref().unwrap_or_default();
                found.in_memory.insert(file_hash(name, object.url(), object.vary(), session));
            }
            found.pages.insert((object.url().to_vec(), session));
        }
    }) {
        part += 1;
    }
    if let Some((tree, name)) = &tree {
        let bits = |urls: &[Vec<u8>]| urls.iter().map(|url| url_bits(name, url)).collect();
        let bits: Option<Vec<_>> = urls.map(bits);
        let may_be = |hash| bits.as_ref().is_none_or(|bits| bits.contains(&shared_bits(hash)));
        let now_ms = bolide_io::process::now().unix_millis;
        bolide_worker::stored_pages(door, tree, now_ms, may_be, |hash, record| {
            if *record.namespace == **name && is_meant(record.url) {
                let is_answer = record.kind == ObjectKind::Content;
                found.only_on_disk += u64::from(is_answer && !found.in_memory.contains(&hash));
                let session = SessionKey::new(record.session).map(text);
                found.pages.insert((record.url.to_vec(), session));
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::place_of;

    #[test]
    fn the_place_of_a_prefix_is_its_path() {
        for (typed, place) in [
            ("/a?b", Some("/a?b")),
            ("http://a.test:80/a", Some("/a")),
            ("https://a.test", Some("/")),
            ("own key", None),
        ] {
            assert_eq!(place_of(typed.as_bytes()), place.map(str::as_bytes), "{typed}");
        }
    }
}
