use crate::Limit;

/// A perf stream begins with how many bytes the client wants back, big-endian: none.
pub const HEADER_BYTES: usize = 8;

const CHUNK_BYTES: usize = 1 << 20;
static ZEROES: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// What a sender still has to write to its stream, header included; all of it is zeroes.
pub struct Upload {
    left: Option<u64>,
}

impl Upload {
    /// Endless under a time limit.
    pub fn new(limit: Limit) -> Self {
        let bytes = |limit| match limit {
            Limit::Bytes(bytes) => Some(bytes + HEADER_BYTES as u64),
            Limit::Duration(_) => None,
        };
        Upload { left: bytes(limit) }
    }

    /// The next bytes to write; empty when all is written.
    pub fn chunk(&self) -> &'static [u8] {
        let size = self.left.map_or(CHUNK_BYTES as u64, |left| left.min(CHUNK_BYTES as u64));
        &ZEROES[..size as usize]
    }

    /// The stack took so many of them.
    pub fn written(&mut self, bytes: usize) {
        self.left = self.left.map(|left| left - bytes as u64);
    }

    /// Whether the stream can be finished.
    pub fn complete(&self) -> bool {
        self.left == Some(0)
    }
}
