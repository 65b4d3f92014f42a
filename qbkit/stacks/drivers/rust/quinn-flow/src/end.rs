//! How quinn reports the end of a connection.

use common::{Code, End, Role};
use quinn::ConnectionError::{self, *};

/// The end of a connection as `role` sees it; None where the program itself closed it.
pub fn end_of(error: &ConnectionError, role: Role) -> Option<End> {
    Some(match error {
        LocallyClosed => return None,
        TransportError(e) => End::closed(role, Code::Transport(e.code.into()), &e.reason),
        ConnectionClosed(e) => {
            End::closed(role.peer(), Code::Transport(e.error_code.into()), &e.reason)
        }
        ApplicationClosed(e) => {
            End::closed(role.peer(), Code::Application(e.error_code.into()), &e.reason)
        }
        TimedOut => End::timeout(),
        Reset => End::reset(),
        other => End::unknown(other),
    })
}
