//! TLS of both ends by rustls 0.20 and 0.21: a client that believes any certificate, a server with
//! the given one.

#[path = "credulous.rs"]
mod credulous;

use common::{fail, Arguments, ALPN};
pub use credulous::client;
use rustls::{Certificate, PrivateKey};
use rustls_pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};

pub fn server(arguments: &Arguments) -> rustls::ServerConfig {
    let unusable = |what: &str, e: &dyn std::fmt::Display| -> ! {
        fail(format_args!("cannot use the certificate's {what}: {e}"))
    };
    let cert =
        CertificateDer::from_pem_file(&arguments.cert).unwrap_or_else(|e| unusable("PEM", &e));
    let key = PrivateKeyDer::from_pem_file(&arguments.key).unwrap_or_else(|e| unusable("key", &e));
    let mut tls = rustls::ServerConfig::builder()
        .with_safe_defaults()
        .with_no_client_auth()
        .with_single_cert(vec![Certificate(cert.to_vec())], PrivateKey(key.secret_der().to_vec()))
        .unwrap_or_else(|e| unusable("key", &e));
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls
}
