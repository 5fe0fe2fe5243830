//! Targeted fields (RFC 9213), and `Surrogate-Control`.

use super::{Lab, keeps_all};

#[test]
fn the_nearest_field_holds_and_the_others_do_not() {
    let future = "Expires: Sun, 06 Nov 2094 08:49:37 GMT";
    let expires = format!("CDN-Cache-Control: must-revalidate\n{future}");
    let rows = [
        ("CDN-Cache-Control: max-age=60", true),
        ("CDN-Cache-Control: max-age=60\nCache-Control: no-store", true),
        ("CDN-Cache-Control: max-age=60\nCache-Control: private, max-age=0\nExpires: 0", true),
        ("CDN-Cache-Control: max-age=0\nCache-Control: max-age=60", false),
        ("CDN-Cache-Control: no-store\nCache-Control: max-age=60", false),
        ("CDN-Cache-Control: no-cache\nCache-Control: max-age=60", false),
        ("CDN-Cache-Control: private\nCache-Control: max-age=60", false),
        ("CDN-Cache-Control: max-age=60, no-store", false),
        ("CDN-Cache-Control: foo=1, max-age=60", true),
        ("CDN-Cache-Control: max-age=60;foo=bar\nCache-Control: no-store", true),
        ("CDN-Cache-Control: no-store=?0, max-age=60", true),
        ("CDN-Cache-Control: max-age=0\nCDN-Cache-Control: max-age=60", true),
        // A field that is no dictionary is ignored.
        ("CDN-Cache-Control:\nCache-Control: max-age=60", true),
        ("CDN-Cache-Control: &%$, no-store\nCache-Control: max-age=60", true),
        ("CDN-Cache-Control: Max-Age=60, no-store\nCache-Control: max-age=60", true),
        ("CDN-Cache-Control: no-store,\nCache-Control: max-age=60", true),
        // A member of the wrong type is ignored.
        ("CDN-Cache-Control: max-age=\"60\"\nCache-Control: no-store", false),
        ("CDN-Cache-Control: max-age=60.5\nCache-Control: no-store", false),
        ("CDN-Cache-Control: max-age=-60", false),
        (&expires, false),
        // Our own field precedes the common one.
        ("Bolide-Cache-Control: max-age=60\nCDN-Cache-Control: no-store", true),
        ("Bolide-Cache-Control: no-store\nCDN-Cache-Control: max-age=60", false),
        ("Bolide-Cache-Control:\nCDN-Cache-Control: max-age=60", true),
        ("Other-Cache-Control: max-age=60", false),
    ];
    keeps_all(&Lab::auto(), &rows);
}

#[test]
fn surrogate_control_has_precedence_over_cache_control() {
    let rows = [
        ("Surrogate-Control: max-age=60", true),
        ("Surrogate-Control: max-age=60\nCache-Control: no-store", true),
        ("Surrogate-Control: max-age=60+60\nCache-Control: no-store", true),
        ("Surrogate-Control: max-age=60, content=\"ESI/1.0\"\nCache-Control: no-store", true),
        ("Surrogate-Control: no-store\nCache-Control: max-age=60", false),
        ("Surrogate-Control: max-age=0\nCache-Control: max-age=60", false),
        ("Surrogate-Control: content=\"ESI/1.0\"\nCache-Control: max-age=60", true),
        ("Surrogate-Control: no-store, max-age=60\nCDN-Cache-Control: max-age=60", true),
    ];
    keeps_all(&Lab::auto(), &rows);
}

#[test]
fn x_litespeed_cache_control_has_precedence() {
    let rows = [
        ("X-LiteSpeed-Cache-Control: public, max-age=60\nCache-Control: no-store", true),
        ("X-LiteSpeed-Cache-Control: no-cache\nCDN-Cache-Control: max-age=60", false),
        ("X-LiteSpeed-Cache-Control: no-store\nCache-Control: max-age=60", false),
    ];
    keeps_all(&Lab::auto(), &rows);
}
