//! What the drivers share: the command line, the two tables, how a program fails and ends,
//! and how a connection does.
//! The contract is in qbkit/stacks/base.py, the columns in qbkit/traces/telemetry.py.

mod arguments;
mod counter;
mod end;
mod perf;
mod samples;
mod stop;

pub use arguments::{arguments, Arguments, Knobs, Limit, Role};
pub use counter::Counter;
pub use end::{Code, End, LOST_CONNECTION};
pub use perf::{Upload, HEADER_BYTES};
pub use samples::{Sample, Samples, SAMPLE_EVERY};
pub use stop::stop_flag;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Flow control never limits a sender: the windows of both ends, in bytes.
pub const WINDOW_BYTES: u64 = 128 << 20;
/// A connection must stand within this time.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Of the perf protocol (draft-banks-quic-performance).
pub const ALPN: &[u8] = b"perf";
/// The receivers' certificate is self-signed for this name; no client verifies it.
pub const SERVER_NAME: &str = "qbkit";

/// `WINDOW_BYTES`, or what the testbed asks for where path and queue hold more (qbkit/stacks/base.py).
pub fn window_bytes() -> u64 {
    let Ok(text) = std::env::var("QBKIT_WINDOW_BYTES") else { return WINDOW_BYTES };
    text.parse().unwrap_or_else(|_| fail(format_args!("QBKIT_WINDOW_BYTES={text} is no number")))
}

/// One sentence on stderr, exit status 1.
pub fn fail(sentence: impl std::fmt::Display) -> ! {
    eprintln!("{sentence}");
    std::process::exit(1);
}

/// The sentence of a receiver that does not answer.
pub fn cannot_connect(arguments: &Arguments) -> ! {
    let limit_s = CONNECT_LIMIT.as_secs();
    fail(format_args!("cannot connect to {} within {limit_s} s", arguments.address))
}

/// CLOCK_REALTIME in nanoseconds, the time of every table.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_nanos() as u64
}
