//! Transport parameters, TLS and knobs of both ends, before 1.2.

use common::{fail, Arguments, Role, ALPN, WINDOW_BYTES};
use tquic::{Config, CongestionControlAlgorithm, TlsConfig};

pub const KNOBS: &[&str] = &[
    "bbr_min_rtt_window_ms",
    "bbr_probe_bw_cwnd_gain",
    "bbr_probe_rtt_cwnd_gain",
    "bbr_probe_rtt_ms",
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

macro_rules! calls_of_later_releases {
    ($($name:ident($kind:ty),)*) => {
        /// One file fits many releases: where a release has a call of its own, Rust takes that one.
        #[allow(dead_code)]
        trait Later {
            $(fn $name(&mut self, _: $kind) {
                fail(concat!("this release of tquic has no ", stringify!($name)))
            })*
        }
    };
}

calls_of_later_releases! {
    enable_bbr_probe_rtt_based_on_bdp(bool),
    enable_pacing(bool),
    set_bbr_probe_bw_cwnd_gain(f64),
    set_bbr_probe_rtt_cwnd_gain(f64),
    set_bbr_probe_rtt_duration(u64),
    set_bbr_rtprop_filter_len(u64),
    set_initial_congestion_window(u64),
    set_initial_rtt(u64),
    set_min_congestion_window(u64),
    set_pacing_granularity(u64),
    set_slow_start_thresh(u64),
}

impl Later for Config {}

pub fn config(arguments: &Arguments) -> Config {
    let mut config = Config::new().unwrap_or_else(|e| cannot(&e));
    config.set_max_idle_timeout(IDLE_MS);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    if let Some(time_ms) = arguments.knobs.get("max_ack_delay_ms") {
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
    if let Some(gain) = knobs.get("bbr_probe_bw_cwnd_gain") {
        config.set_bbr_probe_bw_cwnd_gain(gain);
    }
    if let Some(gain) = knobs.get("bbr_probe_rtt_cwnd_gain") {
        config.enable_bbr_probe_rtt_based_on_bdp(true);
        config.set_bbr_probe_rtt_cwnd_gain(gain);
    }
    if let Some(on) = knobs.get("pacing") {
        config.enable_pacing(on);
    }
}

fn tls(arguments: &Arguments) -> tquic::Result<TlsConfig> {
    let protocols = vec![ALPN.to_vec()];
    match arguments.role {
        Role::Send => TlsConfig::new_client_config(protocols, false),
        Role::Recv => {
            let (cert, key) = (arguments.cert.to_string_lossy(), arguments.key.to_string_lossy());
            TlsConfig::new_server_config(&cert, &key, protocols, false)
        }
    }
}

fn cannot(e: &tquic::Error) -> ! {
    fail(format_args!("tquic cannot be set up: {e}"))
}
