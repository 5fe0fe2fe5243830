//! Who may come in to what is passed on, and what must not open a place.

use super::{of, text};

/// A server with what a row says.
fn server(conf: &str) -> String {
    text(&format!(
        "Listen 80\nDocumentRoot /srv\n<VirtualHost *:80>\nServerName a.test\n{conf}\n\
         </VirtualHost>\n"
    ))
}

/// The lines of a location, without comments.
fn location<'t>(text: &'t str, head: &str) -> Vec<&'t str> {
    let head = format!("location {head} {{");
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != head);
    assert!(lines.next().is_some(), "{head}\n{text}");
    lines.take_while(|line| *line != "}").filter(|line| !line.starts_with('#')).collect()
}

/// The lines of a location that are about who may come in.
fn guards<'t>(text: &'t str, head: &str) -> Vec<&'t str> {
    let starts = ["allow", "deny", "auth_", "satisfy", "return", "if "];
    let mut all = location(text, head);
    all.retain(|line| starts.iter().any(|start| line.starts_with(start)));
    all
}

const TO: &str = "ProxyPass /app http://b/\n";
const IP: &str = "<Location /app>\nRequire ip 10\n</Location>\n";
const LIST: [&str; 2] = ["allow 10.0.0.0/8;", "deny all;"];

#[test]
fn sections_about_other_places_do_not_open_one() {
    let others = [
        "<LocationMatch \"^/other\">\nRequire all granted\n</LocationMatch>",
        "<Location \"/other/*.css\">\nRequire all granted\n</Location>",
        "<Location \"~\" \"^/other\">\nRequire all granted\n</Location>",
        "<Proxy \"http://other.example/\">\nRequire all granted\n</Proxy>",
        "<ProxyMatch \"^http://other\">\nRequire all granted\n</ProxyMatch>",
        // What is about the address of the proxied server comes before any <Location>.
        "<Proxy *>\nRequire all granted\n</Proxy>",
        "<Proxy *>\nOrder deny,allow\nAllow from all\n</Proxy>",
        "<Location /app>\nAuthName y\n</Location>",
    ];
    for other in others {
        let text = server(&format!("{TO}{IP}{other}"));
        assert_eq!(guards(&text, "^~ /app/"), LIST, "{other}\n{text}");
        assert_eq!(guards(&text, "= /app"), LIST, "{other}\n{text}");
    }
    // Paths that an expression finds are closed, where nginx cannot say what holds there.
    let css =
        server(&format!("{TO}{IP}<LocationMatch css$>\nRequire all granted\n</LocationMatch>"));
    assert_eq!(guards(&css, "^~ /app/")[1..], LIST);
    assert_eq!(guards(&css, "^~ /app/")[0], "if ($uri ~ \"css\\z\") { return 503; }");
    let env = server(&format!("{TO}<LocationMatch env$>\nRequire all denied\n</LocationMatch>"));
    assert_eq!(guards(&env, "^~ /app/"), ["if ($uri ~ \"env\\z\") { return 403; }"]);
    let known = "ProxyPass / http://b/\n<Location />\nRequire ip 10\n</Location>\n\
                 <LocationMatch \"^/\\.well-known/\">\nRequire all granted\n</LocationMatch>";
    let known = server(known);
    assert_eq!(guards(&known, "^~ /"), LIST);
    assert_eq!(guards(&known, "^~ /.well-known/"), [""; 0]);
    assert_eq!(guards(&known, "= /.well-known"), LIST);
}

#[test]
fn sections_add_up_as_in_apache() {
    let basic = "<Location /app>\nAuthType Basic\nAuthName x\nAuthUserFile /pw\n\
                 Require valid-user\n</Location>\n";
    let user = ["auth_basic x;", "auth_basic_user_file /pw;"];
    let rows: [(&str, &str, &[&str]); 10] = [
        (IP, "AuthName y", &LIST),
        (IP, "Require all granted", &[]),
        (IP, "Order deny,allow\nAllow from all", &LIST),
        (
            "<Location /app>\nOrder allow,deny\nDeny from all\n</Location>\n",
            "Require all granted",
            &["deny all;"],
        ),
        (
            "<Location /app>\nOrder allow,deny\nAllow from 10\n</Location>\n",
            "Require all granted",
            &LIST,
        ),
        (basic, "AuthName x", &user),
        (basic, "AuthUserFile /other", &["auth_basic x;", "auth_basic_user_file /other;"]),
        (
            basic,
            "Order deny,allow\nDeny from 10",
            &["deny 10.0.0.0/8;", "allow all;", user[0], user[1]],
        ),
        (basic, "AuthType None", &["return 503;"]),
        (IP, "AuthMerging And\nRequire ip 11", &["return 503;"]),
    ];
    for (outer, inner, wanted) in rows {
        let text = server(&format!("{TO}{outer}<Location /app/x>\n{inner}\n</Location>"));
        assert_eq!(guards(&text, "^~ /app/x/"), wanted, "{outer}{inner}\n{text}");
    }
}

