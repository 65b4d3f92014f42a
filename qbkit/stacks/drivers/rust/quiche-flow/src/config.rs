//! Transport parameters, TLS and knobs of both ends.

use common::{fail, Arguments, Role, ALPN, WINDOW_BYTES};
use quiche::{BbrParams, Config, CongestionControlAlgorithm, PROTOCOL_VERSION};

pub const KNOBS: &[&str] = &[
    "bbr_drain_pacing_gain",
    "bbr_probe_down_pacing_gain",
    "bbr_probe_up_pacing_gain",
    "bbr_startup_pacing_gain",
    "hystart",
    "initial_window_packets",
    "max_pacing_rate_mbps",
    "pacing",
    "qlog",
];

const IDLE_MS: u64 = 60_000;
/// As quiche's own programs have it: what an Ethernet frame holds after IPv4 and UDP is 1472.
pub const DATAGRAM_BYTES: usize = 1350;

pub fn config(arguments: &Arguments) -> Config {
    let mut config = Config::new(PROTOCOL_VERSION).unwrap_or_else(|e| cannot(e));
    config.set_application_protos(&[ALPN]).unwrap_or_else(|e| cannot(e));
    config.verify_peer(false);
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM_BYTES);
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_initial_max_streams_bidi(16);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    match arguments.role {
        Role::Recv => load_certificate(&mut config, arguments),
        Role::Send => tune(&mut config, arguments),
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

fn tune(config: &mut Config, arguments: &Arguments) {
    let knobs = &arguments.knobs;
    config.set_cc_algorithm(match arguments.controller.as_str() {
        "reno" => CongestionControlAlgorithm::Reno,
        "cubic" => CongestionControlAlgorithm::CUBIC,
        _ => CongestionControlAlgorithm::Bbr2Gcongestion,
    });
    if let Some(packets) = knobs.get("initial_window_packets") {
        config.set_initial_congestion_window_packets(packets);
    }
    if let Some(on) = knobs.get("hystart") {
        config.enable_hystart(on);
    }
    if let Some(on) = knobs.get("pacing") {
        config.enable_pacing(on);
    }
    if let Some(rate_mbps) = knobs.get("max_pacing_rate_mbps") {
        config.set_max_pacing_rate(rate_mbps); // Mbit/s, though its documentation does not say so
    }
    config.set_custom_bbr_params(BbrParams {
        startup_pacing_gain: knobs.get("bbr_startup_pacing_gain"),
        drain_pacing_gain: knobs.get("bbr_drain_pacing_gain"),
        probe_bw_probe_up_pacing_gain: knobs.get("bbr_probe_up_pacing_gain"),
        probe_bw_probe_down_pacing_gain: knobs.get("bbr_probe_down_pacing_gain"),
        ..BbrParams::default()
    });
}

fn cannot(e: quiche::Error) -> ! {
    fail(format_args!("quiche cannot be set up: {e}"))
}
