//! What opened a server although Apache keeps clients out.

use super::{of, of_types, text};

fn wants(conf: &str, wanted: &[&str], unwanted: &[&str]) {
    let text = text(&format!("Listen 80\nDocumentRoot /srv\n{conf}\n"));
    for one in wanted {
        assert!(text.contains(one), "{one} is missing:\n{conf}\n{text}");
    }
    for one in unwanted {
        assert!(!text.contains(one), "{one} is there:\n{conf}\n{text}");
    }
}

#[test]
fn rules_that_end_leave_redirects_their_turn() {
    let on = "RewriteEngine on\n";
    let rule = format!("{on}RewriteRule .* - [L]\nRewriteRule ^/a - [F]\n");
    wants(
        &format!("{rule}RedirectMatch 403 /\\.git"),
        &["set $rules_end 1;", "if ($rules_end = \"\") { set $way2 1; }", "return 403;"],
        &["break;"],
    );
    wants(&rule, &["break;"], &["$rules_end"]);
    wants(
        &format!("{on}RewriteRule ^/in/(.*) /priv/$1 [PT,L]\nRedirect 403 /priv"),
        &["set $rules_end 1;", "rewrite \"(?s)^/in/(.*)\" \"/priv/$1\";"],
        &[" last;"],
    );
    wants(&format!("{on}RewriteRule ^/in/(.*) /p/$1 [PT]"), &["\"/p/$1\" last;"], &["$rules_end"]);
}

#[test]
fn rules_do_not_lead_around_sections() {
    let deny = "<Location /in>\nRequire all denied\n</Location>";
    let ip = "<Location /in>\nRequire ip 10\n</Location>";
    let check = "if ($uri ~ \"(?s)^/in/(.*)\\z\") {";
    let on = "RewriteEngine on\nRewriteRule";
    wants(&format!("{on} ^/in/(.*)$ /$1 [L]\n{deny}"), &[check, "return 403;"], &["CLOSED:"]);
    wants(
        &format!("{on} ^ /index.php [L]\n{ip}"),
        &["if ($uri ~ \"^/in(?:/|\\z)\")", "return 503;"],
        &[],
    );
    // The new path is the address with [PT]; other sections, and those for all, do not matter.
    wants(&format!("{on} ^/in/(.*)$ /$1 [PT,L]\n{deny}"), &[], &[check]);
    wants(&format!("{on} ^/a/(.*)$ /b/$1 [L]\n{ip}"), &[], &["return 503;", "return 403;"]);
    wants(
        &format!("{on} ^ /index.php [L]\n<Location />\nRequire ip 10\n</Location>"),
        &[],
        &["return 503;"],
    );
    // No proxy answers for what a rule leads to.
    let app = "ProxyPass /app http://b/";
    wants(&format!("{on} ^/in/(.*)$ /app/$1 [L]\n{app}"), &["return 503;"], &[]);
    wants(&format!("{on} ^/in/(.*)$ /app/$1 [PT]\n{app}"), &[], &["return 503;"]);
    let inner = "<Location /app>\nProxyPass http://b/\n</Location>";
    wants(&format!("{on} ^/in/(.*)$ /app/$1 [PT]\n{inner}"), &["return 503;"], &[]);
    // A section that grants must not hold for what was not asked for at its address.
    let grant = "<Location />\nRequire ip 10\n</Location>\n\
                 <Location /pub>\nRequire all granted\n</Location>";
    wants(&format!("{on} ^/in/(.*)$ /pub/$1 [L]\n{grant}"), &["CLOSED:", "return 503;"], &[]);
    // A handler of the server answers whatever file a rule leads to.
    let status = "<Location /server-status>\nSetHandler server-status\nRequire local\n</Location>";
    wants(
        &format!("{on} ^ /index.php [L]\n{status}"),
        &["$uri !~ \"^/server-status(?:/|\\z)\""],
        &["CLOSED:"],
    );
}

