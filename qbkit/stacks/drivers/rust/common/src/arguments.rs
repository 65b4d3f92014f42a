use crate::fail;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Recv,
    Send,
}

/// When a sender ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Duration(Duration),
    Bytes(u64),
}

/// The command line.
#[derive(Clone, Debug)]
pub struct Arguments {
    pub role: Role,
    pub address: SocketAddr,
    pub cert: PathBuf,
    pub key: PathBuf,
    pub controller: String,
    pub limit: Limit,
    pub out: PathBuf,
    pub knobs: Knobs,
}

/// The `--option K=V` words.
#[derive(Clone, Debug)]
pub struct Knobs(BTreeMap<String, String>);

impl Knobs {
    /// The value of a knob; none when it was not given; fails when it cannot be read.
    pub fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        let text = self.0.get(name)?;
        let kind = std::any::type_name::<T>();
        let unreadable = || fail(format_args!("the option {name} cannot be {text}: no {kind}"));
        Some(text.parse().unwrap_or_else(|_| unreadable()))
    }

    /// The same for text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Parse the command line of `stack`; unknown words, controllers and knobs fail and name the known.
pub fn arguments(stack: &str, controllers: &[&str], knobs: &[&str]) -> Arguments {
    let mut words = std::env::args().skip(1);
    let role = match words.next().as_deref() {
        Some("recv") => Role::Recv,
        Some("send") => Role::Send,
        _ => fail(format_args!("usage: {stack} recv|send, see qbkit/stacks/base.py")),
    };
    let mut given = BTreeMap::new();
    let mut options = BTreeMap::new();
    while let Some(name) = words.next() {
        let Some(value) = words.next() else { fail(format_args!("{name} needs a value")) };
        match (name.as_str(), value.split_once('=')) {
            ("--option", Some((key, setting))) if knobs.contains(&key) => {
                options.insert(key.to_string(), setting.to_string());
            }
            ("--option", _) => {
                fail(format_args!("{stack} has no option {value}; it has {}", knobs.join(", ")))
            }
            _ => drop(given.insert(name, value)),
        }
    }
    let a = Arguments {
        role,
        address: needed(&mut given, if role == Role::Recv { "--listen" } else { "--connect" }),
        out: needed(&mut given, "--out"),
        cert: given.remove("--cert").unwrap_or_default().into(),
        key: given.remove("--key").unwrap_or_default().into(),
        controller: given.remove("--controller").unwrap_or_default(),
        limit: match given.contains_key("--bytes") {
            true => Limit::Bytes(needed(&mut given, "--bytes")),
            false if role == Role::Recv => Limit::Bytes(0),
            false => Limit::Duration(Duration::from_secs_f64(needed(&mut given, "--duration-s"))),
        },
        knobs: Knobs(options),
    };
    if let Some(word) = given.keys().next() {
        fail(format_args!("{stack} does not know the argument {word}"));
    }
    if role == Role::Send && !controllers.contains(&a.controller.as_str()) {
        let known = controllers.join(", ");
        fail(format_args!("{stack} has no controller {}; it has {known}", a.controller));
    }
    a
}

fn needed<T: FromStr>(given: &mut BTreeMap<String, String>, name: &str) -> T {
    let Some(text) = given.remove(name) else { fail(format_args!("{name} is missing")) };
    text.parse().unwrap_or_else(|_| fail(format_args!("{name} cannot be {text}")))
}
