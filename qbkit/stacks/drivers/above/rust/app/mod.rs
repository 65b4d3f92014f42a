//! What is above a transport: when a sender has data, how fast a receiver reads.
//! The environment variables are in qbkit/stacks/base.py, the applications in qbkit/spec/app.py.

mod reading;
mod schedule;

pub use reading::Reading;
pub use schedule::{App, Due};

use common::{fail, now_ns};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

/// So much an application has unsent at most, and so much it writes at once, as above TCP
/// (tcp/app.c).
pub const UNSENT_BYTES: u64 = 65536;
pub const CHUNK_BYTES: usize = 16384;

static ZEROES: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// The next bytes of so many.
pub fn chunk(most: usize) -> &'static [u8] {
    &ZEROES[..most.min(CHUNK_BYTES)]
}

/// How long it is until a time of `now_ns`.
pub fn until(at_ns: u64) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(now_ns()))
}

/// A table of times and bytes in a folder.
struct Table {
    name: &'static str,
    rows: BufWriter<File>,
}

impl Table {
    fn create(folder: PathBuf, name: &'static str) -> Self {
        let path = folder.join(name);
        let file = File::create(&path)
            .unwrap_or_else(|e| fail(format_args!("cannot write {}: {e}", path.display())));
        let mut rows = BufWriter::new(file);
        writeln!(rows, "time_ns,bytes").expect("it fits the buffer");
        Table { name, rows }
    }

    /// Written at once: a driver may end by a signal.
    fn row(&mut self, at_ns: u64, bytes: u64) {
        let written = writeln!(self.rows, "{at_ns},{bytes}").and_then(|()| self.rows.flush());
        if let Err(e) = written {
            fail(format_args!("cannot write {}: {e}", self.name));
        }
    }
}

/// The folder of the application's tables, where there is an application.
fn folder() -> Option<PathBuf> {
    std::env::var_os("QBKIT_APP_OUT").map(PathBuf::from)
}
