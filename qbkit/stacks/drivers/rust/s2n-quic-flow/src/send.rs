//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::controllers::{bbr, cubic, Controller};
use crate::end::{end_of, end_of_stream};
use crate::endpoint::{cannot, limits};
use crate::socket::socket;
use crate::tls;
use crate::watch::{Latest, Watcher};
use bytes::Bytes;
use common::{cannot_connect, Arguments, End, Limit, Role, Samples, Upload, CONNECT_LIMIT};
use s2n_quic::client::Connect;
use s2n_quic::{Client, Connection};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::signal::unix::{signal, SignalKind};
use tokio::time::{interval, sleep_until, timeout, Instant, MissedTickBehavior};

/// How long the end of a connection may take to be told.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

pub async fn send(arguments: &Arguments) {
    let end = match arguments.limit {
        Limit::Duration(duration) => Instant::now() + duration,
        Limit::Bytes(_) => Instant::now() + Duration::from_secs(u32::MAX.into()),
    };
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let latest = Latest::default();
    let mut samples = Samples::new();
    let mut client = match arguments.controller.as_str() {
        "bbr" => client(arguments, &latest, bbr(arguments, &latest)),
        _ => client(arguments, &latest, cubic(arguments, &latest)),
    };
    let mut connection = tokio::select! {
        connection = connect(arguments, &client) => connection,
        _ = term.recv() => return samples.write(arguments),
    };
    let result = tokio::select! {
        result = upload(&mut connection, arguments.limit) => result,
        () = watch(&latest, &mut samples) => unreachable!("it watches for ever"),
        () = sleep_until(end) => Ok(()),
        _ = term.recv() => Ok(()),
    };
    connection.close(0u32.into());
    let _ = timeout(CLOSE_LIMIT, client.wait_idle()).await; // told or not, it is over
    samples.write(arguments);
    if let Err(end) = result {
        end.leave(arguments);
    }
}

fn client(arguments: &Arguments, latest: &Latest, controller: impl Controller) -> Client {
    let any_port = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    Client::builder()
        .with_tls(tls::client())
        .expect("a TLS client")
        .with_io(socket(arguments, any_port))
        .expect("a socket")
        .with_limits(limits(arguments))
        .expect("limits")
        .with_congestion_controller(controller)
        .expect("a controller")
        .with_event(Watcher(latest.clone()))
        .expect("a subscriber")
        .start()
        .unwrap_or_else(|e| cannot("open a UDP socket", &e))
}

async fn connect(arguments: &Arguments, client: &Client) -> Connection {
    let address = arguments.address;
    let connect = Connect::new(address).with_server_name(common::SERVER_NAME);
    match timeout(CONNECT_LIMIT, client.connect(connect)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(s2n_quic::connection::Error::MaxHandshakeDurationExceeded { .. })) | Err(_) => {
            cannot_connect(arguments)
        }
        Ok(Err(e)) => cannot(&format!("connect to {address}"), &e),
    }
}

/// Writes all and waits until it has arrived; without a limit it never ends.
async fn upload(connection: &mut Connection, limit: Limit) -> Result<(), End> {
    let gone = |e| end_of(&e, Role::Send);
    let broken = |e| end_of_stream(&e, Role::Send);
    let mut stream = connection.open_bidirectional_stream().await.map_err(gone)?;
    let mut upload = Upload::new(limit);
    while !upload.complete() {
        let chunk = upload.chunk();
        stream.send(Bytes::from_static(chunk)).await.map_err(broken)?;
        upload.written(chunk.len());
    }
    stream.finish().map_err(broken)?;
    while let Some(_nothing) = stream.receive().await.map_err(broken)? {}
    Ok(())
}

async fn watch(latest: &Latest, samples: &mut Samples) {
    let mut tick = interval(common::SAMPLE_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tick.tick().await;
        samples.add(latest.get());
    }
}
