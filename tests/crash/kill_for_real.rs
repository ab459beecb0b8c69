//! P1 and P2 with real kills. They test what copies of a segment cannot show: the operating system's locks and
//! sleepers.
//!
//! Two processes hold permits and contend for the lock. A third is killed after a certain number of instructions of
//! an operation. The two must go on, the permits of the killed process must come back, and the counts must be
//! consistent.

use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::image::{self, Image};
use crate::util::crash::ptrace::{Step, Tracee};
use crate::util::crash::{NAME, builder, fast_policy, fast_policy_of, report, usual_policy};
use crate::util::{boot_time, directory, wait_until};
use shmlimit::{AcquireError, Error, Limiter, Outcome, Reason, Request};
use shmlimit_segment::layout::RESETS;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

/// More permits than the peers and a victim ever use, so that no call has to reclaim exited processes on the way.
const PERMITS: u64 = 6;

/// The test that serves as the entry point of actor processes.
const CHILD_PROCESS: &str = concat!(module_path!(), "::child_process");

/// The entry point of the actors of the other tests; checks nothing by itself.
#[test]
fn child_process() {
    if let Some((role, directory)) = child_process::role() {
        run_role(&role, &directory);
    }
}

fn run_role(role: &str, directory: &Path) {
    let one = Request::new();
    let marked = |work: &mut dyn FnMut()| {
        ready();
        mark();
        work();
        mark();
        child_process::receive();
    };
    let open = || builder(directory).open_existing().unwrap();
    match role {
        "attach" => return marked(&mut || drop(open())),
        "create" => return marked(&mut || drop(builder(directory).policy(usual_policy()).create().unwrap())),
        "replace" => {
            return marked(&mut || drop(builder(directory).policy(usual_policy()).replace().unwrap()));
        }
        "detach" => {
            let mut limiter = Some(open());
            // Forget the grant, so that the handle can be dropped while it is held.
            std::mem::forget(limiter.as_ref().unwrap().try_acquire(&one).unwrap());
            return marked(&mut || drop(limiter.take()));
        }
        _ => {}
    }
    let limiter = open();
    match role {
        "late" => {}
        "peer" => contend(&limiter),
        "acquire" => {
            let mut grant = None;
            marked(&mut || grant = limiter.try_acquire(&one).ok());
        }
        "release" | "cancel" => {
            let mut grant = limiter.try_acquire(&one).ok();
            marked(&mut || {
                let grant = grant.take().expect("a permit is free");
                if role == "release" { grant.release().unwrap() } else { grant.cancel().unwrap() }
            });
        }
        "record" => {
            let mut grant = limiter.try_acquire(&one).ok();
            marked(&mut || {
                let outcome = Outcome::http(503, &[]).latency(Duration::from_millis(3));
                grant.take().expect("a permit is free").record(&outcome).unwrap();
            });
        }
        "set policy" => {
            // A different policy each time, with the same permits.
            let policy = fast_policy_of(&format!("p{}", std::process::id()), PERMITS);
            marked(&mut || limiter.set_policy(&policy).unwrap());
        }
        "denied" => marked(&mut || {
            let dear = Request::new().cost("requests", 1 << 40);
            assert!(matches!(limiter.try_acquire(&dear), Err(AcquireError::Refused(_))));
        }),
        "holder" => {
            let mut all: Vec<_> = (0..PERMITS).map(|_| limiter.try_acquire(&one).unwrap()).collect();
            marked(&mut || all.pop().unwrap().release().unwrap());
        }
        "asker" => {
            ready();
            mark();
            match limiter.try_acquire(&one) {
                Ok(_) => child_process::send("granted"),
                Err(error) => child_process::send(&format!("{error}")),
            }
            child_process::receive();
        }
        "waiter" => {
            ready();
            loop {
                let grant = limiter.acquire(&one).unwrap();
                let at = boot_time();
                drop(grant);
                child_process::send(&format!("granted {at}"));
                child_process::receive();
            }
        }
        other => panic!("no such role: {other}"),
    }
}

