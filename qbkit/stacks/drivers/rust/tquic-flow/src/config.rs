//! Transport parameters, TLS and knobs of both ends.

use common::{fail, Arguments, Role, ALPN, WINDOW_BYTES};
use tquic::{Config, CongestionControlAlgorithm, TlsConfig};

pub const KNOBS: &[&str] = &[
    "ack_every_packets",
    "bbr_min_rtt_window_ms",
    "bbr_probe_bw_cwnd_gain",
    "bbr_probe_rtt_cwnd_gain",
    "bbr_probe_rtt_ms",
    "copa_slow_start_delta",
    "copa_steady_delta",
    "copa_use_standing_rtt",
    "initial_rtt_ms",
    "initial_ssthresh_packets",
    "initial_window_packets",
    "max_ack_delay_ms",
    "min_window_packets",
    "pacing",
    "pacing_granularity_ms",
    "qlog",
];

const IDLE_MS: u64 = 60_000;

pub fn config(arguments: &Arguments) -> Config {
    let knobs = &arguments.knobs;
    let mut config = Config::new().unwrap_or_else(|e| cannot(&e));
    config.set_max_idle_timeout(IDLE_MS);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    if let Some(packets) = knobs.get("ack_every_packets") {
        config.set_ack_eliciting_threshold(packets);
    }
    if let Some(time_ms) = knobs.get("max_ack_delay_ms") {
        config.set_max_ack_delay(time_ms);
    }
    if arguments.role == Role::Send {
        tune(&mut config, arguments);
    }
    config.set_tls_config(tls(arguments).unwrap_or_else(|e| cannot(&e)));
    config
}

/// The controller, and the knobs of a sender.
fn tune(config: &mut Config, arguments: &Arguments) {
    config.set_congestion_control_algorithm(match arguments.controller.as_str() {
        "cubic" => CongestionControlAlgorithm::Cubic,
        "bbr" => CongestionControlAlgorithm::Bbr,
        "bbr3" => CongestionControlAlgorithm::Bbr3,
        _ => CongestionControlAlgorithm::Copa,
    });
    let knobs = &arguments.knobs;
    let count = |name, set: fn(&mut Config, u64), config: &mut Config| {
        knobs.get(name).into_iter().for_each(|value| set(config, value));
    };
    count("initial_window_packets", Config::set_initial_congestion_window, config);
    count("min_window_packets", Config::set_min_congestion_window, config);
    count("initial_ssthresh_packets", Config::set_slow_start_thresh, config);
    count("initial_rtt_ms", Config::set_initial_rtt, config);
    count("pacing_granularity_ms", Config::set_pacing_granularity, config);
    count("bbr_min_rtt_window_ms", Config::set_bbr_rtprop_filter_len, config);
    count("bbr_probe_rtt_ms", Config::set_bbr_probe_rtt_duration, config);
    let factor = |name, set: fn(&mut Config, f64), config: &mut Config| {
        knobs.get(name).into_iter().for_each(|value| set(config, value));
    };
    factor("bbr_probe_bw_cwnd_gain", Config::set_bbr_probe_bw_cwnd_gain, config);
    factor("copa_slow_start_delta", Config::set_copa_slow_start_delta, config);
    factor("copa_steady_delta", Config::set_copa_steady_delta, config);
    if let Some(gain) = knobs.get("bbr_probe_rtt_cwnd_gain") {
        config.enable_bbr_probe_rtt_based_on_bdp(true);
        config.set_bbr_probe_rtt_cwnd_gain(gain);
    }
    let switch = |name, set: fn(&mut Config, bool), config: &mut Config| {
        knobs.get(name).into_iter().for_each(|value| set(config, value));
    };
    switch("copa_use_standing_rtt", Config::enable_copa_use_standing_rtt, config);
    switch("pacing", Config::enable_pacing, config);
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
