use crate::{fail, now_ns, Arguments, Role};
use std::fmt::Write;

/// Exit status of a driver whose connection ended before its time (docs/howto/own-stack.md).
pub const LOST_CONNECTION: i32 = 3;

/// How a connection ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// "sender", "receiver", "timeout", "reset" or "unknown".
    by: &'static str,
    code: Option<Code>,
    reason: String,
}

/// An error code of QUIC or of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Transport(u64),
    Application(u64),
}

impl Code {
    pub fn new(is_application: bool, code: u64) -> Self {
        match is_application {
            true => Code::Application(code),
            false => Code::Transport(code),
        }
    }
}

impl Role {
    /// The role in the names of files, and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Recv => "receiver",
            Role::Send => "sender",
        }
    }

    /// The role of the other end.
    pub fn peer(self) -> Self {
        match self {
            Role::Recv => Role::Send,
            Role::Send => Role::Recv,
        }
    }
}

impl End {
    /// An end closed the connection.
    pub fn closed(by: Role, code: Code, reason: impl AsRef<[u8]>) -> Self {
        let reason = String::from_utf8_lossy(reason.as_ref()).into_owned();
        End { by: by.name(), code: Some(code), reason }
    }

    /// Nothing came from the other end for the idle timeout.
    pub fn timeout() -> Self {
        End { by: "timeout", code: None, reason: String::new() }
    }

    /// The other end knows nothing of the connection (a stateless reset).
    pub fn reset() -> Self {
        End { by: "reset", code: None, reason: String::new() }
    }

    /// The stack does not report who ended it.
    pub fn unknown(reason: impl std::fmt::Display) -> Self {
        End { by: "unknown", code: None, reason: reason.to_string() }
    }

    /// The same with the code that the stack reports.
    pub fn with(self, code: Code) -> Self {
        End { code: Some(code), ..self }
    }

    /// Write the report of this end of the connection. A receiver whose sender is done has none.
    pub fn write(&self, arguments: &Arguments) {
        let no_error = matches!(self.code, Some(Code::Application(0) | Code::Transport(0)));
        let done = self.by == Role::Send.name() && no_error;
        if arguments.role == Role::Recv && done {
            return;
        }
        let path = arguments.out.join(format!("{}-end.json", arguments.role.name()));
        if let Err(e) = std::fs::write(&path, self.json()) {
            fail(format_args!("cannot write {}: {e}", path.display()));
        }
    }

    /// Write the report, and end the program. All other files are written.
    pub fn leave(&self, arguments: &Arguments) -> ! {
        self.write(arguments);
        std::process::exit(LOST_CONNECTION);
    }

    fn json(&self) -> String {
        let code = self.code.map_or(String::new(), |code| {
            let (kind, number) = match code {
                Code::Transport(number) => ("transport", number),
                Code::Application(number) => ("application", number),
            };
            format!("\"kind\":\"{kind}\",\"code\":{number},")
        });
        let (time_ns, by, reason) = (now_ns(), self.by, quoted(&self.reason));
        format!("{{\"time_ns\":{time_ns},\"by\":\"{by}\",{code}\"reason\":{reason}}}\n")
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "ended by {}", self.by)?;
        match self.code {
            Some(Code::Transport(code)) => write!(f, " with transport error {code:#x}")?,
            Some(Code::Application(code)) => write!(f, " with application error {code:#x}")?,
            None => {}
        }
        match self.reason.as_str() {
            "" => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => write!(json, "\\u{:04x}", c as u32).expect("memory"),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
