//! The state of the store and decisions, as JSON.

use bolide_cache::{NamespaceStats, Store};
use bolide_conf::SourcePlace;

use super::{
    Candidate, Chosen, ExplainSpace, Explanation, Json, PhaseOutcome, Recent, StaleSeconds,
};
use crate::site::Site;

/// The freshness of an object, as one word.
#[must_use]
pub const fn freshness(one: &Candidate) -> &'static str {
    match one.freshness {
        bolide_cache::Freshness::Fresh => "fresh",
        bolide_cache::Freshness::Stale => "stale",
        bolide_cache::Freshness::Old => "old",
        bolide_cache::Freshness::Gone => "gone",
    }
}

/// The kind of an object, as one word.
#[must_use]
pub const fn kind(one: &Candidate) -> &'static str {
    match one.kind {
        bolide_cache::ObjectKind::Content => "answer",
        bolide_cache::ObjectKind::Vary => "vary",
        bolide_cache::ObjectKind::Pass => "hit-for-miss",
        bolide_cache::ObjectKind::Failed => "failure",
    }
}

/// An entry of the store.
#[must_use]
pub fn entry(one: &Candidate) -> Json {
    let texts = |all: &[Vec<u8>]| Json::list(all, Json::text);
    let stale = |which: fn(StaleSeconds) -> u32| {
        one.stale.map_or(Json::Null, |stale| Json::number(which(stale)))
    };
    let variants = one.variants.iter().map(|(coding, bytes)| {
        Json::Object(vec![("coding", Json::text(coding)), ("bytes", Json::number(*bytes))])
    });
    Json::Object(vec![
        ("kind", Json::text(kind(one))),
        ("url", Json::text(&one.url)),
        ("vary", texts(&one.vary)),
        ("private", Json::Bool(one.is_private)),
        ("own", Json::Bool(one.is_own)),
        ("state", Json::text(freshness(one))),
        ("purged_by", texts(&one.purged_by)),
        ("softly_purged", Json::Bool(one.is_softly_purged)),
        ("status", Json::number(one.status)),
        ("age", Json::number(one.age)),
        ("ttl", one.ttl.map_or(Json::Null, Json::number)),
        ("stale_while_revalidate", stale(|stale| stale.updating)),
        ("stale_if_error", stale(|stale| stale.errors)),
        ("bytes", Json::number(one.size)),
        ("variants", Json::List(variants.collect())),
        ("tags", texts(&one.tags)),
        ("hits", Json::number(one.hits)),
        ("etag", Json::text(&one.etag)),
        ("on_disk", Json::Bool(one.is_on_disk)),
    ])
}

/// Figures of the store and of its namespaces `spaces`.
#[must_use]
pub fn stats(store: &Store, spaces: &[ExplainSpace]) -> Json {
    let stats = store.stats();
    let all = store.namespaces().stats();
    let find = |space: &ExplainSpace| all.iter().find(|one| one.id == space.id);
    let parts: Vec<_> = spaces.iter().filter_map(|space| Some((space, find(space)?))).collect();
    let part = |(space, one): &(&ExplainSpace, &NamespaceStats)| {
        Json::Object(vec![
            ("kind", Json::text(if space.is_zone { "zone" } else { "vhost" })),
            ("name", Json::text(&space.name)),
            ("objects", Json::number(one.objects)),
            ("bytes", Json::number(one.bytes)),
            ("bytes_max", Json::number(one.limit)),
            ("hits", Json::number(one.hits)),
            ("stale", Json::number(one.stale)),
            ("misses", Json::number(one.misses)),
            ("passes", Json::number(one.passes)),
        ])
    };
    let fields = vec![
        ("objects", Json::number(stats.objects)),
        ("bytes", Json::number(stats.bytes)),
        ("bytes_max", Json::number(stats.bytes_max)),
        ("hits", Json::number(stats.hits)),
        ("stale", Json::number(stats.stale)),
        ("misses", Json::number(stats.misses)),
        ("joins", Json::number(stats.joins)),
        ("passes", Json::number(stats.passes)),
        ("fills", Json::number(stats.fills)),
        ("filling_bytes", Json::number(stats.filling_bytes)),
        ("inserted", Json::number(stats.inserted)),
        ("evicted", Json::number(stats.evicted)),
        ("purges", Json::number(stats.purges)),
        ("tags", Json::number(stats.tags)),
        ("parts", Json::list(&parts, part)),
    ];
    Json::Object(fields)
}

