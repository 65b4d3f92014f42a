//! Counts what comes until SIGTERM.

use crate::end::end_of;
use crate::endpoint::{cannot, limits};
use crate::socket::socket;
use crate::tls;
use common::{Arguments, Counter, HEADER_BYTES};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Connection, Server};
use std::cell::RefCell;
use std::rc::Rc;
use tokio::signal::unix::{signal, SignalKind};
use tokio::task::{spawn_local, LocalSet};

type Shared = Rc<RefCell<Counter>>;

pub async fn receive(arguments: &Arguments) {
    let mut server = listen(arguments);
    let counter = Rc::new(RefCell::new(Counter::create(arguments)));
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let mut int = signal(SignalKind::interrupt()).expect("SIGINT can be caught");
    println!("ready");
    let accepting = LocalSet::new();
    let (shared, of_flow) = (counter.clone(), Rc::new(arguments.clone()));
    let accepted = accepting.run_until(async move {
        while let Some(connection) = server.accept().await {
            spawn_local(serve(connection, shared.clone(), of_flow.clone()));
        }
    });
    tokio::select! {
        () = accepted => {}
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    counter.borrow_mut().close();
}

fn listen(arguments: &Arguments) -> Server {
    let address = arguments.address;
    Server::builder()
        .with_tls(tls::server(arguments))
        .expect("a TLS server")
        .with_io(socket(arguments, address))
        .expect("a socket")
        .with_limits(limits(arguments))
        .expect("limits")
        .start()
        .unwrap_or_else(|e| cannot(&format!("listen on {address}"), &e))
}

async fn serve(mut connection: Connection, counter: Shared, arguments: Rc<Arguments>) {
    loop {
        match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => drop(spawn_local(count(stream, counter.clone()))),
            Ok(None) => return,
            Err(e) => return end_of(&e, arguments.role).write(&arguments),
        }
    }
}

/// Reads a perf stream to its end and answers with an empty one.
async fn count(mut stream: BidirectionalStream, counter: Shared) {
    let mut header = HEADER_BYTES;
    while let Ok(Some(chunk)) = stream.receive().await {
        let skipped = chunk.len().min(header);
        header -= skipped;
        counter.borrow_mut().add(chunk.len() - skipped);
    }
    let _ = stream.finish(); // the connection may be gone: then nobody waits for it
}
