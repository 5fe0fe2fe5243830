//! Connects of workers to upstreams and name servers.

use std::net::SocketAddr;

use bolide_base::errno::{EAGAIN, ECONNREFUSED, ENOENT};
use bolide_io::{ConnectCall, Fd};

use super::{FIRST_SOCKET, Kernel, SimSocket, SocketGot};
use crate::dns::{SimDns, SimDnsStream};

impl Kernel {
    /// A worker connects to an upstream.
    pub(crate) fn connect_upstream(&mut self, to: &str) -> Result<ConnectCall, i32> {
        let errno = [ECONNREFUSED, ENOENT, EAGAIN][self.chance.index(3)];
        let refused = self.chance.one_in(self.fault_rates.refuse_in).then_some(errno);
        self.fault_record.refused_connects += u64::from(refused.is_some());
        if let Some(errno) = refused.filter(|_| self.chance.one_in(2)) {
            self.trace(|| format!("call to {to}: error {errno}"));
            return Err(errno);
        }
        self.next_socket += 1;
        let fd = self.next_socket;
        let label = (fd - FIRST_SOCKET) as u32;
        let inbound = 64 + self.chance.size(128 * 1024);
        let outbound = 1024 + self.chance.size(self.fault_rates.outbound_max);
        let mut socket = SimSocket::new(label, 0, inbound, outbound);
        socket.refused = refused;
        socket.dead = refused.is_some();
        self.sockets.insert(fd, socket);
        let is_connected = refused.is_none() && self.chance.one_in(2);
        self.trace(|| {
            format!("#{label} call to {to}, connected: {is_connected} ({inbound}/{outbound})")
        });
        self.violations.extend(self.dns.check_connect(to));
        if refused.is_none() && SimDns::is_server(to) {
            self.dns.streams.push(SimDnsStream::new(fd));
        } else if refused.is_none() {
            self.pending_connects.push_back((fd, to.to_owned()));
        }
        Ok(ConnectCall { fd: Fd(fd), stands: is_connected })
    }

    /// A worker opens a UDP socket to a name server.
    pub(crate) fn open_dns_socket(&mut self, worker: usize, to: SocketAddr) -> Result<Fd, i32> {
        self.next_socket += 1;
        let fd = self.next_socket;
        if self.dns.open(fd, worker, to) { Ok(Fd(fd)) } else { Err(ENOENT) }
    }

    /// A worker sends a query to a name server.
    pub(crate) fn send_dns_query(&mut self, fd: i32, bytes: &[u8]) -> Result<(), i32> {
        match self.dns.query(fd, bytes, self.nanos) {
            Ok((sent, line)) => {
                self.trace(|| line);
                sent
            }
            Err(problem) => {
                self.violations.push(problem);
                Ok(())
            }
        }
    }

    /// Delivers datagrams of name servers, and lets the servers process their TCP streams. Returns
    /// whether there was progress.
    pub fn serve_dns(&mut self) -> bool {
        let mut any = self.dns.arrive(self.nanos);
        let mut streams = std::mem::take(&mut self.dns.streams);
        streams.retain_mut(|stream| {
            if stream.rests(self.nanos).is_some() {
                return true;
            }
            let (worked, stays) = self.serve_dns_stream(stream);
            any |= worked;
            stays
        });
        self.dns.streams.append(&mut streams);
        any
    }

    fn serve_dns_stream(&mut self, stream: &mut SimDnsStream) -> (bool, bool) {
        let mut worked = false;
        match self.client_read(stream.fd, 4096) {
            SocketGot::Bytes(bytes) => {
                stream.input.extend_from_slice(&bytes);
                worked = true;
            }
            SocketGot::End | SocketGot::Reset => {
                self.client_leave(stream.fd, false);
                return (true, false);
            }
            SocketGot::Nothing => {}
        }
        match self.dns.answer_by_stream(stream, self.nanos) {
            Ok(Some(line)) => {
                self.trace(|| line);
                worked = true;
            }
            Ok(None) => {}
            Err(problem) => self.violations.push(problem),
        }
        if !stream.output.is_empty() {
            let n = self.dns.size(stream.output.len());
            let taken = self.client_write(stream.fd, &stream.output[..n]).unwrap_or(n);
            stream.output.drain(..taken);
            worked |= taken > 0;
        } else if stream.ends {
            self.client_leave(stream.fd, false);
            return (true, false);
        }
        (worked, true)
    }
}
