//! Responses that vary by request fields (RFC 9111 §4.1).

use super::{Lab, run};

/// Requests in turn with these fields, and returns the run number of each response.
fn runs(lab: &Lab, head: &str, requests: &[&str]) -> Vec<usize> {
    let path = lab.page(&format!("Cache-Control: max-age=60\n{head}"));
    requests.iter().map(|fields| run(&lab.get_with(&path, fields))).collect()
}

#[test]
fn each_value_has_its_own_answer() {
    let lab = Lab::auto();
    let rows: [(&str, &[&str], &[usize]); 15] = [
        ("Vary: X-A", &["X-A: 1\r\n", "X-A: 1\r\n"], &[1, 1]),
        ("Vary: X-A", &["X-A: 1\r\n", "X-A: 2\r\n", "X-A: 1\r\n", "X-A: 2\r\n"], &[1, 2, 1, 2]),
        ("Vary: X-A", &["", "X-A: 1\r\n", "", "X-A: 1\r\n"], &[1, 2, 1, 2]),
        ("Vary: X-A", &["X-A:\r\n", "", "X-A:\r\n"], &[1, 2, 1]),
        ("Vary: X-A", &["X-A: 1\r\n", "x-a: 1\r\n"], &[1, 1]),
        ("vary: x-a", &["X-A: 1\r\n", "X-A: 2\r\n"], &[1, 2]),
        ("Vary: X-A", &["X-A: a\r\n", "X-A: A\r\n"], &[1, 2]),
        ("Vary: X-A", &["X-A: 1, 2\r\n", "X-A: 1,2\r\n", "X-A: 1\r\nX-A: 2\r\n"], &[1, 1, 1]),
        ("Vary: X-A", &["X-A: 1, 2\r\n", "X-A: 2, 1\r\n"], &[1, 2]),
        ("Vary: X-A", &["X-A: 1\r\nX-B: 1\r\n", "X-A: 1\r\nX-B: 2\r\n"], &[1, 1]),
        (
            "Vary: X-A, X-B",
            &["X-A: 1\r\nX-B: 1\r\n", "X-A: 1\r\nX-B: 2\r\n", "X-B: 1\r\nX-A: 1\r\n"],
            &[1, 2, 1],
        ),
        (
            "Vary: X-A\nVary: X-B",
            &["X-A: 1\r\nX-B: 1\r\n", "X-A: 1\r\nX-B: 2\r\n", "X-A: 2\r\nX-B: 1\r\n"],
            &[1, 2, 3],
        ),
        ("Vary: X-A,,X-A", &["X-A: 1\r\n", "X-A: 1\r\n"], &[1, 1]),
        ("Vary: Cookie", &["Cookie: a=1\r\n", "Cookie: a=2\r\n", "Cookie: a=1\r\n"], &[1, 2, 1]),
        // One object has all codings.
        (
            "Vary: Accept-Encoding",
            &["Accept-Encoding: gzip\r\n", "Accept-Encoding: br\r\n", ""],
            &[1, 1, 1],
        ),
    ];
    for (head, requests, expected) in rows {
        assert_eq!(runs(&lab, head, requests), expected, "{head} {requests:?}");
    }
}

#[test]
fn vary_star_is_never_stored() {
    let lab = Lab::auto();
    let many: String = (0..40).map(|n| format!("X-{n}, ")).collect();
    for vary in ["*", "X-A, *", "*, X-A", "X-A\nVary: *", "a b", "\"x\"", &many] {
        let head = format!("Cache-Control: max-age=60\nVary: {vary}");
        assert!(!lab.keeps(&head), "{vary}");
    }
}

#[test]
fn vary_may_change_between_responses() {
    let lab = Lab::auto();
    let path = lab.pages(&[
        "Cache-Control: max-age=60\nVary: X-A",
        "Cache-Control: max-age=60\nVary: X-A, X-B",
        "Cache-Control: max-age=60\nVary: X-A, X-B",
    ]);
    assert_eq!(run(&lab.get_with(&path, "X-A: 1\r\nX-B: 1\r\n")), 1);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\nX-B: 1\r\n")), 2);
    // Never the response for another value of the second field.
    let other = run(&lab.get_with(&path, "X-A: 2\r\nX-B: 2\r\n"));
    assert_eq!(other, 3);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\nX-B: 1\r\n")), 2);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\nX-B: 2\r\n")), 3);
}

#[test]
fn an_encoded_response_is_for_clients_that_accept_its_coding() {
    let lab = Lab::auto();
    let path = lab.page("Cache-Control: max-age=60\nVary: Accept-Encoding\nContent-Encoding: gzip");
    let coded = lab.get_with(&path, "Accept-Encoding: gzip\r\n");
    assert_eq!((run(&coded), coded.header("content-encoding")), (1, Some("gzip")));
    assert_eq!(run(&lab.get_with(&path, "Accept-Encoding: gzip\r\n")), 1);
    assert_eq!(run(&lab.get(&path)), 2);
}

#[test]
fn clients_that_accept_the_same_codings_share_an_encoded_response() {
    let lab = Lab::auto();
    for (coding, expected) in [
        ("gzip", [1, 1, 1, 2, 3, 3, 4]),
        ("zstd", [1, 1, 1, 2, 3, 3, 4]),
        ("deflate", [1, 2, 3, 4, 5, 6, 7]),
    ] {
        let head = format!("Vary: Accept-Encoding\nContent-Encoding: {coding}");
        let requests = [
            "Accept-Encoding: gzip, deflate, br, zstd\r\n",
            "Accept-Encoding: zstd;q=0.5,br;q=1.0, gzip\r\n",
            "Accept-Encoding: BR, GZIP, ZSTD\r\n",
            "Accept-Encoding: gzip\r\n",
            "Accept-Encoding: br;q=0, identity\r\n",
            "Accept-Encoding: identity\r\n",
            "Accept-Encoding: *\r\n",
        ];
        assert_eq!(runs(&lab, &head, &requests), expected, "{coding}");
    }
}

#[test]
fn a_purge_takes_all_copies() {
    let lab = Lab::auto();
    let path = lab.page("Cache-Control: max-age=60\nVary: X-A");
    assert_eq!(run(&lab.get_with(&path, "X-A: 1\r\n")), 1);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\n")), 2);
    assert_eq!(lab.ask("PURGE", &path, "").status, 200);
    assert_eq!(run(&lab.get_with(&path, "X-A: 1\r\n")), 3);
    assert_eq!(run(&lab.get_with(&path, "X-A: 2\r\n")), 4);
}
