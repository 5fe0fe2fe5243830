//! Files as sites publish them, and what they come to.

mod reach;

use std::net::IpAddr;

use bolide_http::FieldMap;
use proptest::prelude::*;

use crate::fuzz::PlainWorld;
use crate::{
    Admission, Applied, DirOptions, Effort, EnvTable, Evaluation, HeaderTimes, HtaccessFile,
    PassOutcome, RewritePlace, Rewritten, Stop, parse,
};

const WORDPRESS: &str = "# BEGIN WordPress
<IfModule mod_rewrite.c>
RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteBase /
RewriteRule ^index\\.php$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.php [L]
</IfModule>
# END WordPress
";

fn read(text: &str) -> HtaccessFile {
    parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Files by directory below `/srv/www/`.
struct Tree {
    levels: Vec<(Vec<u8>, HtaccessFile)>,
    world: PlainWorld,
    env: EnvTable,
    varies: Vec<Box<[u8]>>,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let level =
            |(dir, text): &(&str, &str)| (format!("/srv/www/{dir}").into_bytes(), read(text));
        Self {
            levels: files.iter().map(level).collect(),
            world: PlainWorld::default(),
            env: EnvTable::default(),
            varies: Vec::new(),
        }
    }

    fn one(text: &str) -> Self {
        Self::new(&[("", text)])
    }

    fn from(mut self, client: &str) -> Self {
        self.world.client = Some(client.parse::<IpAddr>().unwrap());
        self
    }

    fn with<T>(
        &mut self,
        name: &str,
        ask: impl FnOnce(&Applied<'_>, &mut Evaluation<'_>) -> T,
    ) -> Result<T, Stop> {
        let levels = self.levels.iter().map(|(dir, file)| (&dir[..], file));
        let Self { world, env, varies, .. } = self;
        let effort = Effort::default();
        let mut by = Evaluation::new(world, env, varies, &effort);
        let applied = Applied::new(levels, name.as_bytes(), &mut by)?;
        applied.set_conditional_env(&mut by)?;
        Ok(ask(&applied, &mut by))
    }

    fn admission(&mut self, name: &str) -> Admission {
        self.method(name, "GET")
    }

    fn method(&mut self, name: &str, method: &str) -> Admission {
        self.with(name, |applied, by| applied.admission(method.as_bytes(), by)).unwrap().unwrap()
    }

    /// A pass over `path` below the root, of which `file` is there.
    fn pass(&mut self, path: &str, args: Option<&str>) -> Result<PassOutcome, Stop> {
        let full = format!("/srv/www{path}");
        let known = |file: &[u8]| self.world.files.iter().any(|known| known == file);
        let is_there = known(full.as_bytes()) || known(format!("{full}/").as_bytes());
        // As Apache, the path ends at its first element that is not there.
        let mut end = full.len();
        if !is_there {
            let mut at = "/srv/www/".len();
            loop {
                let next = full[at..].find('/').map_or(full.len(), |len| at + len);
                end = next;
                if next == full.len() || !known(format!("{}/", &full[..next]).as_bytes()) {
                    break;
                }
                at = next + 1;
            }
        }
        let (file, path_info) = full.split_at(end);
        self.world.path = path.as_bytes().to_vec();
        self.world.file = file.as_bytes().to_vec();
        self.world.args = args.unwrap_or_default().as_bytes().to_vec();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let target = [path, args.unwrap_or_default()].join("?");
        let place = RewritePlace {
            file: file.as_bytes(),
            path_info: path_info.as_bytes(),
            args: args.map(str::as_bytes),
            target: target.as_bytes(),
            root: b"/srv/www",
            prefix: b"",
            origin: b"http://site.test",
            is_inside: false,
            now: 0,
        };
        self.with(&name, |applied, by| applied.rewrite(&place, by))?
    }

    fn result(&mut self, path: &str, args: Option<&str>) -> String {
        match self.pass(path, args) {
            Err(Stop::Refused(status, _) | Stop::RefusedAt(status, ..)) => {
                format!("refused {status}")
            }
            Err(stop) => format!("{stop:?}"),
            Ok(outcome) => match outcome.result {
                Rewritten::Nothing => "-".to_owned(),
                Rewritten::Query(args) => {
                    format!("?{}", String::from_utf8(args.unwrap_or_default()).unwrap())
                }
                Rewritten::Inside { path, args } => {
                    let args = args.map(|args| [b"?", &args[..]].concat()).unwrap_or_default();
                    String::from_utf8([path, args].concat()).unwrap()
                }
                Rewritten::Redirect(status, to) => {
                    format!("{status} {}", String::from_utf8(to).unwrap())
                }
                Rewritten::Proxied { origin, path, args } => {
                    let args = args.map(|args| [b"?", &args[..]].concat()).unwrap_or_default();
                    format!("P {}", String::from_utf8_lossy(&[origin, path, args].concat()))
                }
                Rewritten::Status(status) => status.to_string(),
            },
        }
    }
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    let rows = [
        (
            "\n\nFoo on",
            3,
            "Invalid command 'Foo', perhaps misspelled or defined by a module not \
                           included in the server configuration",
        ),
        (
            "\u{feff}RewriteEngine On",
            1,
            "Invalid command '\\xef\\xbb\\xbfRewriteEngine', perhaps \
                           misspelled or defined by a module not included in the server \
                           configuration",
        ),
        ("ServerName x", 1, "ServerName not allowed here"),
        ("<Directory />\n</Directory>", 1, "<Directory not allowed here"),
        ("RewriteEngine maybe", 1, "RewriteEngine must be On or Off"),
        ("RewriteRule a b [ZZ]", 1, "RewriteRule: unknown flag 'ZZ'"),
        ("RewriteRule a b L", 1, "RewriteRule: bad flag delimiters"),
        ("RewriteRule a b [L, R]", 1, "RewriteRule: bad argument line 'a b [L, R]'"),
        ("RewriteRule a b []", 1, "RewriteRule: unknown flag ''"),
        ("RewriteRule a b [L,]", 1, "RewriteRule: unknown flag ''"),
        ("RewriteRule a b [E=A:x,y]", 1, "RewriteRule: unknown flag 'y'"),
        ("RewriteRule ^a", 1, "RewriteRule: bad argument line '^a'"),
        ("RewriteRule ^( b", 1, "RewriteRule: cannot compile regular expression '^('"),
        (
            "RewriteRule a b [R=700]",
            1,
            "RewriteRule: invalid HTTP response code '700' for flag 'R'",
        ),
        ("RewriteCond %{X} -eq 5", 1, "RewriteCond: bad flag delimiters"),
        ("RewriteBase x", 1, "RewriteBase: argument is not a valid URL"),
        ("RewriteOptions foo", 1, "RewriteOptions: unknown option 'foo'"),
        ("RewriteMap m txt:/f", 1, "RewriteMap not allowed here"),
        ("</IfModule>", 1, "</IfModule> without matching <IfModule> section"),
        ("<IfModule nope.c>\nx", 2, "Expected </IfModule> before end of configuration"),
        ("<IfModule>\n", 1, "<IfModule> directive requires additional arguments"),
        ("\n<Files a>\nRequire all denied", 2, "<Files> was not closed."),
        (
            "Order Allow, Deny",
            1,
            "order takes one argument, 'allow,deny', 'deny,allow', or \
                           'mutual-failure'",
        ),
        ("Satisfy one", 1, "Satisfy either 'any' or 'all'."),
        ("Deny from 1.2/33", 1, "An IP address was expected"),
        ("Require ip bad", 1, "ip address 'bad' appears to be invalid"),
        ("Require foo", 1, "Unknown Authz provider: foo"),
        (
            "Require not ip 10",
            1,
            "negative Require directive has no effect in <RequireAny> \
                           directive",
        ),
        ("ErrorDocument 999 /x", 1, "Unsupported HTTP response code 999"),
        (
            "ErrorDocument 404 two words",
            1,
            "ErrorDocument takes two arguments, Change responses \
                           for HTTP errors",
        ),
        ("Options -Indexes All", 1, "Either all Options must start with + or -, or no Option may."),
        ("Options Foo", 1, "Illegal option Foo"),
        ("Header set X", 1, "Header requires three arguments"),
        ("Header set X-A %{X}", 1, "Header: Unrecognized header format %"),
        ("AuthType Digest", 1, "AuthType Digest is not available here"),
        ("RewriteRule a b # why", 1, "RewriteRule: bad argument line 'a b # why'"),
    ];
    for (text, line, message) in rows {
        let fault = parse(text.as_bytes()).expect_err(text);
        assert_eq!((fault.line, &fault.message[..]), (line, message), "{text}");
    }
    assert!(parse(&vec![b'#'; crate::FILE_MAX + 1]).is_err());
}

