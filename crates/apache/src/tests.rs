//! Whole configurations, and properties of all of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

mod backends;
mod more;
mod places;

use crate::{ApacheFiles, ImportFault, ImportRequest, Imported, import};

/// Files in memory.
#[derive(Default)]
struct Memory(BTreeMap<PathBuf, String>);

impl ApacheFiles for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(path).map(|text| text.clone().into()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let below = self.0.keys().filter_map(|file| file.strip_prefix(path).ok());
        let mut all: Vec<OsString> =
            below.filter_map(|rest| rest.iter().next().map(Into::into)).collect();
        all.dedup();
        Ok(all)
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.0.keys().any(|file| file != path && file.starts_with(path))
    }
}

fn of(files: &[(&str, &str)]) -> Result<Imported, ImportFault> {
    of_types(files, "types { }")
}

fn of_types(files: &[(&str, &str)], types: &str) -> Result<Imported, ImportFault> {
    let all = files.iter().map(|(path, text)| ((*path).into(), (*text).to_owned())).collect();
    let request = ImportRequest {
        path: files[0].0.into(),
        environment: vec![("FROM_ENV".to_owned(), "here".to_owned())],
        types,
    };
    import(&Memory(all), &request)
}

fn text(conf: &str) -> String {
    of(&[("/a/httpd.conf", conf)]).unwrap().text
}

