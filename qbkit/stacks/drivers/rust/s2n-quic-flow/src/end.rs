//! How s2n-quic reports the end of a connection.

use common::{Code, End, Role};
use s2n_quic::connection::Error::{self, *};
use s2n_quic::stream;

/// The end of a connection as `role` sees it.
pub fn end_of(error: &Error, role: Role) -> End {
    let by = |is_local| if is_local { role } else { role.peer() };
    match error {
        Closed { initiator, .. } => End::closed(by(initiator.is_local()), Code::Transport(0), ""),
        Transport { code, reason, initiator, .. } => {
            End::closed(by(initiator.is_local()), Code::Transport(code.as_u64()), reason)
        }
        Application { error, initiator, .. } => {
            End::closed(by(initiator.is_local()), Code::Application((*error).into()), "")
        }
        StatelessReset { .. } => End::reset(),
        IdleTimerExpired { .. } => End::timeout(),
        other => End::unknown(other),
    }
}

/// The same for a stream that failed.
pub fn end_of_stream(error: &stream::Error, role: Role) -> End {
    match error {
        stream::Error::ConnectionError { error, .. } => end_of(error, role),
        other => End::unknown(other),
    }
}
