//! `bolide import apache` and `-c httpd.conf`: the same configuration means what it means to Apache.

use std::fs;
use std::path::Path;
use std::process::Command;

use bolide_testkit::server::Home;
use bolide_testkit::{TestPhp, TestServer};

use crate::BOLIDE;

#[test]
fn the_real_apache_answers_the_same_by_the_same_configuration() {
    compared("import.py");
}

#[test]
fn handlers_run_and_show_what_the_real_apache_runs_and_shows() {
    compared("handlers.py");
}

#[test]
fn backends_clients_and_proxies_are_believed_as_the_real_apache_believes_them() {
    compared("certified.py");
}

fn compared(script: &str) {
    let script = format!("{}/tests/apache/{script}", env!("CARGO_MANIFEST_DIR"));
    let result = Command::new("python3").args([&script, BOLIDE]).output().unwrap();
    let text = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "{text}{}", String::from_utf8_lossy(&result.stderr));
}

/// A configuration with what a test needs besides.
fn written(home: &Home, conf: &str) -> String {
    let dir = home.dir().display();
    let text = format!(
        "ServerRoot {dir}\nListen 127.0.0.1:1\nPidFile {dir}/pid\nErrorLog {dir}/error.log\n\
         DocumentRoot {dir}\n{conf}"
    );
    home.write("httpd.conf", &text).to_str().unwrap().to_owned()
}

#[test]
fn the_output_is_a_valid_configuration() {
    let home = Home::new(BOLIDE);
    let path = written(&home, "<Directory />\nRequire all denied\n</Directory>\nMystery on\n");
    let printed = home.run(&["import", "apache", &path]).succeeded().text();
    assert!(printed.contains("\"Require all denied\";"), "{printed}");
    assert!(printed.contains("httpd.conf:9: Mystery on: not translated"), "{printed}");
    let own = home.write("own.conf", &printed);
    let _ = home.run(&["-t", "-c", own.to_str().unwrap()]).succeeded();
    let _ = home.run(&["-t", "-c", &path]).succeeded();
    // The directory of the file is enough.
    let of_directory = home.run(&["import", "apache", home.dir().to_str().unwrap()]);
    assert_eq!(of_directory.succeeded().text(), printed);
}

#[test]
fn faults_name_apaches_file_and_line() {
    let home = Home::new(BOLIDE);
    home.write("more.conf", "\nAlias /a\nCustomLog /none/such/dir/x.log common\n");
    let open = written(&home, "<Directory />\n");
    let done = home.run(&["-t", "-c", &open]);
    assert_eq!(done.code, 1);
    let wanted = format!("<Directory> was not closed. in {open}:6");
    assert!(done.stderr.contains(&wanted), "{}", done.stderr);
    let missing = written(&home, "Include none.conf\n");
    let done = home.run(&["import", "apache", &missing]);
    assert_eq!(done.code, 1);
    let wanted = format!("in {missing}:6");
    assert!(done.stderr.contains(&wanted), "{}", done.stderr);
    // What a name says is never read as nginx's language.
    let quoted = "Include more.conf\n<VirtualHost *:1>\nServerName \"a b;c\"\n</VirtualHost>\n";
    let done = home.run(&["-t", "-c", &written(&home, quoted)]);
    assert_eq!(done.code, 1);
    let text = &done.stderr;
    assert!(text.contains("syntax is ok") && text.contains("/none/such"), "{text}");
}

