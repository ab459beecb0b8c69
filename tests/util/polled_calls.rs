//! Waiting calls without a thread that sleeps for them: futures polled by hand.

use shmlimit::{AcquireError, Grant, Limiter, Request};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A call in the queue without a thread that sleeps for it.
pub type Queued<'l, 'r> = Pin<Box<dyn Future<Output = Result<Grant<'l>, AcquireError>> + 'r>>;

/// A call that enters the queue at its first poll. It checks its turn at every poll after `awake` was set.
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
