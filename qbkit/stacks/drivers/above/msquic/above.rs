//! What is above the transport: an application that sends, in a thread of its own, and one that
//! reads.

use crate::app::{chunk, until, App, Due, Reading, UNSENT_BYTES};
use crate::connection::Shared;
use crate::end::end_of;
use crate::fail;
use crate::send::{hand, take_back, upload};
use common::{Arguments, Counter, Limit, Role, HEADER_BYTES};
use msquic::{
    Connection, SendFlags, Status, StatusCode, Stream, StreamEvent, StreamOpenFlags,
    StreamShutdownFlags, StreamStartFlags,
};
use std::any::Any;
use std::mem::{replace, take, ManuallyDrop};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{sleep, spawn, JoinHandle};
use std::time::Duration;

/// What lives as long as the flow: its application, or the stream of its bulk transfer.
pub fn begin(connection: &Connection, limit: Limit, state: &Shared) -> Box<dyn Any> {
    match App::given() {
        Some(app) => Box::new(Thread::begin(app, connection, state)),
        None => Box::new(upload(connection, limit, state)),
    }
}

/// What the streams tell the application's thread.
#[derive(Default)]
struct Told {
    unacknowledged: u64,
    answered: bool,
    over: bool,
}

#[derive(Default)]
struct Wake {
    told: Mutex<Told>,
    changed: Condvar,
}

impl Wake {
    fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.lock().expect("no panics"));
        self.changed.notify_one();
    }

    /// Waits so long, or until it is `so`; false: the flow is over.
    fn wait(&self, limit: Duration, so: impl Fn(&mut Told) -> bool) -> bool {
        let told = self.told.lock().expect("no panics");
        let waits = |told: &mut Told| !told.over && !so(told);
        let (told, _) = self.changed.wait_timeout_while(told, limit, waits).expect("no panics");
        !told.over
    }
}

/// The thread of an application; it ends when this is dropped.
struct Thread {
    wake: Arc<Wake>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    fn begin(app: App, connection: &Connection, state: &Shared) -> Self {
        let wake = Arc::<Wake>::default();
        // SAFETY: the connection is closed after this is dropped.
        let connection = ManuallyDrop::new(unsafe { Connection::from_raw(connection.as_raw()) });
        let streams = Streams { connection, state: state.clone(), wake: wake.clone() };
        let handle = Some(spawn(move || Feed::begin(app, streams).go_on()));
        Thread { wake, handle }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.wake.tell(|told| told.over = true);
        if let Some(handle) = self.handle.take() {
            handle.join().expect("no panics");
        }
    }
}

/// Where an application's streams are opened.
struct Streams {
    connection: ManuallyDrop<Connection>,
    state: Shared,
    wake: Arc<Wake>,
}

impl Streams {
    /// Nothing of it is sent yet.
    fn open(&self) -> Stream {
        let (state, wake) = (self.state.clone(), self.wake.clone());
        // SAFETY: the stream asks of its connection, which outlives it.
        let handle = unsafe { self.connection.as_raw() };
        let stream = Stream::open(&self.connection, StreamOpenFlags::NONE, move |_, event| {
            match event {
                StreamEvent::SendComplete { client_context, .. } => {
                    let bytes = take_back(client_context);
                    wake.tell(|told| told.unacknowledged -= bytes);
                }
                StreamEvent::PeerSendShutdown => wake.tell(|told| told.answered = true),
                ref event => {
                    if let Some(end) = end_of(event, handle, Role::Send) {
                        state.lock().expect("no panics").lost = Some(end);
                        wake.tell(|told| told.over = true);
                    }
                }
            }
            Ok(())
        });
        let cannot = |e: Status| -> ! { fail(format_args!("cannot open a stream: {e}")) };
        let stream = stream.unwrap_or_else(|e| cannot(e));
        stream.start(StreamStartFlags::NONE).unwrap_or_else(|e| cannot(e));
        stream
    }
}

