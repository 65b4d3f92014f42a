//! The UDP socket of both ends, which uses segmentation offload where the kernel has it.

use crate::endpoint::cannot;
use common::Arguments;
use s2n_quic::provider::io::tokio::{Builder, Provider as Io};
use std::net::SocketAddr;

pub fn socket(_: &Arguments, address: SocketAddr) -> Io {
    Builder::default()
        .with_receive_address(address)
        .and_then(|io| io.build())
        .unwrap_or_else(|e| cannot("open a UDP socket", &e))
}
