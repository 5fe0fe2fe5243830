//! Owns: `bolide demo` and `bolide serve`: a site at once, wherever there is room for it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use testkit::run;
use testkit::server::Home;

use crate::BOLIDE;

struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

#[test]
fn a_demonstration_finds_free_ports_and_says_which() {
    // Another process listens on them.
    let _held = [8080, 8443].map(|port| TcpListener::bind(("0.0.0.0", port)));
    let home = Home::new(BOLIDE);
    let mut command = home.command(&["demo"]);
    command.env("XDG_STATE_HOME", home.dir()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(command.spawn().unwrap());
    let (sender, lines) = mpsc::channel();
    let out = child.0.stdout.take().unwrap();
    let errors = child.0.stderr.take().unwrap();
    let told = sender.clone();
    std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).all(|line| told.send(line).is_ok())
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
    // The two streams are read side by side.
    while !["8080", "8443"]
        .iter()
        .all(|port| said.iter().any(|line| line.contains(&format!("port {port} is taken"))))
    {
        let line = lines.recv_timeout(Duration::from_secs(60));
        said.push(line.unwrap_or_else(|_| panic!("nothing is said of a port: {said:?}")));
    }
    assert!(!said.iter().any(|line| line.contains("emerg")), "{said:?}");
    testkit::wait_until("the site", || run("curl", ["-s", &url]).text().contains("Bolide"));
}
