//! `bolide cache purge`: drops kept answers, or makes them old.

use cache::{Key, KeyBuilder, Kind, Purge, Scope, Session, Store};
use engine::explain::{Json, Space};

use super::list::begins;
use super::tell::count;
use super::words::Words;
use super::{Desk, Told};

pub(super) fn tell(desk: &Desk, words: &Words) -> Told {
    let store = desk.store()?;
    let how = if words.has("stale") { Purge::Stale } else { Purge::Dead };
    let mut hit = 0;
    let is_all = words.has("all");
    let is_narrow = ["url", "tag", "prefix"].iter().any(|word| words.has(word));
    if is_all == is_narrow {
        let what = "say what is purged: --url, --tag or --prefix, or --all alone";
        return Err(what.to_owned());
    }
    let spaces = desk.spaces(words)?;
    for space in &spaces {
        if is_all {
            hit += store.purge_all(space.id, how) + store.purge_private(space.id, None, how);
        }
        for tag in words.all("tag") {
            hit += match tag {
                b"*" => return Err("\"*\" is no tag: say --all".to_owned()),
                tag => store.purge_tag(space.id, Scope::Public, tag, how),
            };
        }
        for prefix in words.all("prefix") {
            if prefix.is_empty() {
                return Err("an empty prefix is that of everything: say --all".to_owned());
            }
            hit += purge_where(store, space, how, |url| begins(url, prefix));
        }
    }
    for url in words.all("url") {
        hit += purge_url(desk, words, url, &spaces, how)?;
    }
    if words.has("json") {
        return Ok(Json::Object(vec![("purged", Json::number(hit))]).line());
    }
    let what = match how {
        Purge::Dead => "purged",
        Purge::Stale => "made stale",
    };
    Ok(format!("{what}: {}\n", count(hit, "object")).into_bytes())
}

/// Every copy of one page, for everybody and for sessions.
fn purge_url(
    desk: &Desk,
    words: &Words,
    url: &[u8],
    spaces: &[Space],
    how: Purge,
) -> Result<u64, String> {
    let mut asked = Words::new("explain");
    asked.push("url", url);
    asked.push_some("listen", words.value("listen"));
    let told = super::story::explanation(desk, &asked)?;
    let Some(key) = told.key else {
        return Err(format!("{} has no key in the store: {}", told.request, told.reason));
    };
    let Some(space) = spaces.iter().find(|space| Some(space.id) == told.space) else {
        return Err(format!("{} is kept in another part of the store", told.request));
    };
    Ok(purge_where(desk.store()?, space, how, |other| other == key.url))
}

/// Everything of a part whose URL is meant; looks at all of it.
fn purge_where(store: &Store, space: &Space, how: Purge, is_meant: impl Fn(&[u8]) -> bool) -> u64 {
    let mut found = Vec::new();
    let mut part = 0;
    while store.list(part, &mut |object| {
        if object.namespace() == space.id && object.kind() != Kind::Pass && is_meant(object.url()) {
            let session = object.session().map(|session| session.text().to_vec());
            found.push((object.url().to_vec(), session));
        }
    }) {
        part += 1;
    }
    found.sort();
    found.dedup();
    let mut keys = KeyBuilder::default();
    let mut hit = 0;
    for (url, session) in &found {
        keys.start(space.id);
        keys.push_url(url);
        let session = session.as_deref().and_then(Session::new);
        let key: Key<'_> = session.map_or_else(|| keys.public(), |session| keys.private(session));
        hit += store.purge_url(&key, how);
    }
    hit
}
