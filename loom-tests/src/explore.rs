//! Runs a model in every interleaving, and for every point at which one of its threads can die.

use crate::machine::Machine;
use loom::thread::{self, JoinHandle};
use shmlimit_segment::sync::killable::die_after;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// The point at which one thread of a model dies.
#[derive(Clone)]
pub struct Cut {
    after: usize,
    died: Arc<AtomicBool>,
}

impl Cut {
    fn new(after: usize) -> Cut {
        Cut { after, died: Arc::new(AtomicBool::new(false)) }
    }

    /// Runs `body` as the participant in `slot`, which dies at this point. Returns whether it died.
    pub fn kills(&self, machine: &Machine, slot: usize, body: impl FnOnce()) -> bool {
        die_after(self.after);
        body();
        let dead = machine.collect(slot);
        if dead {
            self.died.store(true, Ordering::Relaxed);
        }
        dead
    }
}

/// Runs `body` on a new thread.
pub fn spawn<R: 'static>(
    machine: &Arc<Machine>,
    body: impl FnOnce(&Arc<Machine>) -> R + 'static,
) -> JoinHandle<R> {
    let machine = machine.clone();
    thread::spawn(move || body(&machine))
}

/// Runs `body` on a new thread as the participant in `slot`, which dies at `cut`. Returns whether it died.
pub fn killed(
    machine: &Arc<Machine>,
    cut: &Cut,
    slot: usize,
    body: impl FnOnce(&Arc<Machine>) + 'static,
) -> JoinHandle<bool> {
    let cut = cut.clone();
    spawn(machine, move |machine| cut.kills(machine, slot, || body(machine)))
}

fn run(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    executions.load(Ordering::Relaxed)
}

fn report(name: &str, points: usize, executions: usize, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    println!("loom: {name}: {points} points of death, {executions} executions, {seconds:.2} s");
}

/// Runs a model in which no thread dies. `preemptions` bounds how often a thread is interrupted in one execution;
/// `None` means no bound.
pub fn living(name: &str, preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let started = Instant::now();
    let executions = run(preemptions, model);
    report(name, 0, executions, started);
}

/// Runs a model once for each point at which one thread can die, until that thread survives in every interleaving.
pub fn one_dies<F>(name: &str, preemptions: Option<usize>, model: F)
where
    F: Fn(&Cut) + Sync + Send + Copy + 'static,
{
    let started = Instant::now();
    let mut executions = 0;
    for after in 0.. {
        let cut = Cut::new(after);
        let inner = cut.clone();
        executions += run(preemptions, move || model(&inner));
        if !cut.died.load(Ordering::Relaxed) {
            assert!(after > 1, "the cut never took effect");
            return report(name, after, executions, started);
        }
    }
}

/// Runs a model once for each pair of points at which two threads can die.
pub fn two_die<F>(name: &str, preemptions: Option<usize>, model: F)
where
    F: Fn(&Cut, &Cut) + Sync + Send + Copy + 'static,
{
    let started = Instant::now();
    let (mut executions, mut points) = (0, 0);
    for first in 0.. {
        let mut first_died = false;
        for second in 0.. {
            let cuts = (Cut::new(first), Cut::new(second));
            let inner = cuts.clone();
            executions += run(preemptions, move || model(&inner.0, &inner.1));
            points += 1;
            first_died |= cuts.0.died.load(Ordering::Relaxed);
            if !cuts.1.died.load(Ordering::Relaxed) {
                break;
            }
        }
        if !first_died {
            return report(name, points, executions, started);
        }
    }
}
