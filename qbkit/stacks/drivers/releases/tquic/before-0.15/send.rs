//! Uploads for a time or so many bytes, and samples the connection each 10 ms, before 0.15.

#[path = "api.rs"]
mod api;

use crate::end::end_of;
use crate::link::Link;
use api::Watch;
use common::{
    cannot_connect, fail, Arguments, End, Limit, Role, Samples, Upload, CONNECT_LIMIT,
    SAMPLE_EVERY,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tquic::{Connection, TransportHandler};
use udp::Socket;

/// The client's first stream.
const STREAM: u64 = 0;

pub fn send(arguments: &Rc<Arguments>) {
    let begin = Instant::now();
    let end = match arguments.limit {
        Limit::Duration(duration) => Some(begin + duration),
        Limit::Bytes(_) => None,
    };
    let stop = common::stop_flag();
    let socket = Socket::towards(arguments.address);
    let (local, peer) = (socket.local, arguments.address);
    let watch = Watch::default();
    let state = Rc::new(RefCell::new(State::default()));
    let handler =
        Sender { upload: Upload::new(arguments.limit), watch: watch.clone(), state: state.clone() };
    let mut link = Link::new(socket, arguments, false, Box::new(handler));
    let index = api::connect(&mut link.endpoint, local, peer)
        .unwrap_or_else(|e| fail(format_args!("cannot connect to {peer}: {e}")));
    link.process();
    let mut samples = Samples::new();
    while !stop.load(Ordering::Relaxed) && !state.borrow().answered {
        let now = Instant::now();
        if end.is_some_and(|at| now >= at) {
            break;
        }
        if !state.borrow().established && now >= begin + CONNECT_LIMIT {
            cannot_connect(arguments);
        }
        let seen = link.endpoint.conn_get_mut(index).and_then(|c| end_of(c, arguments.role));
        if let Some(end) = seen.or_else(|| state.borrow().closed.clone()) {
            if !state.borrow().established {
                fail(format_args!("cannot connect to {peer}: {end}"));
            }
            samples.write(arguments);
            end.leave(arguments);
        }
        if state.borrow().established && samples.due() {
            samples.add(watch.latest());
        }
        let left = end.map(|at| at.saturating_duration_since(now));
        link.turn(left.into_iter().chain([SAMPLE_EVERY]).min());
    }
    if let Some(connection) = link.endpoint.conn_get_mut(index) {
        let _ = connection.close(true, 0, b""); // it may be closed already
    }
    link.process();
    samples.write(arguments);
}

/// What the callbacks tell the loop.
#[derive(Default)]
struct State {
    established: bool,
    closed: Option<End>,
    answered: bool,
}

struct Sender {
    upload: Upload,
    watch: Watch,
    state: Rc<RefCell<State>>,
}

impl Sender {
    /// Writes what the stream takes.
    fn go_on(&mut self, connection: &mut Connection) {
        while !self.upload.complete() {
            let chunk = bytes::Bytes::from_static(self.upload.chunk());
            match connection.stream_write(STREAM, chunk, false) {
                Ok(0) | Err(_) => return, // full for now
                Ok(n) => self.upload.written(n),
            }
        }
        let _ = connection.stream_want_write(STREAM, false);
        if connection.stream_write(STREAM, bytes::Bytes::new(), true).is_err() {
            let _ = connection.stream_want_write(STREAM, true);
        }
    }
}

impl TransportHandler for Sender {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        self.watch.begin(connection);
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.state.borrow_mut().established = true;
        if let Err(e) = connection.stream_new(STREAM, 0, false) {
            fail(format_args!("cannot open a stream: {e}"));
        }
        let _ = connection.stream_want_write(STREAM, true);
        self.go_on(connection);
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        self.state.borrow_mut().closed = end_of(connection, Role::Send);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut byte = [0];
        if matches!(connection.stream_read(stream, &mut byte), Ok((_, true))) {
            self.state.borrow_mut().answered = true;
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, _: u64) {
        self.go_on(connection);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
