//! The controllers, each watched.

use crate::api;
use crate::watch::{watched, Latest};
use common::Arguments;
use quinn::congestion::{BbrConfig, Controller, CubicConfig, NewRenoConfig};
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

    /// The controller of a path whose packets have up to `mtu` bytes.
    pub fn make(&self, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let latest = self.latest.clone();
        macro_rules! configured {
            ($config:ident, $make:path) => {{
                let mut config = $config::default();
                if let Some(bytes) = self.initial_window_bytes {
                    config.initial_window(bytes);
                }
                Box::new(watched($make(Arc::new(config), now, mtu), latest))
            }};
        }
        match self.controller.as_str() {
            "cubic" => configured!(CubicConfig, api::cubic),
            "newreno" => configured!(NewRenoConfig, api::new_reno),
            _ => configured!(BbrConfig, api::bbr),
        }
    }
}
