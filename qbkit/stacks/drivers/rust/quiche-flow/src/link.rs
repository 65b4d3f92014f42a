//! A connection and its socket: packets in, packets out when they are due, timeouts.

use crate::api::{self, Handle};
use common::{fail, Arguments, Role};
use quiche::Connection;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use udp::Socket;

pub struct Link {
    pub connection: Handle,
    /// A packet that is paced into the future: when, to whom, its bytes.
    held: Option<(Instant, SocketAddr, Vec<u8>)>,
}

impl Link {
    pub fn new(mut connection: Handle, arguments: &Arguments) -> Self {
        if arguments.knobs.get("qlog") == Some(true) {
            log(&mut connection, arguments);
        }
        Link { connection, held: None }
    }

    /// A datagram came. What cannot be read is dropped, as RFC 9000 asks for.
    pub fn take(&mut self, bytes: &mut [u8], from: SocketAddr, to: SocketAddr) {
        let _ = self.connection.recv(bytes, api::recv_info(from, to));
    }

    /// Sends all that is due now.
    pub fn send_due(&mut self, socket: &mut Socket) {
        let now = Instant::now();
        match self.held.take() {
            Some(held) if held.0 > now => {
                self.held = Some(held);
                return socket.flush();
            }
            Some((_, peer, packet)) => {
                socket.queue(|buffer| {
                    buffer[..packet.len()].copy_from_slice(&packet);
                    Some((packet.len(), peer))
                });
            }
            None => {}
        }
        while self.held.is_none() {
            let (connection, held) = (&mut self.connection, &mut self.held);
            let queued = socket.queue(|buffer| {
                let (length, info) = connection.send(buffer).ok()?;
                if info.at <= now {
                    return Some((length, info.to));
                }
                *held = Some((info.at, info.to, buffer[..length].to_vec()));
                None
            });
            if !queued {
                break;
            }
        }
        socket.flush();
    }

    /// When it wants to be called again.
    pub fn deadline(&self) -> Option<Instant> {
        let held = self.held.as_ref().map(|(at, ..)| *at);
        let timeout = self.connection.timeout().map(|left| Instant::now() + left);
        held.into_iter().chain(timeout).min()
    }

    /// The time has come.
    pub fn on_time(&mut self) {
        if self.connection.timeout() == Some(Duration::ZERO) {
            self.connection.on_timeout();
        }
    }
}

fn log(connection: &mut Connection, arguments: &Arguments) {
    let name = match arguments.role {
        Role::Recv => "receiver.sqlog",
        Role::Send => "sender.sqlog",
    };
    let path = arguments.out.join(name);
    let file = std::fs::File::create(&path)
        .unwrap_or_else(|e| fail(format_args!("cannot write {}: {e}", path.display())));
    let writer = Box::new(std::io::BufWriter::with_capacity(1 << 20, file));
    connection.set_qlog(writer, "qbkit".into(), name.into());
}
