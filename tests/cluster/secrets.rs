//! Secrets that nodes share by a real Valkey, which sees none of them: a TLS session of one node is
//! resumed by the others.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bolide_testkit::server::{Home, is_root, prelude};
use bolide_testkit::tools::run;
use bolide_testkit::{TestServer, Valkey, wait_until};

use crate::tls_keys::{VERSIONS, ask};
use crate::{BOLIDE, explain};

pub(super) const SHARED: &str = "the keys of TLS tickets are those of all servers";
/// Of the ring of a `ssl_session_timeout` that is no longer than this.
const PERIOD: u64 = 6 * 60 * 60;

/// Writes a key that only its owner may read.
pub(super) fn write_key(dir: &Path, name: &str, digit: char) -> String {
    let path = dir.join(name);
    std::fs::write(&path, format!("{}\n", digit.to_string().repeat(64))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// A node with the certificate of `cert`, so that a client cannot distinguish it from the others.
fn start(cert: &Path, valkey: &Valkey, keys: &str) -> TestServer {
    TestServer::start(Home::new(BOLIDE), &conf(cert, valkey, keys))
}

fn conf(cert: &Path, valkey: &Valkey, keys: &str) -> String {
    let (prelude, dir, port) = (prelude(2), cert.display(), valkey.port());
    format!(
        "{prelude}http {{ cluster valkey://127.0.0.1:{port} {{ node one; {keys} }}
         ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/cert.key;
         server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; server_name localhost;
         location / {{ return 200 \"reused $ssl_session_reused\\n\"; }} }} }}"
    )
}

/// One that uses the keys of all.
pub(super) fn joined(cert: &Path, valkey: &Valkey, keys: &str) -> TestServer {
    let server = start(cert, valkey, keys);
    wait_shared(&server);
    server
}

fn wait_shared(server: &TestServer) {
    wait_shared_by(server, 1);
}

/// Waits until so many processes of a server have used the keys of all.
fn wait_shared_by(server: &TestServer, processes: usize) {
    wait_until("the keys to be shared", || server.error_log().matches(SHARED).count() == processes);
}

/// The words for a client to keep a session, and to come with it.
pub(super) fn session(dir: &Path, name: &str) -> (String, String) {
    let kept = dir.join(name);
    (format!("-sess_out {}", kept.display()), format!("-sess_in {}", kept.display()))
}

pub(super) fn secrets(valkey: &Valkey) -> Vec<String> {
    let listed = valkey.cli(&["--scan", "--pattern", "bolide:{bolide}:secret:*"]).text();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_session_of_one_node_is_resumed_by_another() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = format!("secrets_key {};", write_key(dir, "key", 'a'));
    let (one, mut two) = (joined(dir, &valkey, &key), joined(dir, &valkey, &key));
    let other = format!("secrets_key {};", write_key(dir, "other", 'b'));
    let (stranger, alone) = (start(dir, &valkey, &other), start(dir, &valkey, ""));
    wait_until("the stranger to say why it goes on alone", || {
        stranger.error_log().contains("is not used: it is sealed with a key that this server has")
    });
    for (lives, version) in VERSIONS.into_iter().enumerate() {
        let (save, load) = session(dir, version);
        assert_eq!(ask(&one, version, &save), ".");
        assert_eq!(ask(&two, version, &load), "r", "{version}: the other node knows it");
        for outsider in [&stranger, &alone] {
            assert_eq!(ask(outsider, version, &load), ".", "{version}: no key, no session");
        }
        assert_eq!(ask(&stranger, version, &save), ".");
        assert_eq!(ask(&stranger, version, &load), "r", "{version}: its own it resumes");
        assert_eq!(ask(&one, version, &load), ".", "{version}: not those of strangers");
        assert_eq!(ask(&two, version, &save), ".");
        two.restart("TERM");
        wait_shared_by(&two, lives + 2);
        assert_eq!(ask(&two, version, &load), "r", "{version}: the keys are taken over again");
    }
    let keys = secrets(&valkey);
    // The key of this span of time and the next, of which the first node has made both.
    assert!(keys.len() == 2 || keys.len() == 3, "{keys:?}");
    let (log, digits) = (stranger.error_log(), "b".repeat(16));
    assert_eq!(log.matches("is not used").count(), 1, "one line a minute: {log}");
    assert!(!log.contains(&digits), "{log}");
}

/// The three steps of the documentation.
#[test]
fn sessions_and_ticket_keys_outlast_a_change_of_the_key() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = |digit: char| format!("secrets_key {};", write_key(dir, &digit.to_string(), digit));
    let (old, new) = (key('a'), key('b'));
    let conf = |node: &str, keys: &str| {
        conf(dir, &valkey, keys).replace("node one;", &format!("node {node};"))
    };
    let names = ["one", "two"];
    let nodes = names.map(|name| TestServer::start(Home::new(BOLIDE), &conf(name, &old)));
    nodes.iter().for_each(wait_shared);
    let (save, load) = session(dir, "kept");
    assert_eq!(ask(&nodes[0], "tls1_3", &save), ".");
    let sealed_by = || -> Vec<String> {
        let names = secrets(&valkey).into_iter().filter(|name| name.contains(":tickets:"));
        let id = |name: String| valkey.cli(&["getrange", &name, "8", "15"]).text();
        names.map(id).collect()
    };
    let before = sealed_by();
    for (step, keys) in [format!("{old} {new}"), format!("{new} {old}"), new].iter().enumerate() {
        for (node, server) in nodes.iter().enumerate() {
            server.rewrite(&conf(names[node], keys));
            let _done = explain::ask(server, &["reload"]).succeeded();
            wait_until("the keys to be shared", || {
                let status = explain::ask(server, &["cluster", "status", "--json"]).text();
                status.contains("\"ticket_keys\":true")
            });
            let is_changed = step > 1 || (step, node) == (1, 1);
            match is_changed {
                true => wait_until("the ticket keys to be encrypted with the new key", || {
                    sealed_by().iter().all(|by| !before.contains(by))
                }),
                false => assert_eq!(sealed_by(), before, "step {step}, node {node}"),
            }
        }
        assert_eq!(ask(&nodes[1], "tls1_3", &load), "r", "step {step}");
    }
    let third = joined(dir, &valkey, &key('b'));
    assert_eq!(ask(&third, "tls1_3", &load), "r", "{}", third.error_log());
}

#[test]
fn nodes_without_valkey_continue_with_their_keys() {
    let (home, mut valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = format!("secrets_key {};", write_key(dir, "key", 'a'));
    let (one, mut two) = (joined(dir, &valkey, &key), joined(dir, &valkey, &key));
    valkey.kill();
    let outcome = "nothing but what is known here is used of what servers share";
    wait_until("a node to notice", || one.error_log().contains(outcome));
    let (save, load) = session(dir, "kept");
    for version in VERSIONS {
        assert_eq!(ask(&one, version, &save), ".");
        assert_eq!(ask(&two, version, &load), "r", "{version}: both know the keys of now");
    }
    two.restart("TERM");
    assert_eq!(ask(&two, "tls1_3", &load), ".", "a new process knows none");
    assert_eq!(ask(&two, "tls1_3", &save), ".");
    assert_eq!(ask(&two, "tls1_3", &load), "r", "and has its own");
    valkey.start_again();
    wait_until("the keys to be taken over", || {
        let _full = ask(&one, "tls1_3", &save);
        ask(&two, "tls1_3", &load) == "r"
    });
}

#[test]
fn a_valkey_that_hangs_delays_no_handshake() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let key = format!("secrets_key {};", write_key(home.dir(), "key", 'a'));
    let one = joined(home.dir(), &valkey, &key);
    valkey.signal("STOP");
    let two = start(home.dir(), &valkey, &key);
    let (save, load) = session(home.dir(), "kept");
    for server in [&one, &two] {
        assert_eq!(ask(server, "tls1_3", &save), ".");
        assert_eq!(ask(server, "tls1_3", &load), "r");
    }
    valkey.signal("CONT");
    wait_shared(&two);
}

/// Whatever is in the place of a key that is of another place, another kind, cut or changed is not
/// used, and the node goes on with its own.
#[test]
fn a_record_of_another_place_or_kind_is_not_used() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let dir = home.dir();
    let key = format!("secrets_key {};", write_key(dir, "key", 'a'));
    let one = joined(dir, &valkey, &key);
    let (save, load) = session(dir, "kept");
    assert_eq!(ask(&one, "tls1_3", &save), ".");
    let now = unix_seconds() / PERIOD;
    let name = |number: u64| format!("bolide:{{bolide}}:secret:tickets:{PERIOD}:{number}");
    let swap = format!(
        "local a, b = redis.call('GET', '{0}'), redis.call('GET', '{1}') \
         redis.call('SET', '{0}', b) redis.call('SET', '{1}', a)",
        name(now),
        name(now + 1)
    );
    let change = |code: &str| {
        format!(
            "for _, key in ipairs({{'{}', '{}'}}) do local it = redis.call('GET', key) {code} end",
            name(now),
            name(now + 1)
        )
    };
    let spoil: [(&str, String, &str); 5] = [
        ("swapped", swap, "from another place"),
        ("cut", change("redis.call('SET', key, string.sub(it, 1, -2))"), "it is damaged"),
        (
            "another version",
            change("redis.call('SET', key, 'bolideK2' .. string.sub(it, 9))"),
            "no record of this version",
        ),
        ("empty", change("redis.call('SET', key, '')"), "no record of this version"),
        (
            "another kind",
            change("redis.call('DEL', key) redis.call('LPUSH', key, it)"),
            "ticket keys are not shared",
        ),
    ];
    let names = [name(now), name(now + 1)];
    let good: Vec<_> = names.iter().map(|name| valkey.cli(&["dump", name]).text()).collect();
    assert!(good.iter().all(|dump| dump.len() > 32));
    for (what, script, outcome) in &spoil {
        let _kept = valkey.cli(&["eval", &keep(&names), "0"]).succeeded();
        let _done = valkey.cli(&["eval", script, "0"]).succeeded();
        let two = start(dir, &valkey, &key);
        wait_until(&format!("{what}: a line in the log"), || two.error_log().contains(outcome));
        let (own_save, own_load) = session(dir, "own");
        assert_eq!(ask(&two, "tls1_3", &load), ".", "{what}");
        assert_eq!(ask(&two, "tls1_3", &own_save), ".", "{what}");
        assert_eq!(ask(&two, "tls1_3", &own_load), "r", "{what}: it has its own keys");
        assert_eq!(ask(&one, "tls1_3", &own_load), ".", "{what}");
        assert!(!two.error_log().contains(SHARED), "{what}: {}", two.error_log());
        let _back = valkey.cli(&["eval", &put_back(&names), "0"]).succeeded();
    }
    // The node that has the keys keeps them, whatever is there.
    assert_eq!(ask(&one, "tls1_3", &load), "r", "{}", one.error_log());
}

/// Copies records aside.
fn keep(names: &[String]) -> String {
    let copy = |name: &String| {
        format!("redis.call('SET', 'kept{{bolide}}' .. '{name}', redis.call('GET', '{name}'))")
    };
    names.iter().map(copy).collect::<Vec<_>>().join(" ")
}

fn put_back(names: &[String]) -> String {
    let copy = |name: &String| {
        format!(
            "redis.call('DEL', '{name}') \
             redis.call('SET', '{name}', redis.call('GET', 'kept{{bolide}}' .. '{name}'))"
        )
    };
    names.iter().map(copy).collect::<Vec<_>>().join(" ")
}

pub(super) fn unix_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}

/// What a configuration shares that was followed by another one before it could begin is not said
/// to be shared.
#[test]
fn a_thread_that_should_end_while_it_waits_does_not_begin() {
    let (home, valkey) = (Home::new(BOLIDE), Valkey::default());
    let keys = ['a', 'b'].map(|digit| write_key(home.dir(), &digit.to_string(), digit));
    let conf = |key: &str, word: &str| {
        let (prelude, port) = (prelude(1), valkey.port());
        format!(
            "{prelude}http {{ cluster valkey://127.0.0.1:{port} {{ node one; reply_timeout 15s;
             {key} }} ssl_certificate cert.pem; ssl_certificate_key cert.key;
             server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl;
             location / {{ return 200 {word}; }}
             location /pages/ {{ fastcgi_pass 127.0.0.1:1; page_cache auto; }} }} }}"
        )
    };
    // The first one waits for an answer, and does not end before that.
    valkey.signal("STOP");
    let [first, second] = keys.map(|key| format!("secrets_key {key};"));
    let server = TestServer::start(home, &conf(&first, "first"));
    bolide_testkit::pause(500);
    for (key, word) in [(&*second, "second"), ("", "third")] {
        server.rewrite(&conf(key, word));
        server.signal("HUP");
        wait_until(word, || {
            server.connect().get("/", "Connection: close\r\n").text().contains(word)
        });
    }
    valkey.signal("CONT");
    let status = || explain::ask(&server, &["cluster", "status", "--json"]).text();
    wait_until("the node to be connected", || status().contains("\"caught_up\":true"));
    bolide_testkit::pause(1000);
    assert!(status().contains("\"exchange\":null"), "{}", status());
}

