//! Changes during a run: files are replaced and rewritten, and the configuration is reloaded.

use bolide_worker::Mail;

use super::World;
use crate::oracle::ConfigEpoch;
use crate::site;
use crate::site_files::{self, FILES};

impl World {
    pub(super) fn change_file(&mut self, now: u64) {
        let path = FILES[self.chance.index(FILES.len())];
        let bytes = site_files::content(path, &mut self.chance);
        let mut kernel = self.kernel.borrow_mut();
        let kind = self.chance.below(4);
        kernel.trace(|| {
            format!("disk: {path} {}", ["vanishes", "is rewritten"][usize::from(kind > 0)])
        });
        match kind {
            0 => kernel.disk.remove(path, now),
            1 => kernel.disk.replace(path, bytes, now),
            2 => kernel.disk.rewrite(path, bytes, now),
            _ => {
                let short = bytes.len() / 3;
                kernel.disk.rewrite(path, bytes[..short].to_vec(), now);
            }
        }
    }

    pub(super) fn reload(&mut self, now: u64) {
        self.layout.number += 1;
        let (old, old_quic) = (self.layout.ports.clone(), self.layout.quic_ports.clone());
        self.layout.ports = match self.chance.below(4) {
            0 => vec![8081, 8080],
            1 => vec![8080],
            2 => vec![8082, 8080, 8081],
            _ => vec![8080, 8081],
        };
        if self.scenario.has_quic() {
            let (port_8443, has_other) = (8443, self.chance.one_in(2));
            let mut kernel = self.kernel.borrow_mut();
            kernel.has_lost_ports |= self.layout.quic_ports.len() > 1 && !has_other;
            self.layout.quic_ports =
                if has_other { vec![port_8443, 8444] } else { vec![port_8443] };
        }
        if self.scenario.has_disk_cache() {
            let has_path = !self.chance.one_in(3);
            self.layout.page_path = if has_path { site::page_path(&mut self.chance) } else { "" };
        }
        let generation =
            self.server.sockets.generation(&self.layout, &mut self.kernel.borrow_mut());
        match generation {
            Ok(generation) => {
                self.server.settle(&generation);
                let logs = self.server.sockets.logs();
                let mail = || Mail::Configure(generation.clone(), logs.clone());
                self.server.send_all(&self.kernel, "reload", mail);
                let ports = self.layout.ports.clone();
                let (number, quic_ports) = (self.layout.number, self.layout.quic_ports.clone());
                self.epochs.push(ConfigEpoch {
                    number,
                    ports,
                    quic_ports,
                    sent_at: now,
                    superseded_at: u64::MAX,
                });
                for port in old.iter().filter(|port| !self.layout.ports.contains(port)) {
                    self.server.sockets.forget(*port);
                    self.kernel.borrow_mut().close_port(*port);
                }
                // Workers keep the sockets until their last connection has closed.
                let has_gone = |port: &&u16| !self.layout.quic_ports.contains(port);
                for port in old_quic.iter().filter(has_gone) {
                    self.server.sockets.forget(*port);
                }
            }
            Err(problem) => self.violations.push(problem),
        }
    }

    /// Once all mail is read, only the current configuration is in force.
    pub(super) fn end_epochs(&mut self, now: u64) {
        if self.kernel.borrow().all_mail_is_read() {
            self.kernel.borrow_mut().logs.settle();
            let newest = self.epochs.len() - 1;
            for epoch in &mut self.epochs[..newest] {
                epoch.superseded_at = epoch.superseded_at.min(now);
            }
        }
    }
}
