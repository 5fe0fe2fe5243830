//! Opens, keeps and hands over listening sockets: one per address, transport and worker.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_conf::model::{Config, Listen, ListenAddress, ListenTransport, LogLevel, TcpKeepAlive};
use bolide_io::listen::{self, ListenSocketOptions, Listener, SocketAddress as Bind};
use bolide_quic::{Admits, Elder};
use bolide_worker::GenerationSockets;

/// All open listening sockets by address, so that a reload keeps those that stay.
#[derive(Debug, Default)]
pub(crate) struct OpenSocket {
    by_address: HashMap<Bind, Vec<Arc<Listener>>>,
    /// Datagram sockets that were closed, as long as workers have connections there.
    leaving: HashMap<Bind, Vec<Weak<Listener>>>,
    predecessor: Option<Predecessor>,
    /// Addresses that no configuration names any more, while a predecessor may serve them.
    unnamed: Vec<Bind>,
    /// Whether a predecessor's sockets are on the ports that are opened first.
    is_heir: bool,
    /// Addresses that a service manager opened and keeps open; names of unix sockets stay its own.
    given: HashSet<Bind>,
}

/// Another process has an address; the error has been logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketRefused;

/// Whether all addresses are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addresses {
    Free,
    InUse,
}

/// The fate of the names of unix sockets when they are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketNames {
    /// Another process of ours listens on them.
    Keep,
    Remove,
}

/// How often an address in use is tried.
const ATTEMPTS: u32 = 5;
/// Between one try and the next.
const PAUSE: Duration = Duration::from_millis(500);

/// A predecessor that finishes its requests. Its datagram sockets are held open, so that ours keep
/// their places in the ports' groups until it is gone.
#[derive(Debug)]
struct Predecessor {
    pid: u32,
    numbers: bolide_quic::WorkerNumbers,
    sockets: HashMap<Bind, Vec<Listener>>,
}

impl Predecessor {
    const fn beside(&self, admits: Admits) -> Elder {
        Elder { numbers: self.numbers, admits }
    }
}

impl OpenSocket {
    /// Opens the listening sockets of a configuration that are not open yet, and closes those that
    /// it no longer names. Returns one list per worker, in the order of the configuration's
    /// listens. An address in use is tried again, as its owner may be ending.
    ///
    /// # Errors
    ///
    /// The error has been logged then, in nginx's words: `bind() to 0.0.0.0:80 failed (98: Address
    /// already in use)`. No open socket has been closed.
    pub(crate) fn apply(
        &mut self,
        config: &Config,
        workers: u16,
        keys: &bolide_quic::SharedKeys,
        mut write_log: impl FnMut(LogLevel, &str),
    ) -> Result<Vec<GenerationSockets>, SocketRefused> {
        let listens = config.http.as_ref().map_or(&[][..], |http| &http.listens);
        let mut attempts = 0;
        while self.probe(listens, &mut write_log)? == Addresses::InUse {
            attempts += 1;
            write_log(
                LogLevel::Notice,
                &format!("try again to bind() after {}ms", PAUSE.as_millis()),
            );
            std::thread::park_timeout(PAUSE);
            if attempts == ATTEMPTS {
                write_log(LogLevel::Emerg, "still could not bind()");
                return Err(SocketRefused);
            }
        }
        let mut fresh = HashMap::new();
        for listen in listens {
            let bind = bind_of(listen);
            if !self.by_address.contains_key(&bind) && !fresh.contains_key(&bind) {
                let left = self.leaving.get(&bind).map_or(&[][..], Vec::as_slice);
                let predecessor = self
                    .predecessor
                    .as_ref()
                    .filter(|predecessor| predecessor.sockets.contains_key(&bind));
                let elder = predecessor.map(|it| it.beside(Admits::Successor));
                let all = open_all(&bind, listen, workers, left, elder).map_err(|error| {
                    write_log(LogLevel::Emerg, &failed(listen, &error));
                    SocketRefused
                })?;
                steer(&bind, &all, keys, elder);
                fresh.insert(bind, all);
            }
        }
        self.tune(listens, &mut write_log);
        self.by_address.extend(fresh);
        self.is_heir = false;
        let wanted: Vec<Bind> = listens.iter().map(bind_of).collect();
        let is_shared = self.has_elder();
        self.leaving.retain(|_, all| all.iter().any(is_open));
        self.by_address.retain(|bind, all| {
            let stays = wanted.contains(bind);
            if !stays && matches!(bind, Bind::Udp(_)) {
                self.leaving.insert(bind.clone(), all.iter().map(Arc::downgrade).collect());
            }
            match is_shared {
                _ if stays || self.given.contains(bind) => {}
                true => self.unnamed.push(bind.clone()),
                false => remove_name(bind),
            }
            stays
        });
        let workers = usize::from(workers);
        let of_worker = |number: usize| -> GenerationSockets {
            let all = wanted.iter().enumerate();
            all.flat_map(|(at, bind)| {
                share(&self.by_address[bind], number, workers).map(move |one| (at, one.clone()))
            })
            .collect()
        };
        Ok((0..workers).map(of_worker).collect())
    }

