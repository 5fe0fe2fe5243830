//! The audience oracle against the real binary, with a few of the seeds that the simulator runs by
//! the thousand. Two servers have the same site, and one of them caches nothing. A response from
//! the cache must be one that the other server would send.
//!
//! Seeds that count requests are skipped, because both servers would have to count at the same
//! moment.

use std::sync::{Arc, Mutex};

use bolide_testkit::audiences::{
    AudienceAppRequest, AudienceSite, Oracle, Play, VisitSeen, VisitorAct, VisitorAsk,
};
use bolide_testkit::origin::{TestPeer, TestUpstream};
use bolide_testkit::server::{Home, prelude};
use bolide_testkit::{TestServer, wait_until};

use crate::BOLIDE;

/// FastCGI record types.
const PARAMS: u8 = 4;
const STDIN: u8 = 5;

/// Reads one request, HTTP or FastCGI, and responds.
fn serve(peer: &mut TestPeer, oracle: &Mutex<Oracle>) -> std::io::Result<()> {
    let first = peer.take(1)?;
    if first != [1] {
        let head = [first, peer.until(b"\r\n\r\n")?].concat();
        let head = String::from_utf8_lossy(&head);
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let _form = peer.take(length.map_or(0, |length| length.parse().unwrap()))?;
        let received = AudienceAppRequest::by_http(&head);
        let said = oracle.lock().unwrap().app.answer(&received);
        return peer.send(said.in_http(&received));
    }
    let (mut rest, mut params) = (7, Vec::new());
    loop {
        let header = peer.take(rest)?;
        let header = &header[rest - 7..];
        rest = 8;
        let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let mut content = peer.take(len + usize::from(header[5]))?;
        content.truncate(len);
        match header[0] {
            PARAMS => params.extend(content),
            STDIN if len == 0 => break,
            _ => {}
        }
    }
    let received = AudienceAppRequest::by_fastcgi(&params);
    let said = oracle.lock().unwrap().app.answer(&received);
    peer.send(said.in_fastcgi(&received))
}

/// The whole configuration; its last server identifies the process.
fn whole(http: &str, origin: &str, extra: &str, number: usize) -> String {
    let http = http
        .replace("@APP@", origin)
        .replace("@WEB@", origin)
        .replace("@PORT@", "127.0.0.1:@HTTP@")
        .replace("@ROOT@", "@DIR@/www")
        .replace("@SHELF@", "@DIR@/pages")
        .replace("@ZONES@/", "@DIR@/zone-");
    format!(
        "{}http {{ types {{ text/plain txt; }} default_type text/plain; access_log off; {extra}\n\
         {http}server {{ listen 127.0.0.1:@HTTP@; server_name number.test; return 200 {number}; }}\
         \n}}\n",
        prelude(1)
    )
}

fn start(http: &str, origin: &str, extra: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    home.write("www/htpasswd", "alice:{PLAIN}secret\nbob:{PLAIN}secret\n");
    home.write("www/try/p1", "a file");
    TestServer::start(home, &whole(http, origin, extra, 1))
}

/// Sends all requests concurrently.
fn ask(server: &TestServer, asks: &[VisitorAsk]) -> Vec<VisitSeen> {
    let mut clients: Vec<_> = asks.iter().map(|_| server.connect()).collect();
    for (client, ask) in clients.iter_mut().zip(asks) {
        client.send(ask.text());
    }
    let answers = clients.iter_mut().zip(asks).map(|(client, ask)| {
        let answer = client.answer_to(ask.method);
        let lower = |(name, value): (String, String)| (name.to_ascii_lowercase(), value);
        let body = answer.text();
        VisitSeen {
            status: answer.status,
            fields: answer.headers.into_iter().map(lower).collect(),
            body,
        }
    });
    answers.collect()
}

/// The two servers of a seed, and the application behind both.
struct Stage {
    oracle: Arc<Mutex<Oracle>>,
    origin: TestUpstream,
    keeps: TestServer,
    forgets: TestServer,
    reloads: usize,
}

