//! Opens, keeps and hands over listening sockets: one per address, transport and worker.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use conf::model::{Address, Http, KeepAlive, Listen, Transport};
use io::listen::{Address as Bind, Listener, Options};
use worker::Sockets;

/// All open listening sockets by address, so that a reload keeps those that stay.
#[derive(Debug, Default)]
pub(crate) struct Open {
    by_address: HashMap<Bind, Vec<Arc<Listener>>>,
    elder: Option<Elder>,
    /// Whether a predecessor's sockets are on the ports that are opened first.
    is_heir: bool,
}

/// A predecessor that finishes what it has. Its datagram sockets are held open, so that ours keep
/// their places in the ports' groups until it is gone.
#[derive(Debug)]
struct Elder {
    pid: u32,
    numbers: quic::Numbers,
    sockets: HashMap<Bind, Vec<Listener>>,
}

impl Open {
    /// Opens what `http` listens on that is not open yet, and closes what it no longer names.
    /// Gives one list per worker, in the order of the configuration's listens.
    ///
    /// # Errors
    ///
    /// nginx's words: `bind() to 0.0.0.0:80 failed (98: Address already in use)`. Nothing that was
    /// open has been closed then.
    pub(crate) fn apply(
        &mut self,
        http: &Http,
        workers: u16,
        keys: &quic::SharedKeys,
    ) -> Result<Vec<Sockets>, String> {
        for listen in &http.listens {
            let bind = bind_of(listen);
            if !self.shares_port(&bind) && !self.is_heir && !self.has_elder() {
                refuse_foreign_group(&bind, listen).map_err(|error| failed(listen, &error))?;
            }
        }
        let mut fresh = HashMap::new();
        for listen in &http.listens {
            let bind = bind_of(listen);
            if !self.by_address.contains_key(&bind) && !fresh.contains_key(&bind) {
                let all = open_all(&bind, listen, workers)?;
                let elder = self.elder.as_ref().filter(|elder| elder.sockets.contains_key(&bind));
                steer(&bind, &all, keys, elder.map(|elder| elder.numbers));
                fresh.insert(bind.clone(), all);
            }
        }
        self.by_address.extend(fresh);
        self.is_heir = false;
        let wanted: Vec<Bind> = http.listens.iter().map(bind_of).collect();
        self.by_address.retain(|bind, _| wanted.contains(bind));
        let of_worker = |number: usize| -> Sockets {
            let pick = |bind: &Bind| {
                let all = &self.by_address[bind];
                all[number % all.len()].clone()
            };
            wanted.iter().map(pick).collect()
        };
        Ok((0..usize::from(workers)).map(of_worker).collect())
    }

    /// Whether a socket of ours is on the same port already, which a plain bind would run into.
    fn shares_port(&self, bind: &Bind) -> bool {
        self.by_address.keys().any(|open| match (open, bind) {
            (Bind::Tcp(open), Bind::Tcp(wanted)) | (Bind::Udp(open), Bind::Udp(wanted)) => {
                open.port() == wanted.port()
            }
            _ => false,
        })
    }

    /// Notes that a predecessor gave us sockets.
    pub(crate) const fn inherit(&mut self) {
        self.is_heir = true;
    }

    /// Takes over sockets that a predecessor opened.
    pub(crate) fn adopt(&mut self, bind: Bind, listener: Listener) {
        self.by_address.entry(bind).or_default().push(Arc::new(listener));
    }

    /// Notes a predecessor, and the numbers that its workers bear.
    pub(crate) fn follow(&mut self, pid: u32, numbers: quic::Numbers) {
        self.elder = Some(Elder { pid, numbers, sockets: HashMap::new() });
    }

    /// Holds a datagram socket of the predecessor open; in the order of its workers.
    pub(crate) fn hold(&mut self, bind: Bind, listener: Listener) {
        if let Some(elder) = &mut self.elder {
            elder.sockets.entry(bind).or_default().push(listener);
        }
    }

    /// Whether a predecessor may still run.
    pub(crate) const fn has_elder(&self) -> bool {
        self.elder.is_some()
    }

    /// Takes the predecessor's places in the ports' groups when it is gone.
    pub(crate) fn succeed(&mut self, keys: &quic::SharedKeys) {
        let Some(elder) = self.elder.take_if(|elder| !io::process::is_running(elder.pid)) else {
            return;
        };
        for (bind, mut sockets) in elder.sockets {
            // The kernel moves a group's last socket to the place that becomes free: from the last
            // place to the first, ours keep their order.
            while sockets.pop().is_some() {}
            if let Some(all) = self.by_address.get(&bind) {
                steer(&bind, all, keys, None);
            }
        }
    }

    /// Every open socket with its address.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Bind, &Arc<Listener>)> {
        self.by_address.iter().flat_map(|(bind, all)| all.iter().map(move |one| (bind, one)))
    }
}

fn bind_of(listen: &Listen) -> Bind {
    match (&listen.address, listen.transport) {
        (Address::Inet(at), Transport::Tcp) => Bind::Tcp(*at),
        (Address::Inet(at), Transport::Quic) => Bind::Udp(*at),
        (Address::Unix(path), _) => Bind::Unix(path.as_os_str().as_bytes().to_vec()),
    }
}

/// Makes the kernel give each datagram to the worker that it is for.
fn steer(
    bind: &Bind,
    all: &[Arc<Listener>],
    keys: &quic::SharedKeys,
    elder: Option<quic::Numbers>,
) {
    if let (Bind::Udp(_), Some(first)) = (bind, all.first()) {
        let workers = u8::try_from(all.len()).unwrap_or(u8::MAX);
        // Without the filter a datagram that reaches the wrong worker is passed on by mail.
        let _ = first.steer(&quic::bpf_program(keys, workers, elder));
    }
}

fn open_all(bind: &Bind, listen: &Listen, workers: u16) -> Result<Vec<Arc<Listener>>, String> {
    let options = Options {
        backlog: listen.options.backlog.and_then(|n| u32::try_from(n).ok()),
        receive_buffer: listen.options.rcvbuf.map(|n| n as usize),
        send_buffer: listen.options.sndbuf.map(|n| n as usize),
        ipv6_only: Some(listen.options.ipv6only),
        deferred: listen.options.deferred,
        fast_open: listen.options.fastopen.and_then(|n| u32::try_from(n).ok()),
        keep_alive: matches!(listen.options.so_keepalive, KeepAlive::On { .. }),
    };
    // A unix socket is one for all workers; Internet sockets form a group of one per worker.
    let count = if matches!(bind, Bind::Unix(_)) { 1 } else { workers };
    let mut all = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let listener = Listener::open(bind, &options).map_err(|error| failed(listen, &error))?;
        all.push(Arc::new(listener));
    }
    Ok(all)
}

/// A second server on the same port must fail as it does with nginx, although our sockets could
/// join its SO_REUSEPORT group: a plain bind first tells whether the address is taken.
fn refuse_foreign_group(bind: &Bind, listen: &Listen) -> std::io::Result<()> {
    let options = Options { ipv6_only: Some(listen.options.ipv6only), ..Options::default() };
    Listener::probe(bind, &options)
}

fn failed(listen: &Listen, error: &std::io::Error) -> String {
    format!("bind() to {} failed ({})", listen.address, describe(error))
}

/// An error as nginx writes it: `98: Address already in use`.
pub(crate) fn describe(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    format!("{}: {words}", error.raw_os_error().unwrap_or(0))
}
