//! Calls of quiche that differ between its releases.

use common::{ALPN, SERVER_NAME};
use quiche::{Config, Connection, ConnectionError, ConnectionId, RecvInfo, Result};
use std::net::SocketAddr;

/// A connection as quiche hands it out.
pub type Handle = Connection;

pub fn set_protocol(config: &mut Config) -> Result<()> {
    config.set_application_protos(&[ALPN])
}

pub fn set_most_window(config: &mut Config, bytes: u64) {
    config.set_max_connection_window(bytes);
    config.set_max_stream_window(bytes);
}

pub fn connect(
    id: &ConnectionId,
    local: SocketAddr,
    peer: SocketAddr,
    config: &mut Config,
) -> Result<Handle> {
    quiche::connect(Some(SERVER_NAME), id, local, peer, config)
}

pub fn accept(
    id: &ConnectionId,
    local: SocketAddr,
    peer: SocketAddr,
    config: &mut Config,
) -> Result<Handle> {
    quiche::accept(id, None, local, peer, config)
}

pub fn recv_info(from: SocketAddr, to: SocketAddr) -> RecvInfo {
    RecvInfo { from, to }
}

/// The error for which this end closed the connection.
pub fn own_error(connection: &Connection) -> Option<&ConnectionError> {
    connection.local_error()
}

pub fn timed_out(connection: &Connection) -> bool {
    connection.is_timed_out()
}
