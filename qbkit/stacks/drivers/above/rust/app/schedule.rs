use super::{folder, Table};
use common::{fail, now_ns};
use std::str::FromStr;

/// What an application wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// To write so many bytes.
    Bytes(usize),
    /// Nothing before this time.
    At(u64),
    /// The receiver's answer to the request, which ends the stream.
    Answer,
}

enum Kind {
    /// Each object at its time after the start, the last one first.
    Objects(Vec<(u64, u64)>),
    OnOff { on_ns: u64, off_ns: u64, off_at_ns: Option<u64>, sent: u64 },
    Requests { bytes: u64, think_ns: u64, asked: bool },
}

/// The application above a sender: when it has data to send (qbkit/spec/app.py).
///
/// It writes objects.csv, a row when an object is released, or when an on-time ends.
pub struct App {
    kind: Kind,
    seed: u64,
    /// The start of the flow; for on–off times, of the present or next one.
    start_ns: u64,
    begun: bool,
    left: u64,
    rows: Table,
}

impl App {
    /// The application that the testbed asks for; it begins when it is first asked.
    pub fn given() -> Option<Self> {
        let text = std::env::var("QBKIT_APP").ok()?;
        let words: Vec<&str> = text.split(' ').collect();
        let number = |i: usize| parsed(words.get(i).unwrap_or(&""));
        let (kind, seed) = match words[0] {
            "onoff" => {
                let (on_ns, off_ns) = (number(1), number(2));
                (Kind::OnOff { on_ns, off_ns, off_at_ns: None, sent: 0 }, number(3))
            }
            "requests" => {
                let (bytes, think_ns) = (number(1), number(2));
                (Kind::Requests { bytes, think_ns, asked: false }, number(3))
            }
            _ => (Kind::Objects(words[1..].iter().rev().map(|word| pair(word)).collect()), 0),
        };
        let rows = Table::create(folder()?, "objects.csv");
        Some(App { kind, seed, start_ns: 0, begun: false, left: 0, rows })
    }

    /// What it wants now. After `Bytes`, `written` says how many of them the stack took.
    pub fn due(&mut self) -> Due {
        let now = now_ns();
        if !self.begun {
            (self.begun, self.start_ns) = (true, now);
        }
        match &mut self.kind {
            Kind::Objects(_) => self.due_object(now),
            Kind::OnOff { .. } => self.due_on(now),
            Kind::Requests { asked: true, .. } if self.left == 0 => Due::Answer,
            Kind::Requests { bytes, asked, .. } => {
                if self.left == 0 && now < self.start_ns {
                    return Due::At(self.start_ns);
                }
                if self.left == 0 {
                    (self.left, *asked) = (*bytes, true);
                    let bytes = *bytes;
                    self.row(now, bytes);
                }
                Due::Bytes(self.left as usize)
            }
        }
    }

    /// The stack took so many bytes.
    pub fn written(&mut self, bytes: usize) {
        match &mut self.kind {
            Kind::OnOff { sent, .. } => *sent += bytes as u64,
            _ => self.left -= bytes as u64,
        }
    }

    /// The receiver has answered a request: now it thinks.
    pub fn answered(&mut self) {
        let Kind::Requests { think_ns, asked, .. } = &mut self.kind else { return };
        *asked = false;
        let think_ns = *think_ns;
        self.start_ns = now_ns() + self.drawn(think_ns);
    }

    fn due_object(&mut self, now: u64) -> Due {
        let Kind::Objects(listed) = &mut self.kind else { unreachable!("its caller looked") };
        if self.left == 0 {
            let Some(&(at_ns, bytes)) = listed.last() else { return Due::At(u64::MAX) };
            let at = self.start_ns + at_ns;
            if now < at {
                return Due::At(at);
            }
            listed.pop();
            self.left = bytes;
            self.row(at, bytes);
        }
        Due::Bytes(self.left as usize)
    }

    fn due_on(&mut self, now: u64) -> Due {
        let Kind::OnOff { on_ns, off_ns, off_at_ns, sent } = &self.kind else {
            unreachable!("its caller looked")
        };
        let (on_ns, off_ns, sent) = (*on_ns, *off_ns, *sent);
        match *off_at_ns {
            Some(off_at) if now < off_at => Due::Bytes(usize::MAX),
            Some(off_at) => {
                self.row(self.start_ns, sent);
                self.start_ns = off_at + self.drawn(off_ns);
                self.on_until(None);
                Due::At(self.start_ns)
            }
            None if now < self.start_ns => Due::At(self.start_ns),
            None => {
                self.start_ns = now;
                let until = now + self.drawn(on_ns);
                self.on_until(Some(until));
                Due::Bytes(usize::MAX)
            }
        }
    }

    fn on_until(&mut self, at: Option<u64>) {
        if let Kind::OnOff { off_at_ns, sent, .. } = &mut self.kind {
            (*off_at_ns, *sent) = (at, 0);
        }
    }

    /// A time of this mean, exponential if there is a seed: xorshift64*, as in tcp/app.c.
    fn drawn(&mut self, mean_ns: u64) -> u64 {
        if self.seed == 0 {
            return mean_ns;
        }
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        let part = (self.seed.wrapping_mul(2685821657736338717) >> 11) as f64 / 2f64.powi(53);
        (-(1.0 - part).ln() * mean_ns as f64) as u64
    }

    fn row(&mut self, at_ns: u64, bytes: u64) {
        self.rows.row(at_ns, bytes);
    }
}

fn pair(word: &str) -> (u64, u64) {
    let (at_ns, bytes) = word.split_once(':').unwrap_or_default();
    (parsed(at_ns), parsed(bytes))
}

fn parsed<T: FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| fail(format_args!("QBKIT_APP has {word:?} for a number")))
}
