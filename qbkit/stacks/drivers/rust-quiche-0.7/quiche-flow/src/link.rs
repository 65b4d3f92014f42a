//! A connection and its socket: packets in, packets out, timeouts. This version does not pace.

use crate::setup::DATAGRAM_BYTES;
use quiche::{Connection, Error};
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Instant;
use udp::Socket;

pub struct Link {
    pub connection: Pin<Box<Connection>>,
    /// Why it closed the connection itself, which quiche tells once.
    pub fault: Option<Error>,
    peer: SocketAddr,
}

impl Link {
    pub fn new(connection: Pin<Box<Connection>>, peer: SocketAddr) -> Self {
        Link { connection, fault: None, peer }
    }

    /// A datagram came. What cannot be read is dropped, as QUIC asks for.
    pub fn take(&mut self, bytes: &mut [u8]) {
        if let Err(error) = self.connection.recv(bytes) {
            self.fault = self.fault.or(Some(error).filter(|&e| e != Error::Done));
        }
    }

    /// Sends all that the window allows.
    pub fn send(&mut self, socket: &mut Socket) {
        let (connection, peer) = (&mut self.connection, self.peer);
        while socket.queue(|buffer| {
            let length = connection.send(&mut buffer[..DATAGRAM_BYTES]).ok()?;
            Some((length, peer))
        }) {}
        socket.flush();
    }

    /// When it wants `Connection::on_timeout`, which does nothing before.
    pub fn deadline(&self) -> Option<Instant> {
        self.connection.timeout().map(|after| Instant::now() + after)
    }

    /// Closes the connection, which may be closed already.
    pub fn close(&mut self, socket: &mut Socket) {
        let _ = self.connection.close(true, 0, b"");
        self.send(socket);
    }
}