    /// Gives open sockets the options of a configuration. Those of a service manager keep its.
    fn tune(&self, listens: &[Listen], write_log: &mut impl FnMut(LogLevel, &str)) {
        for listen in listens {
            let bind = bind_of(listen);
            let sockets = self.by_address.get(&bind).filter(|_| !self.given.contains(&bind));
            for socket in sockets.into_iter().flatten() {
                if let Err(error) = socket.tune(&bind, &options_of(listen)) {
                    let why = bolide_base::errno::describe(&error);
                    let text =
                        format!("setsockopt() of {} failed ({why}), ignored", listen.address);
                    write_log(LogLevel::Alert, &text);
                }
            }
        }
    }

    /// Whether the addresses of a configuration that are not open yet are available now.
    ///
    /// # Errors
    ///
    /// In nginx's words: one text per address that is not.
    pub(crate) fn check(&self, config: &Config) -> Result<(), Vec<String>> {
        let listens = config.http.as_ref().map_or(&[][..], |http| &http.listens);
        let mut texts = Vec::new();
        let probed = self.probe(listens, &mut |_, text| texts.push(text.to_owned()));
        if matches!(probed, Ok(Addresses::Free)) { Ok(()) } else { Err(texts) }
    }

    /// Reports which of the addresses that are not open yet are in use.
    fn probe(
        &self,
        listens: &[Listen],
        write_log: &mut impl FnMut(LogLevel, &str),
    ) -> Result<Addresses, SocketRefused> {
        let mut found = Addresses::Free;
        for listen in listens {
            let bind = bind_of(listen);
            let is_known = self.by_address.contains_key(&bind) || self.shares_port(&bind);
            if is_known || self.is_heir || self.has_elder() {
                continue;
            }
            // Our sockets could join another server's SO_REUSEPORT group; a plain bind cannot.
            if let Err(error) = Listener::probe(&bind, &options_of(listen)) {
                write_log(LogLevel::Emerg, &failed(listen, &error));
                if error.kind() != std::io::ErrorKind::AddrInUse {
                    return Err(SocketRefused);
                }
                found = Addresses::InUse;
            }
        }
        Ok(found)
    }

    /// Closes every address. A process that still reads from a socket keeps it.
    pub(crate) fn close(&mut self, names: SocketNames) {
        if names == SocketNames::Remove {
            let ours = self.by_address.keys().filter(|bind| !self.given.contains(*bind));
            ours.for_each(remove_name);
        }
        // Behind those of a living predecessor, the datagram sockets keep their places.
        let stays = |bind: &Bind| self.predecessor.is_some() && matches!(bind, Bind::Udp(_));
        self.by_address.retain(|bind, _| stays(bind));
    }

