//! TLS of both ends by rustls 0.20 and 0.21: a client that believes any certificate, a server with
//! the given one.

#[path = "credulous.rs"]
mod credulous;

use crate::endpoint::cannot;
use common::{Arguments, ALPN};
use s2n_quic::provider::tls::rustls::{Client, Server};

pub fn client() -> Client {
    credulous::client().into()
}

pub fn server(arguments: &Arguments) -> Server {
    Server::builder()
        .with_certificate(arguments.cert.as_path(), arguments.key.as_path())
        .and_then(|tls| tls.with_application_protocols([ALPN].iter()))
        .and_then(|tls| tls.build())
        .unwrap_or_else(|e| cannot("use the certificate", &e))
}
