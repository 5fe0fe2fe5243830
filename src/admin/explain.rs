//! `bolide explain`: the trace of a request, as text and as JSON.

use bolide_conf::SourcePlace;
use bolide_engine::explain::machine::{self, hash, kind, space_name, target};
use bolide_engine::explain::{
    Chosen, Explanation, Json, PhaseOutcome, Recent, TrialLook, TrialSeen, explain, recent,
};

use super::format::{entry_line, seconds, show};
use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    if let Some(id) = words.text("request") {
        return decisions_of_request(desk, words, &id);
    }
    let explained = explanation(desk, words)?;
    Ok(if words.has("json") {
        machine::explanation_json(&desk.site, &explained).line()
    } else {
        text(desk, &explained).into_bytes()
    })
}

/// Runs the request that `words` describe.
pub(super) fn explanation(desk: &AdminDesk, words: &Words) -> Result<Explanation, String> {
    let question = desk.question(words)?;
    let mut door = super::door()?;
    let now = bolide_io::process::now();
    let offset = bolide_io::process::utc_offset_seconds(now.unix_seconds());
    Ok(explain(&desk.site, &question, now, offset, |look| match look {
        TrialLook::Probe(probe) => TrialSeen::Probed(bolide_worker::look(&mut door, probe)),
        TrialLook::Kept(permit) => TrialSeen::Kept(bolide_worker::glance(&mut door, permit, now)),
    }))
}

fn decisions_of_request(desk: &AdminDesk, words: &Words, id: &str) -> CommandResult {
    let store = desk.store()?;
    let found = recent(store, |one| one.id.starts_with(&id.to_ascii_lowercase()));
    if found.is_empty() {
        return Err(format!(
            "no decision about request \"{id}\" is known: each worker has its last {}, \
             of locations with a cache",
            bolide_cache::DECISIONS_MAX
        ));
    }
    if words.has("json") {
        return Ok(Json::list(&found, |one| machine::decision(&desk.site, one)).line());
    }
    let mut out = String::new();
    for one in &found {
        let (id, space) = (&one.id, space_name(&desk.site, one.namespace).unwrap_or_default());
        out.push_str(&format!("request    {id}\nspace      {space}\n"));
        out.push_str(&format!("decision   {}\n", recent_line(one)));
        out.push_str(&format!("target     {}\n", show(target(one).as_bytes())));
    }
    Ok(out.into_bytes())
}

fn ago(at_ms: u64) -> u64 {
    bolide_io::process::now().unix_millis.saturating_sub(at_ms) / 1000
}

fn recent_line(one: &Recent) -> String {
    let mut text = format!("{} ({}), {}", one.decision, one.why.word(), one.status);
    if one.is_kept {
        text.push_str(", the response was stored");
    } else if let Some(refusal) = one.refusal {
        text.push_str(&format!(", the response was not stored ({})", refusal.reason()));
    }
    text.push_str(&format!(", {} ago", seconds(ago(one.at_ms))));
    text
}

fn at(place: Option<&SourcePlace>) -> String {
    place.map_or_else(String::new, |place| format!("  ({}:{})", place.file, place.line))
}

fn outcome(explained: &Explanation) -> String {
    match &explained.outcome {
        PhaseOutcome::Answers(status)
            if matches!(explained.decision, "HIT" | "STALE" | "UPDATING") =>
        {
            format!("the store answers {status}")
        }
        PhaseOutcome::Answers(status) => {
            format!("the server answers {status} without an upstream request")
        }
        PhaseOutcome::Asks(origin) => format!("a request goes to upstream {origin}"),
        PhaseOutcome::Joins => "it waits for the fetch of another request".to_owned(),
        PhaseOutcome::Closes => "the connection is closed without a response".to_owned(),
        PhaseOutcome::Assembles => "the page is assembled from its fragments".to_owned(),
        PhaseOutcome::Waits => "it waits for an event that cannot be simulated".to_owned(),
    }
}

fn text(desk: &AdminDesk, explained: &Explanation) -> String {
    let mut out = String::new();
    let mut line = |head: &str, text: &str| out.push_str(&format!("{head:<10} {text}\n"));
    line("request", &format!("{} at {}", show(explained.request.as_bytes()), explained.listen));
    let Chosen { name, why, place } = &explained.server;
    line("server", &format!("{name}: {why}{}", at(Some(place))));
    for step in &explained.steps {
        line("step", &format!("{}{}", show(step.text.as_bytes()), at(step.place.as_ref())));
    }
    if let Some(Chosen { name, why, place }) = &explained.location {
        line("location", &format!("{}: {why}{}", show(name.as_bytes()), at(Some(place))));
    }
    let switch = &explained.switch;
    let space = switch.space.as_ref().map_or_else(String::new, |space| format!(", {space}"));
    line("cache", &format!("{}{space}{}", switch.text, at(switch.place.as_ref())));
    if let Some(key) = &explained.key {
        line("key", &show(&key.url));
        for part in &key.vary {
            line("  vary", show(part).trim_end());
        }
        line("  session", &key.session.as_ref().map_or_else(|| "none".into(), |one| show(one)));
        line("  hash", &hash(key.hash));
    }
    for one in &explained.candidates {
        let mark = if one.is_own { "kept" } else { kind_word(one) };
        line(mark, &entry_line(one));
    }
    for one in &explained.recent {
        line("lately", &format!("{}, request {}", recent_line(one), one.id));
    }
    line("decision", &format!("{}: {}", explained.decision, explained.reason));
    line("then", &outcome(explained));
    for advice in &explained.advice {
        line("for a hit", advice);
    }
    if desk.site.store().is_some_and(|store| store.stats().objects == 0) {
        line("note", "the store is empty");
    }
    out
}

const fn kind_word(one: &bolide_engine::explain::Candidate) -> &'static str {
    match one.kind {
        bolide_cache::ObjectKind::Content => "other copy",
        bolide_cache::ObjectKind::Vary
        | bolide_cache::ObjectKind::Pass
        | bolide_cache::ObjectKind::Failed => kind(one),
    }
}