#[test]
fn sections_about_modules_are_transparent_or_skipped() {
    let mut tree = Tree::one(
        "<IfModule mod_nope.c>\nNonsense\n<IfModule x>\n</IfModule>\nOther\n</IfModule>\n\
         <IfModule !mod_authz_core.c>\nNonsense\n</IfModule>\n\
         <IfVersion < 2.4>\nNonsense\n</IfVersion>\n<IfDefine X>\nNonsense\n</IfDefine>\n\
         <ifmodule mod_authz_core.c>\n  require all DENIED\n",
    );
    assert_eq!(tree.admission("x"), Admission::Forbidden);
}

#[test]
fn both_kinds_of_access_rules_are_judged() {
    let rows: [(&[(&str, &str)], Admission); 16] = [
        (&[("", "")], Admission::Open),
        (&[("", "Require all denied")], Admission::Forbidden),
        (&[("", "Deny from all")], Admission::Forbidden),
        (&[("", "Order allow,deny")], Admission::Forbidden),
        (&[("", "Order deny,allow")], Admission::Open),
        (&[("", "Order allow,deny\nAllow from all")], Admission::Open),
        (&[("", "Order deny,allow\nDeny from all\nAllow from 10.")], Admission::Open),
        (&[("", "Order allow,deny\nAllow from all\nDeny from 10.1.2.3")], Admission::Forbidden),
        (&[("", "Require all granted\nDeny from all")], Admission::Forbidden),
        (&[("", "Require all denied\nAllow from all")], Admission::Forbidden),
        (&[("", "Require all denied"), ("a/", "Require all granted")], Admission::Open),
        (&[("", "Deny from all"), ("a/", "Require all granted")], Admission::Forbidden),
        (&[("", "Order deny,allow\nDeny from all"), ("a/", "Allow from all")], Admission::Open),
        (&[("", "Require ip 10.1\nRequire ip 10.2")], Admission::Open),
        (
            &[("", "<RequireAll>\nRequire all granted\nRequire not ip 10.1\n</RequireAll>")],
            Admission::Forbidden,
        ),
        (&[("", "AuthType Basic\nRequire valid-user")], Admission::Unclear),
    ];
    for (files, wanted) in rows {
        assert_eq!(Tree::new(files).from("10.1.2.3").admission("x"), wanted, "{files:?}");
    }
}

