//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::end::end_of;
use crate::link::{log, Link};
use common::{
    cannot_connect, fail, Arguments, End, Limit, Role, Sample, Samples, Upload, CONNECT_LIMIT,
    SAMPLE_EVERY, SERVER_NAME,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tquic::{Connection, TransportHandler};
use udp::Socket;

pub fn send(arguments: &Rc<Arguments>) {
    let begin = Instant::now();
    let end = match arguments.limit {
        Limit::Duration(duration) => Some(begin + duration),
        Limit::Bytes(_) => None,
    };
    let stop = common::stop_flag();
    let socket = Socket::towards(arguments.address);
    let local = socket.local;
    let state = Rc::new(RefCell::new(State::default()));
    let handler = Sender {
        arguments: arguments.clone(),
        upload: Upload::new(arguments.limit),
        state: state.clone(),
    };
    let mut link = Link::new(socket, arguments, false, Box::new(handler));
    let peer = arguments.address;
    let index = link
        .endpoint
        .connect(local, peer, Some(SERVER_NAME), None, None, None)
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
            if let Some(connection) = link.endpoint.conn_get_mut(index) {
                samples.add(sample(connection, &arguments.controller));
            }
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

fn sample(connection: &mut Connection, controller: &str) -> Sample {
    let Ok(path) = connection.get_active_path() else { return Sample::default() };
    let (local, remote) = (path.local_addr(), path.remote_addr());
    let Ok(told) = connection.get_path_stats(local, remote) else { return Sample::default() };
    let time = std::time::Duration::from_micros;
    Sample {
        cwnd_bytes: Some(told.final_cwnd),
        srtt: Some(time(told.srtt)),
        min_rtt: Some(time(told.min_rtt)),
        pacing_rate_mbps: Some(told.pacing_rate as f64 * 8.0 / 1e6),
        lost_packets: Some(told.lost_count),
        bytes_in_flight: told.sent_bytes.checked_sub(told.acked_bytes + told.lost_bytes),
        // tquic tells BBR's STARTUP only; BBRv3 does not answer and would always seem to be in it.
        state: match (controller, told.in_slow_start) {
            ("bbr3", _) | ("bbr", false) => None,
            ("bbr", true) => Some("startup"),
            (_, true) => Some("slow_start"),
            (_, false) => Some("congestion_avoidance"),
        },
        ..Sample::default()
    }
}

/// What the callbacks tell the loop.
#[derive(Default)]
struct State {
    established: bool,
    closed: Option<End>,
    answered: bool,
}

struct Sender {
    arguments: Rc<Arguments>,
    upload: Upload,
    state: Rc<RefCell<State>>,
}

impl Sender {
    /// Writes what the stream takes.
    fn go_on(&mut self, connection: &mut Connection, stream: u64) {
        while !self.upload.complete() {
            let chunk = bytes::Bytes::from_static(self.upload.chunk());
            match connection.stream_write(stream, chunk, false) {
                Ok(0) | Err(_) => return, // full for now
                Ok(n) => self.upload.written(n),
            }
        }
        let _ = connection.stream_want_write(stream, false);
        if connection.stream_write(stream, bytes::Bytes::new(), true).is_err() {
            let _ = connection.stream_want_write(stream, true);
        }
    }
}

impl TransportHandler for Sender {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        log(connection, &self.arguments, "sender");
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.state.borrow_mut().established = true;
        match connection.stream_bidi_new(0, false) {
            Ok(stream) => {
                let _ = connection.stream_want_write(stream, true);
                self.go_on(connection, stream);
            }
            Err(e) => fail(format_args!("cannot open a stream: {e}")),
        }
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

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.go_on(connection, stream);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
