//! The programs that use a limiter: their rates, their shares, and the ones that need attention.

use shmlimit::Snapshot;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Identifies a process, which may be attached several times. Processes in two containers may have the same number.
type Process = (u32, String);

/// Calls of one process, or of all processes.
#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    granted: u64,
    refused: u64,
}

/// The counts at one moment: of each process, and of all processes so far.
pub struct Counted {
    at: Duration,
    by: BTreeMap<Process, Calls>,
    granted: u64,
}

/// Reasons why a program needs attention, the worst last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    #[default]
    None,
    Waiting,
    Refused,
    Late,
}

impl Trouble {
    pub const fn as_str(self) -> &'static str {
        match self {
            Trouble::None => "",
            Trouble::Waiting => "waiting",
            Trouble::Refused => "refused",
            Trouble::Late => "late",
        }
    }
}

/// One process, several equal processes, or all processes that exited between two polls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct User {
    /// None for several processes and for exited ones.
    pub pid: Option<u32>,
    pub program: String,
    /// The number of processes; 0 for exited ones.
    pub processes: usize,
    /// Recent grants per second.
    pub rate: f64,
    /// Recent refusals per second.
    pub refusals: f64,
    /// Share of all recent grants.
    pub share: f64,
    pub held: u32,
    pub granted: u64,
    pub refused: u64,
    pub waiting: usize,
    /// Waiting calls that are late: they have missed their check.
    pub late: usize,
}

impl User {
    pub fn trouble(&self) -> Trouble {
        match self {
            _ if self.late > 0 => Trouble::Late,
            _ if self.refusals > 0.0 => Trouble::Refused,
            _ if self.waiting > 0 => Trouble::Waiting,
            _ => Trouble::None,
        }
    }

    /// Returns `curl`, or `curl ×12` for several processes.
    pub fn label(&self) -> String {
        if self.processes > 1 {
            format!("{} ×{}", self.program, self.processes)
        } else {
            self.program.clone()
        }
    }

    fn process(&self) -> Process {
        (self.pid.unwrap_or(0), self.program.clone())
    }

    fn add(&mut self, other: &User) {
        self.pid = None;
        self.processes += other.processes;
        self.rate += other.rate;
        self.refusals += other.refusals;
        self.share += other.share;
        self.held = self.held.saturating_add(other.held);
        self.granted = self.granted.saturating_add(other.granted);
        self.refused = self.refused.saturating_add(other.refused);
        self.waiting += other.waiting;
        self.late += other.late;
    }
}

/// Returns the attached processes.
pub fn of(now: &Snapshot) -> Vec<User> {
    let mut users = BTreeMap::<Process, User>::new();
    for one in &now.participants {
        let user = users.entry((one.pid, one.program.clone())).or_insert_with(|| {
            let waiters = || now.queue.iter().filter(|waiter| waiter.pid == one.pid);
            User {
                pid: Some(one.pid),
                program: one.program.clone(),
                processes: 1,
                waiting: waiters().count(),
                late: waiters().filter(|waiter| waiter.late).count(),
                ..User::default()
            }
        });
        user.held = user.held.saturating_add(one.held);
        user.granted = user.granted.saturating_add(one.granted);
        user.refused = user.refused.saturating_add(one.refused);
    }
    users.into_values().collect()
}

/// Returns the counts of the processes so far. `granted` is the number of grants of all processes, also exited ones.
pub fn counted(at: Duration, users: &[User], granted: u64) -> Counted {
    let calls = |user: &User| Calls { granted: user.granted, refused: user.refused };
    Counted { at, by: users.iter().map(|user| (user.process(), calls(user))).collect(), granted }
}

/// Returns the recent rate and share of each process, the busiest first.
pub fn shares(mut users: Vec<User>, counts: &VecDeque<Counted>) -> Vec<User> {
    let (Some(first), Some(last)) = (counts.front(), counts.back()) else { return users };
    let seconds = last.at.saturating_sub(first.at).as_secs_f64();
    let rate = |calls: u64| if seconds > 0.0 { calls as f64 / seconds } else { 0.0 };
    let all = last.granted.saturating_sub(first.granted);
    let share = |grants: u64| if all > 0 { grants as f64 / all as f64 } else { 0.0 };
    let mut left = all;
    for user in &mut users {
        // All calls of a process that attached later are recent.
        let then = first.by.get(&user.process()).copied().unwrap_or_default();
        let grants = user.granted.saturating_sub(then.granted).min(left);
        left -= grants;
        (user.rate, user.share) = (rate(grants), share(grants));
        user.refusals = rate(user.refused.saturating_sub(then.refused));
    }
    users.sort_by(busiest);
    if left > 0 {
        let program = "(came and went)".to_owned();
        users.push(User { program, rate: rate(left), share: share(left), ..User::default() });
    }
    users
}

fn busiest(a: &User, b: &User) -> std::cmp::Ordering {
    b.rate.total_cmp(&a.rate).then(b.held.cmp(&a.held)).then(a.pid.cmp(&b.pid))
}

/// Returns the rows of the table, sorted by share or by trouble. If folded, equal programs share a row.
pub fn rows(users: &[User], by_trouble: bool, fold: bool) -> Vec<User> {
    let mut rows: Vec<User> = Vec::new();
    for user in users {
        let same = rows.iter_mut().find(|row| fold && row.processes > 0 && row.program == user.program);
        match same.filter(|_| user.processes > 0) {
            Some(row) => row.add(user),
            None => rows.push(user.clone()),
        }
    }
    // Exited processes stay last.
    rows.sort_by(|a, b| {
        let trouble = if by_trouble { b.trouble().cmp(&a.trouble()) } else { std::cmp::Ordering::Equal };
        (a.processes == 0).cmp(&(b.processes == 0)).then(trouble).then_with(|| busiest(a, b))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(pid: u32, program: &str, rate: f64) -> User {
        User { pid: Some(pid), program: program.to_owned(), processes: 1, rate, ..User::default() }
    }

    fn labels(rows: &[User]) -> Vec<String> {
        rows.iter().map(User::label).collect()
    }

    #[test]
    fn equal_programs_are_one_row_with_their_sums() {
        let mut users = vec![user(1, "curl", 1.0), user(2, "python3", 3.0), user(3, "curl", 4.0)];
        users[0].late = 1;
        users[2].held = 2;
        let gone = User { program: "(came and went)".to_owned(), rate: 9.0, ..User::default() };
        users.push(gone);
        let rows = rows(&users, false, true);
        assert_eq!(labels(&rows), ["curl ×2", "python3", "(came and went)"]);
        assert_eq!((rows[0].pid, rows[0].rate, rows[0].held, rows[0].late), (None, 5.0, 2, 1));
        assert_eq!(rows[1].pid, Some(2));
        let unfolded = super::rows(&users, false, false);
        assert_eq!(labels(&unfolded), ["curl", "python3", "curl", "(came and went)"]);
        assert_eq!(unfolded[0].pid, Some(3), "the busiest first");
    }

    #[test]
    fn programs_in_trouble_come_first_the_late_ones_before_all() {
        let mut users =
            vec![user(1, "fast", 9.0), user(2, "waits", 1.0), user(3, "refused", 2.0), user(4, "late", 0.0)];
        users[1].waiting = 1;
        users[2].refusals = 0.5;
        (users[3].waiting, users[3].late) = (1, 1);
        assert_eq!(labels(&rows(&users, true, true)), ["late", "refused", "waits", "fast"]);
        assert_eq!(labels(&rows(&users, false, true)), ["fast", "refused", "waits", "late"]);
    }
}
