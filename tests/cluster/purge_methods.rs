//! Every way to purge, and every way to reach Valkey.

use bolide_testkit::server::Home;
use bolide_testkit::{TestApp, TestServer, Valkey, wait_until};

use super::{Keeps, ME, Node, PAGE, block, conf};
use crate::BOLIDE;

const PUBLIC: &str = "X-LiteSpeed-Cache-Control: public,max-age=3600";
const PRIVATE: &str = "X-LiteSpeed-Cache-Control: private,max-age=3600";

/// Whether the other node fetches its page again after this.
fn reaches(one: &Node, two: &Node, head: &str, fields: &str, act: impl FnOnce(&Node)) -> bool {
    two.app.say("/page", head);
    let before = two.page_with("/page", fields);
    assert_eq!(two.page_with("/page", fields), before, "{head} is cached");
    act(one);
    one.purged(&["--tag", "no-page-has-it", "--wait", "2"]);
    let is_new = two.page_with("/page", fields) != before;
    two.purged(&["--all"]);
    is_new
}

fn send(node: &Node, fields: &str) {
    let text = format!("PURGE /page HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let reply = node.server.connect().ask(&text);
    assert_eq!(reply.status, 200);
}

fn ban(node: &Node, fields: &str) {
    let text = format!("BAN / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let reply = node.server.connect().ask(&text);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[test]
fn every_way_to_purge_reaches_the_other_node() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    one.app.say("/field", &format!("{PUBLIC}\nX-LiteSpeed-Purge: tag=menu"));
    one.app.say("/field/all", &format!("{PUBLIC}\nX-LiteSpeed-Purge: *"));
    one.app.say("/field/own", "X-LiteSpeed-Purge: private, *");
    let tagged = |act: fn(&Node)| reaches(&one, &two, PAGE, "", act);
    assert!(tagged(|one| one.purged(&["--tag", "menu"])));
    assert!(tagged(|one| one.purged(&["--tag", "me*"])));
    assert!(tagged(|one| one.purged(&["--all"])));
    assert!(tagged(|one| one.purged(&["--prefix", "/pa"])));
    assert!(tagged(|one| ban(one, "X-Ban-Url: ^/page$\r\n")));
    assert!(tagged(|one| ban(one, "X-Cache-Tags: ^men\r\n")));
    assert!(!tagged(|one| ban(one, "X-Ban-Url: ^/other$\r\n")));
    assert!(tagged(|one| drop(one.page("/field"))));
    assert!(tagged(|one| drop(one.page("/field/all"))));
    assert!(tagged(|one| send(one, "Cache-Tag: menu\r\n")));
    assert!(tagged(|one| send(one, "xkey: menu\r\n")));
    assert!(!tagged(|one| send(one, "Cache-Tag: other\r\n")));
    assert!(!tagged(|one| one.purged(&["--tag", "other"])));
    // The session of a visitor, whichever node has its page.
    let of_me = |act: fn(&Node)| reaches(&one, &two, PRIVATE, ME, act);
    assert!(of_me(|one| drop(one.page_with("/field/own", ME))));
    assert!(of_me(|one| one.purged(&["--all"])));
    assert!(!of_me(|one| one.purged(&["--tag", "menu"])));
}

#[test]
fn a_purge_of_a_page_reaches_the_other_node() {
    let valkey = Valkey::default();
    let nodes = ["one", "two"].map(|name| {
        let app = TestApp::start();
        // Nodes listen at different ports here, which would be in the keys of pages.
        let conf = conf(&app, Keeps::InMemory, &block(&valkey, name, ""));
        let conf = conf.replace("page_cache auto;", "page_cache auto; page_cache_key $uri;");
        let node = Node { server: TestServer::start(Home::new(BOLIDE), &conf), app };
        node.wait_joined();
        node
    });
    let [one, two] = &nodes;
    let before = two.fill("/page", PUBLIC);
    send(one, "");
    two.wait_purged("/page", &before);
    let before = two.page("/page");
    let url = format!("http://localhost:{}/page", one.server.home().port(0));
    one.purged(&["--url", &url, "--wait", "2"]);
    assert_ne!(two.page("/page"), before);
}

#[test]
fn a_soft_purge_is_soft_on_the_other_node() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    let before = two.fill("/a", PAGE);
    one.purged(&["--tag", "menu", "--stale", "--wait", "2"]);
    assert_eq!(two.page("/a"), before, "it is served stale once");
    two.wait_purged("/a", &before);
}

/// Two nodes with this block, of which the first purges; `NODE` is the name.
fn purges_by(valkey: &Valkey, cluster: &str) {
    let nodes = ["one", "two"]
        .map(|name| Node::start(Keeps::InMemory, &valkey.expand(&cluster.replace("NODE", name))));
    nodes.iter().for_each(Node::wait_joined);
    let before = nodes[1].fill("/a", PAGE);
    nodes[0].purged(&["--tag", "menu", "--wait", "2"]);
    assert_ne!(nodes[1].page("/a"), before);
}

#[test]
fn valkey_is_reached_by_a_socket_of_the_machine() {
    purges_by(&Valkey::default(), "cluster unix:@DIR@/valkey.sock { node NODE; }");
}

#[test]
fn the_next_address_is_tried_if_one_does_not_answer() {
    purges_by(&Valkey::default(), "cluster redis://127.0.0.1:@P5@,127.0.0.1:@P0@ { node NODE; }");
}

#[test]
fn users_and_passwords_are_those_of_valkey() {
    let valkey = Valkey::default();
    let rule = ["acl", "setuser", "web", "on", ">secret", "~bolide:*", "+@all"];
    assert!(valkey.cli(&rule).text().contains("OK"));
    assert!(valkey.cli(&["acl", "setuser", "default", "off"]).text().contains("OK"));
    let cluster = "cluster valkey://127.0.0.1:@P0@ { node NODE; user web; password secret; }";
    purges_by(&valkey, cluster);
    std::fs::write(valkey.dir().join("pass"), "secret\nsecond line\n").unwrap();
    let file = "password secret; }";
    purges_by(&valkey, &cluster.replace(file, "password_file @DIR@/pass; }"));
    let wrong = valkey.expand(&cluster.replace("password secret", "password wrong"));
    let node = Node::start(Keeps::InMemory, &wrong.replace("NODE", "three"));
    wait_until("the refusal", || node.log().contains("this node goes on alone"));
    let log = node.log();
    assert!(log.contains("WRONGPASS") || log.contains("authentication failed"), "{log}");
    assert!(!log.contains("wrong password"), "{log}");
    let page = node.fill("/a", PAGE);
    bolide_testkit::pause(1000);
    assert_eq!(node.page("/a"), page, "it serves alone");
    assert_eq!(node.log().matches("goes on alone").count(), 1, "one line a minute");
}

#[test]
fn tls_is_spoken_and_its_authority_verified() {
    let dir = bolide_testkit::site::temp_dir();
    let script = format!(
        "cd {dir}; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 \
         -subj /CN=ca -keyout ca.key -out ca.pem; \
         openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=valkey \
         -keyout leaf.key -out leaf.csr; \
         printf 'subjectAltName=IP:127.0.0.1\\nbasicConstraints=CA:FALSE\\n' >ext; \
         openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 \
         -extfile ext -out leaf.pem; chmod 644 *",
        dir = dir.display()
    );
    let _made = bolide_testkit::run("sh", ["-ec", &script]).succeeded();
    let file = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (cert, key, ca) = (file("leaf.pem"), file("leaf.key"), file("ca.pem"));
    let valkey = Valkey::start(&[
        "--tls-port",
        "@P1@",
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ]);
    let cluster =
        format!("cluster rediss://127.0.0.1:@P1@ {{ node NODE; trusted_certificate {ca}; }}");
    purges_by(&valkey, &cluster);
    let strange = valkey.expand("cluster valkeys://127.0.0.1:@P1@ { node three; }");
    let node = Node::start(Keeps::InMemory, &strange);
    wait_until("the refusal", || node.log().contains("invalid peer certificate"));
    let _gone = std::fs::remove_dir_all(dir);
}

#[test]
fn sentinels_provide_the_address_of_the_server() {
    let valkey = Valkey::default();
    let sentinel = Valkey::start(&[]);
    let port = valkey.port().to_string();
    let file = sentinel.dir().join("sentinel.conf");
    let own = sentinel.expand("@P3@");
    std::fs::write(&file, format!("port {own}\nsentinel monitor main 127.0.0.1 {port} 1\n"))
        .unwrap();
    let mut child = std::process::Command::new(bolide_testkit::tool("valkey-server"))
        .args([file.to_str().unwrap(), "--sentinel"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the sentinel", || {
        let said = bolide_testkit::run("valkey-cli", ["-p", &own, "ping"]);
        said.text().contains("PONG")
    });
    let address = format!("valkey-sentinel://127.0.0.1:{own}");
    let done = std::panic::catch_unwind(|| {
        purges_by(&valkey, &format!("cluster {address}/main {{ node NODE; }}"));
        let node = Node::start(Keeps::InMemory, &format!("cluster {address}/other {{ node x; }}"));
        wait_until("the refusal", || node.log().contains("it knows no server \"other\""));
    });
    let _gone = child.kill();
    let _status = child.wait();
    done.unwrap();
}

#[test]
fn nodes_of_a_valkey_cluster_send_on_to_the_one_that_has_the_keys() {
    let options = ["--cluster-enabled", "yes", "--cluster-port", "@P1@"];
    let (one, two) = (Valkey::start(&options), Valkey::start(&options));
    let (port, bus) = (two.port().to_string(), two.expand("@P1@"));
    let met = one.cli(&["cluster", "meet", "127.0.0.1", &port, &bus]).text();
    assert!(met.contains("OK"), "{met}");
    let slot = one.cli(&["cluster", "keyslot", "bolide:{bolide}:purges"]).text();
    let slot: u32 = slot.trim().parse().unwrap();
    // The second node has the slot, the first one all others.
    let rest = [(0, slot.saturating_sub(1)), (slot + 1, 16383)];
    for (from, to) in rest {
        let (from, to) = (from.to_string(), to.to_string());
        assert!(one.cli(&["cluster", "addslotsrange", &from, &to]).text().contains("OK"));
    }
    let slot = slot.to_string();
    assert!(two.cli(&["cluster", "addslots", &slot]).text().contains("OK"));
    wait_until("the cluster to be whole", || {
        [&one, &two].iter().all(|node| node.cli(&["cluster", "info"]).text().contains("state:ok"))
    });
    purges_by(&one, "cluster valkey-cluster://127.0.0.1:@P0@ { node NODE; }");
    assert_ne!(two.cli(&["exists", "bolide:{bolide}:purges"]).text().trim(), "0");
}

#[test]
fn clusters_with_other_names_share_nothing() {
    let valkey = Valkey::default();
    let one = Node::joined(&valkey, "one", "namespace a;");
    let two = Node::joined(&valkey, "two", "namespace b;");
    let before = two.fill("/a", PAGE);
    one.purged(&["--tag", "menu", "--wait", "1"]);
    bolide_testkit::pause(300);
    assert_eq!(two.page("/a"), before);
    assert_eq!(valkey.cli(&["exists", "bolide:{a}:purges"]).text().trim(), "1");
}