#[test]
fn scripts_run_where_a_handler_is_configured_and_are_never_shown() {
    let php = TestPhp::start(1);
    let home = Home::new(BOLIDE);
    let conf = format!(
        "ServerRoot @DIR@\nListen 127.0.0.1:@HTTP@\nPidFile @DIR@/logs/pid\n\
         ErrorLog @DIR@/logs/error.log\nUser root\nLoadModule proxy_fcgi_module x\n\
         DirectoryIndex index.php\nAlias /tool @DIR@/tool\n\
         <Directory />\nRequire all denied\n</Directory>\n\
         <VirtualHost *:@HTTP@>\nDocumentRoot @DIR@/www\nAlias /other @DIR@/other/\n\
         <Directory @DIR@/www>\nAllowOverride All\nRequire all granted\n</Directory>\n\
         <Directory @DIR@/tool>\nRequire all granted\n</Directory>\n\
         <FilesMatch \".+\\.ph(?:ar|p|tml)$\">\n\
         SetHandler \"proxy:{0}|fcgi://localhost\"\n</FilesMatch>\n\
         <FilesMatch \"^\\.ph\">\nRequire all denied\n</FilesMatch>\n\
         <Files u.php>\nSetHandler None\n</Files>\n\
         <Directory @DIR@/www/up>\n<FilesMatch \"\\.php$\">\nSetHandler none\n</FilesMatch>\n\
         <Files back.php>\nSetHandler \"proxy:{0}|fcgi://localhost\"\n</Files>\n</Directory>\n\
         AddHandler cgi-script .cgi\nScriptAlias /cgi-bin/ @DIR@/www/cgi/\n</VirtualHost>\n",
        php.address()
    );
    home.write("httpd.conf", &conf);
    let shown = "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '';";
    let scripts = "www/index.php www/a.phtml tool/t.php www/shut/x.php www/.php www/u.php \
                   www/up/x.php www/up/back.php www/none/x.php";
    scripts.split_whitespace().for_each(|path| drop(home.write(path, shown)));
    home.write("www/none/.htaccess", "<Files *>\nSetHandler None\n</Files>\n");
    home.write("www/shut/.htaccess", "Require all denied\n");
    home.write("www/.htaccess", "RewriteEngine on\nRewriteRule ^pretty$ /index.php [L]\n");
    home.write("www/run.cgi", "#!/bin/sh\n");
    home.write("www/cgi/run", "#!/bin/sh\n");
    let printed = home.run(&["import", "apache", "httpd.conf"]).succeeded().text();
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    let result = |path: &str| {
        let answer = server.get(path);
        (answer.status, answer.text())
    };
    let script = |text: &str| (200, text.to_owned());
    assert_eq!(result("/index.php/more"), script("/index.php /more"), "{printed}");
    assert_eq!(result("/"), script("/index.php "));
    // PHP's own `security.limit_extensions` answers.
    assert_eq!(result("/a.phtml"), (403, "Access denied.\n".to_owned()));
    assert_eq!(result("/pretty"), script("/index.php "));
    assert_eq!(result("/tool/t.php"), script("/tool/t.php "));
    assert_eq!(result("/up/back.php"), script("/up/back.php "));
    let rows = [
        ("/u.php", 403),
        ("/up/x.php", 403),
        ("/none/x.php", 403),
        ("/shut/x.php", 403),
        ("/.php", 403),
        ("/run.cgi", 503),
        ("/cgi-bin/run", 503),
        ("/other/x", 403),
    ];
    for (path, status) in rows {
        let answer = result(path);
        assert!(answer.0 == status && !answer.1.contains("#!/bin"), "{path}: {answer:?}");
    }
}

