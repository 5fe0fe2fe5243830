//! The manifests of `contrib/`: valid by their schemas, and what they have the server do works.

use bolide_testkit::server::{Home, TYPES, prelude};
use bolide_testkit::tools::python;
use bolide_testkit::{H1TestClient, TestApp, TestServer, Valkey, wait_until};

use crate::BOLIDE;

const KUBERNETES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/kubernetes/bolide.yaml");
const COMPOSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/compose.yaml");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contrib.py");

/// The configuration of the image with the files of the manifest, on ports of the test.
fn pod(home: &Home) -> String {
    let image = include_str!("../packaging/image/bolide.conf");
    let conf = image
        .replace("/tmp/bolide.pid", "@DIR@/logs/pid")
        .replace("error_log stderr", "error_log @DIR@/logs/error.log")
        .replace("/dev/stdout", "@DIR@/logs/access.log")
        .replace("/tmp/", "@DIR@/")
        .replace("include mime.types;", "")
        .replace("conf.d/", "@DIR@/conf.d/");
    for name in ["site.conf", "probes.conf"] {
        let file = home.dir().join("conf.d").join(name);
        let text = std::fs::read_to_string(&file).expect("the file of the ConfigMap");
        let text = text
            .replace("listen 8080", "listen 127.0.0.1:@HTTP@")
            .replace("listen 8443", "listen 127.0.0.1:@HTTPS@")
            .replace("listen 8081", "listen 127.0.0.1:@P2@")
            .replace("/etc/bolide/tls/tls.crt", "@CERT@")
            .replace("/etc/bolide/tls/tls.key", "@KEY@")
            .replace("/var/cache/bolide", "@DIR@/cache")
            .replace("/var/www/html", "@DIR@/www");
        std::fs::write(&file, home.expand(&text)).unwrap();
    }
    conf
}

#[test]
fn the_manifest_of_kubernetes_is_valid_and_its_pod_works() {
    let home = Home::new(BOLIDE);
    std::fs::create_dir(home.dir().join("conf.d")).unwrap();
    let into = home.dir().join("conf.d").display().to_string();
    let output = python(SCRIPT, ["kubernetes", KUBERNETES, &into]).succeeded().text();
    for kind in ["ConfigMap", "Deployment", "Service", "PodDisruptionBudget"] {
        assert!(output.contains(&format!("kind {kind}\n")), "{output}");
    }
    let line = |begin: &str| {
        let found = output.lines().find_map(|line| line.strip_prefix(begin));
        found.unwrap_or_else(|| panic!("{begin} in {output}")).trim().to_owned()
    };
    // Its options are those of the entry point of the image, and one more.
    let command = line("command");
    assert!(command.ends_with("daemon off; reload_on_change on;"), "{command}");
    let globals = ["daemon off;\n", "reload_on_change on;\n"].concat();
    let conf = pod(&home);
    let mut server = TestServer::start(home, &format!("{globals}{conf}"));
    let probes = server.addr(2);
    let probe =
        |path: &str| H1TestClient::connect(probes).get(path, "Connection: close\r\n").status;
    let (alive, ready) = (line("livenessProbe"), line("readinessProbe"));
    assert_eq!((probe(&alive), probe(&ready), probe("/")), (200, 200, 404));
    // What a change of the ConfigMap does.
    let site = server.home().dir().join("conf.d/site.conf");
    let text = std::fs::read_to_string(&site).unwrap();
    let changed = text.replace("root ", "location = /new { return 204; }\n root ");
    std::fs::write(&site, changed).unwrap();
    wait_until("the new configuration", || server.connect().get("/new", "").status == 204);
    // What the end of a pod does.
    let stop = line("stop").replace('\t', " ");
    let words: Vec<&str> = stop.split(' ').skip(1).collect();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| crate::explain::ask(&server, &words));
        wait_until("the pod is not ready", || probe(&ready) == 503);
        assert_eq!(probe(&alive), 200);
        let _ended = stopping.join().unwrap().succeeded();
    });
    assert_eq!(server.wait_exit().code, 0);
}

/// A node as the file of Compose has it, beside others on this machine.
fn node(name: &str, site: &str, valkey: &Valkey, app: &TestApp) -> TestServer {
    let home = Home::new(BOLIDE);
    let params = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");
    let text = site
        .replace("valkey:6379 {", &format!("127.0.0.1:{} {{ node {name};", valkey.port()))
        .replace("listen 8080", "listen 127.0.0.1:@HTTP@")
        .replace("include fastcgi.conf;", params)
        .replace("wordpress:9000", &app.address());
    TestServer::start(home, &format!("{}http {{ {TYPES} {text} }}", prelude(1)))
}

#[test]
fn the_file_of_compose_is_valid_and_its_nodes_share_purges() {
    let home = Home::new(BOLIDE);
    let into = home.dir().display().to_string();
    let output = python(SCRIPT, ["compose", COMPOSE, &into]).succeeded().text();
    for service in ["bolide-1", "bolide-2", "valkey", "wordpress", "db"] {
        assert!(output.contains(&format!("service {service}\n")), "{output}");
    }
    // Both nodes have the same volume.
    home.write("www/index.php", "");
    let site = std::fs::read_to_string(home.dir().join("site")).unwrap();
    let site = site.replace("/var/www/html", &format!("{into}/www"));
    let (valkey, app) = (Valkey::default(), TestApp::start());
    app.say("/a", "X-LiteSpeed-Cache-Control: public,max-age=3600\nX-LiteSpeed-Tag: menu");
    let nodes = ["bolide-1", "bolide-2"].map(|name| node(name, &site, &valkey, &app));
    let status = |node: &TestServer| crate::explain::ask(node, &["cluster", "status", "--json"]);
    // A node that connects drops the pages it has.
    wait_until("both nodes to be there", || {
        nodes.iter().all(|node| status(node).text().contains("\"caught_up\":true"))
    });
    let text = |node: &TestServer| node.connect().get("/a", "Connection: close\r\n").text();
    let before = nodes.each_ref().map(text);
    assert_eq!(nodes.each_ref().map(text), before, "both have the page");
    let purge = ["cache", "purge", "--tag", "menu", "--wait", "2"];
    let _told = crate::explain::ask(&nodes[0], &purge).succeeded();
    for (node, before) in nodes.iter().zip(&before) {
        assert_ne!(text(node), *before, "the page is gone on both");
    }
}
