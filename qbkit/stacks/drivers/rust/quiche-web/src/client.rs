//! A connection of a client: its packets, its requests, and the responses that are under way.

use crate::site::{Response, Site};
use crate::DATAGRAM_BYTES;
use quiche::h3::{self, Event};
use quiche::{Connection, ConnectionId, RecvInfo, Shutdown};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;
use udp::Socket;

/// H3_NO_ERROR
const NO_ERROR: u64 = 0x100;

pub struct Client {
    connection: Connection,
    /// The one that the client chose for its first packets, and ours.
    ids: [ConnectionId<'static>; 2],
    http: Option<h3::Connection>,
    /// By stream.
    responses: BTreeMap<u64, Response>,
    /// A packet that is paced into the future.
    held: Option<Packet>,
}

struct Packet {
    at: Instant,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Client {
    pub fn new(connection: Connection, ids: [ConnectionId<'static>; 2]) -> Self {
        Client { connection, ids, http: None, responses: BTreeMap::new(), held: None }
    }

    /// Whether a packet with this connection ID is from it.
    pub fn has(&self, id: &ConnectionId) -> bool {
        self.ids.contains(id)
    }

    pub fn lives(&self) -> bool {
        !self.connection.is_closed()
    }

    /// A datagram came. What cannot be read is dropped, as RFC 9000 asks for.
    pub fn take(&mut self, bytes: &mut [u8], from: SocketAddr, to: SocketAddr) {
        let _ = self.connection.recv(bytes, RecvInfo { from, to });
    }

    /// Reads new requests, and writes of all responses what the windows take.
    pub fn answer(&mut self, site: &Site) {
        let connection = &mut self.connection;
        if self.http.is_none() && (connection.is_established() || connection.is_in_early_data()) {
            let config = h3::Config::new().expect("a default");
            self.http = h3::Connection::with_transport(connection, &config).ok();
        }
        let Some(http) = &mut self.http else { return };
        while let Ok((stream, event)) = http.poll(connection) {
            match event {
                Event::Headers { list, .. } => {
                    let _ = connection.stream_shutdown(stream, Shutdown::Read, 0); // of a body
                    let update = http.take_last_priority_update(stream).ok();
                    self.responses.insert(stream, site.respond(&list, update));
                }
                Event::Reset(_) => drop(self.responses.remove(&stream)),
                _ => {}
            }
        }
        // All headers first: with them, quiche learns which body is the most urgent.
        self.responses.retain(|&stream, response| response.send_head(connection, http, stream));
        for stream in connection.writable() {
            let Some(response) = self.responses.get_mut(&stream) else { continue };
            if !response.send_body(connection, http, stream) {
                self.responses.remove(&stream);
            }
        }
    }

    /// Sends all that is due now.
    pub fn send_due(&mut self, socket: &mut Socket) {
        let now = Instant::now();
        while let Some(packet) = self.held.take().or_else(|| self.next_packet()) {
            if packet.at > now {
                self.held = Some(packet);
                break;
            }
            socket.queue(|buffer| {
                buffer[..packet.bytes.len()].copy_from_slice(&packet.bytes);
                Some((packet.bytes.len(), packet.to))
            });
        }
        socket.flush();
    }

    fn next_packet(&mut self) -> Option<Packet> {
        let mut buffer = [0; DATAGRAM_BYTES];
        let (length, info) = self.connection.send(&mut buffer).ok()?;
        Some(Packet { at: info.at, to: info.to, bytes: buffer[..length].to_vec() })
    }

    /// When it wants to be called again.
    pub fn deadline(&self) -> Option<Instant> {
        let held = self.held.as_ref().map(|packet| packet.at);
        held.into_iter().chain(self.connection.timeout_instant()).min()
    }

    /// Time has passed; quiche itself looks which of its timers have run out.
    pub fn on_time(&mut self) {
        self.connection.on_timeout();
    }

    pub fn close(&mut self) {
        let _ = self.connection.close(true, NO_ERROR, b""); // it may be closed already
    }
}
