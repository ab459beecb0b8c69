//! The logs of the storm test, and their evaluation.

use shmlimit::{Algorithm, RuleDraft};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENTRY: usize = 24;

/// One entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Granted at some moment between two readings of the clock.
    Granted { before: u64, after: u64 },
    /// About to release the permit; `cancel` means that the charge is given back, too.
    Ending { at: u64, cancel: bool },
}

impl Entry {
    /// The written form. One short append, so an entry is written completely or not at all.
    pub fn to_bytes(self) -> [u8; ENTRY] {
        let words = match self {
            Entry::Granted { before, after } => [0, before, after],
            Entry::Ending { at, cancel } => [1, at, u64::from(cancel)],
        };
        let mut bytes = [0; ENTRY];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Entry {
        let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap());
        match word(0) {
            0 => Entry::Granted { before: word(1), after: word(2) },
            _ => Entry::Ending { at: word(1), cancel: word(2) != 0 },
        }
    }
}

fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("log-"))
}

/// The total size of all logs, which grows with every grant.
pub fn bytes_in_logs(directory: &Path) -> u64 {
    files(directory).map(|path| path.metadata().unwrap().len()).sum()
}

/// The size of one process's log; 0 if the process has not begun it.
pub fn bytes_in_log(directory: &Path, pid: i32) -> u64 {
    directory.join(format!("log-{pid}")).metadata().map_or(0, |file| file.len())
}

/// The entries of a log.
pub fn entries(bytes: &[u8]) -> Vec<Entry> {
    bytes.chunks_exact(ENTRY).map(Entry::from_bytes).collect()
}

/// The logs, one per process.
pub fn logs(directory: &Path) -> Vec<Vec<Entry>> {
    files(directory).map(|path| entries(&std::fs::read(path).unwrap())).collect()
}

/// A call that was granted.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub before: u64,
    pub after: u64,
    /// The time until which it surely held its permit, if that is known.
    pub until: Option<u64>,
    pub cancelled: bool,
}

/// The calls in all logs, ordered by the time at which they were surely granted.
pub fn calls(logs: &[Vec<Entry>]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for log in logs {
        for entry in log {
            match *entry {
                Entry::Granted { before, after } => {
                    calls.push(Call { before, after, until: None, cancelled: false });
                }
                Entry::Ending { at, cancel } => {
                    let call = calls.last_mut().expect("an end has a beginning");
                    (call.until, call.cancelled) = (Some(at), cancel);
                }
            }
        }
    }
    calls.sort_by_key(|call| call.after);
    calls
}

/// The most permits that were provably in flight at one moment: granted before it, and not yet released.
pub fn most_at_once(calls: &[Call]) -> usize {
    let mut changes: Vec<(u64, i32)> = Vec::new();
    for call in calls {
        // A killed call held its permit at least at this very moment.
        changes.push((call.after, 1));
        changes.push((call.until.unwrap_or(call.after) + 1, -1));
    }
    // At equal times, ends come first: an end is the first moment at which the permit is not provably held.
    changes.sort_unstable();
    let mut out = 0;
    changes
        .iter()
        .map(|(_, change)| {
            out += change;
            out
        })
        .max()
        .unwrap_or(0) as usize
}

/// A rule for the evaluation: never more than `burst` + `limit` per `period` in any window.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub limit: u64,
    pub burst: u64,
    /// Nanoseconds.
    pub period: u64,
}

