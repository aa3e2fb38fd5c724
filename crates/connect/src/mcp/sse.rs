//! Server-sent events out of byte chunks that may end anywhere, also inside a character.

/// Collects bytes and gives out the data of each event. Its caller bounds the bytes pushed.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
    /// Bytes that were searched for a line end already.
    searched: usize,
    data: Option<Vec<u8>>,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The data of the next event that has any; `None` until more bytes arrive. What a stream that
    /// ended has not closed with an empty line is no event.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(length) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n')
        {
            let end = self.searched + length;
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            self.searched = 0;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                match self.data.take() {
                    Some(data) if !data.is_empty() => return Some(data),
                    Some(_) | None => {}
                }
            } else if let Some(value) = line.strip_prefix(b"data:") {
                let value = value.strip_prefix(b" ").unwrap_or(value);
                match &mut self.data {
                    Some(data) => data.extend(b"\n".iter().chain(value)),
                    None => self.data = Some(value.to_vec()),
                }
            }
        }
        self.searched = self.bytes.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    #[test]
    fn events_come_out_whole_wherever_the_bytes_are_cut() {
        let stream = ": hello\r\n\r\nid: 1\ndata:\n\nevent: message\r\ndata: {\"a\":\r\ndata: \"价\"}\
                      \r\n\r\ndata:[1]\n\ndata: never closed\n";
        for cut in 1..=stream.len() {
            let mut events = Events::default();
            let mut seen = Vec::new();
            for part in stream.as_bytes().chunks(cut) {
                events.push(part);
                while let Some(data) = events.next() {
                    seen.push(String::from_utf8(data).unwrap());
                }
            }
            assert_eq!(seen, ["{\"a\":\n\"价\"}", "[1]"], "cut every {cut} bytes");
        }
    }
}