    /// Whether one of our sockets uses the same port already, so that a plain bind would fail.
    fn shares_port(&self, bind: &Bind) -> bool {
        let leaving = self.leaving.iter().filter(|(_, all)| all.iter().any(is_open));
        let mut ours = self.by_address.keys().chain(leaving.map(|(open, _)| open));
        ours.any(|open| match (open, bind) {
            (Bind::Tcp(open), Bind::Tcp(wanted)) | (Bind::Udp(open), Bind::Udp(wanted)) => {
                open.port() == wanted.port()
            }
            _ => false,
        })
    }

    /// Records that a predecessor passed us sockets.
    pub(crate) const fn inherit(&mut self) {
        self.is_heir = true;
    }

    /// Takes over sockets that a predecessor opened.
    pub(crate) fn adopt(&mut self, bind: Bind, listener: Listener) {
        self.by_address.entry(bind).or_default().push(Arc::new(listener));
    }

    /// Takes over a socket that a service manager opened. All workers accept from it.
    pub(crate) fn accept_given(&mut self, bind: Bind, listener: Listener) {
        self.given.insert(bind.clone());
        self.adopt(bind, listener);
    }

    /// Whether a service manager opened this address.
    pub(crate) fn is_given(&self, bind: &Bind) -> bool {
        self.given.contains(bind)
    }

    /// Records a predecessor, and the numbers of its workers.
    pub(crate) fn follow(&mut self, pid: u32, numbers: bolide_quic::WorkerNumbers) {
        self.predecessor = Some(Predecessor { pid, numbers, sockets: HashMap::new() });
    }

    /// Holds a datagram socket of the predecessor open; in the order of its workers.
    pub(crate) fn hold(&mut self, bind: Bind, listener: Listener) {
        if let Some(predecessor) = &mut self.predecessor {
            predecessor.sockets.entry(bind).or_default().push(listener);
        }
    }

    /// Whether a predecessor may still run.
    pub(crate) const fn has_elder(&self) -> bool {
        self.predecessor.is_some()
    }

    /// Takes the predecessor's places in the ports' groups when it is gone.
    pub(crate) fn succeed(&mut self, keys: &bolide_quic::SharedKeys) {
        let Some(predecessor) = self
            .predecessor
            .take_if(|predecessor| !bolide_io::process::is_running(predecessor.pid))
        else {
            return;
        };
        let unnamed = std::mem::take(&mut self.unnamed).into_iter();
        unnamed
            .filter(|bind| !self.by_address.contains_key(bind))
            .for_each(|bind| remove_name(&bind));
        for (bind, mut sockets) in predecessor.sockets {
            // The kernel moves a group's last socket to the place that becomes free: from the last
            // place to the first, ours keep their order.
            while sockets.pop().is_some() {}
            if let Some(all) = self.by_address.get(&bind) {
                steer(&bind, all, keys, None);
            }
        }
    }

    /// Lets a predecessor, if there is one, have first datagrams because this process accepts no
    /// more connections, or takes them again.
    pub(crate) fn steer_admission(&self, keys: &bolide_quic::SharedKeys, admits: Admits) {
        let Some(predecessor) = &self.predecessor else { return };
        for bind in predecessor.sockets.keys() {
            if let Some(all) = self.by_address.get(bind) {
                steer(bind, all, keys, Some(predecessor.beside(admits)));
            }
        }
    }

    /// Every open socket with its address.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Bind, &Arc<Listener>)> {
        self.by_address.iter().flat_map(|(bind, all)| all.iter().map(move |one| (bind, one)))
    }
}

/// The sockets of one address that a worker serves: one, or more if a predecessor with more workers
/// opened them, since packets of an unserved socket would be lost.
fn share<T>(all: &[T], number: usize, workers: usize) -> impl Iterator<Item = &T> {
    let own = number.checked_rem(all.len()).into_iter();
    let left_over = (workers.max(1)..all.len()).filter(move |at| at % workers == number);
    own.chain(left_over).map(|at| &all[at])
}

fn remove_name(bind: &Bind) {
    if let Bind::Unix(path) = bind {
        // A file that was removed already needs no removal.
        let _ = bolide_io::file::remove(std::ffi::OsStr::from_bytes(path).as_ref());
    }
}

