//! The UDP socket of both ends.

use crate::endpoint::cannot;
use common::Arguments;
use s2n_quic::provider::io::tokio::{Builder, Provider as Io};
use std::net::SocketAddr;

pub fn socket(arguments: &Arguments, address: SocketAddr) -> Io {
    let segmentation = arguments.knobs.get("segmentation").unwrap_or(true);
    Builder::default()
        .with_receive_address(address)
        .and_then(|io| io.with_gso(segmentation))
        .and_then(|io| io.build())
        .unwrap_or_else(|e| cannot("open a UDP socket", &e))
}
