//! A Valkey that is none: it says what a test wants to be said.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bolide_testkit::server::Home;
use bolide_testkit::{TestApp, TestServer, wait_until};

use super::{Keeps, PAGE, conf};
use crate::BOLIDE;
use crate::explain::ask;

/// Bytes of a reply that is large.
const LARGE: usize = 1 << 20;

/// What it knows.
#[derive(Default)]
struct State {
    /// Entries of the stream; their ids are their numbers.
    entries: Vec<Vec<u8>>,
    /// How often each command was sent.
    sent: BTreeMap<String, usize>,
    /// What it says to scripts for objects, in order; then an error.
    script: Vec<Vec<u8>>,
    /// It says nothing to scripts, nor to what comes after them on their connection.
    is_silent: bool,
    /// Connections with scripts end.
    cuts: bool,
    /// A look at more bytes of entries keeps it busy for ever; 0: none does.
    bytes_max: usize,
}

/// A server that answers at once, whatever it is to wait for.
#[derive(Clone)]
struct Simulated {
    state: Arc<Mutex<State>>,
    port: u16,
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    [format!("*{}\r\n", items.len()).as_bytes(), &items.concat()].concat()
}

impl State {
    fn entry(&self, number: usize) -> Vec<u8> {
        let id = bulk(format!("{number}-0").as_bytes());
        array(&[id, array(&[bulk(b"purges"), bulk(&self.entries[number - 1])])])
    }

    /// The numbers of the entries that a command returns: `NAME KEY START END COUNT count`.
    fn looked_at(&self, words: &[Vec<u8>]) -> std::ops::RangeInclusive<usize> {
        let text = |at: usize| String::from_utf8_lossy(words.get(at).map_or(b"", |it| &**it));
        let (last, count) = (self.entries.len(), text(5).parse().unwrap_or(usize::MAX));
        match text(0).eq_ignore_ascii_case("XREVRANGE") {
            true => last.max(1)..=last,
            false => {
                let from: usize = text(2).split('-').next().unwrap().parse().unwrap();
                from.max(1)..=last.min(from.max(1).saturating_add(count - 1))
            }
        }
    }

    /// Whether a script reads more than it does in any time.
    fn is_too_much(&self, words: &[Vec<u8>]) -> bool {
        let [_, _, _, key, name, start, end, count, ..] = words else { return false };
        let plain = [name, key, start, end, count, count].map(Clone::clone);
        let looked_at = self.looked_at(&plain).map(|number| self.entries[number - 1].len());
        self.bytes_max > 0 && looked_at.sum::<usize>() > self.bytes_max
    }

    fn answer(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut name = String::from_utf8_lossy(&words[0]).to_uppercase();
        if name == "EVAL" && is_look(words) {
            // It leaves out what is too large: there is nothing of that kind.
            name = "LOOK".to_owned();
        }
        *self.sent.entry(name.clone()).or_default() += 1;
        let count = self.entries.len();
        match &*name {
            "EXISTS" => format!(":{}\r\n", usize::from(count > 0)).into_bytes(),
            "TIME" => array(&[bulk(b"1"), bulk(b"0")]),
            "XADD" => {
                self.entries.push(words.last().cloned().unwrap_or_default());
                bulk(format!("{}-0", self.entries.len()).as_bytes())
            }
            "XINFO" => array(&[
                bulk(b"last-generated-id"),
                bulk(format!("{count}-0").as_bytes()),
                bulk(b"first-entry"),
                self.entry(1),
                bulk(b"last-entry"),
                self.entry(count),
            ]),
            "XRANGE" | "XREVRANGE" => {
                let looked_at = self.looked_at(words);
                array(&looked_at.map(|number| self.entry(number)).collect::<Vec<_>>())
            }
            "XREAD" => b"*-1\r\n".to_vec(),
            "HGET" => b"$-1\r\n".to_vec(),
            "LOOK" => match &words[4..] {
                [name, start, ..] => {
                    let (key, count) = (words[3].clone(), words[7].clone());
                    self.answer(&[name.clone(), key, start.clone(), Vec::new(), Vec::new(), count])
                }
                _ => self.answer(&[b"XINFO".to_vec()]),
            },
            "EVAL" if words.get(3).is_none() => b":1\r\n".to_vec(),
            "EVAL" if !self.script.is_empty() => self.script.remove(0),
            "EVAL" => b"-ERR no scripts here\r\n".to_vec(),
            _ => b":1\r\n".to_vec(),
        }
    }
}