#[test]
fn refused_rules_close_every_case_of_theirs() {
    wants(
        "RewriteEngine on\nRewriteRule ^/a - [F,NC,CO=a:b:c]",
        &["if ($uri ~* \"^/a\") { return 503; }"],
        &[],
    );
}

#[test]
fn wildcards_of_locations_end_where_apaches_do() {
    wants(
        "<Location \"/pri*\">\nRequire all granted\n</Location>",
        &["m#^/pri[^/]*$#"],
        &["(?:/|$)"],
    );
}

#[test]
fn clients_behind_proxies_are_known() {
    let list = "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxyList list\nListen 80\n";
    let text =
        of(&[("/a/httpd.conf", list), ("/a/list", "# ours\n192.0.2.1 192.0.2.2\n10.0.0.0/8\n")]);
    let text = text.unwrap().text;
    for wanted in ["192.0.2.1", "192.0.2.2", "10.0.0.0/8"] {
        assert!(text.contains(&format!("set_real_ip_from {wanted};")), "{text}");
    }
    assert!(of(&[("/a/httpd.conf", list)]).unwrap_err().to_string().contains("Could not open"));
    let header = "RemoteIPHeader X-Forwarded-For\n";
    wants(
        &format!("<VirtualHost *:80>\n{header}RemoteIPInternalProxy 127.0.0.1\n</VirtualHost>"),
        &["set_real_ip_from 127.0.0.1;", "real_ip_header X-Forwarded-For;"],
        &[],
    );
    // Apache takes no private address from a proxy of others: rules about these are closed.
    let other = format!("{header}RemoteIPTrustedProxy 192.0.2.1\n");
    let all = [header, &other, &format!("{header}RemoteIPTrustedProxy 10.0.0.0/8\n")];
    let private =
        ["Require ip 127", "Require local", "Order deny,allow\nDeny from all\nAllow from 10"];
    for (conf, rule) in all.iter().flat_map(|conf| private.map(|rule| (conf, rule))) {
        let wanted = ["set_real_ip_from ", "CLOSED:"];
        wants(&format!("{conf}<Location />\n{rule}\n</Location>"), &wanted, &[]);
    }
    let own = format!("{header}RemoteIPInternalProxy 10.0.0.0/8\n");
    let rows = [
        (&other[..], "<Location />\nRequire ip 192.0.2.1\n</Location>", false),
        (header, "<Location />\nRequire ip 192.0.2.1\n</Location>", true),
        (header, "<If \"%{REMOTE_ADDR} == '192.0.2.1'\">\nRequire all denied\n</If>", true),
        (header, "<If \"%{REMOTE_ADDR} == '192.0.2.1'\">\nHeader set A b\n</If>", false),
        (header, "RewriteEngine on\nRewriteCond %{REMOTE_ADDR} ^10\nRewriteRule ^ - [F]", true),
        (&own, "RewriteEngine on\nRewriteCond %{REMOTE_ADDR} ^10\nRewriteRule ^ - [F]", false),
        (&own, "<Location />\nRequire ip 10\n</Location>", false),
    ];
    for (conf, rule, is_closed) in rows {
        let closed: &[&str] = &["CLOSED:"];
        let (wanted, unwanted) = if is_closed { (closed, &[][..]) } else { (&[][..], closed) };
        wants(&format!("{conf}{rule}"), wanted, unwanted);
    }
}

#[test]
fn servers_with_names_for_addresses_are_not_lost() {
    let conf = |name: &str| {
        text(&format!(
            "Listen 127.0.0.1:80\n<VirtualHost {name}:80>\nServerName a.test\n\
             <Location /p>\nRequire all denied\n</Location>\n</VirtualHost>\n"
        ))
    };
    let local = conf("localhost");
    assert!(local.contains("server_name a.test;") && !local.contains("return 503;"), "{local}");
    let other = conf("www.example.org");
    assert!(other.contains("listen 127.0.0.1:80;") && other.contains("return 503;"), "{other}");
    assert_eq!(other.matches("listen ").count(), 1, "{other}");
    let listen = text(
        "Listen www.example.org:80\n<VirtualHost 192.0.2.1:80>\nServerName a.test\n\
         </VirtualHost>\n",
    );
    assert!(listen.contains("listen www.example.org:80;") && listen.contains("return 503;"));
}

