//! Transport parameters, TLS and the knob of both ends: those of the driver of quiche 0.30.

use common::{fail, Arguments, Role, ALPN, WINDOW_BYTES};
use quiche::{Config, CongestionControlAlgorithm, PROTOCOL_VERSION};

pub const KNOBS: &[&str] = &["hystart"];

const IDLE_MS: u64 = 60_000;
/// As quiche's own programs have it: what an Ethernet frame holds after IPv4 and UDP is 1472.
pub const DATAGRAM_BYTES: usize = 1350;

/// The configuration of the end that the command line names.
pub fn setup(arguments: &Arguments) -> Config {
    configured(arguments).unwrap_or_else(|e| fail(format_args!("quiche cannot be set up: {e}")))
}

fn configured(arguments: &Arguments) -> quiche::Result<Config> {
    let mut config = Config::new(PROTOCOL_VERSION)?;
    let protocols = [&[ALPN.len() as u8], ALPN].concat();
    config.set_application_protos(&protocols)?;
    config.verify_peer(false);
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM_BYTES);
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_initial_max_streams_bidi(16);
    let windows: [fn(&mut Config, u64); 3] = [
        Config::set_initial_max_data,
        Config::set_initial_max_stream_data_bidi_local,
        Config::set_initial_max_stream_data_bidi_remote,
    ];
    for set in windows {
        set(&mut config, WINDOW_BYTES);
    }
    if arguments.role == Role::Recv {
        config.load_cert_chain_from_pem_file(&arguments.cert.to_string_lossy())?;
        config.load_priv_key_from_pem_file(&arguments.key.to_string_lossy())?;
        return Ok(config);
    }
    config.set_cc_algorithm(match arguments.controller.as_str() {
        "reno" => CongestionControlAlgorithm::Reno,
        _ => CongestionControlAlgorithm::CUBIC,
    });
    if let Some(on) = arguments.knobs.get("hystart") {
        config.enable_hystart(on);
    }
    Ok(config)
}
