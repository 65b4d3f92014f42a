//! Transport parameters, TLS and knobs of both ends.

use common::{fail, Arguments, Role, ALPN, WINDOW_BYTES};
use tquic::{Config, CongestionControlAlgorithm, TlsConfig};

pub const KNOBS: &[&str] = &[
    "ack_every_packets",
    "bbr_probe_bw_cwnd_gain",
    "initial_window_packets",
    "min_window_packets",
    "pacing",
    "qlog",
];

const IDLE_MS: u64 = 60_000;
/// As tquic's own programs have it.
const DATAGRAM_BYTES: usize = 1350;

pub fn config(arguments: &Arguments) -> Config {
    let knobs = &arguments.knobs;
    let mut config = Config::new().unwrap_or_else(|e| cannot(&e));
    config.set_max_idle_timeout(IDLE_MS);
    config.set_recv_udp_payload_size(DATAGRAM_BYTES as u16);
    config.set_send_udp_payload_size(DATAGRAM_BYTES);
    config.enable_dplpmtud(false);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    if let Some(packets) = knobs.get("ack_every_packets") {
        config.set_ack_eliciting_threshold(packets);
    }
    if arguments.role == Role::Send {
        config.set_congestion_control_algorithm(match arguments.controller.as_str() {
            "cubic" => CongestionControlAlgorithm::Cubic,
            "bbr" => CongestionControlAlgorithm::Bbr,
            "bbr3" => CongestionControlAlgorithm::Bbr3,
            _ => CongestionControlAlgorithm::Copa,
        });
        if let Some(packets) = knobs.get("initial_window_packets") {
            config.set_initial_congestion_window(packets);
        }
        if let Some(packets) = knobs.get("min_window_packets") {
            config.set_min_congestion_window(packets);
        }
        if let Some(gain) = knobs.get("bbr_probe_bw_cwnd_gain") {
            config.set_bbr_probe_bw_cwnd_gain(gain);
        }
        if let Some(on) = knobs.get("pacing") {
            config.enable_pacing(on);
        }
    }
    config.set_tls_config(tls(arguments).unwrap_or_else(|e| cannot(&e)));
    config
}

fn tls(arguments: &Arguments) -> tquic::Result<TlsConfig> {
    let protocols = vec![ALPN.to_vec()];
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    match arguments.role {
        Role::Send => TlsConfig::new_client_config(protocols, false),
        Role::Recv => {
            let (cert, key) = (text(&arguments.cert), text(&arguments.key));
            TlsConfig::new_server_config(&cert, &key, protocols, false)
        }
    }
}

fn cannot(e: &tquic::Error) -> ! {
    fail(format_args!("tquic cannot be set up: {e}"))
}
