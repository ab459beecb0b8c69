//! File systems and permissions: a limiter works, or opening it fails with an error that names the remedy. Tests that
//! need mounts print a line where the system does not permit them.

use crate::util;
use crate::util::children::{self, Running};
use crate::util::mounts::{bind, tmpfs, with_own_mounts};
use crate::util::raw::{Raw, lock_word_of};
use crate::util::{NAME, builder, drain, eventually, permits, segment_path, take};
use nix::mount::{MsFlags, mount};
use shmlimit::{Error, Limiter, Request};
use shmlimit_segment::layout;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::Ordering;

const TOOL: &str = env!("CARGO_BIN_EXE_shmlimit");

/// Creates a directory in `directory` that only its owner may use.
fn private(directory: &Path, name: &str) -> PathBuf {
    use std::os::unix::fs::DirBuilderExt;
    let path = directory.join(name);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).unwrap();
    path
}

/// Mounts overlayfs at `at`, over `lower`. Writes go to new directories in `directory`.
fn overlay(directory: &Path, lower: &Path, at: &Path) -> nix::Result<()> {
    let (upper, work) = (private(directory, "upper"), private(directory, "work"));
    // The merged directory has the mode of the upper directory.
    fs::set_permissions(&upper, fs::metadata(at).unwrap().permissions()).unwrap();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    mount(Some("overlay"), at, Some("overlay"), MsFlags::empty(), Some(options.as_str()))
}

fn assert_refused(opened: Result<Limiter, Error>) {
    let error = opened.expect_err("liveness cannot be checked on overlayfs");
    assert!(matches!(error, Error::Liveness { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("overlayfs") && text.contains("--dir /dev/shm/shmlimit-"), "{text}");
}

#[test]
fn a_limiter_on_overlayfs_is_refused_with_the_remedy_and_not_created() {
    with_own_mounts(|directory| {
        let (lower, merged) = (private(directory, "lower"), private(directory, "merged"));
        overlay(directory, &lower, &merged)?;
        assert_refused(builder(&merged).policy(permits(1)).open());
        assert_refused(builder(&merged).policy(permits(1)).create());
        assert_refused(builder(&merged).policy(permits(1)).replace());
        let names: Vec<_> = fs::read_dir(&merged).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["ratelimit.lock"], "only the file of the creation lock, which is never deleted");
        let tried = Limiter::directory_facts(Some(&merged), false).unwrap().self_test();
        assert!(matches!(tried, Err(Error::Liveness { .. })), "{tried:?}");
        Ok(())
    });
}

#[test]
fn a_limiter_of_a_layer_below_is_refused_with_the_remedy() {
    with_own_mounts(|directory| {
        let (lower, merged) = (private(directory, "lower"), private(directory, "merged"));
        let below = builder(&lower).policy(permits(1)).create().unwrap();
        overlay(directory, &lower, &merged)?;
        assert_refused(builder(&merged).open_existing());
        drop(below);
        assert_refused(builder(&merged).open_existing());
        assert!(take(&builder(&lower).open_existing().unwrap()), "the layer below is a supported place");
        Ok(())
    });
}

/// A process that holds the lock of a slot must not make another process believe that its own lock is kept.
#[test]
fn processes_that_open_a_limiter_on_overlayfs_at_the_same_time_are_all_refused() {
    with_own_mounts(|directory| {
        let (lower, merged) = (private(directory, "lower"), private(directory, "merged"));
        drop(builder(&lower).policy(permits(1)).create().unwrap());
        overlay(directory, &lower, &merged)?;
        let merged = &merged;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || (0..200).for_each(|_| assert_refused(builder(merged).open_existing())));
            }
        });
        Ok(())
    });
}

/// Checks that `here` and `there` are the same limiter: a live holder keeps its permit, and a killed one loses it.
fn shared(here: &Path, there: &Path) {
    let limiter = builder(here).policy(permits(2)).create().unwrap();
    assert!(take(&limiter));
    let mut other =
        Running::start(children::command(&[], concat!(module_path!(), "::role_that_takes_all"), there));
    assert_eq!(other.receive(), "1");
    assert!(!take(&limiter), "its holder lives");
    assert_eq!(limiter.snapshot().unwrap().participants.len(), 2);
    other.kill();
    assert!(eventually(|| take(&limiter)), "its holder has exited");
    drop(limiter);
    fs::remove_file(segment_path(here)).unwrap();
}

