//! TLS of both ends by rustls 0.20 and 0.21: a client that believes any certificate, a server with
//! the given one.

use common::{fail, Arguments, ALPN};
use rustls::client::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{Certificate, DigitallySignedStruct, Error, PrivateKey, ServerName};
use rustls_pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::time::SystemTime;

pub fn client() -> rustls::ClientConfig {
    let mut tls = rustls::ClientConfig::builder()
        .with_safe_defaults()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls
}

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

struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &Certificate,
        _: &[Certificate],
        _: &ServerName,
        _: &mut dyn Iterator<Item = &[u8]>,
        _: &[u8],
        _: SystemTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &Certificate,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
}
