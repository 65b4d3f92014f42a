//! What is above the transport: an application that sends, and one that reads.

use crate::app::{chunk, until, App, Due, UNSENT_BYTES};
pub use crate::app::Reading;
use common::HEADER_BYTES;
use quiche::Connection;
use std::time::Instant;

/// A client's bidirectional streams are four apart.
const NEXT_STREAM: u64 = 4;

/// An application, and the stream that it writes now.
pub struct Feed {
    app: App,
    stream: u64,
    header_left: usize,
    finished: bool,
    /// How much it may write before it is asked again.
    room: usize,
}

impl Feed {
    /// The application that the testbed asks for.
    pub fn given() -> Option<Self> {
        let header_left = HEADER_BYTES;
        App::given().map(|app| Feed { app, stream: 0, header_left, finished: false, room: 0 })
    }

    /// Writes what it has, unless what it wrote before is held back; when it has something again.
    ///
    /// quiche takes bytes without end while its pacer, and not its window, holds them back.
    pub fn go_on(&mut self, connection: &mut Connection, held: bool) -> Option<Instant> {
        self.room = if held { 0 } else { UNSENT_BYTES as usize };
        loop {
            match self.app.due() {
                Due::At(u64::MAX) => return None,
                Due::At(at_ns) => return Some(Instant::now() + until(at_ns)),
                Due::Bytes(most) => {
                    if !self.write(connection, most) {
                        let written = !held && self.room == 0;
                        return written.then(Instant::now); // else full for now: a packet wakes it
                    }
                }
                Due::Answer => {
                    if !self.is_answered(connection) {
                        return None;
                    }
                    self.app.answered();
                    self.stream += NEXT_STREAM;
                    (self.header_left, self.finished) = (HEADER_BYTES, false);
                }
            }
        }
    }

    /// Whether the stream took some bytes.
    fn write(&mut self, connection: &mut Connection, most: usize) -> bool {
        let bytes = if self.header_left > 0 { self.header_left } else { most.min(self.room) };
        match connection.stream_send(self.stream, chunk(bytes), false) {
            Ok(0) | Err(_) => return false,
            Ok(n) if self.header_left > 0 => self.header_left -= n,
            Ok(n) => {
                self.room -= n;
                self.app.written(n);
            }
        }
        true
    }

    fn is_answered(&mut self, connection: &mut Connection) -> bool {
        if !self.finished {
            self.finished = connection.stream_send(self.stream, b"", true).is_ok();
        }
        matches!(connection.stream_recv(self.stream, &mut [0]), Ok((_, true)))
    }
}
