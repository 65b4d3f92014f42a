//! Counts what comes until SIGTERM.

use crate::api;
use crate::end::end_of;
use crate::tls;
use crate::transport::transport;
use common::{fail, Arguments, Counter, HEADER_BYTES};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use std::sync::{Arc, Mutex};
use tokio::signal::unix::{signal, SignalKind};
use tokio::spawn;

type Shared = Arc<Mutex<Counter>>;

pub async fn receive(arguments: &Arguments) {
    let tls = QuicServerConfig::try_from(tls::server(arguments)).expect("TLS 1.3 is on");
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport(arguments)));
    let address = arguments.address;
    let endpoint = Endpoint::server(config, address)
        .unwrap_or_else(|e| fail(format_args!("cannot listen on {address}: {e}")));
    let counter = Arc::new(Mutex::new(Counter::create(arguments)));
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let mut int = signal(SignalKind::interrupt()).expect("SIGINT can be caught");
    println!("ready");
    let (shared, of_flow) = (counter.clone(), Arc::new(arguments.clone()));
    // Tasks of the runtime: for those of a LocalSet it looks for other events before it sleeps.
    let accepted = async move {
        while let Some(incoming) = endpoint.accept().await {
            spawn(serve(incoming, shared.clone(), of_flow.clone()));
        }
    };
    tokio::select! {
        () = accepted => {}
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    counter.lock().expect("one thread").close();
}

async fn serve(incoming: quinn::Incoming, counter: Shared, arguments: Arc<Arguments>) {
    let Ok(connection) = incoming.await else { return };
    let error = loop {
        match Connection::accept_bi(&connection).await {
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
    while let Some(bytes) = api::read(&mut recv).await {
        let skipped = bytes.min(header);
        header -= skipped;
        counter.lock().expect("one thread").add(bytes - skipped);
    }
    let _ = send.finish(); // the connection may be gone: then nobody waits for it
}
