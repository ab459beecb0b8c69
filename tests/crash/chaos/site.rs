//! A directory with limiters, the processes that use them, and the faults that are injected.

use super::worker::{CONCURRENCY, PREFIX};
use crate::util::respawn::again;
use crate::util::{Random, boot_time, directory};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

const WORKERS: usize = 4;
/// The possible paths of libfaketime.
const FAKETIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Enters the namespace of a site, if it has one, and gives the program the current boot identity of the site.
const ENTER: &str = r#"mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@""#;
/// Mounts an overlay as containers have it, and makes a directory visible under a second path.
const MOUNTS: &str = r#"set -e; cd "$0"; mkdir l u w overlay bound; mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w overlay
chmod 700 overlay; mkdir -m 700 disk; mount --bind disk bound; echo mounted; exec sleep 100000"#;

/// The faults, chosen at random by weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Kill,
    Stop,
    Continue,
    Delete,
    DeleteTwice,
    Replace,
    Set,
    Boot,
}

impl Event {
    pub fn draw(random: &mut Random) -> Event {
        match random.below(1000) {
            0..=449 => Event::Kill,
            450..=599 => Event::Stop,
            600..=959 => Event::Continue,
            960..=971 => Event::Set,
            972..=985 => Event::Delete,
            986..=991 => Event::DeleteTwice,
            992..=995 => Event::Replace,
            _ => Event::Boot,
        }
    }
}

/// The injected faults, with times of the clock that the logs use.
#[derive(Default)]
pub struct Faults {
    pub counts: BTreeMap<Event, u64>,
    pub forged_clocks: u64,
    /// The spans from before to after each fault.
    pub deletions: Vec<(u64, u64)>,
    pub replacements: Vec<(u64, u64)>,
    pub boots: Vec<(u64, u64)>,
    /// With the process, because calls of a stopped process may take long.
    pub stops: Vec<(i32, u64, u64)>,
}

/// A worker process. The first worker is killed only when the machine "boots": a file that is deleted while no
/// process has it open cannot be restored.
struct Worker {
    child: Child,
    stopped: Option<u64>,
}

pub struct Site {
    pub name: &'static str,
    /// The limiters' directories, as workers name them: one path, or two paths to the same directory.
    paths: Vec<PathBuf>,
    pub logs: TempDir,
    /// Keeps the namespace, the mounts and the files.
    namespace: Option<(Child, TempDir)>,
    _home: Option<TempDir>,
    workers: Vec<Worker>,
    pub faults: Faults,
    privileged: bool,
    begun: SystemTime,
    /// Workers that ended unexpectedly.
    pub bad_ends: Vec<String>,
}

impl Site {
    /// All sites that this machine supports.
    pub fn all() -> Vec<Site> {
        let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut sites = vec![Site::plain("tmpfs", directory()), Site::plain("disk", disk)];
        if geteuid().is_root() {
            for name in ["bound", "overlay"] {
                match Site::mounted(name) {
                    Some(site) => sites.push(site),
                    None => println!("not tested: {name}: no mount namespaces here"),
                }
            }
        } else {
            println!("not tested: mounts, boots and dropped privileges need root");
        }
        sites.iter_mut().for_each(Site::fill);
        sites
    }

    fn plain(name: &'static str, home: TempDir) -> Site {
        let path = home.path().join("limiters");
        std::fs::create_dir(&path).unwrap();
        let mut site = Site::new(name, vec![path]);
        site._home = Some(home);
        site
    }

    fn new(name: &'static str, paths: Vec<PathBuf>) -> Site {
        let logs = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
        // Processes that have dropped their privileges also write to this directory.
        std::fs::set_permissions(logs.path(), Permissions::from_mode(0o777)).unwrap();
        std::fs::write(logs.path().join("boot"), std::fs::read(BOOT_ID).unwrap()).unwrap();
        let privileged = geteuid().is_root() && namespaces();
        Site {
            name,
            paths,
            logs,
            namespace: None,
            _home: None,
            workers: Vec::new(),
            faults: Faults::default(),
            privileged,
            begun: SystemTime::now(),
            bad_ends: Vec::new(),
        }
    }