#[test]
fn revoked_certificates_are_not_let_in() {
    let tls = |more: &str| {
        text(&format!(
            "Listen 443\n<VirtualHost *:443>\nSSLEngine on\nSSLCertificateFile /c\n\
             SSLCACertificateFile /ca\nSSLVerifyClient require\n{more}\n</VirtualHost>\n"
        ))
    };
    let rows = [
        ("SSLCARevocationPath /crl\nSSLCARevocationCheck chain", true),
        ("SSLCARevocationCheck leaf", true),
        ("SSLOCSPEnable on", true),
        ("SSLOCSPEnable off\nSSLCARevocationCheck none\nSSLCARevocationPath /crl", false),
        ("SSLCARevocationFile /crl\nSSLCARevocationCheck chain", false),
    ];
    for (more, wanted) in rows {
        let text = tls(more);
        assert_eq!(text.contains("return 503;"), wanted, "{more}\n{text}");
    }
    assert!(tls("SSLCARevocationFile /crl").contains("ssl_crl /crl;"));
}

#[test]
fn files_of_programs_are_not_shown() {
    let closed = ["# /a/httpd.conf:4: CLOSED: ", "\"cgi-closed:cgi-by-action:"];
    wants("Action md-h /cgi/md.sh\nAddHandler md-h .md", &closed, &[]);
    let files = "Action md-h /cgi/md.sh\n<Files *.md>\nSetHandler md-h\n</Files>";
    wants(files, &["CLOSED: SetHandler", "SetHandler \"cgi-closed:cgi-by-action:md-h\""], &[]);
    wants("Action text/x-md /cgi/md.sh\nAddType text/x-md .md", &closed, &[]);
    wants("AddHandler md-h .md", &["AddHandler \"cgi-closed:md-h\" \".md\""], &[]);
    let of_type = "Listen 80\nAction text/markdown /cgi/md.sh\n";
    let types = "types {\n    text/html html;\n    text/markdown md markdown;\n}";
    let text = of_types(&[("/a/httpd.conf", of_type)], types).unwrap().text;
    let line = "AddHandler \"cgi-closed:cgi-by-action:text/markdown\" \"md\" \"markdown\"";
    assert!(text.contains(line), "{text}");
}

#[test]
fn handlers_have_the_location_of_their_program() {
    let set = |word: &str| format!("<Files *.php>\nSetHandler \"{word}\"\n</Files>\n");
    wants(
        &format!(
            "<Proxy \"unix:/run/p.sock|fcgi://php/\">\nProxySet timeout=5\n</Proxy>\n{}",
            set("proxy:fcgi://PHP/")
        ),
        &["apache_handler proxy:fcgi://php/ @apache_handler_1;", "fastcgi_pass unix:/run/p.sock;"],
        &["fastcgi_pass PHP"],
    );
    let one = set("proxy:unix:/run/a.sock|fcgi://l");
    wants(
        &format!("{one}<Location /b>\n{}</Location>\n", set("proxy:unix:/run/b.sock|fcgi://l")),
        &["@apache_handler_2 {", "fastcgi_pass unix:/run/b.sock;"],
        &["@apache_handler_3"],
    );
    // Names count in any case: of these two neither answers.
    let other = set("proxy:unix:/run/A.sock|fcgi://l");
    wants(&format!("{one}{other}"), &["SetHandler"], &["apache_handler "]);
    wants("AddHandler cgi-script .cgi\nSetHandler None", &["CLOSED"], &["apache_handler "]);
}

