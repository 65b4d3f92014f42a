//! What a connection reports of itself, before it counted spurious losses.

use common::{Arguments, Sample};
use quiche::Connection;

pub fn sample(connection: &Connection, _: &Arguments) -> Sample {
    let Some(path) = connection.path_stats().next() else { return Sample::default() };
    Sample {
        cwnd_bytes: Some(path.cwnd as u64),
        srtt: Some(path.rtt),
        delivery_rate_mbps: Some(path.delivery_rate as f64 * 8.0 / 1e6),
        lost_packets: Some(path.lost as u64),
        retransmits: Some(path.retrans as u64),
        ..Sample::default()
    }
}
