//! The server sends: it gives its client what the client asks for.

use crate::config;
use crate::end::end_of;
use crate::link::Link;
use crate::receive::accept;
use crate::sample::sample;
use crate::send::{connect, limit, Flow, STREAM};
use common::{
    cannot_connect, fail, Arguments, Counter, Samples, Upload, CONNECT_LIMIT, HEADER_BYTES,
    SAMPLE_EVERY,
};
use quiche::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use udp::Socket;

const BUFFER_BYTES: usize = 1 << 20;
/// How long the last packet may be held back.
const CLOSE_LIMIT: Duration = Duration::from_millis(100);

/// Gives the first client what it asks for, then waits: a server never ends by itself.
pub fn give(arguments: &Arguments) {
    let stop = common::stop_flag();
    let mut socket = Socket::bind(arguments.address);
    let mut samples = Samples::new();
    println!("ready");
    if let Some(link) = first_client(&mut socket, arguments, &stop) {
        answer(link, &mut socket, arguments, &mut samples, &stop);
    }
    samples.write(arguments);
}

fn first_client(socket: &mut Socket, arguments: &Arguments, stop: &AtomicBool) -> Option<Link> {
    let mut config = config::config(arguments);
    let (mut link, local) = (None::<Link>, socket.local);
    while link.is_none() && !stop.load(Ordering::Relaxed) {
        socket.wait(None);
        while socket.receive(|bytes, peer| {
            if link.is_none() {
                link = accept(bytes, local, peer, &mut config, arguments);
            }
            if let Some(link) = &mut link {
                link.take(bytes, peer, local);
            }
        }) {}
    }
    link
}

fn answer(
    mut link: Link,
    socket: &mut Socket,
    arguments: &Arguments,
    samples: &mut Samples,
    stop: &AtomicBool,
) {
    let (mut header, mut flow) = (Vec::new(), None);
    while !stop.load(Ordering::Relaxed) {
        let end = end_of(&link.connection, arguments.role);
        if flow.is_none() {
            flow = asked(&mut link.connection, &mut header).map(Flow::of);
        }
        if let Some(flow) = &mut flow {
            flow.upload(&mut link.connection);
        }
        if link.connection.is_established() && end.is_none() && samples.due() {
            samples.add(sample(&link.connection, arguments));
        }
        link.send_due(socket);
        if let Some(end) = end.filter(|end| !end.is_done(arguments)) {
            samples.write(arguments);
            end.leave(arguments);
        }
        turn(&mut link, socket, Some(Instant::now() + SAMPLE_EVERY));
    }
}

/// What a client asks for, once its header is complete.
fn asked(connection: &mut Connection, header: &mut Vec<u8>) -> Option<Upload> {
    let (mut bytes, left) = ([0; HEADER_BYTES], HEADER_BYTES - header.len());
    let (n, _) = connection.stream_recv(STREAM, &mut bytes[..left]).ok()?;
    header.extend(&bytes[..n]);
    let complete = header.as_slice().try_into().ok()?;
    Some(Upload::of(u64::from_be_bytes(complete)))
}

/// Waits for packets, a timeout of the connection, or a time, and works off what is there.
fn turn(link: &mut Link, socket: &mut Socket, until: Option<Instant>) {
    let local = socket.local;
    if socket.wait([link.deadline(), until].into_iter().flatten().min()) {
        while socket.receive(|bytes, peer| link.take(bytes, peer, local)) {}
    }
    link.on_time();
}

/// Asks a server for data, and counts them, for a time or so many bytes.
pub fn fetch(arguments: &Arguments) {
    let (begin, end, stop) = (Instant::now(), limit(arguments), common::stop_flag());
    let mut socket = Socket::towards(arguments.address);
    let mut link = Link::new(connect(arguments, &socket), arguments);
    let counter = Counter::create(arguments);
    let mut request = Request { counter, asked: false, answered: false };
    let mut buffer = vec![0; BUFFER_BYTES];
    link.send_due(&mut socket);
    while !request.answered && !stop.load(Ordering::Relaxed) {
        if end.is_some_and(|at| Instant::now() >= at) {
            break;
        }
        let connects = !link.connection.is_established();
        let limits = [end, connects.then_some(begin + CONNECT_LIMIT)];
        turn(&mut link, &mut socket, limits.into_iter().flatten().min());
        request.go_on(&mut link.connection, arguments, &mut buffer);
        link.send_due(&mut socket);
        if !request.answered {
            request.leave_if_lost(&link.connection, arguments, begin);
        }
    }
    close(&mut link, &mut socket);
    request.counter.close();
}

/// Closes the connection; the packet that says so may be for a moment later.
fn close(link: &mut Link, socket: &mut Socket) {
    let _ = link.connection.close(true, 0, b""); // it may be closed already
    let until = Instant::now() + CLOSE_LIMIT;
    link.send_due(socket);
    while link.holds() && Instant::now() < until {
        turn(link, socket, Some(until));
        link.send_due(socket);
    }
}

/// The perf stream of a client that gets.
struct Request {
    counter: Counter,
    asked: bool,
    answered: bool,
}

impl Request {
    fn go_on(&mut self, connection: &mut Connection, arguments: &Arguments, buffer: &mut [u8]) {
        if connection.is_established() && !self.asked {
            let wanted = arguments.limit.wanted_bytes().to_be_bytes();
            self.asked = connection.stream_send(STREAM, &wanted, true).is_ok();
        }
        while let Ok((n, ended)) = connection.stream_recv(STREAM, buffer) {
            self.counter.add(n);
            self.answered |= ended;
        }
    }

    fn leave_if_lost(&mut self, connection: &Connection, arguments: &Arguments, begin: Instant) {
        let is_late = begin.elapsed() >= CONNECT_LIMIT;
        match (end_of(connection, arguments.role), connection.is_established()) {
            (Some(end), true) => {
                self.counter.close();
                end.leave(arguments);
            }
            (Some(end), false) => {
                fail(format_args!("cannot connect to {}: {end}", arguments.address))
            }
            (None, false) if is_late => cannot_connect(arguments),
            (None, _) => {}
        }
    }
}
