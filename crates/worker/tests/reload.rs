//! A worker goes over to another configuration by the same steps, however many servers that has.

#![allow(clippy::disallowed_methods, reason = "a test is its own client")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use bolide_engine::Site;
use bolide_io::epoll::Epoll;
use bolide_io::listen::{ListenSocketOptions, Listener, SocketAddress};
use bolide_worker::{
    Addresses, Generation, Handout, Inbox, Jobs, ListenSettings, LogFile, Mail, OpenLogs, Startup,
    Worker,
};

struct Counting;

thread_local! {
    /// Blocks taken and given back.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[allow(unsafe_code, reason = "an allocator that counts has to be an allocator")]
// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The text of a configuration, in the place of all files.
struct Text(String);

impl bolide_conf::ConfSource for Text {
    fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }

    fn list(&self, _: &Path) -> std::io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn resolve(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// Servers with logs, expressions, origins and groups of their own, all on one address.
fn text(servers: u32) -> String {
    let mut text = "events {} http { root /srv;".to_owned();
    for n in 0..servers {
        let _ = write!(
            text,
            "upstream php{n} {{ server unix:/run/{n}; keepalive 2; }}
            server {{
                listen 127.0.0.1:80;
                server_name www{n}.test *.www{n}.test ~^x{n}-[a-z]+$;
                access_log /logs/{n}.log combined buffer=4k;
                location / {{ try_files $uri /index.php; }}
                location /static/ {{ expires 1d; }}
                location ~ \\.php{n}$ {{ fastcgi_pass php{n}; fastcgi_param N {n}; }}
            }}"
        );
    }
    text + "}"
}

fn generation(number: u64, servers: u32, socket: &Arc<Listener>) -> Arc<Generation> {
    let options =
        bolide_conf::LoadOptions { prefix: "/conf".into(), ..bolide_conf::LoadOptions::default() };
    let outcome = bolide_conf::parse(&Text(text(servers)), Path::new("/conf/nginx.conf"), &options);
    let config = outcome.config.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let site = Site::compile(Arc::new(config)).expect("the text is right");
    let http = site.config().http.as_ref().expect("the text has such a block");
    let listens = http.listens.iter().map(|listen| ListenSettings::new(http, listen, None));
    Arc::new(Generation {
        number,
        groups: Arc::new(bolide_upstream::UpstreamGroups::new(&http.upstreams, None)),
        origin_tls: Arc::default(),
        listens: listens.collect(),
        addresses: Addresses::new(&http.listens),
        sockets: Handout::new(vec![vec![(0, socket.clone())]]),
        quic_keys: Arc::new(bolide_quic::SharedKeys::from_secret([7; 32])),
        connections_max: 100,
        site: Arc::new(site),
    })
}

fn logs(servers: u32) -> OpenLogs {
    let file = LogFile::open(b"/dev/null").expect("the system has it");
    let names = (0..servers).map(|n| format!("/logs/{n}.log"));
    let names = names.chain(["/conf/logs/error.log".to_owned()]);
    Arc::new(names.map(|name| (name.into_bytes(), file.clone())).collect())
}

/// What it takes in blocks of memory to go over from one configuration of so many servers to
/// another, and what is left of the first where its clients are quiet.
fn cost(servers: u32) -> u64 {
    let local = SocketAddress::Tcp(([127, 0, 0, 1], 0).into());
    let socket =
        Arc::new(Listener::open(&local, &ListenSocketOptions::default()).expect("a port is free"));
    let at = socket.local().expect("it is bound");
    let all: Vec<_> = (1..4).map(|number| generation(number, servers, &socket)).collect();
    let logs: Vec<_> = (1..4).map(|_| logs(servers)).collect();
    let (post, inbox) = Inbox::new().expect("a descriptor is free");
    let mut worker = Worker::new(Startup {
        number: 0,
        io: Epoll::new().expect("a descriptor is free"),
        generation: all[0].clone(),
        logs: logs[0].clone(),
        inbox,
        posts: Arc::new(vec![post.clone()]),
        jobs: Jobs::without_thread(),
        seed: 1,
        ids: (1, 1),
        clock: bolide_quic::QuicClock::starting_at(bolide_io::process::epoch()),
        disk_writer: bolide_io::wake::Bell::new().expect("a descriptor is free"),
        console: bolide_worker::ConsoleDesk::new().expect("a descriptor is free"),
    });
    let mut client = TcpStream::connect(at).expect("the socket listens");
    let request = b"GET / HTTP/1.1\r\nHost: www1.test\r\n\r\n";
    std::io::Write::write_all(&mut client, request).expect("the socket takes a little");
    let _silent = TcpStream::connect(at).expect("the socket listens");
    while worker.live() != (2, 0) || !has_answer(&client) {
        worker.turn();
    }
    let mut costs = Vec::new();
    for (next, logs) in all[1..].iter().zip(&logs[1..]) {
        post.send(Mail::Configure(next.clone(), logs.clone())).expect("a box takes every order");
        let before = COUNT.with(Cell::get);
        worker.turn();
        costs.push(COUNT.with(Cell::get) - before);
        assert_eq!(worker.live(), (2, 0));
    }
    let held: Vec<usize> = all.iter().map(Arc::strong_count).collect();
    assert!(held[..2].iter().all(|count| *count == 1), "a quiet client holds {held:?}");
    costs[1]
}

fn has_answer(client: &TcpStream) -> bool {
    client.set_nonblocking(true).expect("it is a socket");
    client.peek(&mut [0; 1]).is_ok()
}

#[test]
fn a_reload_costs_a_worker_the_same_with_two_servers_and_with_five_hundred() {
    let (few, many) = (cost(2), cost(500));
    assert_eq!(few, many);
    assert!(few > 0, "nothing was counted");
}