    /// A site in its own mount namespace, which a sleeping process keeps alive.
    fn mounted(name: &'static str) -> Option<Site> {
        let below = if name == "overlay" { directory() } else { tempfile::tempdir().ok()? };
        let mut keeper = Command::new("unshare");
        keeper.args(["-m", "sh", "-c", MOUNTS]).arg(below.path()).stdout(Stdio::piped());
        let mut keeper = keeper.stderr(Stdio::null()).spawn().ok()?;
        let mut said = String::new();
        let mut from = std::io::BufReader::new(keeper.stdout.take()?);
        std::io::BufRead::read_line(&mut from, &mut said).ok()?;
        if said.trim() != "mounted" {
            let _ = keeper.wait();
            return None;
        }
        let paths = match name {
            "overlay" => vec![below.path().join("overlay")],
            _ => vec![below.path().join("disk"), below.path().join("bound")],
        };
        let mut site = Site::new(name, paths);
        site.namespace = Some((keeper, below));
        Some(site)
    }

    /// This program, to be started in a role inside the site.
    fn command(&self, role: &str, path: &Path) -> Command {
        let boot = self.logs.path().join("boot");
        let keeper = self.namespace.as_ref().map(|(keeper, _)| keeper.id().to_string());
        let mut before: Vec<&str> = Vec::new();
        if let Some(keeper) = &keeper {
            before.extend(["nsenter", "-t", keeper, "-m"]);
        }
        if self.privileged {
            before.extend(["unshare", "-m", "sh", "-c", ENTER, boot.to_str().unwrap()]);
        }
        let mut command = again(&before, super::ROLE);
        command.env(format!("{PREFIX}ROLE"), role).env(format!("{PREFIX}PATH"), path);
        command.env(format!("{PREFIX}LOGS"), self.logs.path());
        command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn fill(&mut self) {
        while self.workers.len() < WORKERS {
            let seed = boot_time();
            let mut random = Random(seed);
            self.start(&mut random);
        }
    }

    fn start(&mut self, random: &mut Random) {
        let path = &self.paths[random.below(self.paths.len() as u64) as usize];
        let mut command = self.command("worker", path);
        command.env(format!("{PREFIX}SEED"), random.below(u64::MAX).to_string());
        let is_first = self.workers.is_empty();
        if self.privileged && !is_first && random.below(4) == 0 {
            command.env(format!("{PREFIX}DROP"), "1");
        }
        if let Some(library) = FAKETIME.iter().find(|path| Path::new(path).exists())
            && !is_first
            && random.below(3) == 0
        {
            let ahead = random.below(2) == 0;
            let days = 1 + random.below(4000);
            command.env("LD_PRELOAD", library).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.env("FAKETIME", format!("{}{days}d", if ahead { '+' } else { '-' }));
            // A clock that is ahead at boot is accepted: the machine may have been off for that long.
            if ahead {
                command.env(format!("{PREFIX}NO_QUOTA"), "1");
            }
            self.faults.forged_clocks += 1;
        }
        let child = command.spawn().unwrap();
        self.workers.push(Worker { child, stopped: None });
    }

    pub fn suffer(&mut self, event: Event, random: &mut Random) {
        self.reclaim(random);
        let victim = random.below(self.workers.len() as u64) as usize;
        match event {
            Event::Kill => {
                if victim == 0 {
                    return;
                }
                self.end(victim);
                self.start(random);
            }
            Event::Stop => {
                // Never stop all workers at once: a stopped worker may keep a permit, or the lock.
                if self.workers.iter().filter(|worker| worker.stopped.is_some()).count() >= 2
                    || self.workers[victim].stopped.is_some()
                {
                    return;
                }
                self.signal(victim, Signal::SIGSTOP);
                self.workers[victim].stopped = Some(boot_time());
            }
            Event::Continue => self.resume_all(),
            Event::Set | Event::Replace | Event::Delete | Event::DeleteTwice => {
                let role = match event {
                    Event::Set => "set",
                    Event::Replace => "replace",
                    _ => "delete",
                };
                for _ in 0..=u64::from(event == Event::DeleteTwice) {
                    let before = boot_time();
                    self.operate(role, random);
                    let span = (before, boot_time());
                    match event {
                        Event::Set => {}
                        Event::Replace => self.faults.replacements.push(span),
                        _ => self.faults.deletions.push(span),
                    }
                    std::thread::sleep(Duration::from_millis(random.below(300)));
                }
            }
            Event::Boot => {
                if !self.privileged {
                    return;
                }
                let before = boot_time();
                while !self.workers.is_empty() {
                    self.end(0);
                }
                let id = format!(
                    "{:08x}-0000-4000-8000-{:012x}\n",
                    random.below(1 << 32),
                    boot_time() & 0xffff_ffff
                );
                std::fs::write(self.logs.path().join("boot"), id).unwrap();
                while self.workers.len() < WORKERS {
                    self.start(random);
                }
                self.faults.boots.push((before, boot_time()));
            }
        }
        *self.faults.counts.entry(event).or_default() += 1;
    }

    /// Starts an operator: a process that makes one change and exits.
    fn operate(&mut self, role: &str, random: &mut Random) {
        // An operator needs the lock, which a stopped worker may hold.
        self.resume_all();
        let mut command = self.command(role, &self.paths[0]);
        command.env(format!("{PREFIX}SEED"), random.below(u64::MAX).to_string());
        let status = command.status().unwrap();
        if !status.success() {
            self.bad_ends.push(format!("{}: `{role}` ended with {status}", self.name));
        }
    }

    /// Checks workers that ended by themselves: an exit is allowed, a crash is not. Starts new ones in their place.
    fn reclaim(&mut self, random: &mut Random) {
        let mut at = 0;
        while at < self.workers.len() {
            let Some(status) = self.workers[at].child.try_wait().unwrap() else {
                at += 1;
                continue;
            };
            // Insert at the same index: the first worker stays the first.
            let rest = self.workers.split_off(at);
            self.start(random);
            self.workers.extend(rest.into_iter().skip(1));
            at += 1;
            if status.signal().is_some() || !matches!(status.code(), Some(0)) {
                self.bad_ends.push(format!("{}: a worker ended with {status}", self.name));
            }
        }
    }

    fn signal(&self, which: usize, signal: Signal) {
        let _ = kill(Pid::from_raw(self.workers[which].child.id() as i32), signal);
    }

    fn resume_all(&mut self) {
        for which in 0..self.workers.len() {
            if let Some(since) = self.workers[which].stopped.take() {
                self.signal(which, Signal::SIGCONT);
                let pid = self.workers[which].child.id() as i32;
                self.faults.stops.push((pid, since, boot_time()));
            }
        }
    }

    fn end(&mut self, which: usize) {
        let mut worker = self.workers.remove(which);
        let _ = worker.child.kill();
        let _ = worker.child.wait();
    }

    /// The number of calendar days that the run has touched.
    pub fn days(&self) -> u64 {
        days_since_1970(SystemTime::now()) - days_since_1970(self.begun) + 1
    }

    /// Ends all processes. A new process then checks that all permits came back. Returns its complaints.
    pub fn finish(&mut self) -> Vec<String> {
        self.resume_all();
        while !self.workers.is_empty() {
            self.end(0);
        }
        let mut command = self.command("newcomer", &self.paths[0]);
        let started = Instant::now();
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Vec::new();
        }
        vec![format!(
            "{}: after {:?} a newcomer does not find {CONCURRENCY} permits and an empty queue: {}",
            self.name,
            started.elapsed(),
            said.lines().filter(|line| !line.trim().is_empty()).take(6).collect::<Vec<_>>().join(" | ")
        )]
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        while !self.workers.is_empty() {
            self.end(0);
        }
        if let Some((keeper, _)) = &mut self.namespace {
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

fn days_since_1970(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() / 86_400
}

/// Whether this machine permits a mount namespace with its own boot identity.
fn namespaces() -> bool {
    let tried = Command::new("unshare").args(["-m", "sh", "-c", ENTER, BOOT_ID, "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}
