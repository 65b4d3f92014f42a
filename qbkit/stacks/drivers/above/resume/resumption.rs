//! What a second connection is asked for, and what is noted of it (qbkit/spec/resume.py).

use common::{fail, Arguments, Limit};
use std::time::Duration;

/// What the testbed asks both ends for.
pub struct Resume {
    /// The server takes data before the handshake ends.
    pub early: bool,
    /// What the first connection transfers.
    first_bytes: u64,
    /// From its end to the start of the second one.
    pub pause: Duration,
}

impl Resume {
    /// None: a flow is one connection.
    pub fn asked() -> Option<Self> {
        let text = std::env::var("QBKIT_RESUME").ok()?;
        let words: Vec<&str> = text.split(' ').collect();
        let number = |i: usize| {
            words.get(i).and_then(|word| word.parse().ok()).unwrap_or_else(|| {
                fail(format_args!("QBKIT_RESUME={text} is no KIND BYTES PAUSE_NS"))
            })
        };
        let (first_bytes, pause) = (number(1), Duration::from_nanos(number(2)));
        Some(Resume { early: words[0] == "0rtt", first_bytes, pause })
    }

    /// The arguments of the first connection, which writes no log.
    pub fn first(&self, arguments: &Arguments) -> Arguments {
        let (limit, knobs) = (Limit::Bytes(self.first_bytes), arguments.knobs.without("qlog"));
        Arguments { limit, knobs, ..arguments.clone() }
    }
}

/// Writes resumed.csv, once the handshake of the second connection, which began then, is complete.
pub fn note(arguments: &Arguments, began_ns: u64, session: bool, early: bool) {
    let path = arguments.out.join("resumed.csv");
    let row = format!("{began_ns},{},{}", u8::from(session), u8::from(early));
    if let Err(e) = std::fs::write(&path, format!("time_ns,session,early\n{row}\n")) {
        fail(format_args!("cannot write {}: {e}", path.display()));
    }
}