/// Whether a command is a script that looks at the stream.
fn is_look(words: &[Vec<u8>]) -> bool {
    words.get(3).is_some_and(|key| key.ends_with(b":purges"))
}

fn number(peer: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    peer.read_line(&mut line).ok()?;
    line.get(1..)?.trim().parse().ok()
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut peer = BufReader::new(stream);
    let (mut held, mut is_busy) = (Vec::new(), false);
    loop {
        let mut words = Vec::new();
        for _ in 0..number(&mut peer)? {
            let mut word = vec![0; number(&mut peer)? + 2];
            peer.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        let mut state = state.lock().unwrap();
        let is_script = words[0].eq_ignore_ascii_case(b"EVAL") && !is_look(&words);
        if is_script && state.cuts {
            return None;
        }
        is_busy |= is_look(&words) && state.is_too_much(&words);
        held.extend(state.answer(&words));
        let is_held = is_busy || state.is_silent && (is_script || held.len() > LARGE);
        drop(state);
        if !is_held {
            writer.write_all(&std::mem::take(&mut held)).ok()?;
        }
    }
}

impl Simulated {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { state, port }
    }

    fn sent(&self, command: &str) -> usize {
        self.state.lock().unwrap().sent.get(command).copied().unwrap_or_default()
    }

    /// A node that is connected to it.
    fn node(&self, app: &TestApp, more: &str) -> TestServer {
        let cluster = format!("cluster valkey://127.0.0.1:{} {{ node one; {more} }}", self.port);
        let node = TestServer::start(Home::new(BOLIDE), &conf(app, Keeps::InMemory, &cluster));
        wait_until("the node to be connected", || status(&node).contains("\"caught_up\":true"));
        node
    }
}

fn status(node: &TestServer) -> String {
    ask(node, &["cluster", "status", "--json"]).text()
}

#[test]
fn a_valkey_that_does_not_block_gets_no_flood_of_commands() {
    let (valkey, app) = (Simulated::start(), TestApp::start());
    let _node = valkey.node(&app, "");
    let before = valkey.sent("XREAD");
    bolide_testkit::pause(2000);
    let sent = valkey.sent("XREAD") - before;
    // It rests for a tenth of a second after each; a slow machine asks less.
    assert!((1..=21).contains(&sent), "{sent}");
}

#[test]
fn pages_are_served_whatever_valkey_replies_about_objects() {
    let (valkey, app) = (Simulated::start(), TestApp::start());
    let node = valkey.node(&app, "objects public; objects_timeout 20s; objects_lease_time 1s;");
    let said: [&[u8]; 10] = [
        b"$-1\r\n",
        b"*0\r\n",
        b":7\r\n",
        b"*1\r\n:9\r\n",
        b"*2\r\n:1\r\n$3\r\nabc\r\n",
        b"*2\r\n:1\r\n*0\r\n",
        b"*2\r\n:2\r\n:2\r\n",
        b"-MOVED 1 127.0.0.1:1\r\n",
        b"+OK\r\n",
        b"-OOM no memory\r\n",
    ];
    for (number, said) in said.iter().enumerate() {
        wait_until("Valkey is asked", || status(&node).contains("\"answering\":true"));
        let path = format!("/{number}");
        app.say(&path, PAGE);
        valkey.state.lock().unwrap().script = vec![said.to_vec()];
        let get = || node.connect().get(&path, "Connection: close\r\n").text();
        assert_eq!((get(), get()), ("run 1".to_owned(), "run 1".to_owned()), "{number}");
    }
    // One that always has an object that is of no use is not asked for ever.
    wait_until("Valkey is asked", || status(&node).contains("\"answering\":true"));
    let useless: Vec<_> =
        (0..2000).map(|n| array(&[b":1\r\n".to_vec(), bulk(format!("{n}").as_bytes())])).collect();
    valkey.state.lock().unwrap().script = useless;
    app.say("/last", PAGE);
    let reply = node.connect().get("/last", "Connection: close\r\n");
    assert_eq!(reply.text(), "run 1");
    let log = node.error_log();
    assert!(log.matches("objects are not shared").count() <= 1, "one line a minute: {log}");
}