#[test]
fn restrictions_other_than_rules_of_access_close_what_is_passed_on() {
    let rows = [
        "<Location /app>\n<If \"%{HTTP_HOST} == 'x'\">\nRequire all denied\n</If>\n</Location>",
        "<If \"%{HTTP_HOST} == 'x'\">\nRequire all denied\n</If>",
        "<Location /app>\nRewriteEngine on\nRewriteRule admin - [F]\n</Location>",
        "<Location /app>\nRedirect 403\n</Location>",
        "<Location /app>\n<Limit POST>\nRequire all denied\n</Limit>\n</Location>",
        "<Location /app>\nOrder deny,allow\nSatisfy any\n</Location>",
        "<ProxyMatch adm>\nRequire all denied\n</ProxyMatch>",
    ];
    for row in rows {
        let text = server(&format!("{TO}{row}"));
        assert_eq!(guards(&text, "^~ /app/"), ["return 503;"], "{row}\n{text}");
    }
    let status = "<Location /server-status>\nSetHandler server-status\n\
                  <If \"true\">\nRequire all denied\n</If>\n</Location>";
    assert_eq!(guards(&server(status), "= /server-status"), ["return 503;"]);
    let balancer = "ProxyPass /app balancer://c/\n<Proxy balancer://c>\n\
                    BalancerMember http://b\nRequire ip 10\n</Proxy>";
    assert_eq!(guards(&server(balancer), "^~ /app/"), LIST);
    let condition = "<If \"%{REQUEST_URI} =~ m#^/app/a#\">\nRequire all denied\n</If>";
    let text = server(&format!("{TO}{condition}"));
    assert_eq!(guards(&text, "^~ /app/"), ["if ($uri ~ \"^/app/a\") { return 403; }"]);
}

#[test]
fn no_location_is_written_twice() {
    let rows = [
        "ProxyPass /app http://b/\n<Location /app/a>\nRequire all granted\n</Location>\n\
         <Location /app/a/>\nRequire all granted\n</Location>",
        "<Location /s>\nSetHandler server-status\n</Location>\n\
         <Location /s>\nSetHandler server-info\n</Location>",
        "ProxyPass / http://b/\n<Location /s>\nSetHandler server-status\n</Location>",
        "ProxyPass /in !\nProxyPass / http://b/\nAlias /in /srv/in",
        "Alias /in /srv/in\n<Location /in>\nSetHandler application/x-httpd-php\n</Location>",
    ];
    for row in rows {
        let text = server(row);
        let mut heads: Vec<&str> =
            text.lines().map(str::trim).filter(|line| line.starts_with("location ")).collect();
        heads.retain(|head| !head.starts_with("location ~"));
        let len = heads.len();
        heads.sort_unstable();
        heads.dedup();
        assert_eq!(heads.len(), len, "{row}\n{text}");
    }
    // The rules of the path alone are those of what is above it.
    let text = server(&format!("{TO}{IP}<Location /app/x/>\nRequire all granted\n</Location>"));
    assert_eq!(guards(&text, "= /app/x"), LIST);
    assert_eq!(guards(&text, "^~ /app/x/"), [""; 0]);
    // What is passed on with a slash says nothing about the path without it.
    let text = server(
        "ProxyPass /app/ http://b/\nProxyPass / http://c/\n\
         <Location /app>\nRequire ip 10\n</Location>",
    );
    assert_eq!(guards(&text, "= /app"), LIST);
    assert!(location(&text, "= /app").contains(&"proxy_pass http://c/app;"), "{text}");
    assert!(server("ProxyPass /app/ http://b/").contains("location = /app { }"));
    // Of two handlers for a path the last one counts.
    let main = "Listen 80\n<Location /s>\nSetHandler server-status\nRequire local\n</Location>\n\
                <VirtualHost *:80>\nDocumentRoot /srv\n<Location /s>\nSetHandler server-status\n\
                Require all denied\n</Location>\n</VirtualHost>\n";
    assert_eq!(guards(&text_of(main), "= /s"), ["deny all;"]);
}

