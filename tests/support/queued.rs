//! Waiting calls that stand still: futures polled by hand, and processes stopped in their sleep.

use super::actor::Actor;
use super::eventually;
use super::image::Image;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use shmlimit::{AcquireError, Grant, Limiter, Request};
use std::cell::Cell;
use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A call in the queue without a thread that sleeps for it.
pub type Queued<'l, 'r> = Pin<Box<dyn Future<Output = Result<Grant<'l>, AcquireError>> + 'r>>;

/// A call that enters the queue when it is polled first, and looks whenever it is polled after `awake` was set.
pub fn queued<'l: 'r, 'r>(
    limiter: &'l Limiter,
    request: &'r Request<'r>,
    awake: &'r Cell<bool>,
) -> Queued<'l, 'r> {
    let sleep = move |_| poll_fn(move |_| if awake.replace(false) { Poll::Ready(()) } else { Poll::Pending });
    Box::pin(limiter.acquire_async(request, sleep))
}

/// Polls it once.
pub fn poll<'l>(call: &mut Queued<'l, '_>) -> Poll<Result<Grant<'l>, AcquireError>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Stops a process whose threads wait, none of them in the middle of a change.
pub fn stop_in_its_sleep(actor: &Actor, directory: &Path) {
    eventually("it stands still outside the lock", || {
        actor.signal(Signal::SIGSTOP);
        let status = waitpid(actor.pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
        let now = Image::of(directory);
        let quiet = now.is_whole() && now.lock_owner().is_none();
        if !quiet {
            actor.signal(Signal::SIGCONT);
        }
        quiet
    });
}
