//! Query parameters that a response excludes from the key (`No-Vary-Search`).

use super::{Lab, run};

/// Requests these queries of one path in turn; each response has this field.
fn runs(lab: &Lab, field: &str, queries: &[&str]) -> Vec<usize> {
    let path = lab.path();
    let all: Vec<String> = queries.iter().map(|query| format!("{path}{query}")).collect();
    for uri in &all {
        lab.app.say(uri, &format!("Cache-Control: max-age=60\n{field}"));
    }
    // The earlier request, counted from one, whose response each request got.
    let mut given: Vec<(String, usize)> = Vec::new();
    for (at, uri) in all.iter().enumerate() {
        let before = lab.app.count(uri);
        let answer = lab.get(uri);
        let is_new = lab.app.count(uri) > before;
        assert_eq!(answer.status, 200);
        let name = answer.header("cache-status").unwrap_or_default().contains("; hit");
        assert_eq!(is_new, !name, "{uri}");
        given.push((uri.clone(), if is_new { at + 1 } else { 0 }));
    }
    given.iter().map(|one| one.1).collect()
}

#[test]
fn arguments_that_do_not_matter_make_no_other_page() {
    let lab = Lab::auto();
    let rows: [(&str, &[&str], &[usize]); 11] = [
        ("", &["?a=1", "?a=2", "?a=1"], &[1, 2, 0]),
        ("No-Vary-Search: params", &["?a=1", "?a=2", "", "?b"], &[1, 0, 0, 0]),
        ("No-Vary-Search: params", &["", "?a=1"], &[1, 0]),
        (
            "No-Vary-Search: params=(\"a\")",
            &["?a=1&b=1", "?b=1", "?b=2", "?b=1&a=9"],
            &[1, 0, 3, 0],
        ),
        ("No-Vary-Search: params=(\"a\" \"c\")", &["?c=1&b=1&a=1", "?b=1"], &[1, 0]),
        ("No-Vary-Search: params, except=(\"b\")", &["?a=1&b=1", "?b=1&x=2", "?b=2"], &[1, 0, 3]),
        ("No-Vary-Search: key-order", &["?a=1&b=1", "?b=1&a=1", "?a=1&b=1"], &[1, 0, 0]),
        ("No-Vary-Search: params=(\"a", &["?a=1", "?a=2"], &[1, 2]),
        ("No-Vary-Search: params=(a)", &["?a=1", "?a=2"], &[1, 2]),
        ("No-Vary-Search: params=?0", &["?a=1", "?a=2"], &[1, 2]),
        ("No-Vary-Search: params\nVary: X-A", &["?a=1", "?a=2"], &[1, 0]),
    ];
    for (field, queries, expected) in rows {
        assert_eq!(runs(&lab, field, queries), expected, "{field} {queries:?}");
    }
}

#[test]
fn a_purge_of_any_spelling_takes_the_page() {
    let lab = Lab::auto();
    let path = lab.path();
    let uri = format!("{path}?b=1&utm=2");
    lab.app.say(&uri, "Cache-Control: max-age=60\nNo-Vary-Search: params=(\"utm\")");
    assert_eq!(run(&lab.get(&uri)), 1);
    let answer = lab.ask("PURGE", &format!("{path}?utm=7&b=1"), "");
    assert_eq!(answer.header("x-purged-objects"), Some("1"));
    assert_eq!(run(&lab.get(&uri)), 2);
    assert_eq!(lab.send("POST", &format!("{path}?b=1&utm=8"), "x").status, 200);
    assert_eq!(run(&lab.get(&uri)), 3);
}