#[test]
fn a_death_is_seen_in_memory_on_a_disk_and_through_bind_mounts() {
    let (memory, disk) = (util::directory(), tempfile::tempdir().unwrap());
    shared(memory.path(), memory.path());
    shared(disk.path(), disk.path());
    with_own_mounts(|directory| {
        for real in [memory.path(), disk.path(), &private(directory, "in a tmpfs of its own")] {
            let bound = private(directory, "bound");
            bind(real, &bound)?;
            shared(real, &bound);
            shared(&bound, real);
            // As in containers: a volume inside a root directory on overlayfs.
            let root = private(directory, "root");
            overlay(directory, &private(directory, "lower"), &root)?;
            let volume = private(&root, "volume");
            bind(real, &volume)?;
            shared(&volume, real);
            Command::new("umount").args([&volume, &root, &bound]).status().unwrap();
        }
        Ok(())
    });
}

#[test]
fn role_that_takes_all() {
    let Some(directory) = children::role("role_that_takes_all") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    children::send(&drain(&limiter).to_string());
    children::wait_for_go_on();
}

/// Runs the tool without a chosen directory.
fn tool(arguments: &[&str]) -> Output {
    let mut command = Command::new(TOOL);
    command.env_remove("SHMLIMIT_DIR").env_remove("ANIVAULT_DIR").args(arguments);
    command.output().unwrap()
}

fn says(arguments: &[&str], code: i32, words: &[&str]) {
    let output = tool(arguments);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?} does not say {word:?}: {text}");
    }
}

#[test]
fn with_the_default_directory_on_overlayfs_limiters_live_in_memory_and_every_verb_finds_them() {
    with_own_mounts(|directory| {
        let home = format!("/dev/shm/shmlimit-{}", nix::unistd::geteuid());
        mount(Some("none"), "/dev/shm", Some("tmpfs"), MsFlags::empty(), Some("mode=1777"))?;
        mount(Some("none"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
        // Directories of the same name in both places change nothing: the file system alone decides.
        overlay(directory, Path::new("/var/tmp"), Path::new("/var/tmp"))?;
        private(Path::new("/var/tmp"), &format!("shmlimit-{}", nix::unistd::geteuid()));
        says(&["doctor"], 0, &[&home, "does not exist yet"]);
        says(&["init", NAME, "--concurrency", "1"], 0, &[&home]);
        says(&["run", NAME, "--", "echo", "ran"], 0, &["ran"]);
        says(&["status"], 0, &[NAME, &home]);
        says(&["doctor"], 0, &[&home, "overlayfs", "locks work"]);
        assert_eq!(Limiter::list(None).unwrap().names, [NAME]);
        says(&["--dir", "/var/tmp/chosen", "init", NAME, "--rate", "1/s"], 1, &["overlayfs", &home]);
        says(&["--dir", "/var/tmp/chosen", "doctor"], 1, &["overlayfs", &home]);
        says(&["rm", NAME], 0, &[]);
        says(&["status"], 0, &["No limiters yet"]);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o7777, 0o700);
        // The tool refuses a directory that another user created.
        fs::remove_dir_all(&home).unwrap();
        std::os::unix::fs::symlink("/tmp", &home).unwrap();
        says(&["init", NAME, "--concurrency", "1"], 1, &["it is a link"]);
        Ok(())
    });
}

/// A container as `docker run` makes it: the whole root is on overlayfs, and `/dev/shm` is in memory.
#[test]
fn doctor_names_limiters_in_the_default_directories_of_earlier_versions() {
    with_own_mounts(|_| {
        mount(Some("none"), "/var/tmp", Some("tmpfs"), MsFlags::empty(), Some("mode=1777"))?;
        let former = format!("/var/tmp/anivault-{}", nix::unistd::geteuid());
        assert!(shmlimit::paths::former_defaults().contains(&former.clone().into()), "{former}");
        says(&["doctor"], 0, &["does not exist yet"]);
        says(&["--dir", &former, "init", "old", "--rate", "1/s"], 0, &[]);
        says(&["doctor"], 0, &[&former, "no program finds", "old", "earlier versions"]);
        Ok(())
    });
}

#[test]
fn with_one_permit_commands_never_overlap_in_a_root_on_overlayfs() {
    with_own_mounts(|directory| {
        let root = private(directory, "root");
        overlay(directory, Path::new("/"), &root)?;
        for (name, shared) in [("proc", true), ("dev", false), ("run", false), ("tmp", false)] {
            let at = root.join(name);
            if shared { bind(Path::new("/proc"), &at)? } else { tmpfs(&at)? }
        }
        tmpfs(&private(&root, "dev/shm"))?;
        for file in ["dev/null", "shmlimit"] {
            fs::write(root.join(file), "").unwrap();
        }
        bind(Path::new("/dev/null"), &root.join("dev/null"))?;
        bind(Path::new(TOOL), &root.join("shmlimit"))?;
        // Two commands that run at the same time would leave a line in /tmp/overlapped.
        let script = "set -e
            /shmlimit init one --concurrency 1 >/tmp/made
            seq 12 | xargs -P6 -n1 /shmlimit run one -- sh -c '
                mkdir /tmp/busy || echo overlapped >>/tmp/overlapped
                sleep 0.03
                echo ran >>/tmp/ran
                rmdir /tmp/busy'
            cat /tmp/made /tmp/ran; cat /tmp/overlapped 2>/dev/null || true";
        let mut container = Command::new("chroot");
        container.arg(&root).args(["/bin/sh", "-c", script]);
        let output = container.env_remove("SHMLIMIT_DIR").env_remove("ANIVAULT_DIR").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("in /dev/shm/shmlimit-"), "{text}");
        assert_eq!(text.lines().filter(|line| *line == "ran").count(), 12, "{text}");
        assert!(!text.contains("overlapped"), "{text}");
        Ok(())
    });
}

