//! A server with one worker, its kernel and its disk, which responds to each request at once.

use std::cell::RefCell;
use std::io::Read as _;
use std::rc::Rc;

use bolide_cache::StoreLimits;
use bolide_testkit::audiences::{Oracle, VisitSeen, VisitorAsk};
use bolide_worker::Mail;

use super::upstream::AudienceUpstream;
use crate::client::h1::{ParsedResponse, parse};
use crate::fault_rates::FaultRates;
use crate::kernel::disk::STORES;
use crate::kernel::{Kernel, SocketGot};
use crate::run::server::{ServerSetup, SimServer};
use crate::run_trace::TraceMode;
use crate::scenario::AppProtocol;
use crate::sim_io::{DescriptorSource, SharedKernel};
use crate::site::Layout;
use crate::time::MILLI;

/// The port of the site.
const PORT: u16 = 8080;
/// Steps after which a request counts as endless.
const STEPS_MAX: u32 = 5_000;

/// A simulated machine with one server.
pub(super) struct AudienceMachine {
    pub(super) kernel: SharedKernel,
    descriptors: DescriptorSource,
    server: SimServer,
    layout: Layout,
    limits: StoreLimits,
    has_tree: bool,
    seed: u64,
    instance: u64,
    upstream: AudienceUpstream,
}

impl AudienceMachine {
    pub(super) fn start(
        http: &str,
        limits: StoreLimits,
        seed: u64,
        has_tree: bool,
        trace_mode: TraceMode,
    ) -> Result<Self, String> {
        let faults = FaultRates { outbound_max: 256 * 1024, ..FaultRates::default() };
        let mut kernel = Kernel::new(seed, 1, faults, trace_mode);
        for directory in STORES.iter().chain(&["/www", "/www/try"]) {
            kernel.disk.make_directory(directory);
        }
        let words = b"alice:{PLAIN}secret\nbob:{PLAIN}secret\n".to_vec();
        kernel.disk.replace("/www/htpasswd", words, 0);
        kernel.disk.replace("/www/try/p1", b"a file".to_vec(), 0);
        let layout = Layout {
            number: 1,
            ports: vec![PORT],
            workers: 1,
            connections: 64,
            gzip_level: 1,
            extra: String::new(),
            page_path: "",
            keeps_long: false,
            app_protocol: AppProtocol::FastCgi,
            quic_ports: Vec::new(),
            quic: String::new(),
            early_data: bolide_tls::EarlyData::Off,
            has_secure_ports: false,
            has_dav: false,
            has_upkeep: false,
            resolver: String::new(),
            pools: String::new(),
            own: Some(whole(http)),
        };
        let descriptors = DescriptorSource::new().map_err(|error| error.to_string())?;
        let kernel = Rc::new(RefCell::new(kernel));
        let setup = ServerSetup {
            descriptors: &descriptors,
            limits,
            layout: &layout,
            has_disk_cache: has_tree,
            seed,
            instance: 0,
        };
        let server = SimServer::start(&setup, &kernel)?;
        let upstream = AudienceUpstream::new(seed);
        Ok(Self {
            kernel,
            descriptors,
            server,
            layout,
            limits,
            has_tree,
            seed,
            instance: 0,
            upstream,
        })
    }

    /// Replaces the configuration.
    pub(super) fn reload(&mut self, http: &str) -> Result<(), String> {
        self.layout.own = Some(whole(http));
        self.layout.number += 1;
        let made = self.server.sockets.generation(&self.layout, &mut self.kernel.borrow_mut());
        let generation = made?;
        self.server.settle(&generation);
        let logs = self.server.sockets.logs();
        let mail = || Mail::Configure(generation.clone(), logs.clone());
        self.server.send_all(&self.kernel, "reload", mail);
        while self.turn() {}
        Ok(())
    }

