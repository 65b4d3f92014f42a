//! What is above the transport: an application that sends, and one that reads.

use crate::app::{chunk, until, App, Due, UNSENT_BYTES};
pub use crate::app::{Reading, CHUNK_BYTES};
use crate::link::Link;
use bytes::Bytes;
use common::HEADER_BYTES;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tquic::Connection;

/// An application, and the stream that it writes now.
pub struct Feed {
    app: App,
    stream: Option<u64>,
    finished: bool,
    unacknowledged: Arc<AtomicU64>,
}

impl Feed {
    /// The application that the testbed asks for.
    pub fn given() -> Option<Self> {
        let unacknowledged = Arc::default();
        App::given().map(|app| Feed { app, stream: None, finished: false, unacknowledged })
    }

    /// Writes what it has, as far as it may; how long it is until it has something again.
    pub fn go_on(
        &mut self,
        connection: &mut Connection,
        answered: &mut bool,
        cwnd_bytes: u64,
    ) -> Option<Duration> {
        loop {
            let done = match self.app.due() {
                Due::At(at_ns) => return Some(until(at_ns)),
                Due::Bytes(most) => self.write(connection, most, cwnd_bytes),
                Due::Answer => self.is_answered(connection, answered),
            };
            done?; // an acknowledgement or an answer wakes it
        }
    }

    /// Some, if the stream took bytes. It would take as many as flow control allows, so what waits
    /// behind the controller's window is limited here.
    fn write(&mut self, connection: &mut Connection, most: usize, cwnd_bytes: u64) -> Option<()> {
        if self.unacknowledged.load(Relaxed) >= cwnd_bytes + UNSENT_BYTES {
            return None;
        }
        let stream = match self.stream {
            Some(stream) => stream,
            None => self.open(connection)?,
        };
        let bytes = Kept::of(chunk(most), &self.unacknowledged);
        let written = connection.stream_write(stream, bytes, false).ok()?;
        self.app.written(written);
        Some(())
    }

    /// None, if the receiver allows no stream now.
    fn open(&mut self, connection: &mut Connection) -> Option<u64> {
        let stream = connection.stream_bidi_new(0, false).ok()?;
        let header = Bytes::from_static(&[0; HEADER_BYTES]);
        connection.stream_write(stream, header, false).ok()?;
        self.stream = Some(stream);
        Some(stream)
    }

    fn is_answered(&mut self, connection: &mut Connection, answered: &mut bool) -> Option<()> {
        if !self.finished {
            connection.stream_write(self.stream?, Bytes::new(), true).ok()?;
            self.finished = true;
        }
        if !std::mem::take(answered) {
            return None;
        }
        (self.stream, self.finished) = (None, false);
        self.app.answered();
        Some(())
    }
}

/// Bytes that are counted while the stack keeps them, which is until they are acknowledged.
struct Kept {
    bytes: &'static [u8],
    count: Arc<AtomicU64>,
}

impl Kept {
    fn of(bytes: &'static [u8], count: &Arc<AtomicU64>) -> Bytes {
        count.fetch_add(bytes.len() as u64, Relaxed);
        Bytes::from_owner(Kept { bytes, count: count.clone() })
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.count.fetch_sub(self.bytes.len() as u64, Relaxed);
    }
}

/// The stream that a slow reader has left, and when it comes back to it.
#[derive(Clone, Default)]
pub struct Pause(Rc<RefCell<Option<(u64, u64, Instant)>>>);

impl Pause {
    /// Begins; the stack calls no more for the stream.
    pub fn begin(&self, connection: &mut Connection, stream: u64, length: Duration) {
        if let (Some(index), Ok(())) =
            (connection.index(), connection.stream_want_read(stream, false))
        {
            *self.0.borrow_mut() = Some((index, stream, Instant::now() + length));
        }
    }

    /// How long it lasts.
    pub fn left(&self) -> Option<Duration> {
        let until = self.0.borrow().map(|(.., at)| at);
        until.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Ends, if it is over.
    pub fn end(&self, link: &mut Link) {
        if self.left() != Some(Duration::ZERO) {
            return;
        }
        let Some((index, stream, _)) = self.0.take() else { return };
        if let Some(connection) = link.endpoint.conn_get_mut(index) {
            let _ = connection.stream_want_read(stream, true); // the peer may be gone
        }
        link.process();
    }
}
