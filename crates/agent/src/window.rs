//! The history window: bounded from the first day, and moved in jumps so that prefixes stay.

/// Where the window starts for the next run. `sizes` holds the number and tokens of the session's runs
/// from the present start on; `budget` is what history may hold.
///
/// It moves only when history no longer fits, and then to half of the budget, so that the next many
/// runs keep their prefix. It moves at run boundaries only; the newest run may fall out if it alone is
/// too large.
pub fn window_start(sizes: &[(i64, u64)], start: i64, budget: u64) -> i64 {
    let total: u64 = sizes.iter().map(|(_, tokens)| tokens).sum();
    if total <= budget {
        return start;
    }
    let mut kept = total;
    for (n, tokens) in sizes {
        if kept <= budget / 2 {
            return *n;
        }
        kept -= tokens;
    }
    sizes.last().map_or(start, |(n, _)| n + 1)
}

#[cfg(test)]
mod tests {
    use super::window_start;

    #[test]
    fn it_jumps_to_half_and_then_stays() {
        let sizes: Vec<(i64, u64)> = (0..10).map(|n| (n, 10)).collect();
        assert_eq!(window_start(&sizes, 0, 100), 0);
        assert_eq!(window_start(&sizes, 0, 99), 6);
        assert_eq!(window_start(&[(4, 500)], 4, 100), 5);
        let (mut start, mut moves, mut history) = (0, 0, Vec::new());
        for n in 0..5_000 {
            let window: Vec<(i64, u64)> = history[start as usize..].to_vec();
            let next = window_start(&window, start, 1_000);
            moves += i32::from(next != start);
            start = next;
            let held: u64 = history[start as usize..].iter().map(|(_, t): &(i64, u64)| t).sum();
            assert!(held <= 1_000);
            history.push((n, 7 + (n as u64 * 13) % 50));
        }
        assert!((200..400).contains(&moves), "{moves} moves in 5000 runs");
    }
}
