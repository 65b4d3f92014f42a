//! Before 0.15 a program cannot read the statistics: this one reads the qlog instead.

use common::{Sample, SERVER_NAME};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tquic::{Connection, Endpoint};

pub fn connect(endpoint: &mut Endpoint, local: SocketAddr, peer: SocketAddr) -> tquic::Result<u64> {
    endpoint.connect(local, peer, Some(SERVER_NAME), None, None, None)
}

/// What the connection's qlog told last.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Sample>>);

impl Watch {
    pub fn begin(&self, connection: &mut Connection) {
        self.0.lock().expect("one thread").lost_packets = Some(0);
        let reader = Reader { watch: self.clone(), line: Vec::new() };
        connection.set_qlog(Box::new(reader), "qbkit".into(), "sender".into());
    }

    pub fn latest(&self) -> Sample {
        *self.0.lock().expect("one thread")
    }

    fn read(&self, event: &str) {
        let mut sample = self.0.lock().expect("one thread");
        if event.contains(r#""recovery:packet_lost""#) {
            sample.lost_packets = sample.lost_packets.map(|lost| lost + 1);
        }
        if !event.contains(r#""recovery:metrics_updated""#) {
            return;
        }
        let time = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let now = Sample {
            cwnd_bytes: number(event, r#""congestion_window":"#).map(|n| n as u64),
            bytes_in_flight: number(event, r#""bytes_in_flight":"#).map(|n| n as u64),
            srtt: number(event, r#""smoothed_rtt":"#).map(time),
            min_rtt: number(event, r#""min_rtt":"#).map(time),
            pacing_rate_mbps: number(event, r#""pacing_rate":"#).map(|rate| rate / 1e6),
            ..*sample
        };
        // An event has what changed.
        sample.cwnd_bytes = now.cwnd_bytes.or(sample.cwnd_bytes);
        sample.bytes_in_flight = now.bytes_in_flight.or(sample.bytes_in_flight);
        sample.srtt = now.srtt.or(sample.srtt);
        sample.min_rtt = now.min_rtt.or(sample.min_rtt);
        sample.pacing_rate_mbps = now.pacing_rate_mbps.or(sample.pacing_rate_mbps);
    }
}

/// The number after a key.
fn number(event: &str, key: &str) -> Option<f64> {
    let (_, rest) = event.split_once(key)?;
    rest.split([',', '}']).next()?.parse().ok()
}

/// Where tquic writes its qlog.
struct Reader {
    watch: Watch,
    line: Vec<u8>,
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.watch.read(&String::from_utf8_lossy(&self.line));
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