/// Changes to a user that may not open files of root.
fn give_up_privileges() {
    use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
    let (user, group) = (Uid::from_raw(54_321), Gid::from_raw(54_321));
    setgroups(&[]).unwrap();
    setresgid(group, group, group).unwrap();
    setresuid(user, user, user).unwrap();
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("not tested: only root can give up privileges");
    }
    root
}

#[test]
fn a_process_that_gave_up_its_privileges_still_finds_exited_processes() {
    if !is_root() {
        return;
    }
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(permits(2)).create().unwrap();
    let mut holder = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_takes_all"),
        directory.path(),
    ));
    assert_eq!(holder.receive(), "2");
    let mut other = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_without_privileges"),
        directory.path(),
    ));
    assert_eq!(other.receive(), "false", "all permits are held");
    holder.kill();
    other.go_on();
    assert_eq!(other.receive(), "true", "the holder of the permits has exited");
    let doctor = tool(&["--dir", directory.path().to_str().unwrap(), "doctor"]);
    assert!(!String::from_utf8_lossy(&doctor.stdout).contains("cannot look"), "it can");
    // A process that died while it held the lock.
    let raw = Raw::map(&segment_path(directory.path()));
    let free =
        (0..layout::SLOTS).find(|slot| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) == 0);
    raw.word(layout::LOCK).store(lock_word_of(free.unwrap()).into(), Ordering::Relaxed);
    other.go_on();
    assert_eq!(other.receive(), "true", "the holder of the lock has exited");
    // The process notices that the file was deleted and that it cannot open the successor.
    fs::remove_file(segment_path(directory.path())).unwrap();
    other.go_on();
    let said = other.receive();
    assert!(said.contains("Permission denied"), "{said}");
    other.finish();
    drop(limiter);
}

#[test]
fn role_without_privileges() {
    let Some(directory) = children::role("role_without_privileges") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    give_up_privileges();
    children::send(&take(&limiter).to_string());
    assert!(children::wait_for_go_on());
    children::send(&eventually(|| take(&limiter)).to_string());
    assert!(limiter.snapshot().unwrap().participants.len() == 2);
    assert!(children::wait_for_go_on());
    children::send(&take(&limiter).to_string());
    assert!(children::wait_for_go_on());
    children::send(&limiter.try_acquire(&Request::new()).unwrap_err().to_string());
}

/// A daemon that gives up its privileges and then closes all descriptors that it did not open. It cannot find exited
/// processes.
#[test]
fn a_process_that_can_no_longer_find_exited_processes_gets_a_clear_error() {
    if !is_root() {
        return;
    }
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(permits(1)).create().unwrap();
    let grant = limiter.try_acquire(&Request::new()).unwrap();
    let mut daemon = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_of_a_daemon"),
        directory.path(),
    ));
    let said = daemon.receive();
    assert!(said.contains("cannot tell living processes from exited ones"), "{said}");
    assert!(said.contains("open the limiter after giving up privileges"), "{said}");
    let directory = directory.path().to_str().unwrap();
    says(&["--dir", directory, "doctor"], 0, &["runs as 54321", "cannot reclaim what exited processes held"]);
    grant.release().unwrap();
    daemon.go_on();
    assert_eq!(daemon.receive(), "true", "calls that need not look at other processes work");
    daemon.finish();
}

#[test]
fn role_of_a_daemon() {
    let Some(directory) = children::role("role_of_a_daemon") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    give_up_privileges();
    // SAFETY: this process uses no descriptor above 2 again, and the library expects it.
    assert_eq!(unsafe { nix::libc::syscall(nix::libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
    children::send(&limiter.try_acquire(&Request::new()).unwrap_err().to_string());
    assert!(children::wait_for_go_on());
    children::send(&take(&limiter).to_string());
}