#[test]
fn a_key_file_that_others_may_read_is_refused_with_its_line() {
    let home = Home::new(BOLIDE);
    let dir = home.dir();
    let open = write_key(dir, "open", 'a');
    let _short = write_key(dir, "good", 'a');
    std::fs::write(dir.join("short"), "abc\n").unwrap();
    std::fs::set_permissions(dir.join("short"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = |name: &str| {
        let conf = format!(
            "events {{}} http {{ cluster valkey://127.0.0.1:1 {{\nnode one;\n\
             secrets_key {}; }} server {{ listen 127.0.0.1:@HTTP@; }} }}",
            dir.join(name).display()
        );
        let path = home.write("k.conf", &conf);
        let run = home.run(&["-t", "-c", path.to_str().unwrap()]);
        (run.code, run.stderr)
    };
    for (mode, shown) in [(0o644, "0644"), (0o640, "0640"), (0o604, "0604"), (0o620, "0620")] {
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
        let (code, text) = outcome("open");
        let wanted = format!("open\" is open to others than its owner (mode {shown})");
        assert!(code != 0 && text.contains(&wanted) && text.contains("k.conf:3"), "{text}");
    }
    if is_root() {
        let foreign = write_key(dir, "foreign", 'a');
        std::os::unix::fs::chown(foreign, Some(65_534), None).unwrap();
        let (code, text) = outcome("foreign");
        let wanted = "foreign\" belongs to user 65534: its owner has to be who starts the server";
        assert!(code != 0 && text.contains(wanted) && text.contains("k.conf:3"), "{text}");
    }
    let pipe = dir.join("pipe");
    let _made = run("mkfifo", ["-m", "600", pipe.to_str().unwrap()]).succeeded();
    for (name, wanted) in [
        ("pipe", "pipe\" is no regular file in "),
        ("", "\" is no regular file in "),
        ("short", "short\" has no key: its first line is to have 64 hexadecimal digits in "),
        ("none", "none\" failed (2: No such file or directory) in "),
    ] {
        let (code, text) = outcome(name);
        assert!(code != 0 && text.contains(wanted) && text.contains("k.conf:3"), "{text}");
    }
    assert_eq!(outcome("good").0, 0, "{}", outcome("good").1);
}
