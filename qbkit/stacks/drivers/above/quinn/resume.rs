//! A second connection that resumes the session of the first (qbkit/spec/resume.py).

use crate::end::end_of;
use crate::resumption::{self, Resume};
use crate::send::{self, upload};
use crate::tls::FULL_HANDSHAKES;
use crate::watch::Latest;
use common::{fail, now_ns, Arguments};
use quinn::{Connecting, Connection, ConnectionError, Endpoint, Incoming, ZeroRttAccepted};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tokio::spawn;
use tokio::time::sleep;

/// The connection of the transfer: the only one, or the second.
pub async fn connect(arguments: &Arguments, latest: Arc<Mutex<Latest>>) -> (Endpoint, Connection) {
    let resume = Resume::asked();
    if let Some(resume) = &resume {
        first(arguments, resume).await;
    }
    let (began_ns, full) = (now_ns(), FULL_HANDSHAKES.load(Relaxed));
    let (endpoint, connection, early) = send::connect(arguments, latest).await;
    if resume.is_some() {
        spawn(note(early, began_ns, full, arguments.clone()));
    }
    (endpoint, connection)
}

/// The first connection; returns when the second one is to begin.
async fn first(arguments: &Arguments, resume: &Resume) {
    let mine = resume.first(arguments);
    let (_endpoint, connection, _) = send::connect(&mine, Arc::default()).await;
    if let Err(sentence) = upload(&connection, mine.limit).await {
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

/// Waits for the end of the handshake; a client looks at certificates in full ones.
async fn note(early: Option<ZeroRttAccepted>, began_ns: u64, full: usize, arguments: Arguments) {
    let early = match early {
        Some(accepted) => accepted.await,
        None => false,
    };
    resumption::note(&arguments, began_ns, FULL_HANDSHAKES.load(Relaxed) == full, early);
}
