//! The calls of releases that know one path only.

use common::{ALPN, SERVER_NAME};
use quiche::{Config, Connection, ConnectionError, ConnectionId, RecvInfo, Result};
use std::net::SocketAddr;
use std::pin::Pin;

/// A connection as quiche hands it out: it must not move.
pub type Handle = Pin<Box<Connection>>;

pub fn set_protocol(config: &mut Config) -> Result<()> {
    let length = u8::try_from(ALPN.len()).expect("a short name");
    config.set_application_protos(&[&[length], ALPN].concat())
}

/// Their limits, 16 MB or more or none, are more than any path here holds.
pub fn set_most_window(_: &mut Config, _: u64) {}

pub fn connect(
    id: &ConnectionId,
    _: SocketAddr,
    peer: SocketAddr,
    config: &mut Config,
) -> Result<Handle> {
    quiche::connect(Some(SERVER_NAME), id, peer, config)
}

pub fn accept(
    id: &ConnectionId,
    _: SocketAddr,
    peer: SocketAddr,
    config: &mut Config,
) -> Result<Handle> {
    quiche::accept(id, None, peer, config)
}

pub fn recv_info(from: SocketAddr, _: SocketAddr) -> RecvInfo {
    RecvInfo { from }
}

/// The first of these releases report neither this nor the next.
pub fn own_error(_: &Connection) -> Option<&ConnectionError> {
    None
}

pub fn timed_out(_: &Connection) -> bool {
    false
}
