//! Server-sent events out of byte chunks that may end anywhere, also inside a character.

/// Collects bytes and gives out the data of each event. Its caller bounds the bytes pushed.
#[derive(Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The data of the next event; `None` until more bytes arrive.
    ///
    /// Servers of this protocol send one line of JSON per event, so each data line is taken for an
    /// event of its own; comments and other fields are skipped.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let mut taken = 0;
        let mut data = None;
        while data.is_none()
            && let Some(length) = self.bytes[taken..].iter().position(|byte| *byte == b'\n')
        {
            let line = self.bytes[taken..taken + length].trim_ascii();
            taken += length + 1;
            data = line.strip_prefix(b"data:").map(|data| data.trim_ascii_start().to_vec());
        }
        self.bytes.drain(..taken);
        data
    }

    /// The last event of a stream that ended without a line end.
    pub(super) fn last(mut self) -> Option<Vec<u8>> {
        self.push(b"\n");
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    #[test]
    fn events_come_out_whole_wherever_the_bytes_are_cut() {
        let stream = ": hello\r\n\r\nevent: x\r\ndata: {\"a\":\"价\"}\r\n\r\ndata:[DONE]";
        for cut in 1..stream.len() {
            let mut events = Events::default();
            let mut seen = Vec::new();
            for part in stream.as_bytes().chunks(cut) {
                events.push(part);
                while let Some(data) = events.next() {
                    seen.push(String::from_utf8(data).unwrap());
                }
            }
            seen.extend(events.last().map(|data| String::from_utf8(data).unwrap()));
            assert_eq!(seen, ["{\"a\":\"价\"}", "[DONE]"], "cut every {cut} bytes");
        }
    }
}
