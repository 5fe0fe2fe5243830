//! The query of a request as Magento's cache knows it: sorted, without what advertisers add.
//!
//! Owns the names of marketing parameters. What is cut here is cut from the request that is sent on
//! as well, so that one key is one question.

/// Parameters of advertisers and statistics, in the order of their first letters.
const NAMES: [&[u8]; 32] = [
    b"_branch_match_id",
    b"_ga",
    b"_gl",
    b"_ke",
    b"_kx",
    b"campid",
    b"ceneo_cid",
    b"clickId",
    b"cof",
    b"customid",
    b"cx",
    b"dclid",
    b"dm_i",
    b"ef_id",
    b"epik",
    b"fbclid",
    b"gbraid",
    b"gclid",
    b"gclsrc",
    b"igshid",
    b"msclkid",
    b"pcrid",
    b"redirect_mongo_id",
    b"redirect_log_mongo_id",
    b"s_kwcid",
    b"sb_referer_host",
    b"ScCid",
    b"siteurl",
    b"srsltid",
    b"tduid",
    b"wbraid",
    b"zanpid",
];
/// Beginnings that letters follow, `a` to `z`, one at least.
const BEGINNINGS: [&[u8]; 12] = [
    b"_bta_", b"gad_", b"gdf", b"hsa_", b"mc_", b"mtm_", b"matomo_", b"pk_", b"piwik_", b"snrai_",
    b"trk_", b"utm_",
];
/// LIMIT: parameters that are sorted without an allocation.
const AT_HAND: usize = 64;

fn is_marketing(name: &[u8]) -> bool {
    let are_letters = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_lowercase);
    NAMES.contains(&name)
        || BEGINNINGS.iter().any(|start| name.strip_prefix(*start).is_some_and(are_letters))
        || name.strip_prefix(b"mk").is_some_and(|rest| rest.len() == 3 && are_letters(rest))
}

/// Whether marketing parameters are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marketing {
    Cut,
    Kept,
}

/// The parameters of `query` that stay, as sent.
fn staying(query: &[u8], marketing: Marketing) -> impl Iterator<Item = &[u8]> + Clone {
    query.split(|byte| *byte == b'&').filter(move |piece| {
        let name = piece.split(|byte| *byte == b'=').next().unwrap_or_default();
        !piece.is_empty() && (marketing == Marketing::Kept || !is_marketing(name))
    })
}

/// Appends the parameters of `query` in the order of their bytes; false, and nothing, if `query`
/// has this form already.
fn push_clean(query: &[u8], marketing: Marketing, out: &mut Vec<u8>) -> bool {
    let pieces = staying(query, marketing);
    let (count, size) =
        pieces.clone().fold((0, 0), |sum, piece| (sum.0 + 1, sum.1 + piece.len() + 1));
    let is_whole = size == query.len() + 1 || query.is_empty();
    if is_whole && pieces.clone().is_sorted() {
        return false;
    }
    let mut at_hand = [&b""[..]; AT_HAND];
    let mut more = Vec::new();
    let all = match at_hand.get_mut(..count) {
        Some(all) => {
            all.iter_mut().zip(pieces).for_each(|(place, piece)| *place = piece);
            all
        }
        None => {
            more.extend(pieces);
            &mut more[..]
        }
    };
    all.sort_unstable();
    debug_assert_eq!(all.len(), count, "each parameter that stays is there once");
    for (number, piece) in all.iter().enumerate() {
        if number > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(piece);
    }
    true
}

/// Writes to `out` the query by which a request for `target` with GET or HEAD (`is_read`) is known
/// and sent on; false if it is the one that it has. `target` is path and query as received.
pub fn clean_query(target: &[u8], is_read: bool, out: &mut Vec<u8>) -> bool {
    out.clear();
    let Some(at) = memchr::memchr(b'?', target) else { return false };
    let cuts = is_read && !super::is_own(target);
    let marketing = if cuts { Marketing::Cut } else { Marketing::Kept };
    let query = &target[at + 1..];
    query.is_empty() || push_clean(query, marketing, out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Marketing, clean_query, is_marketing, push_clean};

    fn clean(target: &str) -> Option<String> {
        let mut out = Vec::new();
        clean_query(target.as_bytes(), true, &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_query_is_sorted_and_has_no_marketing() {
        for (target, expected) in [
            ("/a", None),
            ("/a?b=1", None),
            ("/a?b=1&c=2", None),
            ("/a?c=2&b=1", Some("b=1&c=2")),
            ("/a?utm_source=x", Some("")),
            ("/a?", Some("")),
            ("/a?utm_source=x&p=2&gclid=1", Some("p=2")),
            ("/a?p=2&&q=1&", Some("p=2&q=1")),
            ("/a?a=2&a=10&a=1", Some("a=1&a=10&a=2")),
            ("/a?utm_source_platform=x", None),
            ("/customer/a?utm_source=x&b=1", Some("b=1&utm_source=x")),
            ("/a?next=/checkout&gclid=1", Some("gclid=1&next=/checkout")),
        ] {
            assert_eq!(clean(target).as_deref(), expected, "{target}");
        }
        let mut out = Vec::new();
        assert!(!clean_query(b"/a?utm_source=x", false, &mut out), "a POST keeps its parameters");
    }

    #[test]
    fn names_of_marketing_are_whole_names() {
        for name in ["gclid", "utm_source", "mkabc", "piwik_kwd", "pk_kwd", "matomo_x", "_bta_tid"]
        {
            assert!(is_marketing(name.as_bytes()), "{name}");
        }
        for name in ["gclidx", "utm_", "utm_1", "mkab", "mkabcd", "pwik_x", "xgclid", "GCLID", ""] {
            assert!(!is_marketing(name.as_bytes()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_order_that_was_sent_makes_no_other_key(
            mut pieces in proptest::collection::vec("[a-c]{1,2}(=[0-9]{0,2})?", 0..90),
            seed in any::<u64>(),
        ) {
            let clean = |pieces: &[String]| {
                let query = pieces.join("&");
                let mut out = Vec::new();
                match push_clean(query.as_bytes(), Marketing::Cut, &mut out) {
                    true => out,
                    false => query.into_bytes(),
                }
            };
            let first = clean(&pieces);
            let mut again = Vec::new();
            prop_assert!(!push_clean(&first, Marketing::Cut, &mut again), "it is clean then");
            let len = pieces.len().max(1);
            pieces.rotate_left((seed as usize) % len);
            pieces.reverse();
            prop_assert_eq!(clean(&pieces), first);
        }

        #[test]
        fn any_bytes_are_a_query(target in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            let _ = clean_query(&target, true, &mut out);
        }
    }
}