#[test]
fn files_conditions_and_macros_are_carried_out() {
    let files = [
        (
            "/a/apache2.conf",
            "Define PORT 8080\nLoadModule ssl_module m/mod_ssl.so\nInclude ports.conf\n\
             IncludeOptional sites/*.conf\nIncludeOptional none/*.conf\n\
             <Macro Host $name $root>\n<VirtualHost *:${PORT}>\nServerName $name.test\n\
             DocumentRoot $root\n</VirtualHost>\n</Macro>\nUse Host one /srv/one\n",
        ),
        (
            "/a/ports.conf",
            "<IfModule mod_ssl.c>\nListen ${PORT}\n</IfModule>\n\
          <IfModule !ssl_module>\nListen 1\n</IfModule>\n<IfDefine NOT>\nListen 2\n</IfDefine>\n",
        ),
        (
            "/a/sites/b.conf",
            "<VirtualHost *:8080>\nServerName ${FROM_ENV}.test\n\
             DocumentRoot \\\n  /srv/b\n</VirtualHost>\n",
        ),
        ("/a/envvars", "export X=1\n"),
    ];
    let text = of(&files).unwrap().text;
    for wanted in
        ["listen 8080;", "server_name here.test;", "server_name one.test;", "root /srv/b;"]
    {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert!(!text.contains("listen 1;") && !text.contains("listen 2;"), "{text}");
}

#[test]
fn faults_name_the_line() {
    let fault = |text: &str| of(&[("/a/c", text)]).unwrap_err().to_string();
    assert!(fault("Listen 1\nInclude x").contains("Could not open /a/x"));
    assert!(fault("Listen 1\nInclude x").ends_with("in /a/c:2"));
    assert!(fault("<Directory />\nRequire all denied\n").contains("was not closed"));
    assert!(fault("<Directory />\n</Files>").contains("Expected </Directory>"));
    assert!(fault("Use nothing").contains("undefined"));
}

#[test]
fn lines_that_search_bodies_keep_their_words() {
    let text = text(
        "Listen 80\nDocumentRoot /srv\n<Directory /srv>\n\
         AddOutputFilterByType SUBSTITUTE;DEFLATE text/html\n\
         SetOutputFilter DEFLATE\nSubstitute \"s|a b|c|n\"\nSSLRequire %{HTTPS} eq \"on\"\n\
         RewriteCond %{LA-U:REMOTE_USER} a\nRewriteRule a b\n</Directory>\n",
    );
    for wanted in [
        "\"AddOutputFilterByType SUBSTITUTE;DEFLATE text/html\"",
        "'Substitute \"s|a b|c|n\"'",
        "'SSLRequire %{HTTPS} eq \"on\"'",
        "\"RewriteCond %{LA-U:REMOTE_USER} a\"",
        "SetOutputFilter: compression",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn what_restricts_and_is_not_understood_closes() {
    let rows = [
        ("<Directory /a>\nRequire ldap-group x\n</Directory>", "Require all denied"),
        ("<Directory /a>\nAuthType Digest\n</Directory>", "Require all denied"),
        ("<Location /a>\nRequire unknown\n</Location>", "Require all denied"),
        ("RewriteEngine on\nRewriteRule ^/x ${map:$1}", "return 503"),
        ("RewriteEngine on\nRewriteRule ^/x http://b/ [P]", "return 503"),
        ("RewriteEngine on\nRewriteCond %{LA-U:REMOTE_USER} a\nRewriteRule ^/x /y", "return 503"),
        ("RewriteEngine on\nRewriteCond %{REQUEST_URI} !-U\nRewriteRule ^/x /y", "return 503"),
        ("<Directory /a>\nSSLRequire nosuch(1)\n</Directory>", "Require all denied"),
        ("ScriptAlias /cgi-bin/ /b/", "return 503"),
        ("ProxyPass /a ajp://b/", "return 503"),
        ("SecRuleEngine On", "return 503"),
        ("AccessFileName .conf", "return 503"),
        ("<Directory /a>\nAllowOverrideList Require\n</Directory>", "Require all denied"),
        ("AddHandler cgi-script .cgi", "AddHandler \"cgi-closed:cgi-script\" \".cgi\""),
        (
            "<Directory /srv/x>\nSetHandler cgi-script\n</Directory>",
            "SetHandler \"cgi-closed:cgi-script\"",
        ),
        ("<Location /x>\nSetHandler perl-script\n</Location>", "cgi-closed:perl-script"),
        ("<Location ~ /x>\nSetHandler server-status\n</Location>", "cgi-closed:server-status"),
        ("<If \"true\">\nSetHandler server-info\n</If>", "cgi-closed:server-info"),
        ("<Directory /a>\nphp_admin_flag engine off\n</Directory>", "php_value engine never"),
        ("<Directory /a>\nphp_admin_value Engine 0\n</Directory>", "php_value engine never"),
        ("php_admin_flag engine off", "php_value engine never"),
        (
            "ProxyPass /a http://b/\n<Proxy *>\nOrder deny,allow\nDeny from all\n</Proxy>",
            "deny all;",
        ),
        (
            "AddHandler php-script .php\n<Directory /srv>\n\
             php_admin_value open_basedir /srv\n</Directory>",
            "PHP_ADMIN_VALUE \"open_basedir=/srv\"",
        ),
        ("ProxyPass /a http://b/\n<Location /a>\nRequire group x\n</Location>", "return 503"),
    ];
    for (conf, wanted) in rows {
        let text = text(&format!("Listen 80\nDocumentRoot /srv\n{conf}\n"));
        assert!(text.contains(wanted), "{conf}:\n{text}");
    }
}

#[test]
fn rules_are_said_in_nginx_words() {
    let certbot = "RewriteEngine on\nRewriteCond %{SERVER_NAME} =a.test [OR]\n\
                   RewriteCond %{SERVER_NAME} =b.test\n\
                   RewriteRule ^ https://%{SERVER_NAME}%{REQUEST_URI} [END,NE,R=permanent]";
    let rows = [
        (certbot, "rewrite \"^\" \"https://${host}$request_uri?\" permanent;"),
        (
            "RewriteEngine on\nRewriteRule ^/a/(.*)$ /b/$1?x=1 [QSA,L]",
            "rewrite \"(?s)^/a/(.*)\\z\" \"/b/$1?x=1\" last;",
        ),
        ("RewriteEngine on\nRewriteRule \\.bak$ - [F]", "if ($uri ~ \"\\.bak\\z\") {"),
        (
            "Redirect permanent /old https://x.test/new",
            "rewrite \"(?s)^/old(|/.*)\\z\" \"https://x.test/new$1\" permanent;",
        ),
        ("Redirect gone /old", "return 410;"),
    ];
    for (conf, wanted) in rows {
        let text = text(&format!("Listen 80\nDocumentRoot /srv\n{conf}\n"));
        assert!(text.contains(wanted), "{wanted}:\n{text}");
        assert!(!text.contains("CLOSED:"), "{text}");
    }
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        "[A-Za-z<>/]{1,12}( [ -\\[\\]-~]{0,30})?",
        prop::sample::select(vec![
            "Listen 80",
            "<VirtualHost *:80>",
            "</VirtualHost>",
            "<Directory /a>",
            "</Directory>",
            "Require all granted",
            "Require ip 10",
            "RewriteEngine on",
            "RewriteRule ^/a(.*) /b$1 [L]",
            "RewriteCond %{HTTP_HOST} ^(.*)$ [NC,OR]",
            "Alias /i /srv/i",
            "ProxyPass /p http://b:1/",
            "ProxyPass /p/q/ http://c",
            "<Location /p>",
            "<Location /p/q*>",
            "</Location>",
            "<LocationMatch ^/p/(.*)>",
            "</LocationMatch>",
            "<Proxy *>",
            "</Proxy>",
            "<If \"%{REMOTE_ADDR} == '192.0.2.1'\">",
            "</If>",
            "Require valid-user",
            "AuthType Basic",
            "Deny from all",
            "Satisfy any",
            "RemoteIPHeader X-Real-IP",
            "RemoteIPProxyProtocol On",
            "RemoteIPProxyProtocolExceptions 10.0.0.0/8",
            "ProxyPass /t https://b/",
            "SSLProxyEngine on",
            "SSLProxyVerify require",
            "SSLProxyVerifyDepth 2",
            "SSLProxyCACertificateFile /ca",
            "SSLProxyCARevocationFile /crl",
            "SSLProxyCheckPeerName off",
            "RemoteIPTrustedProxy 10.0.0.1",
            "Action md /cgi/md",
            "AddHandler md .md",
            "<VirtualHost localhost:80>",
            "Listen a.test:80",
            "SetHandler application/x-httpd-php",
            "AddHandler cgi-script .cgi",
            "<FilesMatch \\.php$>",
            "</FilesMatch>",
            "Redirect 301 /a http://b/",
            "DocumentRoot /srv",
            "ServerName a.test",
            "ServerAlias *.b.test",
            "Options +Indexes",
            "AllowOverride All",
            "LogFormat \"%h %{x}i\" f",
            "CustomLog /l f",
            "ErrorDocument 404 /x",
            "Unheard Of",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(line, 0..40)
}

proptest! {
    #[test]
    fn any_lines_are_translated_or_refused(lines in lines()) {
        let conf = lines.join("\n");
        if let Ok(done) = of(&[("/a/httpd.conf", &conf)]) {
            prop_assert_eq!(done.text.lines().count(), done.places.len());
            // Every line is accounted for.
            let conditional = |line: &str| {
                let line = line.to_ascii_lowercase();
                line.starts_with("</") || line.starts_with('#')
            };
            for (number, line) in (1..).zip(&lines) {
                let is_told = done.places.iter().flatten().any(|place| place.line == number)
                    || done.text.contains(&format!("-{number}: "));
                let in_range = done.text.lines()
                    .filter_map(range)
                    .any(|(first, last)| (first..=last).contains(&number));
                let text = line.trim();
                let is_fine = is_told || in_range || text.is_empty() || conditional(text);
                prop_assert!(is_fine, "{}: {}\n{}", number, line, done.text);
            }
        }
    }

    #[test]
    fn a_single_directive_never_panics(name in "[A-Za-z]{1,20}", rest in "[ -~]{0,60}") {
        let _ = of(&[("/a/httpd.conf", &format!("Listen 80\nDocumentRoot /srv\n{name} {rest}\n"))]);
    }
}

/// The lines that a comment is about.
fn range(text: &str) -> Option<(u32, u32)> {
    let rest = text.trim_start().strip_prefix("# /a/httpd.conf:")?;
    let (first, rest) = rest.split_once('-')?;
    Some((first.parse().ok()?, rest.split(':').next()?.parse().ok()?))
}
