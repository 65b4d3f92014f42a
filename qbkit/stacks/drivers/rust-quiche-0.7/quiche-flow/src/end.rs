//! How a connection of quiche 0.7 ended. It keeps the error for which it closed a connection itself,
//! and neither code nor reason of the other end's: that end's own report has them.

use crate::link::Link;
use common::{Code, End, Role};
use quiche::Error;

/// The end of a connection as `role` sees it; None while it lives.
pub fn end_of(link: &Link, role: Role) -> Option<End> {
    if let Some(fault) = link.fault {
        return Some(End::closed(role, Code::Transport(code_of(fault)), format!("{fault:?}")));
    }
    let connection = &link.connection;
    match role {
        // Nothing else closes its connection while it sends.
        Role::Send if connection.is_draining() => Some(End::unknown(
            "the receiver closed it, and this version of quiche keeps neither code nor reason",
        )),
        // Only a timeout closes a connection that does not drain.
        _ if connection.is_closed() && !connection.is_draining() => Some(End::timeout()),
        _ => None,
    }
}

/// The code that quiche closes a connection with, by a function of its own that it hides.
fn code_of(fault: Error) -> u64 {
    match fault {
        Error::FlowControl => 0x3,
        Error::StreamLimit => 0x4,
        Error::InvalidStreamState => 0x5,
        Error::FinalSize => 0x6,
        Error::InvalidFrame => 0x7,
        Error::InvalidTransportParam => 0x8,
        _ => 0xa,
    }
}
