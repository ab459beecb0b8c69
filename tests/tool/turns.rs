//! Whose turn it is when several programs wait: groups of processes, and the order of arrival.

use crate::cli::{Home, binary};
use crate::queue::{Holder, open, start_waiting, wait_until, waiting};
use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use shmlimit::Request;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

/// One call at a time, and no rule in the way: the order of turns is all there is.
const ONE: [&str; 3] = ["one", "--concurrency", "1"];
/// What the many do when it is their turn: say so, and hold the permit until told to go on.
const TURN: &str = "echo many; read -r _ <\"$0\"";

/// Many processes beside one with one thread.
struct Contest {
    home: Home,
    holder: Holder,
    /// Where the many are told to go on, and where they find it.
    tell_many: File,
    go: PathBuf,
    many: Vec<Child>,
}

impl Contest {
    fn new() -> Contest {
        let home = Home::with(&ONE);
        let holder = Holder::new(&home, "one");
        let go = home.path().join("go");
        mkfifo(&go, Mode::S_IRWXU).unwrap();
        // Open for reading too, so that there is no end of file between two turns.
        let tell_many = File::options().read(true).write(true).open(&go).unwrap();
        Contest { home, holder, tell_many, go, many: Vec::new() }
    }

    /// So many processes, each in a session of its own.
    fn apart(count: usize, options: &[&str], variables: &[(&str, &str)]) -> Contest {
        let mut contest = Contest::new();
        let go = contest.go.to_str().unwrap();
        let command = [&["run", "one"], options, &["--", "sh", "-c", TURN, go]].concat();
        let start = |_| start_waiting(&contest.home, "one", &command, variables);
        contest.many = (0..count).map(start).collect();
        contest
    }

    /// Says how many of the first `grants` the many got. Before anybody gives the permit back, the other side is seen
    /// waiting, so that neither misses a turn because it was slow to come.
    fn turns_of_the_many(mut self, grants: usize) -> usize {
        let (say, said) = channel();
        let (tell, told) = channel();
        for child in &mut self.many {
            let (out, say) = (BufReader::new(child.stdout.take().unwrap()), say.clone());
            std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|_| say.send(true)));
        }
        let limiter = open(&self.home, "one");
        let alone = std::thread::spawn(move || {
            loop {
                let grant = limiter.acquire(&Request::new()).unwrap();
                // The end of the test is the only reason why nobody listens.
                if say.send(false).is_err() || told.recv().is_err() {
                    return;
                }
                drop(grant);
            }
        });
        let me = std::process::id();
        let home = &self.home;
        let sees = |wanted: &dyn Fn(&[u32]) -> bool| {
            wait_until(home, "one", |status| wanted(&waiting(status)));
        };
        sees(&|queue| queue.contains(&me));
        self.holder.let_go();
        let mut turns = 0;
        for _ in 0..grants {
            if said.recv().unwrap() {
                turns += 1;
                sees(&|queue| queue.contains(&me));
                self.tell_many.write_all(b"\n").unwrap();
            } else {
                sees(&|queue| queue.iter().any(|pid| *pid != me));
                tell.send(()).unwrap();
            }
        }
        drop((tell, said));
        for mut child in self.many {
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
            child.wait().unwrap();
        }
        alone.join().unwrap();
        turns
    }
}

/// Two parties take turns: half each. On an overloaded machine one is now and then late and passed over, so a good
/// deal is allowed for; as many parties as processes would leave the other side nothing. (Exact shares are tested
/// where time is virtual.)
#[track_caller]
fn assert_half(turns: usize, grants: usize) {
    assert!((grants / 4..=grants - grants / 4).contains(&turns), "{turns} of {grants} turns for the many");
}

#[test]
fn r143_fifty_under_xargs_are_one_party_beside_one_process() {
    let mut contest = Contest::new();
    let script = format!("seq 50 | xargs -P 50 -n 1 {} run one -- sh -c '{TURN}' \"$0\"", binary());
    let many = Command::new("setsid")
        .args(["sh", "-c", &script, contest.go.to_str().unwrap()])
        .env("SHMLIMIT_DIR", contest.home.path())
        .env_remove("SHMLIMIT_GROUP")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    contest.many = vec![many];
    wait_until(&contest.home, "one", |status| waiting(status).len() == 50);
    assert_half(contest.turns_of_the_many(40), 40);
}

#[test]
fn r143_a_group_by_name_is_one_party_though_its_sessions_differ() {
    assert_half(Contest::apart(24, &["--group", "crawl"], &[]).turns_of_the_many(20), 20);
    let variable = [("SHMLIMIT_GROUP", "crawl")];
    assert_half(Contest::apart(24, &[], &variable).turns_of_the_many(20), 20);
}

#[test]
fn r143_sessions_without_a_group_are_parties_of_their_own() {
    let turns = Contest::apart(16, &[], &[]).turns_of_the_many(15);
    assert!(turns >= 13, "{turns} of 15 turns for sixteen parties beside one");
    // What is named is named by hand first, then by the environment.
    let turns =
        Contest::apart(24, &["--group", "crawl"], &[("SHMLIMIT_GROUP", "other")]).turns_of_the_many(20);
    assert_half(turns, 20);
}

/// Who is served in which order when two groups come one after the other, each process seen waiting before the next
/// starts.
fn order(fairness: &str) -> String {
    let home = Home::with(&["one", "--concurrency", "1", "--fairness", fairness]);
    let holder = Holder::new(&home, "one");
    let log = home.path().join("log");
    let start = |who: &str| {
        let say = ["sh", "-c", "printf %s \"$1\" >>\"$0\"", log.to_str().unwrap(), who];
        start_waiting(&home, "one", &[&["run", "one", "--group", who, "--"][..], &say].concat(), &[])
    };
    let all: Vec<Child> = ["a", "a", "a", "b", "b", "b"].map(start).into();
    holder.let_go();
    for mut child in all {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    std::fs::read_to_string(Path::new(&log)).unwrap()
}

/// On a busy machine one may look so late that it is passed over; the same not in every of ten rounds.
#[track_caller]
fn assert_once(fairness: &str, wanted: &str) {
    let orders: Vec<String> = (0..10).map(|_| order(fairness)).take_while(|order| order != wanted).collect();
    assert!(orders.len() < 10, "never {wanted}: {orders:?}");
}

#[test]
fn r131_fifo_serves_in_the_order_of_arrival() {
    assert_once("fifo", "aaabbb");
}

#[test]
fn r131_process_fairness_serves_two_groups_in_turn() {
    assert_once("process", "ababab");
}
