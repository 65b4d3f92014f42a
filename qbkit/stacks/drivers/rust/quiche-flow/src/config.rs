//! Transport parameters and TLS of both ends.

use crate::{api, tune};
use common::{fail, Arguments, Role, WINDOW_BYTES};
use quiche::{Config, PROTOCOL_VERSION};

const IDLE_MS: u64 = 60_000;
/// As quiche's own programs have it: what an Ethernet frame holds after IPv4 and UDP is 1472.
pub const DATAGRAM_BYTES: usize = 1350;

pub fn config(arguments: &Arguments) -> Config {
    let mut config = Config::new(PROTOCOL_VERSION).unwrap_or_else(|e| cannot(e));
    api::set_protocol(&mut config).unwrap_or_else(|e| cannot(e));
    config.verify_peer(false);
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM_BYTES);
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_initial_max_streams_bidi(16);
    api::set_most_window(&mut config, WINDOW_BYTES);
    match arguments.role {
        Role::Recv => load_certificate(&mut config, arguments),
        Role::Send => tune::tune(&mut config, arguments),
    }
    config
}

fn load_certificate(config: &mut Config, arguments: &Arguments) {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    if let Err(e) = config
        .load_cert_chain_from_pem_file(&text(&arguments.cert))
        .and_then(|()| config.load_priv_key_from_pem_file(&text(&arguments.key)))
    {
        fail(format_args!("cannot use the certificate {}: {e}", text(&arguments.cert)));
    }
}

pub fn cannot(e: quiche::Error) -> ! {
    fail(format_args!("quiche cannot be set up: {e}"))
}
