//! What looks beyond the request itself: its connection, other requests, the body of its answer.

use super::Tree;
use crate::{Admission, OutputFilter, parse};

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

#[test]
fn filters_are_asked_for_by_type_and_by_extension() {
    let mut tree = Tree::new(&[
        (
            "",
            "AddOutputFilterByType SUBSTITUTE text/html\nAddOutputFilter INFLATE;DEFLATE .txt gz\n\
              Substitute s/a/b/\n",
        ),
        ("d/", "RemoveOutputFilter gz\n"),
    ]);
    tree.with("x", |applied, by| {
        let mut of = |name: &[u8], media: &[u8]| -> Vec<_> {
            let named = applied.filters_of_name(name, by).unwrap();
            applied.output_filters(&named, media)
        };
        assert_eq!(of(b"a.html", b"text/html; charset=x"), [OutputFilter::Substitute]);
        assert_eq!(of(b"a.TXT", b"text/plain"), [OutputFilter::Inflate, OutputFilter::Deflate]);
        assert_eq!(of(b"a.gz", b"text/plain"), []);
        let extensions = [b"a".as_slice(), &b".txt".repeat(1 << 20)].concat();
        assert!(applied.filters_of_name(&extensions, by).is_err());
        assert!(applied.reworks_bodies() && applied.substitution().is_some());
    })
    .unwrap();
    let mut tree = Tree::one("SetOutputFilter DEFLATE\n");
    tree.with("x", |applied, _| {
        assert!(!applied.reworks_bodies() && applied.substitution().is_none());
    })
    .unwrap();
    for text in ["SetOutputFilter NOPE", "AddOutputFilter SUBSTITUTE", "RemoveOutputFilter"] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}
