//! A second connection that resumes the session of the first (qbkit/spec/resume.py).

use crate::end::end_of;
use crate::send::{self, upload};
use crate::tls::FULL_HANDSHAKES;
use crate::watch::Latest;
use common::{fail, now_ns, Arguments, Limit};
use quinn::{Connecting, Connection, ConnectionError, Endpoint, Incoming, ZeroRttAccepted};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::spawn;
use tokio::time::sleep;

/// What the testbed asks both ends for.
pub struct Resume {
    /// The server takes data before the handshake ends.
    pub early: bool,
    first_bytes: u64,
    pause: Duration,
}

impl Resume {
    /// None: a flow is one connection.
    pub fn asked() -> Option<Self> {
        let text = std::env::var("QBKIT_RESUME").ok()?;
        let words: Vec<&str> = text.split(' ').collect();
        let number = |i: usize| {
            words.get(i).and_then(|word| word.parse().ok()).unwrap_or_else(|| {
                fail(format_args!("QBKIT_RESUME={text} is no KIND BYTES PAUSE_NS"))
            })
        };
        let (first_bytes, pause) = (number(1), Duration::from_nanos(number(2)));
        Some(Resume { early: words[0] == "0rtt", first_bytes, pause })
    }
}

/// The connection of the transfer: the only one, or the second.
pub async fn connect(arguments: &Arguments, latest: Arc<Mutex<Latest>>) -> (Endpoint, Connection) {
    let resume = Resume::asked();
    if let Some(resume) = &resume {
        first(arguments, resume).await;
    }
    let (began_ns, full) = (now_ns(), FULL_HANDSHAKES.load(Relaxed));
    let (endpoint, connection, early) = send::connect(arguments, latest).await;
    if resume.is_some() {
        spawn(note(early, began_ns, full, arguments.out.join("resumed.csv")));
    }
    (endpoint, connection)
}

/// The first connection; returns when the second one is to begin.
async fn first(arguments: &Arguments, resume: &Resume) {
    let unlogged = Arguments { knobs: arguments.knobs.without("qlog"), ..arguments.clone() };
    let (_endpoint, connection, _) = send::connect(&unlogged, Arc::default()).await;
    if let Err(sentence) = upload(&connection, Limit::Bytes(resume.first_bytes)).await {
        if let Some(end) = connection.close_reason().and_then(|e| end_of(&e, arguments.role)) {
            end.leave(arguments);
        }
        fail(sentence);
    }
    connection.close(0u32.into(), b"");
    sleep(resume.pause).await;
}

/// The client's connection once it can send: at once, if a ticket allows data before the handshake.
pub async fn usable(
    connecting: Connecting,
) -> Result<(Connection, Option<ZeroRttAccepted>), ConnectionError> {
    match connecting.into_0rtt() {
        Ok((connection, early)) => Ok((connection, Some(early))),
        Err(connecting) => Ok((connecting.await?, None)),
    }
}

/// The server's connection: after the handshake, or before it where data may come early.
pub async fn accepted(incoming: Incoming) -> Option<Connection> {
    if Resume::asked().is_none() {
        return incoming.await.ok();
    }
    let (connection, _) = incoming.accept().ok()?.into_0rtt().ok()?;
    Some(connection)
}

/// Writes resumed.csv when the handshake is complete; a client looks at certificates in full ones.
async fn note(early: Option<ZeroRttAccepted>, began_ns: u64, full: usize, path: PathBuf) {
    let early = match early {
        Some(accepted) => accepted.await,
        None => false,
    };
    let session = FULL_HANDSHAKES.load(Relaxed) == full;
    let row = format!("{began_ns},{},{}", u8::from(session), u8::from(early));
    if let Err(e) = std::fs::write(&path, format!("time_ns,session,early\n{row}\n")) {
        fail(format_args!("cannot write {}: {e}", path.display()));
    }
}
