//! The controllers, each watched.

use crate::api::{self, BbrConfig};
use crate::watch::{Latest, Watched};
use common::Arguments;
use quinn::congestion::{
    Controller, ControllerFactory, Cubic, CubicConfig, NewReno, NewRenoConfig,
};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// quinn's own unit of its initial windows.
const PACKET_BYTES: u64 = 1200;

/// Builds the chosen controller for each path.
pub struct Chosen {
    controller: String,
    initial_window_bytes: Option<u64>,
    latest: Arc<Mutex<Latest>>,
}

impl Chosen {
    pub fn new(arguments: &Arguments, latest: Arc<Mutex<Latest>>) -> Self {
        let packets: Option<u64> = arguments.knobs.get("initial_window_packets");
        Chosen {
            controller: arguments.controller.clone(),
            initial_window_bytes: packets.map(|n| n * PACKET_BYTES),
            latest,
        }
    }
}

impl ControllerFactory for Chosen {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let latest = self.latest.clone();
        macro_rules! watched {
            ($config:ident, $make:expr) => {{
                let mut config = $config::default();
                if let Some(bytes) = self.initial_window_bytes {
                    config.initial_window(bytes);
                }
                Box::new(Watched::new($make(Arc::new(config)), latest))
            }};
        }
        match self.controller.as_str() {
            "cubic" => watched!(CubicConfig, |config| Cubic::new(config, now, mtu)),
            "newreno" => watched!(NewRenoConfig, |config| NewReno::new(config, now, mtu)),
            _ => watched!(BbrConfig, |config| api::bbr(config, now, mtu)),
        }
    }
}