impl Rule {
    /// The same rule for the limiter.
    pub fn draft(&self, algorithm: Algorithm) -> RuleDraft<'static> {
        RuleDraft {
            burst: Some(self.burst),
            ..RuleDraft::new(algorithm, self.limit, Duration::from_nanos(self.period))
        }
    }

    /// Finds the window with the most grants that were surely made in it (asked after it began, answered before it
    /// ended), and returns whether it exceeds the rule. Cancelled grants do not count, nor do grants of processes
    /// that were killed before they wrote their log. Both can only make the count smaller, so an excess is a proof.
    pub fn worst_window(&self, calls: &[Call]) -> (bool, String) {
        let mut counted: Vec<Call> = calls.iter().filter(|call| !call.cancelled).copied().collect();
        counted.sort_by_key(|call| call.after);
        let Some(start) = counted.iter().map(|call| call.before).min() else { return (false, "none".into()) };
        let ends: Vec<u64> = counted.iter().map(|call| call.after).collect();
        // For each possible end of the window: the grants in it, minus the refill since `start`.
        let level = |time: u64| (time - start) as i128 * i128::from(self.limit);
        let mut tree = MaxTree::new(ends.iter().map(|end| -level(*end)).collect());
        let mut order: Vec<usize> = (0..counted.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(counted[*i].before));
        let mut worst: Option<(i128, u64, u64)> = None;
        for (n, i) in order.iter().enumerate() {
            tree.enable(*i);
            tree.add_from(*i, i128::from(self.period));
            let begin = counted[*i].before;
            if order.get(n + 1).is_some_and(|next| counted[*next].before == begin) {
                continue;
            }
            let (load, end) = tree.max();
            let load = load + level(begin);
            if worst.is_none_or(|(most, ..)| load > most) {
                worst = Some((load, begin, ends[end]));
            }
        }
        let Some((load, begin, end)) = worst else { return (false, "none".into()) };
        let inside = counted.iter().filter(|call| call.before >= begin && call.after <= end).count();
        let micros = (end - begin) / 1000;
        let used = load as f64 / self.period as f64;
        let says = format!("{inside} grants in {micros} µs, {used:.2} of a burst of {}", self.burst);
        (load > i128::from(self.burst) * i128::from(self.period), says)
    }
}

/// Values with two operations in logarithmic time: add to all from an index on, and find the greatest enabled one.
struct MaxTree {
    leaves: usize,
    /// The greatest value below this node and its index, without the amounts added above the node.
    max: Vec<(i128, usize)>,
    added: Vec<i128>,
}

const DISABLED: i128 = -(1 << 100);

impl MaxTree {
    fn new(values: Vec<i128>) -> MaxTree {
        let leaves = values.len().next_power_of_two();
        let mut max = vec![(2 * DISABLED, 0); 2 * leaves];
        for (i, value) in values.into_iter().enumerate() {
            max[leaves + i] = (value + DISABLED, i);
        }
        for node in (1..leaves).rev() {
            max[node] = max[2 * node].max(max[2 * node + 1]);
        }
        MaxTree { leaves, max, added: vec![0; 2 * leaves] }
    }

    fn enable(&mut self, leaf: usize) {
        self.add(leaf, leaf + 1, -DISABLED);
    }

    fn add_from(&mut self, leaf: usize, amount: i128) {
        self.add(leaf, self.leaves, amount);
    }

    fn add(&mut self, from: usize, to: usize, amount: i128) {
        self.add_below(1, 0, self.leaves, from, to, amount);
    }

    fn add_below(&mut self, node: usize, low: usize, high: usize, from: usize, to: usize, amount: i128) {
        if to <= low || high <= from {
            return;
        }
        if from <= low && high <= to {
            self.max[node].0 += amount;
            self.added[node] += amount;
            return;
        }
        let middle = (low + high) / 2;
        self.add_below(2 * node, low, middle, from, to, amount);
        self.add_below(2 * node + 1, middle, high, from, to, amount);
        let (greatest, leaf) = self.max[2 * node].max(self.max[2 * node + 1]);
        self.max[node] = (greatest + self.added[node], leaf);
    }

    fn max(&self) -> (i128, usize) {
        self.max[1]
    }
}

/// Prints the time from each kill to the next grant, separately for kills during which a process was stopped.
pub fn report_stalls(calls: &[Call], kills: &[u64], stops: &[(u64, u64)]) {
    let (mut quiet, mut disturbed) = (Vec::new(), Vec::new());
    for kill in kills {
        let Some(next) = calls.iter().map(|call| call.after).find(|after| after > kill) else { continue };
        let clear = stops.iter().all(|(from, to)| next < *from || to < kill);
        if clear { &mut quiet } else { &mut disturbed }.push(next - kill);
    }
    for (what, mut stalls) in [("nobody stopped", quiet), ("somebody stopped", disturbed)] {
        stalls.sort_unstable();
        if let (Some(median), Some(most)) = (stalls.get(stalls.len() / 2), stalls.last()) {
            let (median, most) = (*median as f64 / 1e6, *most as f64 / 1e6);
            println!(
                "next grant after a kill, {what}: median {median:.2} ms, at most {most:.2} ms, {} kills",
                stalls.len()
            );
        }
    }
}