#[test]
fn directories_are_named_as_the_file_system_names_them() {
    wants(
        "<Directory /srv/./.git>\nRequire all denied\n</Directory>\n\
         <Directory \"/srv/x/../.svn\">\nRequire all denied\n</Directory>",
        &["apache_directory /srv/.git\n", "apache_directory /srv/.svn\n"],
        &[],
    );
    let text = text("Listen 80\nDocumentRoot /srv/x/../www/.\n");
    assert!(text.contains("root /srv/www;"), "{text}");
}

/// Every directive with an expression, and what is made into one.
const EXPRESSIONS: &str = r#"
RewriteEngine on
RewriteCond %{REQUEST_URI} ^/a(.*)$
RewriteCond %{REQUEST_URI} =/b [NC]
RewriteRule ^/x(.*)$ /y$1 [L]
RewriteRule ^/f\.php(.*)$ - [F]
RewriteRule ^/g(.*)$ - [F,NC]
RewriteRule !^/h(.*)$ - [G]
RewriteRule ^/i(.*)$ ${map:$1}
RewriteRule ^/in/(.*)$ /priv/$1 [L]
Redirect 301 /old http://a.test/new
Redirect 303 / http://a.test/
Redirect gone /old
RedirectMatch 301 ^/r(.*)$ http://a.test$1
RedirectMatch 403 ^/s(.*)$
RedirectMatch 308 t.$ http://a.test/
AliasMatch ^/u(.*)$ /srv/u/x$1
ScriptAliasMatch ^/v(.*)$ /srv/v$1
ProxyPassMatch ^/w(.*)$ http://b$1
ProxyPassMatch ^/w\.php(.*)$ fcgi://b:9000/srv
ProxyPassMatch ^/(.*\.php(/.*)?)$ fcgi://b:9000/srv/$1
ProxyPassMatch ^/z(.*)$ !
ProxyPass /app http://b
<LocationMatch "^/app/private(/.*)?$">
Require all denied
</LocationMatch>
<Location "/app/pr*v.te">
Require all denied
</Location>
<Location "/priv">
Require all denied
</Location>
<If "%{REQUEST_URI} =~ m#^/app/x(.*)$#">
Require all denied
</If>
<FilesMatch ".+\.php$">
SetHandler proxy:fcgi://b:9000
</FilesMatch>
<Files "*.ph?">
SetHandler proxy:fcgi://b:9000
</Files>
<Directory /srv/deep>
SetHandler proxy:fcgi://b:9000
</Directory>
AddHandler application/x-httpd-php .p5
"#;

#[test]
fn no_expression_stops_at_a_line_feed() {
    let text = text(&format!("Listen 80\nDocumentRoot /srv\n{EXPRESSIONS}"));
    let mut seen = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', '\''])) {
        let starts = [" ~ ", " ~* ", " !~ ", " !~* ", "rewrite ", "fastcgi_split_path_info "];
        let at = starts.iter().find_map(|start| Some(line.find(start)? + start.len()));
        let Some(rest) = at.map(|at| &line[at..]).filter(|_| !line.starts_with('"')) else {
            continue;
        };
        let quote = rest.chars().next().filter(|one| "\"'".contains(*one));
        let quote = quote.unwrap_or_else(|| panic!("not in quotes: {line}"));
        let regex = rest[1..].split(quote).next().unwrap();
        assert_eq!(crate::expression::of_apache(regex), regex, "{line}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}\n{text}");
}

#[test]
fn paths_of_cookies_are_mapped_by_how_they_begin() {
    let app = "ProxyPass /app http://b/\nProxyPassReverseCookiePath";
    wants(&format!("{app} /app /"), &["~^/app(.*)$", "/$1"], &["(?!"]);
    // `/app/x` stays what it is.
    wants(&format!("{app} / /app/"), &["~^(?!/app/)/(.*)$", "/app/$1"], &[]);
}

#[test]
fn early_is_a_word_at_the_end() {
    wants("RequestHeader set X-Billing yearly", &["X-Billing yearly"], &["more_set_input"]);
    wants("RequestHeader unset X-A early", &["more_clear_input_headers X-A;"], &[]);
    wants("RequestHeader unset early", &["unset early"], &["more_clear_input"]);
}
