//! What looks beyond the request itself: its connection, other requests.

use super::Tree;
use crate::{Admission, parse};

#[test]
fn a_connection_has_to_be_what_is_required() {
    let satisfied = "AuthType Basic\nAuthName U\nAuthUserFile /u\nRequire valid-user\n\
                     SSLRequireSSL\nSatisfy Any\n";
    let strict = format!("{satisfied}SSLOptions +StrictRequire\n");
    let rows = [
        ("SSLRequireSSL", Admission::Forbidden, Admission::Open),
        ("SSLRequire false", Admission::Open, Admission::Forbidden),
        ("SSLRequire %{REMOTE_ADDR} eq \"10.1.2.3\"", Admission::Open, Admission::Open),
        ("SSLRequire %{SSL_PROTOCOL} eq \"TLSv1.3\"", Admission::Open, Admission::Forbidden),
        ("SSLRequire true\nSSLRequire false", Admission::Open, Admission::Forbidden),
        // Lengths come first.
        ("SSLRequire \"9\" < \"10\"", Admission::Open, Admission::Open),
        ("SSLRequire not \"b\" lt \"a\" and ( true or false )", Admission::Open, Admission::Open),
        ("SSLRequire \"a\" in {\"b\", \"c\"}", Admission::Open, Admission::Forbidden),
        (satisfied, Admission::AsksWho, Admission::Open),
        (&strict, Admission::Forbidden, Admission::Open),
    ];
    for (text, clear, over_tls) in rows {
        let mut tree = Tree::one(text).from("10.1.2.3");
        assert_eq!(tree.admission("x"), clear, "{text}");
        tree.world.https = true;
        assert_eq!(tree.admission("x"), over_tls, "{text}");
    }
    let above = ("", "SSLRequire true");
    let mut tree = Tree::new(&[above, ("d/", "SSLRequire false")]);
    tree.world.https = true;
    assert_eq!(tree.admission("x"), Admission::Forbidden, "requirements add up");
    for text in [
        "SSLRequire",
        "SSLRequire %{SSL_NOPE} eq \"a\"",
        "SSLRequire file(\"/x\") eq \"a\"",
        "SSLRequire \"a\" in PeerExtList(\"1.2\")",
        "SSLOptions FakeBasicAuth",
        "RewriteCond %{SSL:SSL_NOPE} a",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn rules_look_ahead_by_url_and_by_file() {
    let mut tree = Tree::one(
        "RewriteEngine on\nRewriteBase /b/\n\
         RewriteRule ^url/(.*)$ /to%{LA-U:REQUEST_URI} [R,L]\n\
         RewriteRule ^file/(.*)$ /to%{la-f:REQUEST_URI} [R,L]\n\
         RewriteCond %{QUERY_STRING} -F\nRewriteRule ^f$ /yes [R,L]\n\
         RewriteCond %{QUERY_STRING} !-U\nRewriteRule ^u$ /no [R,L]\n\
         RewriteRule ^none$ /x%{LA-U:NOSUCH}y [R,L]\n",
    );
    tree.world.files.push(b"/srv/www/a.txt".to_vec());
    assert_eq!(tree.result("/url/x", None), "302 http://site.test/to/b/url/x");
    assert_eq!(tree.result("/file/x", None), "302 http://site.test/to/srv/www/file/x");
    assert_eq!(
        tree.result("/f", Some("/srv/www/a.txt")),
        "302 http://site.test/yes?/srv/www/a.txt"
    );
    assert_eq!(tree.result("/f", Some("/srv/www/b.txt")), "-");
    assert_eq!(tree.result("/u", Some("/x")), "-");
    assert_eq!(tree.result("/none", None), "302 http://site.test/xy");
    assert!(parse(b"RewriteCond %{LA-U:SCRIPT_USER} a").is_err());
    assert!(parse(b"<If \"%{LA-U:REQUEST_URI} == 'a'\">\n</If>").is_err());
}