/// The known beginning of the target.
#[must_use]
pub fn target(one: &Recent) -> String {
    format!("{}{}", String::from_utf8_lossy(&one.target), if one.is_cut { "…" } else { "" })
}

/// The name of a namespace for users.
#[must_use]
pub fn space_name(site: &Site, id: bolide_cache::NamespaceId) -> Option<String> {
    let space = site.spaces().into_iter().find(|space| space.id == id)?;
    Some(format!("{} {}", if space.is_zone { "zone" } else { "vhost" }, space.name))
}

/// A recent decision.
#[must_use]
pub fn decision(site: &Site, one: &Recent) -> Json {
    let space = space_name(site, one.namespace);
    Json::Object(vec![
        ("request_id", Json::text(&one.id)),
        ("unix_ms", Json::number(one.at_ms)),
        ("space", space.map_or(Json::Null, Json::text)),
        ("target", Json::text(target(one))),
        ("status", Json::number(one.status)),
        ("decision", Json::text(one.decision)),
        ("upstream_cache_status", Json::text(one.cached)),
        ("why", Json::text(one.why.word())),
        ("refusal", one.refusal.map_or(Json::Null, |refusal| Json::text(refusal.reason()))),
        ("kept", Json::Bool(one.is_kept)),
        ("key", Json::text(hash(one.key))),
    ])
}

/// The hash of a key as it is displayed.
#[must_use]
pub fn hash(hash: u128) -> String {
    format!("{hash:032x}")
}

fn place_json(place: Option<&SourcePlace>) -> Json {
    place.map_or(Json::Null, |place| {
        Json::Object(vec![("file", Json::text(&*place.file)), ("line", Json::number(place.line))])
    })
}

fn chosen_json(one: &Chosen) -> Json {
    Json::Object(vec![
        ("name", Json::text(&one.name)),
        ("why", Json::text(&one.why)),
        ("place", place_json(Some(&one.place))),
    ])
}

/// The complete explanation of a request.
#[must_use]
pub fn explanation_json(site: &Site, explained: &Explanation) -> Json {
    let steps = Json::list(&explained.steps, |step| {
        Json::Object(vec![
            ("text", Json::text(&step.text)),
            ("place", place_json(step.place.as_ref())),
        ])
    });
    let key = explained.key.as_ref().map_or(Json::Null, |key| {
        Json::Object(vec![
            ("url", Json::text(&key.url)),
            ("vary", Json::list(&key.vary, Json::text)),
            ("session", key.session.as_ref().map_or(Json::Null, Json::text)),
            ("hash", Json::text(hash(key.hash))),
        ])
    });
    let (word, status) = match &explained.outcome {
        PhaseOutcome::Answers(status) => ("answers", Some(*status)),
        PhaseOutcome::Asks(_) => ("asks", None),
        PhaseOutcome::Joins => ("joins", None),
        PhaseOutcome::Closes => ("closes", None),
        PhaseOutcome::Assembles => ("assembles", None),
        PhaseOutcome::Waits => ("waits", None),
    };
    let origin = match &explained.outcome {
        PhaseOutcome::Asks(origin) => Json::text(origin),
        _ => Json::Null,
    };
    Json::Object(vec![
        ("request", Json::text(&explained.request)),
        ("listen", Json::text(&explained.listen)),
        ("server", chosen_json(&explained.server)),
        ("steps", steps),
        ("location", explained.location.as_ref().map_or(Json::Null, chosen_json)),
        (
            "cache",
            Json::Object(vec![
                ("switch", Json::text(&explained.switch.text)),
                ("place", place_json(explained.switch.place.as_ref())),
                ("space", explained.switch.space.as_ref().map_or(Json::Null, Json::text)),
            ]),
        ),
        ("key", key),
        ("candidates", Json::list(&explained.candidates, entry)),
        ("recent", Json::list(&explained.recent, |one| decision(site, one))),
        ("decision", Json::text(explained.decision)),
        ("upstream_cache_status", Json::text(explained.cached)),
        ("why", Json::text(explained.why)),
        ("reason", Json::text(&explained.reason)),
        ("outcome", Json::text(word)),
        ("status", status.map_or(Json::Null, Json::number)),
        ("origin", origin),
        ("for_a_hit", Json::list(&explained.advice, Json::text)),
    ])
}
