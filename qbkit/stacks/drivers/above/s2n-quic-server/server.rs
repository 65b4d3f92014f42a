//! The server sends: it gives its client what the client asks for.

use crate::controllers::{bbr, cubic, Controller};
use crate::end::{end_of, end_of_stream};
use crate::endpoint::{cannot, limits};
use crate::receive::count;
use crate::send::{chosen, connect, limit, watch, CLOSE_LIMIT};
use crate::socket::socket;
use crate::tls;
use crate::watch::{Latest, Watcher};
use bytes::Bytes;
use common::{Arguments, Counter, End, Role, Samples, Upload, HEADER_BYTES};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Connection, Server};
use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use tokio::signal::unix::{signal, SignalKind};
use tokio::time::{sleep_until, timeout};

/// Gives the first client what it asks for, then waits: a server never ends by itself.
pub async fn give(arguments: &Arguments) {
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let (latest, mut samples) = (Latest::default(), Samples::new());
    let mut server = match arguments.controller.as_str() {
        "bbr" => listen(arguments, &latest, bbr(arguments, &latest)),
        _ => listen(arguments, &latest, cubic(arguments, &latest)),
    };
    println!("ready");
    let end = tokio::select! {
        end = first_client(&mut server, arguments, &latest, &mut samples) => Some(end),
        _ = term.recv() => None,
    };
    samples.write(arguments);
    if let Some(end) = end {
        end.leave(arguments);
    }
}

fn listen(arguments: &Arguments, latest: &Latest, controller: impl Controller) -> Server {
    let address = arguments.address;
    let settings = Server::builder().with_tls(tls::server(arguments)).expect("a TLS server");
    let settings = settings.with_io(socket(arguments, address)).expect("a socket");
    let settings = settings.with_limits(limits(arguments)).expect("limits");
    let settings = settings.with_congestion_controller(controller).expect("a controller");
    let settings = settings.with_event(Watcher(latest.clone())).expect("a subscriber");
    settings.start().unwrap_or_else(|e| cannot(&format!("listen on {address}"), &e))
}

/// How the connection of the first client ended, before it was done.
async fn first_client(
    server: &mut Server,
    arguments: &Arguments,
    latest: &Latest,
    samples: &mut Samples,
) -> End {
    let Some(mut connection) = server.accept().await else { return pending().await };
    let end = tokio::select! {
        end = answer(&mut connection) => end,
        () = watch(latest, samples) => unreachable!("it watches for ever"),
    };
    match end.is_done(arguments) {
        true => pending().await,
        false => end,
    }
}

/// Gives a client what it asks for; how its connection ended.
async fn answer(connection: &mut Connection) -> End {
    loop {
        let stream = match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => stream,
            Ok(None) => return pending().await, // the client has left
            Err(e) => return end_of(&e, Role::Send),
        };
        if let Err(e) = respond(stream).await {
            return end_of_stream(&e, Role::Send);
        }
    }
}

async fn respond(mut stream: BidirectionalStream) -> Result<(), s2n_quic::stream::Error> {
    let mut header = Vec::new();
    while header.len() < HEADER_BYTES {
        let Some(bytes) = stream.receive().await? else { return Ok(()) };
        header.extend(bytes);
    }
    let wanted = header[..HEADER_BYTES].try_into().expect("it is as long");
    let mut response = Upload::of(u64::from_be_bytes(wanted));
    while !response.complete() {
        let chunk = response.chunk();
        stream.send(Bytes::from_static(chunk)).await?;
        response.written(chunk.len());
    }
    stream.finish()
}

/// Asks a server for data, and counts them, for a time or so many bytes.
pub async fn fetch(arguments: &Arguments) {
    let end = limit(arguments);
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let counter = Rc::new(RefCell::new(Counter::create(arguments)));
    let mut client = chosen(arguments, &Latest::default());
    let mut connection = tokio::select! {
        connection = connect(arguments, &client) => connection,
        _ = term.recv() => return counter.borrow_mut().close(),
    };
    let result = tokio::select! {
        result = ask(&mut connection, arguments, counter.clone()) => result,
        () = sleep_until(end) => Ok(()),
        _ = term.recv() => Ok(()),
    };
    connection.close(0u32.into());
    let _ = timeout(CLOSE_LIMIT, client.wait_idle()).await; // told or not, it is over
    counter.borrow_mut().close();
    if let Err(end) = result {
        end.leave(arguments);
    }
}

async fn ask(
    connection: &mut Connection,
    arguments: &Arguments,
    counter: Rc<RefCell<Counter>>,
) -> Result<(), End> {
    let opened = connection.open_bidirectional_stream().await;
    let mut stream = opened.map_err(|e| end_of(&e, Role::Recv))?;
    let wanted = arguments.limit.wanted_bytes().to_be_bytes();
    let broken = |e| end_of_stream(&e, Role::Recv);
    stream.send(Bytes::copy_from_slice(&wanted)).await.map_err(broken)?;
    count(stream, counter, 0).await.map_err(broken)
}
