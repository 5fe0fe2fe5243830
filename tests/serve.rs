//! `bolide demo` and `bolide serve`: a site without a configuration, on free ports.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bolide_testkit::server::Home;
use bolide_testkit::tools::finish;
use bolide_testkit::{TestServer, run};

use crate::BOLIDE;

struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

#[test]
fn a_demonstration_finds_free_ports_and_prints_them() {
    // Another process listens on them.
    let _held = [8080, 8443].map(|port| TcpListener::bind(("0.0.0.0", port)));
    let home = Home::new(BOLIDE);
    let mut command = home.command(&["demo"]);
    command.env("XDG_STATE_HOME", home.dir()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(command.spawn().unwrap());
    let (sender, lines) = mpsc::channel();
    let out = child.0.stdout.take().unwrap();
    let errors = child.0.stderr.take().unwrap();
    let forward = sender.clone();
    std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).all(|line| forward.send(line).is_ok())
    });
    std::thread::spawn(move || {
        BufReader::new(errors).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });
    let mut said = Vec::new();
    let url = loop {
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
            panic!("no greeting: {said:?}");
        });
        let url =
            line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        said.push(line);
        if let Some(url) = url {
            break url;
        }
    };
    assert_ne!(url, "http://localhost:8080/");
    // Both streams are read concurrently.
    while !["8080", "8443"]
        .iter()
        .all(|port| said.iter().any(|line| line.contains(&format!("port {port} is taken"))))
    {
        let line = lines.recv_timeout(Duration::from_secs(60));
        said.push(line.unwrap_or_else(|_| panic!("nothing is said of a port: {said:?}")));
    }
    assert!(!said.iter().any(|line| line.contains("emerg")), "{said:?}");
    bolide_testkit::wait_until("the site", || run("curl", ["-s", &url]).text().contains("Bolide"));
}

/// A running site on its own ports.
struct Site {
    home: Home,
    child: Guard,
}

impl Site {
    fn start(options: &[&str]) -> Self {
        let home = Home::new(BOLIDE);
        let (http, https) = (home.port(0).to_string(), home.port(1).to_string());
        let mut args = vec!["serve", "--http", &http, "--https", &https];
        args.extend_from_slice(options);
        args.push("site");
        home.write("site/index.html", "front");
        let said = std::fs::File::create(home.dir().join("said")).unwrap();
        let mut command = home.command(&args);
        command.env("XDG_STATE_HOME", home.dir());
        command.stdout(said.try_clone().unwrap()).stderr(said);
        let mut site = Self { child: Guard(command.spawn().unwrap()), home };
        bolide_testkit::wait_until("the site", || {
            assert!(site.child.0.try_wait().unwrap().is_none(), "{}", site.home.read("said"));
            std::net::TcpStream::connect(("127.0.0.1", site.home.port(0))).is_ok()
        });
        site
    }

    /// The local addresses of its sockets in `/proc/net/NAME`, in the kernel's hexadecimal.
    fn addresses(&self, name: &str) -> Vec<String> {
        let table = std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        let ports = [0, 1].map(|n| format!("{:04X}", self.home.port(n)));
        let rows = table.lines().skip(1).filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, _, state) = (words.next()?, words.next()?, words.next()?);
            let (address, port) = local.split_once(':')?;
            // Connections have other states than listeners, and datagram sockets have none.
            let is_open = name.starts_with("udp") || state == "0A";
            (is_open && ports.iter().any(|one| one == port)).then(|| address.to_owned())
        });
        rows.collect()
    }

    fn get(&self, path: &str) -> bolide_testkit::Response {
        let mut client =
            bolide_testkit::H1TestClient::connect(([127, 0, 0, 1], self.home.port(0)).into());
        client.get(path, "Connection: close\r\n")
    }
}

#[test]
fn the_configuration_that_is_printed_is_one() {
    let home = Home::new(BOLIDE);
    home.write("site/index.html", "a page\n");
    let (http, https) = (home.port(0).to_string(), home.port(1).to_string());
    let args = ["serve", "--print-config", "--http", &http, "--https", &https, "site"];
    let mut print = home.command(&args);
    print.env("XDG_STATE_HOME", home.dir());
    let printed = finish("bolide serve", print, Duration::from_secs(30)).succeeded().text();
    let conf = home.write("elsewhere/printed.conf", &printed);
    let tested = home.run(&["-t", "-c", conf.to_str().unwrap()]);
    assert_eq!(tested.code, 0, "{tested}");
    let server = TestServer::start(home, &format!("daemon off;\n{printed}"));
    assert_eq!(server.get("/").text(), "a page\n");
}

#[test]
fn a_directory_is_served_to_this_machine_only_unless_configured() {
    let local = ["0100007F", "00000000000000000000000001000000"];
    let site = Site::start(&[]);
    for name in ["tcp", "tcp6", "udp", "udp6"] {
        let all = site.addresses(name);
        assert!(all.iter().all(|address| local.contains(&address.as_str())), "{name}: {all:?}");
    }
    assert!(!site.addresses("tcp").is_empty() && !site.addresses("udp").is_empty());
    assert_eq!(site.get("/").text(), "front");
    let open = Site::start(&["--listen", "0.0.0.0"]);
    assert!(open.addresses("tcp").iter().all(|address| address == "00000000"));
    assert!(open.addresses("tcp6").is_empty());
}

