//! What a connection reports of itself.

use common::{Arguments, Sample};
use quiche::Connection;

/// The state is known until slow start ends, and afterwards with those that have one other only.
pub fn sample(connection: &Connection, arguments: &Arguments) -> Sample {
    let Some(path) = connection.path_stats().next() else { return Sample::default() };
    Sample {
        cwnd_bytes: Some(path.cwnd as u64),
        srtt: Some(path.rtt),
        min_rtt: path.min_rtt,
        delivery_rate_mbps: Some(path.delivery_rate as f64 * 8.0 / 1e6),
        lost_packets: Some(path.lost as u64),
        retransmits: Some(path.retrans as u64),
        spurious_losses: Some(connection.stats().spurious_lost as u64),
        state: match (arguments.controller.as_str(), path.startup_exit) {
            ("bbr2", None) => Some("startup"),
            ("bbr2", Some(_)) => None,
            (_, None) => Some("slow_start"),
            (_, Some(_)) => Some("congestion_avoidance"),
        },
        ..Sample::default()
    }
}
