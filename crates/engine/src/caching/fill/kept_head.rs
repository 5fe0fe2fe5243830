//! The head of a response as it is stored, and its freshness lifetime.

use bolide_cache::rules::{self, AnswerSource, Facts, StoreDecision};
use bolide_cache::{EARLIER_TAGS, Object, ObjectHead, PAGE_ID, Tags};
use bolide_http::{FieldMap, Name, date};

use crate::caching::{Caching, STALE_FOR_EVER};

/// Applies the lifetimes of the configuration, and the limits of `.htaccess` files.
pub(super) fn settle_times(
    decision: &mut StoreDecision,
    answer: &FieldMap,
    caching: &Caching,
    facts: &Facts<'_>,
) {
    stretch(decision, answer, caching);
    let [lifetime, stale] = facts.environment.times_max;
    if let Some(max) = lifetime {
        decision.ttl = decision.ttl.min(max);
    }
    if let Some(max) = stale {
        decision.stale_while_revalidate = decision.stale_while_revalidate.min(max);
        decision.stale_if_error = decision.stale_if_error.min(max);
    }
}

/// Applies the stale lifetimes of the configuration.
fn stretch(decision: &mut StoreDecision, answer: &FieldMap, caching: &Caching) {
    let page = &caching.conf.page;
    if caching.is_page() {
        if let Some(max) = page.max_ttl {
            decision.ttl = decision.ttl.min(u32::try_from(max.as_secs()).unwrap_or(u32::MAX));
        }
        if caching.is_magento() {
            return caching.set_grace(decision);
        }
        // RFC 9111 §4.2.4: HTTP's own fields permit stale use only if they say so. An LSCache
        // application, or one that leaves the lifetime to the configuration, gets LiteSpeed's
        // default.
        let is_permitted = page.has_stale
            || decision.source == AnswerSource::Configuration
            || rules::is_lscache(answer);
        if !decision.must_revalidate && is_permitted {
            let seconds = |time: std::time::Duration| time.as_secs() as u32;
            if !decision.says_refreshable {
                decision.stale_while_revalidate = seconds(page.stale);
            }
            if !decision.says_for_errors {
                decision.stale_if_error = seconds(page.stale_error);
            }
        }
        return;
    }
    // The permitted use is decided when it is served.
    decision.stale_while_revalidate = STALE_FOR_EVER;
    decision.stale_if_error = STALE_FOR_EVER;
}

/// The fields of a stored response as its application sent them, as far as they are stored.
pub(in crate::caching) fn fields_of(old: &Object) -> FieldMap {
    let mut fields = FieldMap::new();
    old.fields(&mut fields);
    // Fields that are stored twice come from the controls.
    let said = || old.controls().filter(|field| ![PAGE_ID, EARLIER_TAGS].contains(&field.0));
    for (name, _) in said() {
        fields.remove_text(name);
    }
    for (name, value) in said() {
        fields.push_text(name, value);
    }
    if let Some(etag) = old.etag().filter(|_| fields.get(Name::Etag).is_none()) {
        fields.push(Name::Etag, etag);
    }
    let modified = old.last_modified().filter(|_| fields.get(Name::LastModified).is_none());
    if let Some(modified) = modified {
        fields.push_writing(Name::LastModified, |out| {
            out.extend_from_slice(&date::http_date(modified as i64));
        });
    }
    fields
}

/// The head that is stored, and its tags.
pub(super) fn kept_head(
    status: u16,
    answer: &FieldMap,
    decision: &StoreDecision,
    caching: &Caching,
    now_ms: u64,
    total: Option<u64>,
) -> (ObjectHead, Tags) {
    let mut fields = answer.clone();
    rules::for_store(&mut fields, caching.policy.mode);
    // RFC 9110 §6.6.1: a recipient that computes Expires minus Date needs the response's own date.
    let own = answer.get(Name::Date);
    if let Some(date) = own.filter(|_| caching.is_page()) {
        fields.push(Name::Date, date);
    } else if own.is_none()
        && (caching.policy.is_strict || caching.is_page() && answer.get(Name::Expires).is_some())
    {
        fields.push_writing(Name::Date, |out| {
            out.extend_from_slice(&date::http_date((now_ms / 1000) as i64));
        });
    }
    if decision.esi {
        fields.push_text(bolide_cache::ESI_MARK.0, bolide_cache::ESI_MARK.1);
    }
    if caching.is_magento() {
        // Bans match the tags as they were sent.
        let lines: Vec<&[u8]> = answer.all_text(rules::magento::TAGS).collect();
        if !lines.is_empty() {
            fields.push_text(rules::magento::TAGS, &lines.join(&b","[..]));
        }
    }
    let mut tags = Tags::default();
    if caching.is_page() {
        if !caching.conf.page.trusted.is_empty() {
            rules::for_front(answer, &mut fields);
        }
        for cookie in &decision.cookies {
            fields.push(Name::SetCookie, cookie);
        }
        push_tags(answer, caching, &mut tags);
    }
    let has_validator =
        [Name::Etag, Name::LastModified].iter().any(|name| answer.get(*name).is_some());
    // Magento's tags are stored above, and its lifetimes are those of `Cache-Control`.
    let controls = match caching.is_page() && !caching.is_magento() && has_validator {
        true => rules::controls(answer),
        false => FieldMap::new(),
    };
    let head = ObjectHead {
        status,
        fields,
        controls,
        etag: answer.get(Name::Etag).unwrap_or_default().to_vec(),
        last_modified: answer.get(Name::LastModified).and_then(date::parse),
        times: decision.times(now_ms),
        length: total,
    };
    (head, tags)
}

/// Adds the tags of a response, which zones do not have.
pub(super) fn push_tags(answer: &FieldMap, caching: &Caching, tags: &mut Tags) {
    if caching.is_page() {
        rules::tags(answer, |word| match word.public {
            true => tags.push_public(word.text),
            false => tags.push(word.text),
        });
    }
}
