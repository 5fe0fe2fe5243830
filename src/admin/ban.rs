//! `bolide cache ban` and `bolide cache bans`: purges by conditions, and those that are pending.

use bolide_cache::{BanKind, NamespaceId, TagPurge, ban_error};
use bolide_engine::explain::{ExplainSpace, Json};

use super::format::count;
use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    let store = desk.store()?;
    let text = words.all("url").collect::<Vec<_>>().join(&b' ');
    if let Some(why) = ban_error(BanKind::Expression, &text) {
        return Err(format!("not a ban: {why}"));
    }
    let how = if words.has("stale") { TagPurge::Stale } else { TagPurge::Dead };
    let spaces = desk.spaces(words)?.into_iter().filter(|space| !space.is_zone);
    let mut sites = 0;
    for space in spaces {
        store.purge_matching(space.id, BanKind::Expression, &text, how);
        sites += 1;
    }
    if words.has("json") {
        return Ok(Json::Object(vec![("sites", Json::number(sites))]).line());
    }
    Ok(format!("ban added: {}\n", count(sites, "site")).into_bytes())
}

pub(super) fn list(desk: &AdminDesk, words: &Words) -> CommandResult {
    let spaces = desk.site.spaces();
    let name = |id: NamespaceId| {
        let found = spaces.iter().find(|space: &&ExplainSpace| space.id == id);
        found.map_or("?", |space| &space.name)
    };
    let rows = desk.store()?.tags().pending_bans().into_iter().map(|(id, kind, text, how)| {
        let text = String::from_utf8_lossy(&text).into_owned();
        let condition = match kind {
            BanKind::Expression => text,
            BanKind::MagentoTags => format!("obj.http.X-Magento-Tags ~ {text}"),
            BanKind::MagentoPool => format!("obj.http.X-Pool ~ {text}"),
            BanKind::Tag => format!("tag ~ {text}"),
        };
        let effect = if how == TagPurge::Dead { "dead" } else { "stale" };
        (name(id).to_owned(), effect, condition)
    });
    if words.has("json") {
        let row = |(site, effect, condition): (String, &str, String)| {
            Json::Object(vec![
                ("site", Json::text(site)),
                ("effect", Json::text(effect)),
                ("condition", Json::text(condition)),
            ])
        };
        return Ok(Json::List(rows.map(row).collect()).line());
    }
    let lines = rows.map(|(site, effect, condition)| format!("{site}  {effect}  {condition}\n"));
    Ok(lines.collect::<String>().into_bytes())
}
