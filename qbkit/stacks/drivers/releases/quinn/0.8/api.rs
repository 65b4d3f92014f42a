//! quinn 0.8: a fixed MTU, connections and streams as streams of futures.

use crate::controllers::Chosen;
use common::Knobs;
use futures_util::FutureExt;
use quinn::congestion::{
    Bbr, BbrConfig, Controller, ControllerFactory, Cubic, CubicConfig, NewReno, NewRenoConfig,
};
use quinn::{ClientConfig, Connection, ConnectionError, NewConnection, SendStream, ServerConfig};
use quinn::{TransportConfig, WriteError};
use std::sync::Arc;
use std::time::Instant;

pub const KNOBS: &[&str] = &["initial_window_packets", "packet_threshold"];
/// The MTU of every path.
const MTU_BYTES: u16 = 1200;

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

pub fn set_knobs(_: &mut TransportConfig, _: &Knobs) {}

pub fn server_config(tls: rustls::ServerConfig) -> ServerConfig {
    ServerConfig::with_crypto(Arc::new(tls))
}

pub fn client_config(tls: rustls::ClientConfig, transport: TransportConfig) -> ClientConfig {
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport = Arc::new(transport);
    config
}

pub fn connection(connected: NewConnection) -> Connection {
    connected.connection
}

pub async fn finish(stream: &mut SendStream) -> Result<(), WriteError> {
    stream.finish().await
}

/// This release does not count them.
pub fn lost_packets(_: &Connection) -> Option<u64> {
    None
}

/// No stream can be opened on a connection that has ended.
pub fn close_reason(connection: &Connection) -> Option<ConnectionError> {
    connection.open_bi().now_or_never()?.err()
}
