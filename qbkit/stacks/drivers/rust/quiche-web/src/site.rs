//! What the server answers: files in memory, by host and path.

use common::fail;
use quiche::h3::{self, Connection as Http, Header, NameValue};
use quiche::Connection;
use std::collections::HashMap;
use std::rc::Rc;

/// A response, as far as it is not sent yet.
pub struct Response {
    /// None once they are sent.
    headers: Option<Vec<Header>>,
    priority: h3::Priority,
    body: Rc<[u8]>,
    sent_bytes: usize,
}

impl Response {
    /// Sends the headers, if they are not sent; false when that was all, or the stream is gone.
    pub fn send_head(&mut self, quic: &mut Connection, http: &mut Http, stream: u64) -> bool {
        let Some(headers) = &self.headers else { return true };
        let ends = self.body.is_empty();
        match http.send_response_with_priority(quic, stream, headers, &self.priority, ends) {
            Ok(()) => self.headers = None,
            Err(error) => return error == h3::Error::StreamBlocked,
        }
        !ends
    }

    /// Sends what the stream takes of the body; false when it is done, or the stream is gone.
    pub fn send_body(&mut self, quic: &mut Connection, http: &mut Http, stream: u64) -> bool {
        if self.headers.is_some() {
            return true;
        }
        match http.send_body(quic, stream, &self.body[self.sent_bytes..], true) {
            Ok(bytes) => self.sent_bytes += bytes,
            Err(error) => return error == h3::Error::Done,
        }
        self.sent_bytes < self.body.len()
    }
}

struct File {
    headers: Vec<Header>,
    body: Rc<[u8]>,
}

pub struct Site {
    /// Host (empty for any) and path with its query → file.
    files: HashMap<(String, String), File>,
}

impl Site {
    /// A line of the table has host, path, file, status, and names and values of headers, with a
    /// tab after each but the last.
    pub fn read(table: &str) -> Self {
        let mut files = HashMap::new();
        let read = |path: &str| {
            std::fs::read(path).unwrap_or_else(|e| fail(format_args!("cannot read {path}: {e}")))
        };
        for line in String::from_utf8_lossy(&read(table)).lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [host, path, file, status, headers @ ..] = fields.as_slice() else {
                fail(format_args!("{table} has a line with fewer than four fields: {line}"))
            };
            let body = read(file);
            let mut all = head(status, body.len());
            all.extend(headers.chunks_exact(2).map(|h| header(h[0], h[1])));
            let found = File { headers: all, body: body.into() };
            files.insert((host.to_string(), path.to_string()), found);
        }
        Site { files }
    }

    /// The response to a request with these headers, and the latest priority that came apart.
    pub fn respond(&self, request: &[Header], update: Option<Vec<u8>>) -> Response {
        let value = |name: &[u8]| {
            let found = request.iter().find(|h| h.name() == name);
            found.map_or("".into(), |h| String::from_utf8_lossy(h.value()).into_owned())
        };
        let (host, path) = (value(b":authority"), value(b":path"));
        let host = host.split(':').next().unwrap_or_default().to_string();
        let find = |host| self.files.get(&(host, path.clone()));
        let (headers, body) = match find(host).or_else(|| find(String::new())) {
            _ if value(b":method") != "GET" => (head("405", 0), Rc::default()),
            Some(file) => (file.headers.clone(), file.body.clone()),
            None => (head("404", 0), Rc::default()),
        };
        let update = update.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let priority = priority(&update.unwrap_or_else(|| value(b"priority")));
        Response { headers: Some(headers), priority, body, sent_bytes: 0 }
    }
}

/// A priority (RFC 9218); what cannot be read has its default.
fn priority(text: &str) -> h3::Priority {
    let (mut urgency, mut incremental) = (3, false);
    for item in text.split(',').map(str::trim) {
        match item.split_once('=').unwrap_or((item, "?1")) {
            ("u", value) => urgency = value.parse().unwrap_or(urgency),
            ("i", value) => incremental = value == "?1",
            _ => {}
        }
    }
    h3::Priority::new(urgency, incremental)
}

fn head(status: &str, length_bytes: usize) -> Vec<Header> {
    let length = length_bytes.to_string();
    vec![header(":status", status), header("server", "quiche"), header("content-length", &length)]
}

fn header(name: &str, value: &str) -> Header {
    Header::new(name.to_ascii_lowercase().as_bytes(), value.as_bytes())
}
