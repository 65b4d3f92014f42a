//! quinn 0.10: controllers that know the path's MTU.

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

macro_rules! more_methods {
    () => {
        fn on_mtu_update(&mut self, new_mtu: u16) {
            self.inner.on_mtu_update(new_mtu);
        }
    };
}
pub(crate) use more_methods;

pub fn cubic(config: Arc<CubicConfig>, now: Instant, mtu: u16) -> Cubic {
    Cubic::new(config, now, mtu)
}

pub fn new_reno(config: Arc<NewRenoConfig>, now: Instant, mtu: u16) -> NewReno {
    NewReno::new(config, now, mtu)
}

pub fn bbr(config: Arc<BbrConfig>, _: Instant, mtu: u16) -> Bbr {
    Bbr::new(config, mtu)
}

impl ControllerFactory for Chosen {
    fn build(&self, now: Instant, mtu: u16) -> Box<dyn Controller> {
        self.make(now, mtu)
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
