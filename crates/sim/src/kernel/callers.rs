//! Connects of workers: to origins, and to name servers.

use std::net::SocketAddr;

use bolide_base::errno::{EAGAIN, ECONNREFUSED, ENOENT};
use bolide_io::{ConnectCall, Fd};

use super::{FIRST_SOCKET, Kernel, SimSocket, SocketGot};
use crate::names::{NameCaller, SimNames};

impl Kernel {
    /// A worker calls an origin.
    pub(crate) fn call(&mut self, to: &str) -> Result<ConnectCall, i32> {
        let errno = [ECONNREFUSED, ENOENT, EAGAIN][self.chance.index(3)];
        let refused = self.chance.one_in(self.faults.refuse_in).then_some(errno);
        self.deeds.refusals += u64::from(refused.is_some());
        if let Some(errno) = refused.filter(|_| self.chance.one_in(2)) {
            self.tell(|| format!("call to {to}: error {errno}"));
            return Err(errno);
        }
        self.next_socket += 1;
        let fd = self.next_socket;
        let label = (fd - FIRST_SOCKET) as u32;
        let inbound = 64 + self.chance.size(128 * 1024);
        let outbound = 1024 + self.chance.size(self.faults.outbound_max);
        let mut socket = SimSocket::new(label, 0, inbound, outbound);
        socket.refused = refused;
        socket.dead = refused.is_some();
        self.sockets.insert(fd, socket);
        let stands = refused.is_none() && self.chance.one_in(2);
        self.tell(|| format!("#{label} call to {to}, stands: {stands} ({inbound}/{outbound})"));
        self.offences.extend(self.names.judge_call(to));
        if refused.is_none() && SimNames::is_server(to) {
            self.names.callers.push(NameCaller::new(fd));
        } else if refused.is_none() {
            self.callers.push_back((fd, to.to_owned()));
        }
        Ok(ConnectCall { fd: Fd(fd), stands })
    }

    /// A worker wants a socket for datagrams to a name server.
    pub(crate) fn call_names(&mut self, worker: usize, to: SocketAddr) -> Result<Fd, i32> {
        self.next_socket += 1;
        let fd = self.next_socket;
        if self.names.open(fd, worker, to) { Ok(Fd(fd)) } else { Err(ENOENT) }
    }

    /// A worker sends a datagram to a name server.
    pub(crate) fn ask_names(&mut self, fd: i32, bytes: &[u8]) -> Result<(), i32> {
        match self.names.ask(fd, bytes, self.nanos) {
            Ok((sent, told)) => {
                self.tell(|| told);
                sent
            }
            Err(problem) => {
                self.offences.push(problem);
                Ok(())
            }
        }
    }

    /// Lets datagrams of name servers arrive, and servers work on their streams; whether something
    /// was done.
    pub fn serve_names(&mut self) -> bool {
        let mut any = self.names.arrive(self.nanos);
        let mut callers = std::mem::take(&mut self.names.callers);
        callers.retain_mut(|caller| {
            if caller.rests(self.nanos).is_some() {
                return true;
            }
            let (worked, stays) = self.serve_name_stream(caller);
            any |= worked;
            stays
        });
        self.names.callers.append(&mut callers);
        any
    }

    fn serve_name_stream(&mut self, caller: &mut NameCaller) -> (bool, bool) {
        let mut worked = false;
        match self.client_read(caller.fd, 4096) {
            SocketGot::Bytes(bytes) => {
                caller.input.extend_from_slice(&bytes);
                worked = true;
            }
            SocketGot::End | SocketGot::Reset => {
                self.client_leave(caller.fd, false);
                return (true, false);
            }
            SocketGot::Nothing => {}
        }
        match self.names.answer_by_stream(caller, self.nanos) {
            Ok(Some(told)) => {
                self.tell(|| told);
                worked = true;
            }
            Ok(None) => {}
            Err(problem) => self.offences.push(problem),
        }
        if !caller.output.is_empty() {
            let n = self.names.size(caller.output.len());
            let taken = self.client_write(caller.fd, &caller.output[..n]).unwrap_or(n);
            caller.output.drain(..taken);
            worked |= taken > 0;
        } else if caller.ends {
            self.client_leave(caller.fd, false);
            return (true, false);
        }
        (worked, true)
    }
}
