//! Counts what comes until SIGTERM. One client after another, as a flow has one.

use crate::end::end_of;
use crate::link::Link;
use crate::{api, config};
use common::{Arguments, Counter, HEADER_BYTES};
use quiche::ConnectionId;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use udp::Socket;

const BUFFER_BYTES: usize = 1 << 20;

pub fn receive(arguments: &Arguments) {
    let stop = common::stop_flag();
    let mut socket = Socket::bind(arguments.address);
    let mut config = config::config(arguments);
    let mut counter = Counter::create(arguments);
    let mut link: Option<Link> = None;
    let mut header = HEADER_BYTES;
    let mut buffer = vec![0; BUFFER_BYTES];
    let local = socket.local;
    let mut reported = false;
    println!("ready");
    while !stop.load(Ordering::Relaxed) {
        socket.wait(link.as_ref().and_then(Link::deadline));
        while socket.receive(|bytes, peer| {
            if link.as_ref().is_none_or(|l| l.connection.is_closed()) {
                link = accept(bytes, local, peer, &mut config, arguments);
                header = HEADER_BYTES;
            }
            if let Some(link) = &mut link {
                link.take(bytes, peer, local);
            }
        }) {}
        if let Some(link) = &mut link {
            link.on_time();
            count(link, &mut counter, &mut header, &mut buffer);
            link.send_due(&mut socket);
            if let Some(end) = end_of(&link.connection, arguments.role).filter(|_| !reported) {
                end.write(arguments);
                reported = true;
            }
        }
    }
    counter.close();
    if let Some(link) = &mut link {
        let _ = link.connection.close(true, 0, b""); // it may be closed already
        link.send_due(&mut socket);
    }
}

fn accept(
    bytes: &mut [u8],
    local: SocketAddr,
    peer: SocketAddr,
    config: &mut quiche::Config,
    arguments: &Arguments,
) -> Option<Link> {
    let header = quiche::Header::from_slice(bytes, quiche::MAX_CONN_ID_LEN).ok()?;
    if header.ty != quiche::Type::Initial {
        return None;
    }
    let id = ConnectionId::from_ref(&header.dcid).into_owned();
    api::accept(&id, local, peer, config).ok().map(|c| Link::new(c, arguments))
}

/// Reads the perf streams to their ends and answers each with an empty one.
fn count(link: &mut Link, counter: &mut Counter, header: &mut usize, buffer: &mut [u8]) {
    for stream in link.connection.readable() {
        while let Ok((n, ended)) = link.connection.stream_recv(stream, buffer) {
            let skipped = n.min(*header);
            *header -= skipped;
            counter.add(n - skipped);
            if ended {
                let _ = link.connection.stream_send(stream, b"", true); // the peer may be gone
            }
        }
    }
}
