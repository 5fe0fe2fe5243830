//! `bolide cache stats`: figures of the store and of its spaces.

use bolide_engine::explain::machine;

use super::format::size;
use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    let store = desk.store()?;
    let stats = store.stats();
    let all = store.namespaces().stats();
    let spaces = desk.spaces(words)?;
    let parts: Vec<_> = spaces
        .iter()
        .filter_map(|space| Some((space, all.iter().find(|one| one.id == space.id)?)))
        .collect();
    let ratio = |hits: u64, others: u64| match hits + others {
        0 => "-".to_owned(),
        sum => format!("{}%", hits * 100 / sum),
    };
    if words.has("json") {
        return Ok(machine::stats(store, &spaces).line());
    }
    let mut out = format!(
        "objects    {}\nbytes      {} of {}\nfills      {} in flight, {}\n\
         inserted   {}\nevicted    {}\npurges     {}\ntags       {}\n\
         look-ups   {} hits, {} stale, {} misses, {} joins, {} passes\n",
        stats.objects,
        size(stats.bytes),
        size(stats.bytes_max),
        stats.fills,
        size(stats.filling_bytes),
        stats.inserted,
        stats.evicted,
        stats.purges,
        stats.tags,
        stats.hits,
        stats.stale,
        stats.misses,
        stats.joins,
        stats.passes,
    );
    for (space, one) in parts {
        let kind = if space.is_zone { "zone" } else { "vhost" };
        let (hits, others) = (one.hits + one.stale, one.misses + one.passes);
        out.push_str(&format!(
            "{kind} {}: {} objects, {}{}; requests: {} hits, {} stale, {} misses, {} passed by; \
             hit ratio {}\n",
            space.name,
            one.objects,
            size(one.bytes),
            if one.limit > 0 { format!(" of {}", size(one.limit)) } else { String::new() },
            one.hits,
            one.stale,
            one.misses,
            one.passes,
            ratio(hits, others),
        ));
    }
    Ok(out.into_bytes())
}