/// What a client claims to be is no user.
#[test]
fn scripts_learn_of_users_whose_password_was_right() {
    let php = TestPhp::start(1);
    let home = Home::new(BOLIDE);
    let basic = "AuthType Basic\nAuthName x\nAuthUserFile @DIR@/users\n";
    let conf = format!(
        "ServerRoot @DIR@\nListen 127.0.0.1:@HTTP@\nPidFile @DIR@/logs/pid\n\
         ErrorLog @DIR@/logs/error.log\nUser root\nLoadModule proxy_fcgi_module x\n\
         DocumentRoot @DIR@/www\n<Directory @DIR@/www>\nAllowOverride All\n\
         Require all granted\n</Directory>\nErrorDocument 401 /err.php\n\
         <Location /place>\n{basic}Require valid-user\n</Location>\n\
         <FilesMatch \"\\.php$\">\nSetHandler \"proxy:{}|fcgi://localhost\"\n</FilesMatch>\n",
        php.address()
    );
    home.write("httpd.conf", &conf);
    home.write("users", "a:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    let basic = basic.replace("@DIR@", home.dir().to_str().unwrap());
    let shown = "<?php echo $_SERVER['REMOTE_USER'] ?? '-';";
    for (directory, rules) in [
        ("open", String::new()),
        ("place", String::new()),
        ("asks", format!("{basic}Require valid-user\n")),
        (
            "any",
            format!(
                "{basic}<RequireAny>\nRequire ip 127.0.0.1\nRequire valid-user\n</RequireAny>\n"
            ),
        ),
        (
            "sat",
            format!("{basic}Require valid-user\nOrder deny,allow\nAllow from all\nSatisfy any\n"),
        ),
        ("posts", format!("{basic}<Limit POST>\nRequire valid-user\n</Limit>\n")),
        (
            "led",
            format!("{basic}Require valid-user\nRewriteEngine on\nRewriteRule ^go$ x.php [L]\n"),
        ),
    ] {
        home.write(&format!("www/{directory}/x.php"), shown);
        home.write(&format!("www/{directory}/.htaccess"), &rules);
    }
    home.write("www/err.php", shown);
    let printed = home.run(&["import", "apache", "httpd.conf"]).succeeded().text();
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    for (path, right, wrong) in [
        ("/open/x.php", "200 -", "200 -"),
        ("/place/x.php", "200 a", "401 -"),
        ("/asks/x.php", "200 a", "401 -"),
        ("/any/x.php", "200 -", "200 -"),
        ("/sat/x.php", "200 -", "200 -"),
        ("/posts/x.php", "200 -", "200 -"),
        ("/led/go", "200 a", "401 -"),
    ] {
        for (credentials, wanted) in [("YTpzZWNyZXQ=", right), ("YTpqdW5r", wrong)] {
            let fields = format!("Authorization: Basic {credentials}\r\n");
            let answer = server.connect().get(path, &fields);
            assert_eq!(
                format!("{} {}", answer.status, answer.text()),
                wanted,
                "{path} {credentials}"
            );
        }
    }
}

/// What the server defines and loads, and what it does to fields early.
#[test]
fn files_and_scripts_see_what_the_server_has_settled() {
    let php = TestPhp::start(1);
    let home = Home::new(BOLIDE);
    let conf = format!(
        "ServerRoot @DIR@\nListen 127.0.0.1:@HTTP@\nPidFile @DIR@/logs/pid\n\
         ErrorLog @DIR@/logs/error.log\nUser root\nLoadModule proxy_fcgi_module x\n\
         LoadModule rewrite_module x\nLoadModule authn_dbm_module x\nDefine PROD\n\
         RequestHeader unset X-User early\nRequestHeader set X-Kind 'a b' EARLY\n\
         Header set X-Early yes early\n\
         <FilesMatch \"\\.php$\">\nSetHandler \"proxy:{}|fcgi://localhost\"\n</FilesMatch>\n\
         <VirtualHost *:@HTTP@>\nServerName a.test\nServerAlias *.a.test\nDocumentRoot @DIR@/www\n\
         <Directory @DIR@/www>\nAllowOverride All\nRequire all granted\n</Directory>\n\
         </VirtualHost>\n\
         <VirtualHost *:@HTTP@>\nServerName b.test\nServerAlias *.b.test\nDocumentRoot @DIR@/www\n\
         <Directory @DIR@/www>\nAllowOverride All\nRequire all granted\n</Directory>\n\
         UseCanonicalName On\n</VirtualHost>\n",
        php.address()
    );
    home.write("httpd.conf", &conf);
    let shown = "<?php echo json_encode([$_SERVER['SERVER_NAME'], $_SERVER['HTTP_X_USER'] ?? '', \
                 $_SERVER['HTTP_X_KIND'] ?? '']);";
    home.write("www/x.php", shown);
    let denied = "Require all denied\n";
    let rows = [
        ("defined", "IfDefine PROD", denied, 403),
        ("not_defined", "IfDefine !PROD", denied, 200),
        ("undefined", "IfDefine TEST", denied, 200),
        ("loaded", "IfModule mod_rewrite.c", denied, 403),
        ("by_name", "IfModule rewrite_module", denied, 403),
        ("beyond", "IfModule mod_authn_dbm.c", "AuthDBMUserFile /x\n", 500),
        ("not_loaded", "IfModule mod_headers.c", denied, 200),
        ("without", "IfModule !mod_headers.c", denied, 403),
        ("early", "IfModule core.c", "SetEnvIf X-User . bad\nRequire env bad\n", 403),
    ];
    for (directory, section, inner, _) in rows {
        home.write(&format!("www/{directory}/a.txt"), "x");
        let name = section.split(' ').next().unwrap();
        let rules = format!("<{section}>\n{inner}</{name}>\n");
        home.write(&format!("www/{directory}/.htaccess"), &rules);
    }
    let printed = home.run(&["import", "apache", "httpd.conf"]).succeeded().text();
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    let ask = |path: &str, host: &str| {
        let fields = format!("Host: {host}\r\nX-User: admin\r\nX-Kind: c");
        server.connect().ask(&format!("GET {path} HTTP/1.1\r\n{fields}"))
    };
    for (directory, .., status) in rows {
        let answer = ask(&format!("/{directory}/a.txt"), "a.test");
        assert_eq!(answer.status, status, "{directory}\n{printed}");
    }
    assert_eq!(ask("/x.php", "www.A.test:81").text(), r#"["www.a.test","","a b"]"#);
    assert_eq!(ask("/x.php", "www.b.test").text(), r#"["b.test","","a b"]"#);
    assert_eq!(ask("/x.php", "a.test").header("x-early"), Some("yes"));
}

#[test]
fn fields_that_a_section_takes_away_do_not_reach_scripts() {
    let php = TestPhp::start(1);
    let home = Home::new(BOLIDE);
    let sections = [
        ("/one", "<Location /one>\nRequestHeader unset X-User\n</Location>"),
        ("/two/x.php", "<Location /two/x.php>\nRequestHeader set X-User nobody\n</Location>"),
        ("/three", "<LocationMatch ^/three>\nRequestHeader unset X-User\n</LocationMatch>"),
        // What is not understood takes the client's word away at least.
        ("/four", "<Location /four>\nRequestHeader edit X-User ( y\n</Location>"),
        ("/five", "<Directory @DIR@/www/five>\nRequestHeader note X-User y\n</Directory>"),
    ];
    let all: Vec<&str> = sections.iter().map(|(_, text)| *text).collect();
    let conf = format!(
        "ServerRoot @DIR@\nListen 127.0.0.1:@HTTP@\nPidFile @DIR@/logs/pid\n\
         ErrorLog @DIR@/logs/error.log\nUser root\nDocumentRoot @DIR@/www\n\
         RequestHeader unset X-Early early\nDirectoryIndex x.php\n\
         <Directory @DIR@/www>\nRequire all granted\n</Directory>\n\
         <Files *.php>\nSetHandler \"proxy:{}|fcgi://localhost\"\n</Files>\n{}\n",
        php.address(),
        all.join("\n")
    );
    home.write("httpd.conf", &conf);
    let shown = "<?php echo 'user ', $_SERVER['HTTP_X_USER'] ?? 'unknown',
        $_SERVER['HTTP_X_EARLY'] ?? '';";
    for name in ["one", "two", "three", "four", "five", "six"] {
        home.write(&format!("www/{name}/x.php"), shown);
    }
    let printed = home.run(&["import", "apache", "httpd.conf"]).succeeded().text();
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    let said = |path: &str| server.connect().get(path, "X-User: root\r\nX-Early: e\r\n").text();
    for (name, wanted) in [
        ("one", "user unknown"),
        ("two", "user nobody"),
        ("three", "user unknown"),
        ("four", "user unknown"),
        ("five", "user unknown"),
        ("six", "user root"),
    ] {
        assert_eq!(said(&format!("/{name}/x.php")), wanted, "{name}\n{printed}");
    }
    assert_eq!(said("/one/"), "user unknown");
}

#[test]
fn closed_places_stay_closed_below() {
    let home = Home::new(BOLIDE);
    let conf = "ServerRoot @DIR@\nListen 127.0.0.1:@HTTP@\nPidFile @DIR@/logs/pid\n\
         ErrorLog @DIR@/logs/error.log\nUser root\nDocumentRoot @DIR@/www\n\
         <Directory @DIR@/www>\nRequire all granted\nAllowOverride All\n</Directory>\n\
         <Directory @DIR@/www/shut>\nRequire ldap-group x\n</Directory>\n\
         <Location /merged>\nAuthMerging And\nRequire ip 10\n</Location>\n\
         <Location /denied>\nOrder deny,allow\nDeny from all\n</Location>\n";
    home.write("httpd.conf", conf);
    let opens = [
        ("shut/one", "Satisfy any\n"),
        ("shut/two", "<If \"true\">\nSatisfy any\nRequire all granted\n</If>\n"),
        ("shut/three", "<Files x.txt>\nSatisfy any\nAllow from all\n</Files>\n"),
        ("merged", "Satisfy any\n"),
        ("denied", "Require all granted\n"),
        ("open", "Satisfy any\n"),
    ];
    for (directory, text) in opens {
        home.write(&format!("www/{directory}/.htaccess"), text);
        home.write(&format!("www/{directory}/x.txt"), "text");
    }
    let printed = home.run(&["import", "apache", "httpd.conf"]).succeeded().text();
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    for (directory, _) in opens {
        let wanted = if directory == "open" { 200 } else { 403 };
        assert_eq!(
            server.get(&format!("/{directory}/x.txt")).status,
            wanted,
            "{directory}\n{printed}"
        );
    }
}

#[test]
fn closed_places_are_reported_with_their_line() {
    let home = Home::new(BOLIDE);
    let path = written(&home, "<Directory /srv>\nRequire ldap-group admins\n</Directory>\n");
    let done = home.run(&["-t", "-c", &path]).succeeded();
    let wanted = format!("closed for all (see bolide import): {path}:7");
    assert!(done.stderr.contains(&wanted), "{}", done.stderr);
}

#[test]
fn backends_that_are_not_verified_are_reported_with_their_line() {
    let home = Home::new(BOLIDE);
    let conf = "SSLProxyEngine on\nProxyPass /a https://127.0.0.1:1/\n";
    let path = written(&home, conf);
    let done = home.run(&["-t", "-c", &path]).succeeded();
    let wanted = format!("the name or the date (see bolide import): {path}:7\n");
    assert!(done.stderr.contains(&wanted), "{}", done.stderr);
    let off = "SSLProxyCheckPeerName off\nSSLProxyCheckPeerExpire off\n";
    let done = home.run(&["-t", "-c", &written(&home, &format!("{conf}{off}"))]).succeeded();
    assert!(!done.stderr.contains("warn"), "{}", done.stderr);
}

#[test]
fn debians_own_configuration_is_taken_whole() {
    let own = Path::new("/etc/apache2");
    assert!(fs::exists(own.join("apache2.conf")).unwrap(), "missing: apache2 (scripts/setup.sh)");
    let home = Home::new(BOLIDE);
    let printed = home.run(&["import", "apache", own.to_str().unwrap()]).succeeded().text();
    assert!(!printed.contains("CLOSED:"), "{printed}");
    for wanted in ["listen 80;", "root /var/www/html;", "location ^~ /icons/ {", "stub_status;"] {
        assert!(printed.contains(wanted), "{wanted} in {printed}");
    }
}
