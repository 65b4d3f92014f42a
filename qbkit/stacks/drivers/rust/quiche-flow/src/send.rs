//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::end::end_of;
use crate::link::Link;
use crate::sample::sample;
use crate::{api, config};
use common::{
    cannot_connect, fail, Arguments, Limit, Samples, Upload, CONNECT_LIMIT, SAMPLE_EVERY,
};
use quiche::{Connection, ConnectionId};
use std::sync::atomic::Ordering;
use std::time::Instant;
use udp::Socket;

const STREAM: u64 = 0;
const ID_BYTES: usize = 16;

pub fn send(arguments: &Arguments) {
    let begin = Instant::now();
    let end = match arguments.limit {
        Limit::Duration(duration) => Some(begin + duration),
        Limit::Bytes(_) => None,
    };
    let stop = common::stop_flag();
    let mut socket = Socket::towards(arguments.address);
    let mut link = Link::new(connect(arguments, &socket), arguments);
    let mut flow = Flow::new(arguments.limit);
    let mut samples = Samples::new();
    loop {
        let now = Instant::now();
        let connection = &mut link.connection;
        if stop.load(Ordering::Relaxed) || end.is_some_and(|at| now >= at) || flow.answered {
            break;
        }
        if let Some(end) = end_of(connection, arguments.role) {
            if !connection.is_established() {
                fail(format_args!("cannot connect to {}: {end}", arguments.address));
            }
            link.send_due(&mut socket);
            samples.write(arguments);
            end.leave(arguments);
        }
        if !connection.is_established() && now >= begin + CONNECT_LIMIT {
            cannot_connect(arguments);
        }
        flow.go_on(connection);
        if connection.is_established() && samples.due() {
            samples.add(sample(connection, arguments));
        }
        link.send_due(&mut socket);
        let tick = Some(now + SAMPLE_EVERY);
        let deadlines = [link.deadline(), end, tick];
        if socket.wait(deadlines.into_iter().flatten().min()) {
            let local = socket.local;
            while socket.receive(|bytes, peer| link.take(bytes, peer, local)) {}
        }
        link.on_time();
    }
    let _ = link.connection.close(true, 0, b""); // it may be closed already
    link.send_due(&mut socket);
    samples.write(arguments);
}

fn connect(arguments: &Arguments, socket: &Socket) -> api::Handle {
    let mut id = [0; ID_BYTES];
    // SAFETY: the buffer is as long as said; so few bytes come at once.
    unsafe { libc::getrandom(id.as_mut_ptr().cast(), ID_BYTES, 0) };
    let id = ConnectionId::from_ref(&id);
    let (local, peer) = (socket.local, arguments.address);
    api::connect(&id, local, peer, &mut config::config(arguments))
        .unwrap_or_else(|e| fail(format_args!("cannot connect to {peer}: {e}")))
}

/// The perf stream.
struct Flow {
    upload: Upload,
    finished: bool,
    answered: bool,
}

impl Flow {
    fn new(limit: Limit) -> Self {
        Flow { upload: Upload::new(limit), finished: false, answered: false }
    }

    /// Writes what the stream takes; after the last byte, waits for the answer.
    fn go_on(&mut self, connection: &mut Connection) {
        if !connection.is_established() {
            return;
        }
        while !self.finished {
            let chunk = self.upload.chunk();
            match connection.stream_send(STREAM, chunk, false) {
                Ok(0) | Err(_) => break, // full for now
                Ok(n) => self.upload.written(n),
            }
            if self.upload.complete() {
                self.finished = connection.stream_send(STREAM, b"", true).is_ok();
            }
        }
        let mut byte = [0];
        self.answered = matches!(connection.stream_recv(STREAM, &mut byte), Ok((_, true)));
    }
}
