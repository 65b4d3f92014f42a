use crate::{fail, now_ns, Arguments};
use std::fs::File;
use std::io::{BufWriter, Write};

const ROW_EVERY_NS: u64 = 100_000_000;

/// receiver.csv: the application bytes received so far, about each 100 ms and at the end.
pub struct Counter {
    rows: BufWriter<File>,
    total: u64,
    next_ns: u64,
}

impl Counter {
    pub fn create(arguments: &Arguments) -> Self {
        let path = arguments.out.join("receiver.csv");
        let file = File::create(&path)
            .unwrap_or_else(|e| fail(format_args!("cannot write {}: {e}", path.display())));
        let mut rows = BufWriter::with_capacity(1 << 20, file);
        writeln!(rows, "time_ns,bytes").expect("it fits the buffer");
        Counter { rows, total: 0, next_ns: 0 }
    }

    /// So many more bytes came.
    pub fn add(&mut self, bytes: usize) {
        self.total += bytes as u64;
        let now = now_ns();
        if now >= self.next_ns {
            self.row(now);
            self.next_ns = now + ROW_EVERY_NS;
        }
    }

    /// The last row; fails when it cannot be written.
    pub fn close(&mut self) {
        self.row(now_ns());
        if let Err(e) = self.rows.flush() {
            fail(format_args!("cannot write receiver.csv: {e}"));
        }
    }

    fn row(&mut self, now: u64) {
        if let Err(e) = writeln!(self.rows, "{now},{}", self.total) {
            fail(format_args!("cannot write receiver.csv: {e}"));
        }
    }
}