pub(crate) fn bind_of(listen: &Listen) -> Bind {
    match (&listen.address, listen.transport) {
        (ListenAddress::Inet(at), ListenTransport::Tcp) => Bind::Tcp(*at),
        (ListenAddress::Inet(at), ListenTransport::Quic) => Bind::Udp(*at),
        (ListenAddress::Unix(path), _) => Bind::Unix(path.as_os_str().as_bytes().to_vec()),
    }
}

/// Makes the kernel pass each datagram to the right worker.
fn steer(
    bind: &Bind,
    all: &[Arc<Listener>],
    keys: &bolide_quic::SharedKeys,
    predecessor: Option<Elder>,
) {
    if let (Bind::Udp(_), Some(first)) = (bind, all.first()) {
        let workers = u8::try_from(all.len()).unwrap_or(u8::MAX);
        // Without the filter a datagram that reaches the wrong worker is forwarded by mail.
        let _ = first.steer(&bolide_quic::bpf_program(keys, workers, predecessor));
    }
}

/// How a socket is made.
pub(crate) fn options_of(of: &Listen) -> ListenSocketOptions {
    let options = &of.options;
    ListenSocketOptions {
        // A negative value means as much as the kernel allows.
        backlog: options.backlog.map(|n| u32::try_from(n).unwrap_or(i32::MAX as u32)),
        receive_buffer: options.rcvbuf.map(|n| n as usize),
        send_buffer: options.sndbuf.map(|n| n as usize),
        ipv6_only: Some(options.ipv6only),
        deferred: options.deferred,
        fast_open: options.fastopen.and_then(|n| u32::try_from(n).ok()),
        keep_alive: match options.so_keepalive {
            TcpKeepAlive::Unset => None,
            TcpKeepAlive::Off => Some(listen::SocketKeepAlive::Off),
            TcpKeepAlive::On { idle, interval, count } => {
                let whole = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
                let (idle, interval) = (idle.map(whole), interval.map(whole));
                Some(listen::SocketKeepAlive::On { idle, interval, count })
            }
        },
    }
}

/// Whether a worker still has it.
fn is_open(socket: &Weak<Listener>) -> bool {
    socket.strong_count() > 0
}

/// Opens the sockets of an address, one for each worker; those that workers have left there are
/// reused. Behind those of `elder` the places are turned, see [`Elder::turn`].
fn open_all(
    bind: &Bind,
    listen: &Listen,
    workers: u16,
    left: &[Weak<Listener>],
    elder: Option<Elder>,
) -> std::io::Result<Vec<Arc<Listener>>> {
    let options = options_of(listen);
    // All workers share one unix socket; Internet sockets form a group of one per worker.
    let count = if matches!(bind, Bind::Unix(_)) { 1 } else { workers };
    let count = usize::from(count);
    let turn = elder.map_or(0, |elder| elder.turn(workers as u8) as usize);
    let mut all = Vec::with_capacity(count);
    // A group has its sockets in the order in which they are opened.
    for place in 0..count {
        let number = (place + count - turn) % count;
        all.push(match left.get(number).and_then(Weak::upgrade) {
            Some(socket) => socket,
            None => Arc::new(Listener::open(bind, &options)?),
        });
    }
    all.rotate_left(turn);
    Ok(all)
}

pub(crate) fn failed(listen: &Listen, error: &std::io::Error) -> String {
    format!("bind() to {} failed ({})", listen.address, bolide_base::errno::describe(error))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn every_worker_has_a_socket_and_every_socket_a_worker() {
        for workers in 1..9 {
            for sockets in 1..9 {
                let all: Vec<usize> = (0..sockets).collect();
                let mut watched = Vec::new();
                for number in 0..workers {
                    let own: Vec<usize> = share(&all, number, workers).copied().collect();
                    assert!(!own.is_empty(), "{number} of {workers}, {sockets} sockets");
                    watched.extend(own);
                }
                watched.sort_unstable();
                watched.dedup();
                assert_eq!(watched, all, "{workers} workers");
            }
        }
    }
}
