//! quinn 0.9: a fixed MTU.

use crate::controllers::Chosen;
use common::Knobs;
use quinn::congestion::{
    Bbr, BbrConfig, Controller, ControllerFactory, Cubic, CubicConfig, NewReno, NewRenoConfig,
};
use quinn::{ClientConfig, Connection, ConnectionError, SendStream, ServerConfig};
use quinn::{TransportConfig, WriteError};
use std::sync::Arc;
use std::time::Instant;

pub const KNOBS: &[&str] = &["initial_window_packets", "packet_threshold", "segmentation"];
/// The MTU of every path.
const MTU_BYTES: u16 = 1200;

macro_rules! more_methods {
    () => {};
}
pub(crate) use more_methods;

pub fn cubic(config: Arc<CubicConfig>, now: Instant, _: u16) -> Cubic {
    Cubic::new(config, now)
}

pub fn new_reno(config: Arc<NewRenoConfig>, now: Instant, _: u16) -> NewReno {
    NewReno::new(config, now)
}

pub fn bbr(config: Arc<BbrConfig>, _: Instant, _: u16) -> Bbr {
    Bbr::new(config)
}

impl ControllerFactory for Chosen {
    fn build(&self, now: Instant) -> Box<dyn Controller> {
        self.make(now, MTU_BYTES)
    }
}

pub fn set_controller(config: &mut TransportConfig, chosen: Chosen) {
    config.congestion_controller_factory(chosen);
}

pub fn set_knobs(config: &mut TransportConfig, knobs: &Knobs) {
    if let Some(on) = knobs.get("segmentation") {
        config.enable_segmentation_offload(on);
    }
}

pub fn server_config(tls: rustls::ServerConfig) -> ServerConfig {
    ServerConfig::with_crypto(Arc::new(tls))
}

pub fn client_config(tls: rustls::ClientConfig, transport: TransportConfig) -> ClientConfig {
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    config
}

pub fn connection(connected: Connection) -> Connection {
    connected
}

pub async fn finish(stream: &mut SendStream) -> Result<(), WriteError> {
    stream.finish().await
}

pub fn lost_packets(connection: &Connection) -> Option<u64> {
    Some(connection.stats().path.lost_packets)
}

pub fn close_reason(connection: &Connection) -> Option<ConnectionError> {
    connection.close_reason()
}
