//! What a connection with one path reports of itself.

use common::{Arguments, Sample};
use quiche::Connection;

pub fn sample(connection: &Connection, _: &Arguments) -> Sample {
    let stats = connection.stats();
    Sample {
        cwnd_bytes: Some(stats.cwnd as u64),
        srtt: Some(stats.rtt),
        delivery_rate_mbps: Some(stats.delivery_rate as f64 * 8.0 / 1e6),
        lost_packets: Some(stats.lost as u64),
        ..Sample::default()
    }
}