fn text_of(conf: &str) -> String {
    of(&[("/a/httpd.conf", conf)]).unwrap().text
}

#[test]
fn balancers_of_servers_are_their_own() {
    let host = |name: &str, more: &str| {
        format!(
            "<VirtualHost *:80>\nServerName {name}.test\nProxyPass / balancer://c/\n{more}\n\
             </VirtualHost>\n"
        )
    };
    let member = |url: &str| format!("<Proxy balancer://c>\nBalancerMember {url}\n</Proxy>\n");
    let conf = format!(
        "Listen 80\n{}{}{}{}",
        member("http://main"),
        host("a", &member("http://a")),
        host("b", &format!("{}<Proxy balancer://c>\nRequire ip 10\n</Proxy>", member("http://b"))),
        host("c", "<Proxy balancer://c>\nRequire ip 10\n</Proxy>"),
    );
    let text = text_of(&conf);
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix("upstream ")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 3, "{text}");
    for host in ["server main:80;", "server a:80;", "server b:80;", "http://balancer_c/;"] {
        assert_eq!(text.matches(host).count(), 1, "{host}\n{text}");
    }
    assert_eq!(text.matches("deny all;").count(), 2, "{text}");
    // One without members answers nothing.
    assert!(server("ProxyPass / balancer://none/").contains("return 503;"));
    // What an expression takes from a path that is passed on is not passed on there.
    let text =
        server("ProxyPassMatch ^/app/(.*)x$ !\nProxyPass /app http://b/\nProxyPass /b http://b/");
    assert_eq!(guards(&text, "^~ /app/"), ["if ($uri ~ \"(?s)^/app/(.*)x\\z\") { return 503; }"]);
    assert_eq!(guards(&text, "^~ /b/"), [""; 0]);
    let text = server("Alias /app /srv/a\nProxyPassMatch ^/(app|s)/(.*)$ http://b/$2");
    assert_eq!(
        guards(&text, "^~ /app/"),
        ["if ($uri ~ \"(?s)^/(app|s)/(.*)\\z\") { return 503; }"]
    );
    // A handler's section with a slash is not about the path without it.
    let text = server("<Location /s/>\nSetHandler server-status\nRequire all denied\n</Location>");
    assert_eq!(guards(&text, "= /s/"), ["deny all;"]);
    // What is passed on by an expression comes before an alias.
    let text = server("Alias /al /srv/al\nProxyPassMatch ^(/.*)$ http://b$1");
    assert!(!text.contains("alias /srv"), "{text}");
    let text = server(&format!("ProxyPassMatch ^(/.*)$ http://b$1\nProxyPass /s http://c/\n{IP}"));
    assert!(!text.contains("http://c/"), "{text}");
    assert_eq!(guards(&text, "^~ /"), ["if ($uri ~ \"^/app(?:/|\\z)\") { return 503; }"]);
}

#[test]
fn a_closed_place_cannot_be_opened_below() {
    let text = server("<Directory /srv/a>\nRequire ldap-group x\n</Directory>");
    assert!(text.contains("\"Satisfy all\"") && text.contains("\"Redirect 403 /\""), "{text}");
    // One section that cannot be said does not take the others along.
    let text = server(
        "<Location /a>\nAuthMerging And\nRequire ip 10\n</Location>\n\
         <Location /b>\nOrder deny,allow\nDeny from all\n</Location>",
    );
    assert!(text.contains("\"Deny from all\"") && text.contains("\"Redirect 403 /\""), "{text}");
}

#[test]
fn conditions_of_the_main_server_come_last() {
    let text = text_of(
        "Listen 80\n<If \"true\">\nDeny from all\n</If>\n<VirtualHost *:80>\nDocumentRoot /srv\n\
         <Location /a>\nAllow from all\n</Location>\n</VirtualHost>\n",
    );
    let at = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}\n{text}"));
    assert!(at("\"Allow from all\"") < at("\"Deny from all\""), "{text}");
}
