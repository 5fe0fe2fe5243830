//! `Cache-Control` and `Pragma` of responses, and responses to authenticated requests (RFC 9111 §3,
//! §3.5, §5.2.2, §5.4).

use super::{Lab, keeps_all, run};

#[test]
fn directives_count_in_any_case_and_spacing() {
    let rows = [
        ("MAX-AGE=60", true),
        ("Max-Age=60", true),
        ("  max-age=60\t", true),
        (",max-age=60,,", true),
        ("foo,max-age=60", true),
        ("foo=bar, max-age=60", true),
        ("foo=\"bar\", max-age=60", true),
        ("foo=\"max-age=0, no-store\", max-age=60", true),
        ("foo=\"\\\", no-store, \\\"\", max-age=60", true),
        ("foo\nCache-Control: max-age=60", true),
        ("max-age=60, foo=no-store", true),
        ("nomax-age=60", false),
        ("max-age60", false),
        ("max-age:60", false),
        ("max-age=60;foo", false),
        ("NO-STORE, max-age=60", false),
        ("max-age=60,no-store", false),
        ("max-age=60, No-Store", false),
        ("no-store=\"\", max-age=60", false),
        ("no-store=x, max-age=60", false),
        ("max-age=60\nCache-Control: no-store", false),
        ("foo=\", no-store, max-age=60", false),
    ];
    let heads = rows.map(|(control, kept)| (format!("Cache-Control: {control}"), kept));
    keeps_all(&Lab::auto(), &heads.each_ref().map(|(head, kept)| (&**head, *kept)));
}

#[test]
fn of_contradictory_directives_the_more_restrictive_one_wins() {
    let rows = [
        ("public, no-store, max-age=60", false),
        ("public, private, max-age=60", false),
        ("public, no-cache, max-age=60", false),
        ("private, s-maxage=60", false),
        ("private=\"X-A\", max-age=60", false),
        ("no-cache=\"X-A\", max-age=60", false),
        ("no-cache, max-age=60", false),
        ("must-revalidate, max-age=60", true),
        ("proxy-revalidate, max-age=60", true),
        ("must-revalidate, max-age=0", false),
        ("immutable, max-age=60", true),
        ("no-transform, max-age=60", true),
        ("public, max-age=0", false),
        // A cache that understands the status may ignore `no-store` (RFC 9111 §5.2.2.3).
        ("must-understand, no-store, max-age=60", true),
        ("must-understand, max-age=60", true),
        ("must-understand, private, max-age=60", false),
    ];
    let heads = rows.map(|(control, kept)| (format!("Cache-Control: {control}"), kept));
    keeps_all(&Lab::auto(), &heads.each_ref().map(|(head, kept)| (&**head, *kept)));
}

#[test]
fn pragma_of_an_answer_means_nothing() {
    let rows = [
        ("Pragma: no-cache\nCache-Control: max-age=60", true),
        ("Pragma: no-store\nCache-Control: max-age=60", true),
        ("Pragma: max-age=60", false),
        ("Pragma: public", false),
    ];
    keeps_all(&Lab::auto(), &rows);
}

#[test]
fn responses_to_authorized_requests_need_permission_to_be_stored() {
    let lab = Lab::auto();
    let rows = [
        ("Cache-Control: max-age=60", false),
        ("Cache-Control: public, max-age=60", true),
        ("Cache-Control: must-revalidate, max-age=60", true),
        ("Cache-Control: s-maxage=60", true),
        ("Cache-Control: proxy-revalidate, max-age=60", false),
        ("Expires: Sun, 06 Nov 2094 08:49:37 GMT", false),
        ("Cache-Control: private, s-maxage=60", false),
        ("Cache-Control: no-store, public, max-age=60", false),
    ];
    for (head, expected) in rows {
        assert_eq!(lab.keeps_for(head, "Authorization: Basic YTpi\r\n"), expected, "{head}");
    }
    // A private response leaves no marker, and no request is coalesced with its fetch.
    let path = lab.page("Cache-Control: max-age=60");
    assert_eq!(run(&lab.get_with(&path, "Authorization: Basic YTpi\r\n")), 1);
    assert_eq!((run(&lab.get(&path)), run(&lab.get(&path))), (2, 2));
    let path = lab.page("Cache-Control: max-age=60");
    lab.app.hold(&path);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
    let mut clients = [lab.server.connect(), lab.server.connect(), lab.server.connect()];
    for (client, fields) in
        clients.iter_mut().zip(["Authorization: a\r\n", "Authorization: b\r\n", ""])
    {
        client.send(format!("{request}{fields}\r\n"));
    }
    bolide_testkit::wait_until("all three to ask", || lab.app.count(&path) == 3);
    lab.app.release();
    assert!(clients.iter_mut().all(|client| client.answer().status == 200));
    bolide_testkit::wait_until("one to be kept", || {
        lab.get(&path).header("cache-status").is_some_and(|value| value.contains("; hit"))
    });
    // It does not revalidate: the application may answer an authenticated request differently.
    let path = lab.page("Cache-Control: max-age=1, stale-while-revalidate=60");
    assert_eq!(run(&lab.get(&path)), 1);
    bolide_testkit::pause(1100);
    assert_eq!(run(&lab.get_with(&path, "Authorization: Basic YTpi\r\n")), 1);
    assert_eq!(run(&lab.get(&path)), 1);
    bolide_testkit::wait_until("the page to be renewed", || run(&lab.get(&path)) == 2);
    assert_eq!(lab.app.asked(&path)[1].field("Authorization"), None);
    // A response to an unauthenticated request may be sent to all clients.
    let path = lab.page("Cache-Control: max-age=60");
    lab.get(&path);
    assert_eq!(run(&lab.get_with(&path, "Authorization: Basic YTpi\r\n")), 1);
    // So may a `public` response to an authenticated request.
    let path = lab.page("Cache-Control: public, max-age=60");
    lab.get_with(&path, "Authorization: Basic YTpi\r\n");
    assert_eq!(run(&lab.get(&path)), 1);
}