/// An application, and the stream that it writes now.
struct Feed {
    app: App,
    streams: Streams,
    stream: Stream,
    /// Its end may not be complete yet.
    previous: Option<Stream>,
    begun: bool,
    finished: bool,
}

impl Feed {
    fn begin(app: App, streams: Streams) -> Self {
        let stream = streams.open();
        Feed { app, streams, stream, previous: None, begun: false, finished: false }
    }

    /// Sends what the application has, when it has it, until the flow is over.
    fn go_on(&mut self) {
        while match self.app.due() {
            Due::At(at_ns) => self.streams.wake.wait(until(at_ns), |_| false),
            Due::Bytes(most) => self.write(most),
            Due::Answer => self.wait_for_answer(),
        } {}
    }

    /// Writes some bytes, or waits until they may be written. msquic would take any number, so
    /// what waits behind the controller's window is limited here: twice the window, as msquic
    /// gives bytes back about a round trip after they were acknowledged.
    fn write(&mut self, most: usize) -> bool {
        let cwnd_bytes = self.streams.state.lock().expect("no panics").cwnd_bytes;
        let most_bytes = 2 * cwnd_bytes + UNSENT_BYTES;
        let has_room = |told: &mut Told| told.unacknowledged < most_bytes;
        let wake = &self.streams.wake;
        if !has_room(&mut wake.told.lock().expect("no panics")) {
            return wake.wait(Duration::MAX, has_room); // until then, it may be off
        }
        if !self.begun {
            self.begun = true;
            self.post(chunk(HEADER_BYTES));
        }
        let bytes = chunk(most);
        self.app.written(bytes.len());
        self.post(bytes)
    }

    fn post(&self, bytes: &'static [u8]) -> bool {
        self.streams.wake.tell(|told| told.unacknowledged += bytes.len() as u64);
        hand(&self.stream, bytes, SendFlags::NONE)
    }

    fn wait_for_answer(&mut self) -> bool {
        if !self.finished {
            self.finished = true;
            let _ = self.stream.shutdown(StreamShutdownFlags::GRACEFUL, 0); // it may be closing
        }
        let goes_on = self.streams.wake.wait(Duration::MAX, |told| take(&mut told.answered));
        if goes_on {
            self.app.answered();
            self.previous = Some(replace(&mut self.stream, self.streams.open()));
            (self.begun, self.finished) = (false, false);
        }
        goes_on
    }
}

/// A stream, how many of its bytes are read, and after how long.
type Later = (ManuallyDrop<Stream>, u64, Duration);

/// Counts what a receiver reads; a slow one lets msquic wait.
pub struct Reader {
    counter: Counter,
    reading: Reading,
    sleeper: Sender<Later>,
    /// Whether a stream may still be read when it is over.
    pub is_slow: bool,
}

impl Reader {
    pub fn create(arguments: &Arguments) -> Self {
        let (sleeper, pauses) = channel::<Later>();
        spawn(move || {
            for (stream, bytes, length) in pauses {
                sleep(length);
                stream.receive_complete(bytes);
            }
        });
        let (counter, reading) = (Counter::create(arguments), Reading::given());
        Reader { counter, reading, sleeper, is_slow: false }
    }

    /// So many bytes came on a stream, the first ones of them its header.
    pub fn read(&mut self, stream: &Stream, bytes: usize, skipped: usize) -> Result<(), Status> {
        self.counter.add(bytes - skipped);
        let Some(length) = self.reading.read(bytes - skipped) else { return Ok(()) };
        self.is_slow = true;
        // SAFETY: what reads slowly closes no stream.
        let stream = ManuallyDrop::new(unsafe { Stream::from_raw(stream.as_raw()) });
        self.sleeper.send((stream, bytes as u64, length)).expect("it listens for ever");
        Err(Status::from(StatusCode::QUIC_STATUS_PENDING))
    }

    pub fn close(&mut self) {
        self.counter.close();
    }
}
