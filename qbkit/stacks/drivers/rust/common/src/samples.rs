use crate::{fail, now_ns, Arguments};
use std::fmt::Write;
use std::time::Duration;

/// How often a driver should ask its stack for a sample.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(10);

/// What a stack tells of itself; what it does not tell stays empty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    pub cwnd_bytes: Option<u64>,
    pub bytes_in_flight: Option<u64>,
    pub ssthresh_bytes: Option<u64>,
    pub srtt: Option<Duration>,
    pub latest_rtt: Option<Duration>,
    pub min_rtt: Option<Duration>,
    pub pacing_rate_mbps: Option<f64>,
    pub delivery_rate_mbps: Option<f64>,
    pub lost_packets: Option<u64>,
    pub spurious_losses: Option<u64>,
    pub retransmits: Option<u64>,
    /// One of the words of qbkit/traces/telemetry.py.
    pub state: Option<&'static str>,
}

const HEADER: &str = "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,\
                      min_rtt_ms,pacing_rate_mbps,delivery_rate_mbps,lost_packets,\
                      spurious_losses,retransmits,state\n";

/// sender.csv, kept in memory until the end: writing costs the guest system calls.
pub struct Samples {
    rows: String,
    next_ns: u64,
}

impl Samples {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Samples { rows: HEADER.to_string(), next_ns: 0 }
    }

    /// Whether 10 ms have passed since the last row.
    pub fn due(&self) -> bool {
        now_ns() >= self.next_ns
    }

    /// A row with the present time.
    pub fn add(&mut self, s: Sample) {
        let now = now_ns();
        self.next_ns = now + SAMPLE_EVERY.as_nanos() as u64;
        write!(self.rows, "{now}").expect("memory");
        for count in [s.cwnd_bytes, s.bytes_in_flight, s.ssthresh_bytes] {
            self.cell(count);
        }
        for time in [s.srtt, s.latest_rtt, s.min_rtt] {
            self.cell(time.filter(|t| !t.is_zero()).map(|t| fixed(t.as_secs_f64() * 1e3)));
        }
        for rate in [s.pacing_rate_mbps, s.delivery_rate_mbps] {
            self.cell(rate.map(fixed));
        }
        for count in [s.lost_packets, s.spurious_losses, s.retransmits] {
            self.cell(count);
        }
        self.cell(s.state);
        self.rows.push('\n');
    }

    /// Write the file.
    pub fn write(&self, arguments: &Arguments) {
        let path = arguments.out.join("sender.csv");
        if let Err(e) = std::fs::write(&path, &self.rows) {
            fail(format_args!("cannot write {}: {e}", path.display()));
        }
    }

    fn cell(&mut self, value: Option<impl std::fmt::Display>) {
        self.rows.push(',');
        if let Some(value) = value {
            write!(self.rows, "{value}").expect("memory");
        }
    }
}

fn fixed(value: f64) -> String {
    format!("{value:.3}")
}
