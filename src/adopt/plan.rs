//! Selects the sockets to take over: those of the other server that the configuration names. It
//! opens nothing.

use std::collections::HashSet;

use bolide_io::listen::SocketAddress;

/// The plan for each address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SocketPlan {
    /// Sockets to take over, each once.
    pub(super) taken: Vec<SocketAddress>,
    /// Sockets to open, because the other server does not have them.
    pub(super) opened: Vec<SocketAddress>,
}

impl SocketPlan {
    /// Whether QUIC is among the sockets to take over.
    pub(super) fn has_datagrams(&self) -> bool {
        self.taken.iter().any(|one| matches!(one, SocketAddress::Udp(_)))
    }
}

/// Compares the sockets `found` in the other server with those that the configuration `wants`.
///
/// # Errors
///
/// One text per socket that cannot be taken over.
pub(super) fn settle(
    wants: &[SocketAddress],
    found: &[SocketAddress],
) -> Result<SocketPlan, Vec<String>> {
    let (mut plan, mut errors) = (SocketPlan::default(), Vec::new());
    let mut known = HashSet::new();
    for one in found.iter().filter(|one| known.insert(*one)) {
        match one {
            SocketAddress::Unix(_) => errors.push(format!(
                "{} cannot be taken over: nginx removes its name when it ends",
                shown(one)
            )),
            _ if wants.contains(one) => plan.taken.push(one.clone()),
            // Datagram sockets may also be for sending: to log servers or name servers.
            SocketAddress::Udp(_) => {}
            SocketAddress::Tcp(_) => errors.push(format!(
                "nginx listens on {}, which the configuration does not name: it is not the one \
                 that nginx runs with",
                shown(one)
            )),
        }
    }
    let mut wanted = HashSet::new();
    let missing = wants.iter().filter(|one| !known.contains(one) && wanted.insert(*one));
    plan.opened = missing.cloned().collect();
    if errors.is_empty() && plan.taken.is_empty() {
        errors.push("nginx listens on no address that the configuration names".to_owned());
    }
    if errors.is_empty() { Ok(plan) } else { Err(errors) }
}

/// An address as in the configuration.
pub(super) fn shown(address: &SocketAddress) -> String {
    match address {
        SocketAddress::Tcp(at) => at.to_string(),
        SocketAddress::Udp(at) => format!("{at} quic"),
        SocketAddress::Unix(path) => format!("unix:{}", String::from_utf8_lossy(path)),
    }
}

#[cfg(test)]
mod tests {
    use bolide_io::listen::SocketAddress;

    use super::{SocketPlan, settle};

    fn tcp(at: &str) -> SocketAddress {
        SocketAddress::Tcp(at.parse().unwrap())
    }

    fn udp(at: &str) -> SocketAddress {
        SocketAddress::Udp(at.parse().unwrap())
    }

    #[test]
    fn what_the_configuration_names_is_taken_once_and_the_rest_is_opened() {
        let wants = [tcp("0.0.0.0:80"), tcp("[::]:80"), udp("0.0.0.0:443"), tcp("1.2.3.4:9")];
        let found =
            [tcp("0.0.0.0:80"), tcp("0.0.0.0:80"), udp("0.0.0.0:443"), udp("127.0.0.1:5353")];
        let plan = settle(&wants, &found).unwrap();
        let taken = vec![tcp("0.0.0.0:80"), udp("0.0.0.0:443")];
        assert!(plan.has_datagrams());
        let opened = vec![tcp("[::]:80"), tcp("1.2.3.4:9")];
        assert_eq!(plan, SocketPlan { taken, opened });
    }

    #[test]
    fn what_cannot_be_taken_over_is_told_socket_by_socket() {
        let found = [tcp("0.0.0.0:81"), SocketAddress::Unix(b"/run/x".to_vec()), tcp("1.1.1.1:1")];
        let errors = settle(&[tcp("1.1.1.1:1")], &found).unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].starts_with("nginx listens on 0.0.0.0:81, which"), "{errors:?}");
        assert!(errors[1].starts_with("unix:/run/x cannot be taken over"), "{errors:?}");
        let none = settle(&[tcp("1.1.1.1:1")], &[udp("1.1.1.1:1")]).unwrap_err();
        assert_eq!(none, ["nginx listens on no address that the configuration names"]);
    }
}