    /// The server crashes and restarts with the files that are left.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        self.kernel.borrow_mut().kill_server();
        self.instance += 1;
        let setup = ServerSetup {
            descriptors: &self.descriptors,
            limits: self.limits,
            layout: &self.layout,
            has_disk_cache: self.has_tree,
            seed: self.seed,
            instance: self.instance,
        };
        self.upstream = AudienceUpstream::new(self.seed ^ self.instance);
        self.server = SimServer::start(&setup, &self.kernel)?;
        Ok(())
    }

    /// Advances the clock to `nanos`, unless it is later already.
    pub(super) fn catch_up(&self, nanos: u64) {
        let mut kernel = self.kernel.borrow_mut();
        kernel.nanos = kernel.nanos.max(nanos);
    }

    /// Advances the clock by `nanos`.
    pub(super) fn pass(&mut self, nanos: u64, oracle: &mut Oracle) {
        let until = self.kernel.borrow().nanos + nanos;
        self.catch_up(until);
        self.settle(oracle);
    }

    /// Sends all requests at once and returns their responses once all of them are complete. The
    /// server has no other work left when it crashes.
    pub(super) fn ask(
        &mut self,
        asks: &[VisitorAsk],
        oracle: &mut Oracle,
    ) -> Result<Vec<VisitSeen>, String> {
        self.settle(oracle);
        let mut clients: Vec<Client> = Vec::new();
        for ask in asks {
            let mut kernel = self.kernel.borrow_mut();
            let fd = kernel.connect(PORT).ok_or("no listener on the port")?;
            kernel.sockets.get_mut(fd).expect("it was just opened").inbound_max = 1 << 20;
            kernel.client_write(fd, ask.text().as_bytes());
            clients.push(Client { fd, is_head: ask.is_head(), input: Vec::new(), seen: None });
        }
        for _ in 0..STEPS_MAX {
            let mut any = self.turn();
            any |= self.upstream.step(&mut self.kernel.borrow_mut(), oracle);
            for client in clients.iter_mut().filter(|client| client.seen.is_none()) {
                any |= client.read(&mut self.kernel.borrow_mut())?;
            }
            if clients.iter().all(|client| client.seen.is_some()) {
                break;
            }
            if !any && !self.skip() {
                break;
            }
        }
        let mut seen = Vec::new();
        for (client, ask) in clients.into_iter().zip(asks) {
            self.kernel.borrow_mut().client_leave(client.fd, false);
            seen.push(client.seen.ok_or_else(|| format!("never answered: {ask:?}"))?);
        }
        Ok(seen)
    }

    /// Runs the server until it has no work left.
    fn settle(&mut self, oracle: &mut Oracle) {
        for _ in 0..STEPS_MAX {
            let any = self.turn();
            if !(any | self.upstream.step(&mut self.kernel.borrow_mut(), oracle)) {
                break;
            }
        }
    }

    /// Each worker with work takes a turn. Returns whether any worker had work.
    fn turn(&mut self) -> bool {
        let mut any = false;
        for number in 0..self.server.turners() {
            let is_due = self.kernel.borrow().is_due(number);
            if is_due {
                self.server.turn(number, &self.kernel);
                any = true;
            }
        }
        any | self.server.compute(&self.kernel)
    }

    /// Advances the clock to the server's next deadline, if it has one.
    fn skip(&self) -> bool {
        let mut kernel = self.kernel.borrow_mut();
        let Some(at) = kernel.deadline(0) else { return false };
        kernel.nanos = kernel.nanos.max(at) + MILLI;
        true
    }
}

struct Client {
    fd: i32,
    is_head: bool,
    input: Vec<u8>,
    seen: Option<VisitSeen>,
}

impl Client {
    fn read(&mut self, kernel: &mut Kernel) -> Result<bool, String> {
        let at_end = match kernel.client_read(self.fd, usize::MAX) {
            SocketGot::Nothing => return Ok(false),
            SocketGot::Bytes(bytes) => {
                self.input.extend_from_slice(&bytes);
                false
            }
            SocketGot::End | SocketGot::Reset => true,
        };
        match parse(&self.input, self.is_head, at_end) {
            ParsedResponse::Partial if at_end => Err(format!("cut: {}", self.input.escape_ascii())),
            ParsedResponse::Partial => Ok(true),
            ParsedResponse::Bad(problem) => Err(problem),
            ParsedResponse::Complete(answer, used) if answer.status < 200 => {
                self.input.drain(..used);
                Ok(true)
            }
            ParsedResponse::Complete(answer, _) => {
                let mut body = answer.body.clone();
                if answer.field("content-encoding") == Some("gzip") && !body.is_empty() {
                    let mut plain = Vec::new();
                    let read = flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain);
                    read.map_err(|error| error.to_string())?;
                    body = plain;
                }
                let body = String::from_utf8_lossy(&body).into_owned();
                let (status, fields) = (answer.status, answer.fields);
                self.seen = Some(VisitSeen { status, fields, body });
                Ok(true)
            }
        }
    }
}

/// The complete configuration.
fn whole(http: &str) -> String {
    let http = http
        .replace("@APP@", "unix:/run/app.sock")
        .replace("@WEB@", "192.0.2.7:80")
        .replace("@PORT@", &PORT.to_string())
        .replace("@ROOT@", "/www")
        .replace("@PAGES@", "/pages")
        .replace("@ZONES@/f", "/cache")
        .replace("@ZONES@/p", "/few");
    format!(
        "worker_processes 1; error_log /logs/log crit;\n\
         events {{ worker_connections 64; }}\n\
         http {{ types {{ text/plain txt; }} default_type text/plain; access_log off;\n{http}}}\n"
    )
}
