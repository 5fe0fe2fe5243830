//! The cookie of a rule (`[CO=…]`).

use crate::effort::Effort;

/// Adds a value of `Set-Cookie`; as in Apache, equal ones are sent once. Takes the steps of the
/// search.
pub fn add_cookie(cookies: &mut Vec<Vec<u8>>, cookie: Vec<u8>, effort: &Effort) {
    effort.spend_entries(cookies.len());
    let mut alike = cookies.iter().filter(|known| known.len() == cookie.len());
    let is_known = alike.any(|known| {
        effort.spend(cookie.len() / COMPARED);
        *known == cookie
    });
    if !is_known && !effort.is_spent() {
        cookies.push(cookie);
    }
}

/// Bytes compared per step.
const COMPARED: usize = 16;

/// The field value of `name:value:domain:minutes:path:secure:httponly:samesite`; none if name or
/// value are missing.
pub(super) fn set_cookie(text: &[u8], now: u64) -> Option<Vec<u8>> {
    let (text, separator) = match text {
        [b';', rest @ ..] => (rest, b';'),
        _ => (text, b':'),
    };
    let mut parts = text.split(|byte| *byte == separator);
    let (name, value) = (parts.next()?, parts.next()?);
    let mut next = || parts.next().unwrap_or_default();
    let (domain, minutes, path) = (next(), next(), next());
    let (secure, http_only, same_site) = (next(), next(), next());
    let mut out = [name, b"=", value].concat();
    let path = if path.is_empty() { b"/" } else { path };
    out.extend_from_slice(b"; path=");
    out.extend_from_slice(path);
    if !domain.is_empty() && !domain.eq_ignore_ascii_case(b"invalid") {
        out.extend_from_slice(b"; domain=");
        out.extend_from_slice(domain);
    }
    let minutes = crate::expr::leading_number(minutes);
    if minutes != 0 {
        let at = now.saturating_add_signed(minutes.saturating_mul(60));
        out.extend_from_slice(b"; expires=");
        out.extend_from_slice(&bolide_http::date::http_date(at.min(i64::MAX as u64) as i64));
    }
    let is_true = |text: &[u8]| matches!(&text.to_ascii_lowercase()[..], b"true" | b"1" | b"yes");
    if is_true(secure) || secure.eq_ignore_ascii_case(b"secure") {
        out.extend_from_slice(b"; secure");
    }
    if is_true(http_only) || http_only.eq_ignore_ascii_case(b"httponly") {
        out.extend_from_slice(b"; HttpOnly");
    }
    if !same_site.is_empty() && same_site != b"0" && !same_site.eq_ignore_ascii_case(b"false") {
        out.extend_from_slice(b"; SameSite=");
        out.extend_from_slice(same_site);
    }
    let is_clean = !out.iter().any(u8::is_ascii_control);
    is_clean.then_some(out)
}
