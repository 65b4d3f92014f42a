//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::end::end_of;
use crate::link::Link;
use crate::setup::setup;
use common::{cannot_connect, fail, CONNECT_LIMIT, SAMPLE_EVERY, SERVER_NAME};
use common::{Arguments, End, Limit, Role, Sample, Samples, Upload};
use quiche::{Connection, ConnectionId};
use std::sync::atomic::Ordering;
use std::time::Instant;
use udp::Socket;

/// The client's first.
const STREAM: u64 = 0;

pub fn send(arguments: &Arguments) {
    let stop = common::stop_flag();
    let mut socket = Socket::towards(arguments.address);
    let mut sender = Sender::new(arguments);
    while !stop.load(Ordering::Relaxed) && sender.go_on() {
        sender.link.send(&mut socket);
        if let Some(end) = end_of(&sender.link, Role::Send) {
            sender.leave(&end);
        }
        if socket.wait(sender.deadline()) {
            while socket.receive(|bytes, _| sender.link.take(bytes)) {}
        }
        sender.link.connection.on_timeout();
    }
    sender.link.close(&mut socket);
    sender.samples.write(arguments);
}

/// The client of the perf protocol.
struct Sender<'a> {
    arguments: &'a Arguments,
    begin: Instant,
    link: Link,
    samples: Samples,
    upload: Upload,
    finished: bool,
}

impl<'a> Sender<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        Sender {
            arguments,
            begin: Instant::now(),
            link: connect(arguments),
            samples: Samples::new(),
            upload: Upload::new(arguments.limit),
            finished: false,
        }
    }

    /// Samples, and writes what the stream takes; false when all is done or the time is over.
    fn go_on(&mut self) -> bool {
        let now = Instant::now();
        if self.end().is_some_and(|at| now >= at) {
            return false;
        }
        let connection = &mut self.link.connection;
        if !connection.is_established() {
            if now >= self.begin + CONNECT_LIMIT {
                cannot_connect(self.arguments);
            }
            return true;
        }
        if self.samples.due() {
            self.samples.add(sample(connection));
        }
        self.write();
        !matches!(self.link.connection.stream_recv(STREAM, &mut [0]), Ok((_, true)))
    }

    /// The connection ended before its time.
    fn leave(&self, end: &End) -> ! {
        if !self.link.connection.is_established() {
            let address = self.arguments.address;
            fail(format_args!("cannot connect to {address}: the handshake failed"));
        }
        self.samples.write(self.arguments);
        end.leave(self.arguments);
    }

    fn write(&mut self) {
        let connection = &mut self.link.connection;
        while !self.finished {
            match connection.stream_send(STREAM, self.upload.chunk(), false) {
                Ok(0) | Err(_) => return, // full for now
                Ok(n) => self.upload.written(n),
            }
            if self.upload.complete() {
                self.finished = connection.stream_send(STREAM, b"", true).is_ok();
            }
        }
    }

    fn end(&self) -> Option<Instant> {
        match self.arguments.limit {
            Limit::Duration(duration) => Some(self.begin + duration),
            Limit::Bytes(_) => None,
        }
    }

    /// When to go on, at the latest.
    fn deadline(&self) -> Option<Instant> {
        let tick = Instant::now() + SAMPLE_EVERY;
        [self.link.deadline(), self.end(), Some(tick)].into_iter().flatten().min()
    }
}

fn connect(arguments: &Arguments) -> Link {
    let mut id = [0; 16];
    // SAFETY: the buffer is as long as said; so few bytes come at once.
    unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) };
    let peer = arguments.address;
    quiche::connect(Some(SERVER_NAME), &ConnectionId::from_ref(&id), &mut setup(arguments))
        .map(|connection| Link::new(connection, peer))
        .unwrap_or_else(|e| fail(format_args!("cannot connect to {peer}: {e}")))
}

fn sample(connection: &Connection) -> Sample {
    let stats = connection.stats();
    Sample {
        cwnd_bytes: Some(stats.cwnd as u64),
        srtt: Some(stats.rtt),
        delivery_rate_mbps: Some(stats.delivery_rate as f64 * 8.0 / 1e6),
        lost_packets: Some(stats.lost as u64),
        ..Sample::default()
    }
}