/// No response fits into this cache.
const FORGETFUL: &str = "page_cache_memory 4;";

impl Stage {
    fn of(play: &Play) -> Self {
        let oracle = Arc::new(Mutex::new(Oracle::new(play)));
        let shared = Arc::clone(&oracle);
        let origin = TestUpstream::scripted(move |peer| {
            let _server_left = serve(peer, &shared);
        });
        // A disk cache would survive the server, so it must not have one.
        let bare = play.site.http.replace("page_cache_path @SHELF@;", "");
        let keeps = start(&play.site.http, &origin.address(), "");
        let forgets = start(&bare, &origin.address(), FORGETFUL);
        Self { oracle, origin, keeps, forgets, reloads: 1 }
    }

    fn act(&mut self, act: &VisitorAct, site: &AudienceSite) -> Result<(), String> {
        match act {
            VisitorAct::Ask(asks) => return self.ask(asks),
            VisitorAct::Reload => self.reload(site),
            // The simulator tests time and crashes.
            VisitorAct::Wait(_) | VisitorAct::Crash => {}
        }
        Ok(())
    }

    fn ask(&self, asks: &[VisitorAsk]) -> Result<(), String> {
        let since = self.oracle.lock().unwrap().responses_made();
        let leave = |ask: &VisitorAsk| {
            let mut ask = self.oracle.lock().unwrap().add_validators(ask);
            // The test client decodes no codings.
            ask.fields.retain(|(name, _)| *name != "Accept-Encoding");
            ask
        };
        let asks: Vec<VisitorAsk> = asks.iter().map(leave).collect();
        let [port, other] = [&self.forgets, &self.keeps].map(|at| format!(":{}", at.http().port()));
        for (asked, given) in asks.iter().zip(ask(&self.keeps, &asks)) {
            let mut wanted = ask(&self.forgets, &[asked.plain()]).remove(0);
            for (_, value) in &mut wanted.fields {
                *value = value.replace(&port, &other);
            }
            let checked = self.oracle.lock().unwrap().check(asked, since, &given, &wanted);
            checked.map_err(|problem| format!("{problem}\nto {}", asked.text()))?;
        }
        Ok(())
    }

    fn reload(&mut self, site: &AudienceSite) {
        self.reloads += 1;
        let bare = site.reloaded.replace("page_cache_path @SHELF@;", "");
        let number = self.reloads;
        for (server, http, extra) in
            [(&self.keeps, &site.reloaded, ""), (&self.forgets, &bare, FORGETFUL)]
        {
            server.rewrite(&whole(http, &self.origin.address(), extra, number));
            server.signal("HUP");
            wait_until("the new configuration", || {
                let answer = server.connect().ask("GET / HTTP/1.1\r\nHost: number.test");
                answer.text() == number.to_string()
            });
        }
    }
}

/// Runs these seeds, except those that count requests.
fn play_all(seeds: impl Iterator<Item = u64>) {
    let (mut played, mut failures) = (0, Vec::new());
    for seed in seeds {
        let play = Play::of(seed);
        if play.site.counts {
            continue;
        }
        played += 1;
        let mut stage = Stage::of(&play);
        let ended = play.acts.iter().try_for_each(|act| stage.act(act, &play.site));
        if let Err(problem) = ended {
            failures.push(format!("audiences {seed}: {problem}\n{}", play.site.http));
        }
    }
    crate::report(played, &failures);
}

#[test]
fn no_visitor_gets_a_response_for_another_one() {
    play_all(1..=8);
}

#[test]
fn no_visitor_gets_a_response_for_another_one_in_further_plays() {
    play_all(9..=16);
}

#[test]
fn pages_are_correct_after_every_internal_redirect() {
    play_all(17..=22);
}

#[test]
fn plays_that_went_wrong_once_go_right() {
    play_all([13, 23, 53, 56, 85, 113, 282, 423, 696, 1298, 1394, 1468].into_iter());
}
