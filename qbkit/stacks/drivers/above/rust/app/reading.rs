use super::{folder, Table};
use common::{fail, now_ns};
use std::time::Duration;

/// So late a timer may be: a reader makes up for it.
const LATE_NS: u64 = 10_000_000;

/// The application of a receiver: it reads no faster than the testbed says, or at once.
///
/// Where the sender has an application, it writes arrived.csv: all bytes that had come, at each
/// read.
pub struct Reading {
    arrived: Option<Table>,
    total: u64,
    bytes_per_ns: Option<f64>,
    start_ns: u64,
    since_start: u64,
}

impl Reading {
    /// What the testbed asks for.
    pub fn given() -> Self {
        let bytes_per_ns = std::env::var("QBKIT_READ_MBPS").ok().map(|text| {
            let mbps: f64 = text
                .parse()
                .unwrap_or_else(|_| fail(format_args!("QBKIT_READ_MBPS={text} is no number")));
            mbps / 8e3
        });
        let arrived = folder().map(|at| Table::create(at, "arrived.csv"));
        Reading { arrived, total: 0, bytes_per_ns, start_ns: 0, since_start: 0 }
    }

    /// So many more bytes came; how long it takes before it reads again. None: no time.
    pub fn read(&mut self, bytes: usize) -> Option<Duration> {
        let now = now_ns();
        self.total += bytes as u64;
        if let Some(rows) = &mut self.arrived {
            rows.row(now, self.total);
        }
        let rate = self.bytes_per_ns?;
        let read_by = |bytes: u64| (bytes as f64 / rate) as u64;
        if now > self.start_ns + read_by(self.since_start) + LATE_NS {
            // It had nothing to read: what it could have read meanwhile is not made up for.
            (self.start_ns, self.since_start) = (now, 0);
        }
        self.since_start += bytes as u64;
        let next_ns = self.start_ns + read_by(self.since_start);
        Some(Duration::from_nanos(next_ns.saturating_sub(now)))
    }
}