#[test]
fn a_user_is_asked_for_where_that_may_help() {
    let auth = "AuthType Basic\nAuthName x\nAuthUserFile /f\n";
    let rows = [
        ("Require valid-user", None, Admission::AsksWho),
        ("Require valid-user", Some("bob"), Admission::Open),
        ("Require user ann", Some("bob"), Admission::AsksWho),
        ("Require group staff", Some("bob"), Admission::Open),
        ("Require valid-user\nRequire ip 10", None, Admission::Open),
        ("Satisfy Any\nOrder allow,deny\nAllow from 10\nRequire valid-user", None, Admission::Open),
        ("Satisfy Any\nOrder allow,deny\nRequire valid-user", None, Admission::AsksWho),
        ("Order allow,deny\nRequire valid-user", Some("bob"), Admission::Forbidden),
        ("Require all denied\n", Some("bob"), Admission::Forbidden),
    ];
    for (text, user, wanted) in rows {
        let mut tree = Tree::one(&format!("{auth}{text}")).from("10.1.1.1");
        tree.world.user = user.map(|user| user.as_bytes().to_vec());
        assert_eq!(tree.admission("x"), wanted, "{text} {user:?}");
    }
}

#[test]
fn sections_apply_by_the_last_part_of_a_path() {
    let text = "<Files wp-config.php>\nRequire all denied\n</Files>\n\
                <Files ~ \"^\\.ht\">\nDeny from all\n</Files>\n\
                <Files sub/f>\nRequire all denied\n</Files>\n\
                <FilesMatch \"\\.(?i:php|inc)$\">\nRequire all denied\n</FilesMatch>\n\
                <If \"%{REQUEST_URI} =~ m#^/admin#\">\nRequire all denied\n</If>\n\
                <ElseIf \"%{HTTP_HOST} == 'bad'\">\nRequire all denied\n</ElseIf>\n\
                <Else>\nDirectoryIndex else\n</Else>\n";
    let mut tree = Tree::one(text);
    let rows = [
        ("wp-config.php", "/", Admission::Forbidden),
        (".htpasswd", "/", Admission::Forbidden),
        ("f", "/sub/f", Admission::Open),
        ("a.INC", "/", Admission::Forbidden),
        ("a.txt", "/", Admission::Open),
        ("a.txt", "/admin/x", Admission::Forbidden),
    ];
    for (name, path, wanted) in rows {
        tree.world.path = path.as_bytes().to_vec();
        assert_eq!(tree.admission(name), wanted, "{name} {path}");
    }
    let index = tree.with("x", |applied, _| applied.index().map(<[_]>::len));
    assert_eq!(index, Ok(None), "the path still is one below /admin");
    tree.world.headers = vec![(b"host".to_vec(), b"bad".to_vec())];
    tree.world.path = b"/".to_vec();
    assert_eq!(tree.admission("x"), Admission::Forbidden);
    tree.world.headers.clear();
    let index = tree.with("x", |applied, _| applied.index().map(<[_]>::len));
    assert_eq!(index, Ok(Some(1)));
}

#[test]
fn limit_is_about_the_methods_that_it_names() {
    let mut only = Tree::one("<Limit POST PUT>\nRequire all denied\n</Limit>");
    assert_eq!(only.method("x", "GET"), Admission::Open);
    assert_eq!(only.method("x", "POST"), Admission::Forbidden);
    let mut except =
        Tree::one("<LimitExcept GET>\nOrder allow,deny\nDeny from all\n</LimitExcept>");
    assert_eq!(except.method("x", "HEAD"), Admission::Open);
    assert_eq!(except.method("x", "GET"), Admission::Open);
    assert_eq!(except.method("x", "BREW"), Admission::Forbidden);
}

#[test]
fn wordpress_finds_its_front_controller() {
    let mut tree = Tree::one(WORDPRESS);
    tree.world.files = vec![b"/srv/www/style.css".to_vec(), b"/srv/www/wp-admin/".to_vec()];
    tree.world.headers = vec![(b"authorization".to_vec(), b"Basic x".to_vec())];
    assert_eq!(tree.result("/2026/hello/", None), "/index.php");
    assert_eq!(tree.env.of(b"HTTP_AUTHORIZATION"), Some(&b"Basic x"[..]));
    assert_eq!(tree.result("/style.css", None), "-");
    assert_eq!(tree.result("/index.php", None), "-");
    assert_eq!(tree.result("/wp-admin", None), "-");
    assert_eq!(tree.result("/a", Some("b=c")), "/index.php?b=c");
}

