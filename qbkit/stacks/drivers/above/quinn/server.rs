//! The server sends: it gives its client what the client asks for.

use crate::controllers::Chosen;
use crate::end::end_of;
use crate::receive::{count, listen};
use crate::send::{connect, limit};
use crate::transport::transport;
use crate::watch::Latest;
use bytes::Bytes;
use common::{Arguments, Counter, Upload, HEADER_BYTES};
use quinn::{Connection, Endpoint};
use std::convert::Infallible;
use std::error::Error;
use std::future::pending;
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{signal, SignalKind};
use tokio::time::sleep_until;

/// The first client's connection.
pub async fn accept(
    arguments: &Arguments,
    latest: Arc<Mutex<Latest>>,
) -> (Endpoint, Connection) {
    let mut settings = transport(arguments);
    settings.congestion_controller_factory(Arc::new(Chosen::new(arguments, latest)));
    let endpoint = listen(arguments, settings);
    println!("ready");
    while let Some(incoming) = endpoint.accept().await {
        if let Ok(connection) = incoming.await {
            return (endpoint, connection);
        }
    }
    pending().await // the endpoint is open until a signal ends this
}

/// Gives what the client asks for, then waits: a server never ends by itself.
pub async fn give(connection: &Connection) -> Infallible {
    let _ = answer(connection).await; // how the connection ended, it says itself
    pending().await
}

async fn answer(connection: &Connection) -> Result<(), Box<dyn Error>> {
    let (mut send, mut recv) = connection.accept_bi().await?;
    let mut header = [0; HEADER_BYTES];
    recv.read_exact(&mut header).await?;
    let mut response = Upload::of(u64::from_be_bytes(header));
    while !response.complete() {
        let chunk = response.chunk();
        send.write_chunk(Bytes::from_static(chunk)).await?;
        response.written(chunk.len());
    }
    Ok(send.finish()?)
}

/// Asks a server for data, and counts them, for a time or so many bytes.
pub async fn fetch(arguments: &Arguments) {
    let end = limit(arguments);
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let counter = Arc::new(Mutex::new(Counter::create(arguments)));
    let close = || counter.lock().expect("one thread").close();
    let (endpoint, connection) = tokio::select! {
        connected = connect(arguments, Arc::default()) => connected,
        _ = term.recv() => return close(),
    };
    tokio::select! {
        _ = ask(&connection, arguments, counter.clone()) => {}
        () = sleep_until(end) => {}
        _ = term.recv() => {}
    }
    let ended = connection.close_reason().and_then(|e| end_of(&e, arguments.role));
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    close();
    if let Some(end) = ended {
        end.leave(arguments);
    }
}

async fn ask(
    connection: &Connection,
    arguments: &Arguments,
    counter: Arc<Mutex<Counter>>,
) -> Result<(), Box<dyn Error>> {
    let (mut send, recv) = connection.open_bi().await?;
    send.write_all(&arguments.limit.wanted_bytes().to_be_bytes()).await?;
    count(send, recv, counter, 0).await;
    Ok(())
}
