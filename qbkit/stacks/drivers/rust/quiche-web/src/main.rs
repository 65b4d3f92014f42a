//! A web server with quiche, by HTTP/3 alone: it answers requests with files until SIGTERM.

mod client;
mod site;

use client::Client;
use common::fail;
use quiche::{Config, CongestionControlAlgorithm, ConnectionId, Header, PROTOCOL_VERSION};
use site::Site;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use udp::Socket;

const IDLE_MS: u64 = 60_000;
// As quiche's own server has them. A client sends requests alone, which are small.
const DATAGRAM_BYTES: usize = 1350;
const CONNECTION_WINDOW_BYTES: u64 = 10_000_000;
const STREAM_WINDOW_BYTES: u64 = 1_000_000;
const STREAMS: u64 = 100;
const ID_BYTES: usize = 16;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, controller, cert, key, table] = words.as_slice() else {
        fail("usage: quiche-web IP:PORT cubic|reno|bbr2 CERTIFICATE KEY TABLE");
    };
    let address = address.parse().unwrap_or_else(|_| fail(format_args!("no address: {address}")));
    let stop = common::stop_flag();
    let site = Site::read(table);
    let mut config = config(controller, cert, key);
    let mut socket = Socket::bind(address);
    let local = socket.local;
    let mut clients: Vec<Client> = Vec::new();
    println!("ready");
    while !stop.load(Ordering::Relaxed) {
        socket.wait(clients.iter().filter_map(Client::deadline).min());
        while socket.receive(|bytes, peer| {
            if let Some(client) = find_or_accept(&mut clients, bytes, local, peer, &mut config) {
                client.take(bytes, peer, local);
            }
        }) {}
        for client in &mut clients {
            client.on_time();
            client.answer(&site);
            client.send_due(&mut socket);
        }
        clients.retain(Client::lives);
    }
    for client in &mut clients {
        client.close();
        client.send_due(&mut socket);
    }
}

fn config(controller: &str, cert: &str, key: &str) -> Config {
    let set_up = || {
        let mut config = Config::new(PROTOCOL_VERSION)?;
        config.load_cert_chain_from_pem_file(cert)?;
        config.load_priv_key_from_pem_file(key)?;
        config.set_application_protos(quiche::h3::APPLICATION_PROTOCOL)?;
        Ok(config)
    };
    let mut config = set_up().unwrap_or_else(|e: quiche::Error| {
        fail(format_args!("quiche cannot use the certificate {cert}: {e}"))
    });
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM_BYTES);
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_initial_max_data(CONNECTION_WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW_BYTES);
    config.set_initial_max_stream_data_uni(STREAM_WINDOW_BYTES);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    config.set_disable_active_migration(true);
    config.enable_early_data();
    config.set_cc_algorithm(match controller {
        "reno" => CongestionControlAlgorithm::Reno,
        "cubic" => CongestionControlAlgorithm::CUBIC,
        "bbr2" => CongestionControlAlgorithm::Bbr2Gcongestion,
        _ => fail(format_args!("quiche has cubic, reno and bbr2, and no controller {controller}")),
    });
    config
}

/// The client of a datagram; none for what begins no connection.
fn find_or_accept<'a>(
    clients: &'a mut Vec<Client>,
    bytes: &mut [u8],
    local: SocketAddr,
    peer: SocketAddr,
    config: &mut Config,
) -> Option<&'a mut Client> {
    let header = Header::from_slice(bytes, ID_BYTES).ok()?;
    if let Some(known) = clients.iter().position(|client| client.has(&header.dcid)) {
        return Some(&mut clients[known]);
    }
    if header.ty != quiche::Type::Initial {
        return None;
    }
    let id = new_id();
    let connection = quiche::accept(&id, None, local, peer, config).ok()?;
    clients.push(Client::new(connection, [header.dcid.into_owned(), id]));
    clients.last_mut()
}

fn new_id() -> ConnectionId<'static> {
    let mut id = vec![0; ID_BYTES];
    // SAFETY: the buffer is as long as said; so few bytes come at once.
    unsafe { libc::getrandom(id.as_mut_ptr().cast(), ID_BYTES, 0) };
    ConnectionId::from_vec(id)
}
