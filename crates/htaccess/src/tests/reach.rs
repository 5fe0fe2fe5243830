//! What looks beyond the request itself: other requests.

use super::Tree;
use crate::parse;

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