#[test]
fn published_front_controllers_are_found() {
    let laravel = "<IfModule mod_rewrite.c>
    <IfModule mod_negotiation.c>
        Options -MultiViews -Indexes
    </IfModule>
    RewriteEngine On
    RewriteCond %{HTTP:Authorization} .
    RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
    RewriteCond %{REQUEST_FILENAME} !-d
    RewriteCond %{REQUEST_URI} (.+)/$
    RewriteRule ^ %1 [L,R=301]
    RewriteCond %{REQUEST_FILENAME} !-d
    RewriteCond %{REQUEST_FILENAME} !-f
    RewriteRule ^ index.php [L]
</IfModule>";
    let mut tree = Tree::one(laravel);
    assert_eq!(tree.result("/users/7", Some("x=1")), "/index.php?x=1");
    assert_eq!(tree.result("/users/", Some("x=1")), "301 http://site.test/users?x=1");
    let symfony = "DirectoryIndex index.php\nRewriteEngine On
RewriteCond %{REQUEST_URI}::$0 ^(/.+)/(.*)::\\2$
RewriteRule .* - [E=BASE:%1]
RewriteCond %{ENV:REDIRECT_STATUS} =\"\"
RewriteRule ^index\\.php(?:/(.*)|$) %{ENV:BASE}/$1 [R=301,L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteRule ^ %{ENV:BASE}/index.php [L]";
    let mut tree = Tree::one(symfony);
    assert_eq!(tree.result("/blog", None), "/index.php");
    assert_eq!(tree.result("/index.php/blog", None), "301 http://site.test/blog");
    let drupal = "RewriteEngine on
RewriteRule \"/\\.|^\\.(?!well-known/)\" - [F]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteCond %{REQUEST_URI} !=/favicon.ico
RewriteRule ^ index.php [L]";
    let mut tree = Tree::one(drupal);
    assert_eq!(tree.result("/.git/config", None), "403");
    assert_eq!(tree.result("/.well-known/x", None), "/index.php");
    assert_eq!(tree.result("/favicon.ico", None), "-");
    assert_eq!(tree.result("/node/1", None), "/index.php");
}

#[test]
fn rules_do_what_their_flags_say() {
    let rows = [
        ("RewriteRule ^a$ b", "/a", None, "/b"),
        ("RewriteRule ^a$ b [QSA]", "/a", Some("x=1"), "/b?x=1"),
        ("RewriteRule ^a$ b?y=2 [QSA]", "/a", Some("x=1"), "/b?y=2&x=1"),
        ("RewriteRule ^a$ b?y=2", "/a", Some("x=1"), "/b?y=2"),
        ("RewriteRule ^a$ b?", "/a", Some("x=1"), "/b"),
        ("RewriteRule ^a$ b [QSD]", "/a", Some("x=1"), "/b"),
        ("RewriteRule ^(.*)$ $1", "/a", None, "-"),
        ("RewriteRule ^ - [F]", "/a", None, "403"),
        ("RewriteRule ^ - [G]", "/a", None, "410"),
        ("RewriteRule ^a$ /x [R=404]", "/a", None, "404"),
        ("RewriteRule ^a$ /x%{QUERY_STRING} [R]", "/a", Some("q"), "302 http://site.test/xq?q"),
        ("RewriteRule ^a$ rel [R=301]", "/a", None, "301 http://site.test/srv/www/rel"),
        ("RewriteBase /b\nRewriteRule ^a$ rel [R=301]", "/a", None, "301 http://site.test/b/rel"),
        ("RewriteBase /other\nRewriteRule ^a$ x.txt", "/a", None, "/other/x.txt"),
        ("RewriteRule ^a$ ftp://x/y", "/a", None, "302 ftp://x/y"),
        ("RewriteRule ^(.*)$ /t?q=$1", "/a b", None, "refused 403"),
        ("RewriteRule ^(.*)$ /t?q=$1 [B]", "/a b&c", None, "/t?q=a+b%26c"),
        ("RewriteRule ^(.*)$ /t?q=$1 [B,BNP]", "/a b", None, "/t?q=a%20b"),
        ("RewriteRule ^a$ /x#y [R]", "/a", None, "302 http://site.test/x%23y"),
        ("RewriteRule ^a$ /x#y [R,NE]", "/a", None, "302 http://site.test/x#y"),
        ("RewriteRule ^a$ /x?b%20c [R]", "/a", None, "302 http://site.test/x?b0c"),
        ("RewriteRule ^a$ ../z", "/a", None, "refused 400"),
        ("RewriteRule ^a$ /../z", "/a", None, "refused 400"),
        ("RewriteRule ^a$ %{DOCUMENT_ROOT}/z", "/a", None, "/z"),
        ("RewriteRule ^a b [C]\nRewriteRule ^b c\nRewriteRule ^b d", "/b", None, "/d"),
        ("RewriteRule ^a - [S=1]\nRewriteRule ^ no\nRewriteRule ^ yes", "/a", None, "/yes"),
        ("RewriteRule ^(.*)a(.*)$ $1b$2 [N]", "/aaa", None, "/bbb"),
        ("RewriteRule ^(.*)$ $1x [N=5]", "/a", None, "refused 500"),
        ("RewriteRule !^b /n$0", "/a", None, "/n"),
        ("RewriteRule ^a$ b [NC]", "/A", None, "/b"),
        ("RewriteEngine off\nRewriteRule ^ b", "/a", None, "-"),
        (
            "RewriteCond %{QUERY_STRING} ^id=(\\d+)$ [OR]\nRewriteCond %{QUERY_STRING} ^n=(\\d+)$\n\
             RewriteRule ^a$ /t/%1?",
            "/a",
            Some("n=7"),
            "/t/7",
        ),
        ("RewriteCond %{NOSUCH} ^$\nRewriteRule ^ /x", "/a", None, "/x"),
        ("RewriteCond 5 \"-gt 4\"\nRewriteRule ^ /x", "/a", None, "/x"),
        ("RewriteCond five -eq5\nRewriteRule ^ /x", "/a", None, "-"),
        ("RewriteCond five -eq0\nRewriteRule ^ /x", "/a", None, "/x"),
        ("RewriteCond b <aa\nRewriteRule ^ /x", "/a", None, "/x"),
        ("RewriteCond \"\" =\"\"\nRewriteRule ^ /x", "/a", None, "/x"),
        ("RewriteCond expr \"%{REQUEST_URI} =~ /^.(a)$/\"\nRewriteRule ^ /x%1", "/a", None, "/xa"),
        ("RewriteCond %{FOO x\nRewriteRule ^ /x", "/a", None, "-"),
    ];
    for (rules, path, args, wanted) in rows {
        let mut tree = Tree::one(&format!("RewriteEngine On\n{rules}"));
        assert_eq!(tree.result(path, args), wanted, "{rules} {path}");
    }
}

#[test]
fn rules_of_a_deeper_directory_replace_those_above() {
    let parent = "RewriteEngine On\nRewriteRule x$ /parent";
    let rows = [
        ("", "/d/x", "/parent"),
        ("Options -Indexes", "/d/x", "/parent"),
        ("RewriteEngine On", "/d/x", "-"),
        ("RewriteRule ^x$ child", "/d/x", "/d/child"),
        ("RewriteOptions Inherit\nRewriteRule ^y$ child", "/d/x", "/parent"),
        ("RewriteOptions Inherit\nRewriteRule ^x$ child [L]", "/d/x", "/d/child"),
        ("RewriteOptions InheritBefore\nRewriteRule ^x$ child", "/d/x", "/parent"),
        ("RewriteEngine Off", "/d/x", "-"),
    ];
    for (child, path, wanted) in rows {
        let mut tree = Tree::new(&[("", parent), ("d/", child)]);
        tree.world.files.push(b"/srv/www/d/".to_vec());
        assert_eq!(tree.result(path, None), wanted, "{child}");
    }
}

#[test]
fn an_expression_that_gives_up_refuses() {
    let mut tree = Tree::one("RewriteEngine On\nRewriteRule ^(a|aa)+$ - [F]");
    let path = format!("/{}c", "a".repeat(40));
    assert!(matches!(tree.pass(&path, None), Err(Stop::GaveUp(_))));
}

/// The place of the refusal with 500 that `stop` is.
fn refused_at(stop: Stop) -> (String, u32) {
    match stop {
        Stop::RefusedAt(500, _, directory, line) => {
            (String::from_utf8(directory.into()).unwrap(), line)
        }
        stop => panic!("{stop:?}"),
    }
}

#[test]
fn conditions_of_sections_have_a_bound_together_and_name_their_line() {
    let section = "<If \"%{REQUEST_URI} =~ m#^/(a|aa)+$#\">\nSetEnv A 1\n</If>\n";
    let mut tree = Tree::new(&[("", "SetEnv B 1\n"), ("d/", &section.repeat(100))]);
    tree.world.files.push(b"/srv/www/d/".to_vec());
    let short = format!("/d/{}c", "a".repeat(8));
    assert_eq!(tree.result(&short, None), "-");
    tree.world.path = format!("/{}c", "a".repeat(22)).into_bytes();
    let stop = tree.with("x", |_, _| ()).unwrap_err();
    assert_eq!(refused_at(stop), ("/srv/www/d/".to_owned(), 12 * 3 + 1));
    // The parts of one expression count as well.
    let part = "%{REQUEST_URI} =~ m#^/(a|aa)+$# || ".repeat(100);
    let mut tree = Tree::one(&format!("<If \"{part}false\">\n</If>\n"));
    tree.world.path = format!("/{}c", "a".repeat(22)).into_bytes();
    assert_eq!(refused_at(tree.with("x", |_, _| ()).unwrap_err()).1, 1);
}

#[test]
fn texts_that_double_have_a_bound() {
    let double = "SetEnvIf A (.*) A=$1$1\n".repeat(60);
    let mut tree = Tree::one(&format!("SetEnvIf Request_URI .* A=xxxxxxxx\n{double}"));
    let stop = tree.with("x", |_, _| ()).unwrap_err();
    assert!((18..30).contains(&refused_at(stop).1));
    assert!(tree.env.of(b"A").unwrap().len() < 32 * 1024 * 1024);
    let double = "RewriteRule ^ - [E=A:%{ENV:A}%{ENV:A}]\n".repeat(60);
    let mut tree = Tree::one(&format!("SetEnvIf Request_URI .* A=xxx\nRewriteEngine On\n{double}"));
    let stop = tree.pass("/x", None).unwrap_err();
    assert!((18..30).contains(&refused_at(stop).1));
    let double = "%{reqenv:A}".repeat(100);
    let grows = "SetEnvIf A (.*) A=$1$1$1$1\n".repeat(2);
    let text =
        format!("SetEnvIf Request_URI (.*) A=$1$1$1$1\n{grows}<If \"'{double}' == ''\">\n</If>\n");
    let mut tree = Tree::one(&text);
    tree.world.path = vec![b'a'; 4000];
    // Sections are judged before variables are set.
    tree.with("x", |_, _| ()).unwrap();
    assert_eq!(refused_at(tree.with("x", |_, _| ()).unwrap_err()).1, 4);
}

/// As many lines as a file may have, with a number in place of `#`.
fn numbered(line: &str) -> String {
    (0..19_000).map(|at| line.replace('#', &at.to_string()) + "\n").collect()
}

#[test]
fn lists_that_grow_have_a_bound() {
    for line in ["set X# v", "append X v#", "merge X v#", "set X \"expr=%{HTTP:H#}\""] {
        for whose in ["RequestHeader", "Header"] {
            let mut tree = Tree::one(&numbered(&format!("{whose} {line}")));
            let stop = tree.with("x", |applied, by| {
                let (mut fields, mut always) = Default::default();
                let done = match whose {
                    "Header" => applied.edit_response(
                        &mut fields,
                        &mut always,
                        (200, false),
                        HeaderTimes::default(),
                        by,
                    ),
                    _ => applied.edit_request(&mut fields, HeaderTimes::default(), by),
                };
                assert!(fields.size() < 32 * 1024 * 1024, "what was removed takes memory, too");
                done.unwrap_err()
            });
            assert!(matches!(stop, Ok(Stop::Refused(500, _))), "{whose} {line}: {stop:?}");
        }
    }
    let rules = numbered("RewriteRule . - [CO=n#:v:.x]");
    assert_eq!(Tree::one(&format!("RewriteEngine On\n{rules}")).result("/x", None), "refused 500");
    // A name is found among many without a look at the others.
    let mut tree = Tree::one(&numbered("SetEnvIf Request_URI .* A#=#"));
    tree.with("x", |_, _| ()).unwrap();
    assert_eq!(tree.env.of(b"A18999"), Some(&b"18999"[..]));
}

#[test]
fn what_is_unset_is_about_what_was_set_before() {
    let mut tree =
        Tree::one("SetEnv A 1\nSetEnv B 1\nUnsetEnv A B\nSetEnv B 2\nUnsetEnv C\nSetEnv C 3\n");
    tree.with("x", |applied, by| applied.set_env(by)).unwrap();
    let all: Vec<_> = tree.env.iter().collect();
    assert_eq!(all, [(&b"B"[..], &b"2"[..]), (b"C", b"3")]);
    // Many of both are no product.
    let mut tree = Tree::one(&(numbered("SetEnv A# v") + "UnsetEnv" + &" B".repeat(100_000)));
    tree.with("x", |applied, by| applied.set_env(by)).unwrap();
    assert_eq!(tree.env.of(b"A18999"), Some(&b"v"[..]));
}

#[test]
fn expressions_of_a_file_have_a_bound_together() {
    let rules = "RewriteRule (((a{1,50}){1,50}){1,3}){1,3} -\n".repeat(10_000);
    let fault = parse(rules.as_bytes()).unwrap_err();
    assert!(fault.to_string().contains("too long with their repeated groups"), "{fault}");
    assert!((20..5000).contains(&fault.line));
    let rules: String = numbered("RewriteRule ^o/([0-9]+)/([^/]+)/#$ /n/$1 [R]");
    parse(rules.as_bytes()).unwrap();
}

#[test]
fn wildcards_have_a_bound() {
    let glob = format!("<Files \"*{}b\">\n</Files>\n", "a".repeat(400));
    let mut tree = Tree::one(&glob.repeat(1000));
    let stop = tree.with(&"a".repeat(800), |_, _| ()).unwrap_err();
    assert!(matches!(stop, Stop::Refused(500, _)), "{stop:?}");
    tree.with(&"a".repeat(80), |_, _| ()).unwrap();
}

#[test]
fn expressions_of_a_file_have_a_bound_of_memory_and_are_of_bytes() {
    let dear = format!("RewriteCond %{{QUERY_STRING}} \"{}\" [OR]\n", "(a|b)?".repeat(85));
    let text = format!("RewriteEngine On\n{}", dear.repeat(1850));
    let fault = parse(text.as_bytes()).unwrap_err();
    assert!((50..1800).contains(&fault.line), "{fault:?}");
    assert_eq!(fault.message, "expressions up to here take too much memory");
    let few = format!("RewriteEngine On\n{}RewriteRule . -\n", dear.repeat(20));
    let weights = [few, "RewriteEngine On\nRewriteRule ^a$ b\n".to_owned()]
        .map(|text| parse(text.as_bytes()).unwrap().weight());
    assert!(weights[0] > 50_000 && weights[1] == 0, "{weights:?}");
    assert!(parse(b"RewriteEngine On\nRewriteRule (*UTF)^a b\n").is_err());
}

#[test]
fn a_version_is_matched_in_few_steps() {
    for (pattern, is_read) in [("2(?:|||||||||){4}[xy]", false), ("^2\\.[0-4]\\.\\d+$", true)] {
        let text = format!("<IfVersion ~ {pattern}>\n</IfVersion>\n");
        assert_eq!(parse(text.as_bytes()).is_ok(), is_read, "{pattern}");
    }
}

#[test]
fn a_pass_of_rules_has_a_bound_and_names_the_rule() {
    let rules =
        |count| "RewriteEngine On\n".to_owned() + &"RewriteRule ^(a|aa)+$ - [F]\n".repeat(count);
    let mut tree = Tree::one(&rules(2000));
    let short = format!("/{}c", "a".repeat(8));
    assert_eq!(tree.result(&short, None), "-", "what ordinary matches take is not counted");
    let long = format!("/{}c", "a".repeat(22));
    let stop = tree.pass(&long, None).unwrap_err();
    let Stop::RefusedAt(500, "conditions and texts took too many steps", _, line) = stop else {
        panic!("{stop:?}");
    };
    // The first line is the engine's. A match takes some 300,000 of four million.
    assert!((5..40).contains(&line), "{line}");
    assert_eq!(Tree::one(&rules(4)).result(&long, None), "-");
    let longer = format!("/{}c", "a".repeat(40));
    let stop = tree.pass(&longer, None).unwrap_err();
    assert_eq!(stop, Stop::GaveUp(b"^(a|aa)+$"[..].into()));
}

#[test]
fn an_address_of_groups_has_a_bound() {
    let mut tree = Tree::one(&format!("RedirectMatch ^/(.*)$ /{}\n", "$1".repeat(100)));
    tree.with("x", |applied, by| {
        let to =
            |len: usize| applied.redirect(&[b"/", &vec![b'a'; len][..]].concat(), None, by.effort);
        assert_eq!(to(600).unwrap().unwrap().to.unwrap().len(), 60_001);
        let why = "RedirectMatch made an address that is too long";
        assert_eq!(to(700).unwrap_err(), Stop::Refused(500, why));
    })
    .unwrap();
}

#[test]
fn cookies_are_compared_for_steps() {
    let (effort, mut cookies) = (Effort::default(), Vec::new());
    for index in 0..100_u32 {
        let cookie = [&vec![b'a'; 64 * 1024][..], &index.to_be_bytes()].concat();
        crate::add_cookie(&mut cookies, cookie, &effort);
    }
    assert!(effort.check().is_err() && cookies.len() < 100);
}

#[test]
fn fields_are_edited_in_their_order() {
    let text = "SetEnvIf User-Agent Mozilla moz=yes\n\
                Header set X-A one\nHeader append X-A two\nHeader merge X-A two\n\
                Header add X-A three\nHeader setifempty X-A no\nHeader setifempty X-B b\n\
                Header edit X-B b \"<$0>\"\nHeader unset ETag\n\
                Header set X-E \"%{moz}e %{no}e %%\"\n\
                Header set X-F f env=moz\nHeader set X-G g env=!moz\n\
                Header always set X-Content-Type-Options nosniff\n\
                Header set X-H \"expr=%{HTTP_HOST}!\"\nHeader set X-I: i\n\
                Header set Server mine\nHeader set X-J j \"expr=%{REQUEST_URI} == '/p'\"\n\
                Header edit* X-A [et] -\n";
    let mut tree = Tree::one(text);
    tree.world.headers =
        vec![(b"user-agent".to_vec(), b"Mozilla/5".to_vec()), (b"host".to_vec(), b"site".to_vec())];
    tree.world.path = b"/p".to_vec();
    let shown = |fields: &FieldMap| -> Vec<String> {
        let lines = fields.iter().map(|field| {
            format!(
                "{}: {}",
                String::from_utf8_lossy(field.text).to_ascii_lowercase(),
                String::from_utf8_lossy(field.value)
            )
        });
        lines.collect()
    };
    let (fields, always) = tree
        .with("x", |applied, by| {
            let (mut fields, mut always) = (FieldMap::default(), FieldMap::default());
            fields.push_text(b"ETag", b"\"1\"");
            let times = HeaderTimes::default();
            applied.edit_response(&mut fields, &mut always, (200, false), times, by).unwrap();
            (shown(&fields), shown(&always))
        })
        .unwrap();
    let wanted = [
        "x-b: <b>",
        "x-e: yes (null) %",
        "x-f: f",
        "x-h: site!",
        "x-i: i",
        "x-j: j",
        "x-a: on-, -wo",
        "x-a: -hr--",
    ];
    assert_eq!(fields, wanted);
    assert_eq!(always, ["x-content-type-options: nosniff"]);
    assert!(tree.varies.is_empty(), "answers are told apart by host anyway");
}

#[test]
fn the_rest_is_taken_from_the_deepest_place() {
    let mut tree = Tree::new(&[
        (
            "",
            "Options -Indexes\nDirectoryIndex a b\nErrorDocument 404 /404.html\nErrorDocument 403 \
             \"No way\nExpiresActive On\nExpiresDefault A60\nExpiresByType image/* A5\n\
             ExpiresByType image/png \"access plus 1 day\"\nFileETag None\nIndexIgnore *.bak\n\
             FallbackResource /index.php\nphp_value memory_limit 64M\nphp_flag engine off\n\
             AddType image/webp .webp\nRedirect 301 /old /new\nRedirectMatch 410 ^/gone\n\
             Redirect /q http://x/y?z\nSetEnv A 1\n",
        ),
        ("d/", "Options +Indexes\nErrorDocument 404 default\nFallbackResource disabled\n"),
    ]);
    tree.with("x", |applied, by| {
        assert!(applied.options(DirOptions::new(false)).lists());
        assert_eq!(applied.index().unwrap().len(), 2);
        assert_eq!(applied.error_answer(404), None);
        let text = crate::ErrorAnswer::Text(b"No way"[..].into());
        assert_eq!(applied.error_answer(403), Some(&text));
        let seconds = |media: &[u8]| applied.expires(media).unwrap().seconds;
        assert_eq!(seconds(b"image/png"), 86_400);
        assert_eq!(seconds(b"image/gif; x=y"), 5);
        assert_eq!(seconds(b"text/html"), 60);
        assert_eq!(applied.etag(), crate::EtagParts::None);
        assert!(applied.hidden().has(b"x.bak") && !applied.hidden().has(b"x"));
        assert_eq!(applied.fallback(), None);
        assert!(applied.refuses_php());
        assert_eq!(applied.nature(b"a.webp").media_type, Some(&b"image/webp"[..]));
        let to = |path: &[u8]| {
            let found = applied.redirect(path, Some(b"a=b"), &Effort::default()).unwrap();
            found.map(|to| (to.status, to.to.map(|to| String::from_utf8(to).unwrap())))
        };
        assert_eq!(to(b"/old/x y"), Some((301, Some("/new/x%20y?a=b".to_owned()))));
        assert_eq!(to(b"/older"), None);
        assert_eq!(to(b"/gone/x"), Some((410, None)));
        assert_eq!(to(b"/q"), Some((302, Some("http://x/y?z".to_owned()))));
        applied.set_env(by);
        assert_eq!(by.env.of(b"A"), Some(&b"1"[..]));
    })
    .unwrap();
}

/// Lines that mean something, and some that do not.
fn line() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "RewriteEngine On",
        "RewriteRule ^(.*)$ /x?$1 [B,L]",
        "RewriteCond %{QUERY_STRING} ^a",
        "RewriteRule ^ - [N=3]",
        "RewriteRule . y [C]",
        "Require all denied",
        "Deny from all",
        "<Files *>",
        "</Files>",
        "<If \"true\">",
        "</If>",
        "<Else>",
        "</Else>",
        "<Limit GET>",
        "</Limit>",
        "<IfModule mod_rewrite.c>",
        "<IfModule !mod_rewrite.c>",
        "</IfModule>",
        "Header set A \"%{B}e\"",
        "Header edit* A . $0$0",
        "SetEnvIf B (.*) C=$1",
        "Options -Indexes",
        "<RequireAll>",
        "</RequireAll>",
        "Require not ip 10",
        "ErrorDocument 404 /x",
        "Redirect / /y",
        "AddType a/b .c",
        "php_flag engine off",
        "RewriteCond %{REQUEST_URI} -U [OR]",
        "RewriteCond %{LA-F:REQUEST_FILENAME} -F",
        "RewriteRule ^x %{LA-U:REQUEST_URI} [E=U:%{LA-U:REMOTE_USER}]",
        "SSLRequire %{SSL_CIPHER_USEKEYSIZE} >= 128 and not %{HTTPS} eq \"off\"",
        "SSLOptions +StrictRequire",
        "SetOutputFilter INFLATE;SUBSTITUTE;DEFLATE",
        "AddOutputFilter SUBSTITUTE txt",
        "Substitute \"s|(a)(b)?|$2$1|q\"",
        "SubstituteMaxLineLength 2k",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "[ -~]{0,40}"]
}

proptest! {
    #[test]
    fn any_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..40)) {
        crate::fuzz::file(lines.join("\n").as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        crate::fuzz::file(&bytes);
    }

    #[test]
    fn what_a_file_does_not_say_changes_nothing(name in "[a-z.]{0,12}") {
        let mut tree = Tree::one("# nothing\n");
        prop_assert_eq!(tree.admission(&name), Admission::Open);
        prop_assert_eq!(tree.result(&format!("/{name}"), None), "-");
    }

    #[test]
    fn a_line_too_many_refuses_the_whole_file(
        lines in prop::collection::vec(line(), 0..20),
        at in 0_usize..20,
    ) {
        let mut all = lines;
        let at = at.min(all.len());
        let is_read = parse(all.join("\n").as_bytes()).is_ok();
        all.insert(at, "Nonsense here".to_owned());
        if is_read && !all.iter().any(|line| line.contains("<IfModule !")) {
            prop_assert!(parse(all.join("\n").as_bytes()).is_err());
        }
    }
}