#[test]
fn a_directory_is_served_without_rights_links_of_others_hidden_files_and_sources() {
    let site = Site::start(&[]);
    let at = |name: &str| site.home.dir().join("site").join(name);
    let names = [
        ".env",
        ".git/config",
        "sub/.hidden/x.txt",
        ".well-known-evil/x.txt",
        ".well-known/.git/x.txt",
        "sub/.well-known/x.txt",
        "a.php",
        "a.PHP",
        "a.php5",
        "a.phtml",
        "a.phar",
        "a.inc",
        "a.phps",
        "a.php.bak",
        "a.php~",
        "a.php.gz",
        "run.cgi",
        "page.aspx",
        "page.jsp",
    ];
    for name in names {
        site.home.write(&format!("site/{name}"), "secret");
    }
    for name in [".well-known/security.txt", "a.php.html", "a.py", "sub/a.txt", "a.income"] {
        site.home.write(&format!("site/{name}"), "shown");
        assert_eq!(site.get(&format!("/{name}")).text(), "shown", "{name}");
    }
    for name in names {
        let reply = site.get(&format!("/{name}"));
        assert!(matches!(reply.status, 403 | 404), "{name}: {}", reply.status);
        assert!(!reply.text().contains("secret"), "{name}");
    }
    std::os::unix::fs::symlink(at("sub/a.txt"), at("own.txt")).unwrap();
    assert_eq!(site.get("/own.txt").text(), "shown");
    if !bolide_testkit::server::is_root() {
        return;
    }
    // A file of the account `nobody` behind a symbolic link of root's, and a file that only root
    // may read.
    std::fs::write(at("theirs"), "secret").unwrap();
    std::os::unix::fs::chown(at("theirs"), Some(65_534), None).unwrap();
    std::os::unix::fs::symlink(at("theirs"), at("foreign.txt")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", at("shadow.txt")).unwrap();
    for name in ["foreign.txt", "shadow.txt"] {
        let reply = site.get(&format!("/{name}"));
        assert!(matches!(reply.status, 403 | 404), "{name}: {} {}", reply.status, reply.text());
    }
    let tasks = std::fs::read_dir(format!("/proc/{}/task", site.child.0.id())).unwrap().flatten();
    for task in tasks.filter(|task| *task.file_name() != *site.child.0.id().to_string()) {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
        assert!(line.split_whitespace().skip(1).all(|uid| uid != "0"), "{status}");
    }
}

#[test]
fn a_directory_that_workers_cannot_read_is_reported_at_the_start() {
    if !bolide_testkit::server::is_root() {
        return;
    }
    let home = Home::new(BOLIDE);
    home.write("closed/site/index.html", "front");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(home.dir().join("closed"), closed).unwrap();
    let (http, https) = (home.port(0).to_string(), home.port(1).to_string());
    let args = ["serve", "--http", &http, "--https", &https, "closed/site"];
    let said = std::fs::File::create(home.dir().join("said")).unwrap();
    let mut command = home.command(&args);
    command.env("XDG_STATE_HOME", home.dir());
    command.stdout(said.try_clone().unwrap()).stderr(said);
    let _child = Guard(command.spawn().unwrap());
    let wanted =
        format!("because of the permissions of \"{}\"", home.dir().join("closed").display());
    bolide_testkit::wait_until("the warning", || home.read("said").contains(&wanted));
}

/// A name as it stands in a URL.
fn encoded(name: &str) -> String {
    name.replace('\n', "%0a")
}

#[test]
fn a_line_feed_in_a_path_evades_no_rule() {
    let private = [
        "a\nb/.git/config",
        "a\n/.env",
        ".en\nv",
        "a\nb/wp.php.old",
        "b.php\n",
        "e\n.php~",
        "e\n.phtml",
        "a\nb/f.PHP",
    ];
    let of_php = [
        "wp\n.bak",
        "wp.bak\n",
        "a\n~",
        "c.php.ol\nd",
        "f\n.Php",
        "a\n.sql",
        "a\nb/d.sql.gz",
        "key.pem\n",
        "a\nb/composer.json",
        "my-\n.lock",
        "a\nb/Dockerfile",
        "uploads/e\n.php",
        "uploads/a\nb/e.php",
        "uploads/e\n.php/info",
        "sites/a\nb/files/e.php",
        "b\nc/vendor/\n/e.php",
    ];
    for (options, further) in [(&[][..], &[][..]), (&["--php"][..], &of_php[..])] {
        let site = Site::start(options);
        let put = |name: &str, text: &str| {
            bolide_testkit::site::write(&site.home.dir().join("site").join(name), text.as_bytes());
        };
        for name in private.iter().chain(further) {
            put(name.trim_end_matches("/info"), "<?php echo 'secret';");
        }
        put("d\nd/open.txt", "open");
        assert_eq!(site.get("/d%0ad/open.txt").text(), "open", "{options:?}");
        for name in private.iter().chain(further) {
            let reply = site.get(&format!("/{}", encoded(name)));
            assert_eq!(reply.status, 404, "{options:?} {name:?}: {}", reply.text());
            assert!(!reply.text().contains("secret"), "{options:?} {name:?}");
        }
        if options.is_empty() {
            continue;
        }
        // A script is run wherever it is, and never sent.
        put("d\nd/run.php", "<?php echo 'ran ', $_SERVER['PATH_INFO'] ?? '';");
        bolide_testkit::wait_until("PHP", || site.get("/d%0ad/run.php").text() == "ran ");
        assert_eq!(site.get("/d%0ad/run.php/x%0ay").text(), "ran /x\ny");
    }
}

#[test]
fn files_of_tools_are_private_whatever_their_name_begins_with() {
    let site = Site::start(&["--php"]);
    let names = [
        "composer.lock",
        "my-app.lock",
        "my.app.lock",
        ".lock",
        "sub/a b.lock",
        "package-lock.json",
    ];
    for name in names {
        let path = site.home.dir().join("site").join(name);
        bolide_testkit::site::write(&path, b"secret");
        assert_eq!(site.get(&format!("/{}", name.replace(' ', "%20"))).status, 404, "{name}");
    }
}