/// Keeps one permit, and takes and returns another one until told to pause.
fn contend(limiter: &Limiter) {
    let _kept = limiter.try_acquire(&Request::new()).unwrap();
    ready();
    let (tell, told) = channel();
    std::thread::spawn(move || while tell.send(child_process::receive()).is_ok() {});
    loop {
        while told.try_recv() == Err(TryRecvError::Empty) {
            match limiter.try_acquire(&Request::new()) {
                Ok(grant) => grant.release().unwrap(),
                Err(error) => return child_process::send(&format!("{error}")),
            }
            // Leave the processor to the tracer; nothing waits for this.
            std::thread::sleep(Duration::from_micros(20));
        }
        child_process::send("idle");
        told.recv().unwrap();
    }
}

fn fresh() -> tempfile::TempDir {
    let directory = directory();
    drop(builder(directory.path()).policy(fast_policy(PERMITS)).create().unwrap());
    directory
}

/// Takes every free permit, gives them back, and returns their number.
fn free_permits(limiter: &Limiter) -> u64 {
    let mut grants = Vec::new();
    loop {
        match limiter.try_acquire(&Request::new()) {
            Ok(grant) => grants.push(grant),
            Err(AcquireError::Refused(refusal)) => {
                assert_eq!(refusal.reason(), Reason::Concurrency);
                return grants.len() as u64;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// At how many instructions of each operation a process is killed; the long version tries more.
fn kill_points() -> usize {
    std::env::var("SHMLIMIT_KILL_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(50)
}

/// The grants that each survivor must get after a kill.
const FURTHER: u64 = 10;

/// A limiter with two peers, and the measurements of the test.
struct Fixture {
    directory: tempfile::TempDir,
    file: File,
    limiter: Limiter,
    peers: [ChildProcess; 2],
    slots: [usize; 2],
    kills: usize,
    /// How long both peers waited after the lock's owner was killed.
    stalls: Vec<Duration>,
    /// The same after other kills: the cost of the machine's scheduling alone.
    noise: Vec<Duration>,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = fresh();
        let file = image::open(directory.path());
        let limiter = builder(directory.path()).open_existing().unwrap();
        let peers = [(); 2].map(|()| ChildProcess::start(CHILD_PROCESS, "peer", directory.path()));
        let now = Image::of(directory.path());
        let slots = peers.each_ref().map(|peer| now.slot_of(peer.pid.as_raw() as u32).unwrap());
        Fixture { directory, file, limiter, peers, slots, kills: 0, stalls: Vec::new(), noise: Vec::new() }
    }

    /// Kills a victim while the peers contend, and checks that they go on and that all permits are accounted for.
    fn kill(&mut self, victim: Tracee, what: &str) {
        // Start the peers only now: a process that is single-stepped never wins a race for the lock.
        self.peers.iter_mut().for_each(|peer| peer.send("go"));
        let mut now = Image::blank();
        now.take(&self.file);
        let slot = now.slot_of(victim.child_process.pid.as_raw() as u32);
        // A newcomer takes the lock before its slot names its process.
        let owned = now.lock_owner().is_some_and(|owner| !self.slots.contains(&owner));
        if owned {
            wait_until("a peer sleeps on the lock", || {
                now.take(&self.file);
                now.has_sleeper()
            });
        }
        victim.kill();
        let killed = Instant::now();
        self.kills += 1;
        self.wait_for_grants(1);
        if owned { &mut self.stalls } else { &mut self.noise }.push(killed.elapsed());
        self.wait_for_grants(FURTHER);
        for peer in &mut self.peers {
            peer.send("pause");
            assert_eq!(peer.receive(), "idle");
        }
        assert_eq!(free_permits(&self.limiter), PERMITS - 2, "{what}");
        now.take(&self.file);
        assert!(now.is_whole() && now.lock_owner().is_none(), "{what}");
        assert_eq!((now.in_flight(), now.held_by_all()), (2, 2), "{what}");
        assert!(slot.is_none_or(|slot| now.held(slot) == 0), "{what}");
        assert_eq!(now.word(RESETS), 0, "{what}: no state was reset");
    }

    fn wait_for_grants(&self, further: u64) {
        let mut now = Image::blank();
        now.take(&self.file);
        let goals = self.slots.map(|slot| now.granted(slot) + further);
        wait_until("the survivors go on", || {
            now.take(&self.file);
            self.slots.iter().zip(goals).all(|(slot, goal)| now.granted(*slot) >= goal)
        });
    }

    fn report(self) {
        println!(
            "{} kills, {} of them of the lock's owner with a sleeper on it",
            self.kills,
            self.stalls.len()
        );
        assert!(!self.stalls.is_empty(), "no kill hit the critical section");
        report("both survivors granted again after the lock's owner died", self.stalls);
        report("both survivors granted again after any other process died", self.noise);
    }
}

#[test]
fn p1_p2_after_a_real_kill_at_any_instruction_survivors_go_on_and_the_counts_are_consistent() {
    let mut fixture = Fixture::new();
    for role in ["acquire", "release", "cancel", "record", "set policy", "denied", "detach"] {
        let length = {
            let mut tracee = Tracee::start(CHILD_PROCESS, role, fixture.directory.path());
            (1..).find(|_| tracee.step() == Step::Done).unwrap()
        };
        let stride = (length / kill_points()).max(1);
        for instruction in (stride / 2..length).step_by(stride) {
            let mut victim = Tracee::start(CHILD_PROCESS, role, fixture.directory.path());
            // The operation may take fewer instructions this time; then the process dies just after it.
            (0..instruction).find(|_| victim.step() == Step::Done);
            fixture.kill(victim, &format!("{role}, killed after {instruction} of {length} instructions"));
        }
    }
    fixture.report();
}

/// Kills an actor at every entry and exit of a system call, a new actor each time.
fn kill_at_every_system_call(
    role: &str,
    mut directory: impl FnMut() -> PathBuf,
    mut kill: impl FnMut(Tracee, &str),
) {
    for border in 1.. {
        let mut victim = Tracee::start(CHILD_PROCESS, role, &directory());
        if (0..border).any(|_| victim.run_to_system_call() == Step::Done) {
            println!("{role}: killed at {} borders of system calls", border - 1);
            return;
        }
        kill(victim, &format!("{role}, killed at border {border} of a system call"));
    }
}

#[test]
fn p1_p2_a_newcomer_killed_at_any_system_call_leaves_the_limiter_intact() {
    let mut fixture = Fixture::new();
    let path = fixture.directory.path().to_owned();
    kill_at_every_system_call("attach", || path.clone(), |victim, what| fixture.kill(victim, what));
    assert!(fixture.kills > 10);
}

#[test]
fn p1_a_kill_at_any_system_call_of_create_or_replace_leaves_a_usable_directory() {
    let mut target = fresh();
    for role in ["create", "replace"] {
        let current = std::cell::RefCell::new(&mut target);
        let renew = || {
            let new = if role == "create" { directory() } else { fresh() };
            **current.borrow_mut() = new;
            current.borrow().path().to_owned()
        };
        kill_at_every_system_call(role, renew, |victim, what| {
            victim.kill();
            let current = current.borrow();
            let path = current.path();
            for entry in std::fs::read_dir(path).unwrap() {
                let name = entry.unwrap().file_name();
                let expected = name == *format!("{NAME}.shm") || name == "ratelimit.lock";
                assert!(expected || image::is_replacement(&name), "{what} left {name:?}");
            }
            let there = builder(path).open_existing();
            match there.map(|limiter| limiter.policy().unwrap()) {
                Ok(policy) => assert!(policy == fast_policy(PERMITS) || policy == usual_policy(), "{what}"),
                Err(Error::UnknownLimiter { .. }) => {}
                Err(error) => panic!("{what}: {error}"),
            }
            // The creation lock is free again, and a new limiter has the settings that were asked for.
            let made = builder(path)
                .policy(usual_policy())
                .replace()
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(made.policy().unwrap(), usual_policy());
            let left = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
            assert_eq!(left.filter(|name| image::is_replacement(name)).count(), 0, "{what}");
        });
    }
}

#[test]
fn p2_a_process_killed_in_its_sleep_on_the_lock_or_for_a_permit_delays_no_other() {
    let directory = fresh();
    let mut holder = Tracee::start(CHILD_PROCESS, "holder", directory.path());
    let mut asker = ChildProcess::start(CHILD_PROCESS, "waiter", directory.path());
    let mut now = Image::blank();
    let file = image::open(directory.path());
    // The first process sleeps for a permit and dies there.
    let mut sleeper = ChildProcess::start(CHILD_PROCESS, "waiter", directory.path());
    sleeper.send("go");
    now.take(&file);
    let slot = now.slot_of(sleeper.pid.as_raw() as u32).unwrap();
    wait_until("it waits for a permit", || {
        now.take(&file);
        now.places_of(slot).len() == 1
    });
    sleeper.kill();
    // The second process sleeps on the lock and dies there.
    step_into_the_lock(&mut holder, directory.path());
    let mut sleeper = ChildProcess::launch(CHILD_PROCESS, "late", directory.path());
    wait_until("it sleeps on the lock", || {
        now.take(&file);
        now.has_sleeper()
    });
    sleeper.kill();
    holder.run_to_mark();
    asker.send("go");
    assert!(asker.receive().starts_with("granted"), "one permit was released");
}

#[test]
fn p2_a_waiter_gets_the_permits_of_a_killed_process() {
    let directory = fresh();
    let mut waiter = ChildProcess::start(CHILD_PROCESS, "waiter", directory.path());
    let waiting = image::open(directory.path());
    let mut now = Image::blank();
    let mut waits = Vec::new();
    for _ in 0..kill_points().min(20) {
        let holder = Tracee::start(CHILD_PROCESS, "holder", directory.path());
        now.take(&waiting);
        let slot = now.slot_of(waiter.pid.as_raw() as u32).unwrap();
        waiter.send("go");
        wait_until("the waiter waits", || {
            now.take(&waiting);
            now.places_of(slot).len() == 1
        });
        let killed = boot_time();
        holder.kill();
        let said = waiter.receive();
        let granted: u64 = said.strip_prefix("granted ").expect(&said).parse().unwrap();
        waits.push(Duration::from_nanos(granted.saturating_sub(killed)));
    }
    report("a waiter granted after the holder of all permits died", waits);
}

/// Steps a tracee until it holds the lock. Returns its slot.
fn step_into_the_lock(tracee: &mut Tracee, directory: &Path) -> usize {
    let file = image::open(directory);
    let mut now = Image::blank();
    now.take(&file);
    let slot = now.slot_of(tracee.child_process.pid.as_raw() as u32).unwrap();
    while now.lock_owner() != Some(slot) {
        assert_eq!(tracee.step(), Step::Inside, "the operation never took the lock");
        now.take(&file);
    }
    slot
}

#[test]
fn p2_a_participant_that_dies_with_permits_and_lock_between_refusal_and_reclaiming_stalls_no_other() {
    let directory = fresh();
    let file = image::open(directory.path());
    let mut holder = Tracee::start(CHILD_PROCESS, "holder", directory.path());
    let mut asker = Tracee::start(CHILD_PROCESS, "asker", directory.path());
    let mut now = Image::blank();
    now.take(&file);
    let slot = now.slot_of(asker.child_process.pid.as_raw() as u32).unwrap();
    // The call tries twice: the fast path, then the slow path. After that it looks for exited processes.
    for _ in 0..2 {
        for inside in [true, false] {
            while (now.lock_owner() == Some(slot)) != inside {
                assert_eq!(asker.step(), Step::Inside);
                now.take(&file);
            }
        }
    }
    assert_eq!(now.refused(slot), 0, "it has not given up yet");
    step_into_the_lock(&mut holder, directory.path());
    holder.kill();
    asker.let_go();
    assert_eq!(asker.child_process.receive(), "granted");
}
