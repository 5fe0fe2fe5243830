//! The work of the thread as a test has it: by a simulated Valkey, in simulated time.

use std::sync::Arc;

use bolide_cluster::Vault;
use bolide_valkey::{Connector, ValkeySettings};

use super::setup::ExchangeSetup;
use super::{EndMark, Exchange, ExchangeBoard, ExchangeParts, LimitLife};
use crate::acme::FleetState;
use crate::cluster::clock::NodeClock;

/// The thread of one node, without the thread.
pub(in crate::cluster) struct SimulatedExchange(Exchange);

impl SimulatedExchange {
    /// One that shares secrets.
    pub(in crate::cluster) fn new(
        settings: ValkeySettings,
        (node, vault): (String, Vault),
        parts: ExchangeParts,
        clock: NodeClock,
    ) -> Self {
        let vault = Some(Arc::new(vault));
        let setup = Arc::new(ExchangeSetup { settings, node, vault, shares_limits: false });
        Self(Exchange {
            setup,
            parts,
            log: Arc::default(),
            limit_life: Arc::new(LimitLife::new()),
            board: ExchangeBoard::default(),
            clock,
            end: Arc::new(EndMark::default()),
        })
    }

    /// Shares until it is dropped.
    pub(in crate::cluster) async fn live(self, connector: Connector) {
        self.0.parts.issued.fleet().turn(FleetState::Joining);
        self.0.live(&connector).await;
    }
}