#[test]
fn faults_of_the_connection_for_objects_drop_no_cached_pages_and_no_other_connection() {
    const MISSES: usize = 40;
    let (valkey, app) = (Simulated::start(), TestApp::start());
    let node = valkey.node(&app, "objects public; objects_timeout 5s;");
    let get = |path: &str| node.connect().get(path, "Connection: close\r\n").text();
    let is_asked = || status(&node).contains("\"answering\":true");
    wait_until("Valkey is asked", is_asked);
    let pages = ["/kept", "/cut"].map(str::to_owned).into_iter();
    pages.chain((0..MISSES).map(|it| format!("/{it}"))).for_each(|path| app.say(&path, PAGE));
    assert_eq!(get("/kept"), "run 1");
    wait_until("Valkey is asked", is_asked);
    // Large replies to many questions come at once, and late.
    {
        let mut state = valkey.state.lock().unwrap();
        state.script = vec![bulk(&vec![b'a'; LARGE]); MISSES];
        state.is_silent = true;
    }
    let before = valkey.sent("EVAL");
    std::thread::scope(|scope| {
        let get = &get;
        let gets: Vec<_> =
            (0..MISSES).map(|number| scope.spawn(move || get(&format!("/{number}")))).collect();
        wait_until("all are asked", || valkey.sent("EVAL") >= before + MISSES);
        gets.into_iter().for_each(|get| assert_eq!(get.join().unwrap(), "run 1"));
    });
    assert!(!is_asked());
    valkey.state.lock().unwrap().is_silent = false;
    wait_until("Valkey is asked again", is_asked);
    assert_eq!((get("/kept"), app.count("/kept")), ("run 1".to_owned(), 1));
    // A connection that ends is made again, by itself.
    valkey.state.lock().unwrap().cuts = true;
    assert_eq!(get("/cut"), "run 1");
    valkey.state.lock().unwrap().cuts = false;
    wait_until("Valkey is asked again", is_asked);
    assert_eq!((get("/kept"), app.count("/kept")), ("run 1".to_owned(), 1));
    let (log, status) = (node.error_log(), status(&node));
    assert!(!log.contains("goes on alone") && log.contains("objects are not shared"), "{log}");
    assert!(status.contains("\"caught_up\":true") && status.contains("\"losses\":1,"), "{status}");
}

/// A read that Valkey does not answer in time is not repeated for ever: the next one requests less,
/// and a single entry that takes too long is skipped.
#[test]
fn a_node_passes_entries_that_keep_valkey_busy() {
    let (valkey, app) = (Simulated::start(), TestApp::start());
    let node = valkey.node(&app, "reply_timeout 500ms;");
    let is_caught_up = || status(&node).contains("\"caught_up\":true");
    let get = |path: &str| node.connect().get(path, "Connection: close\r\n").text();
    let add = |entries: &[usize]| {
        let mut state = valkey.state.lock().unwrap();
        state.bytes_max = 1000;
        state.entries.extend(entries.iter().map(|&bytes| vec![b'a'; bytes]));
    };
    let losses = || {
        let status = status(&node);
        let (_, losses) = status.split_once("\"losses\":").unwrap();
        losses.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    let before = losses();
    add(&[400; 5]);
    wait_until("a late reply", || node.error_log().contains("goes on alone"));
    wait_until("the node to read each entry", || is_caught_up() && losses() > before);
    let before = losses();
    add(&[2000]);
    wait_until("the node to skip the entry", || is_caught_up() && losses() > before);
    app.say("/a", PAGE);
    assert_eq!((get("/a"), get("/a"), app.count("/a")), ("run 1".into(), "run 1".into(), 1));
}
