//! Counts what comes until SIGTERM.

use crate::api;
use crate::end::end_of;
use crate::tls;
use crate::transport::transport;
use common::{fail, Arguments, Counter, HEADER_BYTES};
use quinn::{ConnectionError, Endpoint, RecvStream, SendStream};
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{signal, SignalKind};
use tokio::spawn;

type Shared = Arc<Mutex<Counter>>;

pub async fn receive(arguments: &Arguments) {
    let mut config = api::server_config(tls::server(arguments));
    config.transport_config(Arc::new(transport(arguments)));
    let address = arguments.address;
    let endpoint = Endpoint::server(config, address)
        .unwrap_or_else(|e| fail(format_args!("cannot listen on {address}: {e}")));
    let counter = Arc::new(Mutex::new(Counter::create(arguments)));
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let mut int = signal(SignalKind::interrupt()).expect("SIGINT can be caught");
    println!("ready");
    let (shared, of_flow) = (counter.clone(), Arc::new(arguments.clone()));
    let accepted = async move {
        while let Some(incoming) = endpoint.accept().await {
            spawn(serve(incoming.into_future(), shared.clone(), of_flow.clone()));
        }
    };
    tokio::select! {
        () = accepted => {}
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    counter.lock().expect("one thread").close();
}

async fn serve(
    incoming: impl std::future::Future<Output = Result<quinn::Connection, ConnectionError>>,
    counter: Shared,
    arguments: Arc<Arguments>,
) {
    let Ok(connection) = incoming.await else { return };
    let error = loop {
        match connection.accept_bi().await {
            Ok((send, recv)) => drop(spawn(count(send, recv, counter.clone()))),
            Err(error) => break error,
        }
    };
    if let Some(end) = end_of(&error, arguments.role) {
        end.write(&arguments);
    }
}

/// Reads a perf stream to its end and answers with an empty one.
async fn count(mut send: SendStream, mut recv: RecvStream, counter: Shared) {
    let mut header = HEADER_BYTES;
    while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
        let skipped = chunk.bytes.len().min(header);
        header -= skipped;
        counter.lock().expect("one thread").add(chunk.bytes.len() - skipped);
    }
    let _ = api::finish(&mut send).await; // the connection may be gone: then nobody waits for it
}
