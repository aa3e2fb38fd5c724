//! What the process knows of its machine: room on the disk, the size of its files, its memory.

use std::path::{Path, PathBuf};

use crate::serve::DATABASE;

/// Bytes that this user may still write at a folder's disk.
///
/// # Errors
/// If the disk cannot be asked.
pub fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The numbers for whoever watches; what cannot be measured is left out.
pub fn gauges(data_dir: PathBuf) -> web::Gauges {
    std::sync::Arc::new(move || {
        let bytes = |end: &str| {
            let file = data_dir.join(format!("{DATABASE}{end}"));
            std::fs::metadata(file).ok().map(|data| data.len())
        };
        [
            ("disk_free_bytes", free_bytes(&data_dir).ok()),
            ("database_bytes", bytes("")),
            ("wal_bytes", bytes("-wal")),
            ("resident_bytes", resident_bytes()),
        ]
        .into_iter()
        .filter_map(|(name, n)| Some((name, n?)))
        .collect()
    })
}

/// The process's memory, where the machine says so.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib.saturating_mul(1_024))
}
