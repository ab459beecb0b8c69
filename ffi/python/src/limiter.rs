//! The limiter handle.

use crate::advice;
use crate::arguments::{self, mismatch, passing, pause_length, setting, unknown, word, wrong_type};
use crate::errors;
use crate::events;
use crate::method::OfLimiter;
use crate::snapshot;
use crate::test_clock::TestClock;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use shmlimit::config::{self, ConfigSource};
use shmlimit::{Builder, OnMismatch, OwnedGrant, PauseRequest, Removal, Request, UnknownName};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The Rust half of shmlimit.Limiter.
#[pyclass(frozen, subclass, weakref, module = "shmlimit._shmlimit")]
pub struct Limiter {
    /// `None` once the limiter is closed. This mutex is held only together with Python's lock, and never during a
    /// wait.
    inner: Mutex<Option<shmlimit::Limiter>>,
    name: String,
    directory: PathBuf,
    group: Option<String>,
    ignore_environment: bool,
    allow_network_fs: bool,
    clock: Option<shmlimit::TestClock>,
}

impl Limiter {
    /// The limiter's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn inner(&self) -> MutexGuard<'_, Option<shmlimit::Limiter>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The library's handle, unless it is closed.
    #[inline]
    pub fn handle(&self, py: Python<'_>) -> PyResult<shmlimit::Limiter> {
        // A separate statement releases the mutex: creating an exception may let other threads run, and they must
        // not find it locked.
        let handle = self.inner().clone();
        handle.ok_or_else(|| errors::closed(py, &self.name))
    }

    /// A grant that is available without waiting for another process or thread; `None` if there is none.
    #[inline]
    pub fn at_once(&self, py: Python<'_>, request: &Request<'_>) -> PyResult<Option<OwnedGrant>> {
        let tried = self
            .inner()
            .as_ref()
            .map(|handle| handle.acquire_at_once(request).map(shmlimit::Grant::into_owned));
        tried.ok_or_else(|| errors::closed(py, &self.name))
    }

    /// The builder that opens the limiter again.
    fn builder(&self) -> Builder {
        let mut builder = shmlimit::Limiter::builder(&self.name).directory(&self.directory);
        if let Some(group) = &self.group {
            builder = builder.group(group);
        }
        if self.ignore_environment {
            builder = builder.ignore_environment();
        }
        if self.allow_network_fs {
            builder = builder.allow_network_fs();
        }
        match &self.clock {
            Some(clock) => builder.test_clock(clock),
            None => builder,
        }
    }

    /// The time that has passed on the test clock, if the limiter has one.
    pub fn clock_elapsed(&self) -> Option<Duration> {
        self.clock.as_ref().map(shmlimit::TestClock::elapsed)
    }

    /// Runs `work` with the library's handle. It may take a while.
    fn using<R: Send>(
        this: &Bound<'_, Limiter>,
        work: impl FnOnce(&shmlimit::Limiter) -> Result<R, shmlimit::Error> + Send,
    ) -> PyResult<R> {
        let py = this.py();
        let handle = this.get().handle(py)?;
        let done = py.detach(|| work(&handle)).map_err(|error| errors::raised(py, &error));
        events::deliver(this).and(done)
    }
}

impl OfLimiter for Limiter {
    #[inline]
    fn limiter_of<'a, 'py>(this: &'a Bound<'py, Limiter>) -> &'a Bound<'py, PyAny> {
        this.as_any()
    }
}

#[pymethods]
impl Limiter {
    #[new]
    #[pyo3(signature = (
        name, *, directory = None, preset = None, config = None, settings = None, group = None, rate = None,
        burst = None, algorithm = None, concurrency = None, on_mismatch = None, create = true, replace = false, ignore_environment = false, allow_network_fs = false,
        test_clock = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "all others are keywords")]
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        directory: Option<PathBuf>,
        preset: Option<&Bound<'_, PyAny>>,
        config: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyAny>>,
        group: Option<&Bound<'_, PyAny>>,
        rate: Option<&Bound<'_, PyAny>>,
        burst: Option<&Bound<'_, PyAny>>,
        algorithm: Option<&Bound<'_, PyAny>>,
        concurrency: Option<&Bound<'_, PyAny>>,
        on_mismatch: Option<&Bound<'_, PyAny>>,
        create: bool,
        replace: bool,
        ignore_environment: bool,
        allow_network_fs: bool,
        test_clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Limiter> {
        let name = word("name", name)?;
        if replace && !create {
            return Err(PyValueError::new_err(
                "replace=True creates the limiter, which create=False forbids",
            ));
        }
        let mut source = ConfigSource::default();
        if let Some(preset) = preset {
            source = source.preset(word("preset", preset)?);
        }
        if let Some(text) = config {
            source = source.text(word("config", text)?);
        }
        if let Some(rate) = rate {
            source = source.setting("rate", rates(rate)?);
        }
        for (key, value) in [("burst", burst), ("algorithm", algorithm), ("concurrency", concurrency)] {
            if let Some(value) = value {
                source = source.setting(key, setting(key, value)?);
            }
        }
        for (key, value) in settings.map(single_settings).transpose()?.unwrap_or_default() {
            source = source.setting(key, value);
        }
        let group = group.map(|group| word("group", group)).transpose()?;
        let on_mismatch = on_mismatch.map_or(Ok(OnMismatch::Error), mismatch)?;
        let mut builder = shmlimit::Limiter::builder(&name).config(source).on_mismatch(on_mismatch);
        if let Some(directory) = directory {
            builder = builder.directory(directory);
        }
        if let Some(group) = &group {
            builder = builder.group(group);
        }
        if ignore_environment {
            builder = builder.ignore_environment();
        }
        if allow_network_fs {
            builder = builder.allow_network_fs();
        }
        let clock = test_clock.map(clock_of).transpose()?;
        if let Some(clock) = &clock {
            builder = builder.test_clock(clock);
        }
        let opened = py.detach(|| match (create, replace) {
            (_, true) => builder.replace(),
            (true, false) => builder.open(),
            (false, false) => builder.open_existing(),
        });
        let handle = opened.map_err(|error| errors::raised(py, &error))?;
        Ok(Limiter {
            directory: handle.directory().to_owned(),
            inner: Mutex::new(Some(handle)),
            name,
            group,
            ignore_environment,
            allow_network_fs,
            clock,
        })
    }

    /// The limiter's name.
    #[getter(name)]
    fn get_name(&self) -> &str {
        &self.name
    }

    /// The directory of the limiter, a pathlib.Path.
    #[getter]
    fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner().is_none()
    }

    /// The effective policy, as the text of a configuration file.
    #[getter]
    fn config(this: &Bound<'_, Limiter>) -> PyResult<String> {
        Limiter::using(this, |handle| Ok(config::to_toml(&handle.policy()?)))
    }

    /// The changes that environment variables made to the limiter when this handle opened it, for every program
    /// that uses the limiter: one sentence for each. They are also logged as warnings by the logger "shmlimit".
    #[getter]
    fn environment_changes(this: &Bound<'_, Limiter>) -> PyResult<Vec<String>> {
        Limiter::using(this, |handle| {
            Ok(handle.environment_changes().iter().map(ToString::to_string).collect())
        })
    }

    /// Closes the handle: every later call here raises Error of code "closed". Grants that were given out stay
    /// valid.
    fn close(&self, py: Python<'_>) {
        let handle = self.inner().take();
        py.detach(|| drop(handle));
    }

    /// Forces the breaker into a state ("normal", "throttle", "sleep", "half_open", "cache_only", "offline",
    /// "online", "closed", "open"), or opens the gate that a Retry-After closed and forgets the pace that headers
    /// taught ("clear_gate"). This applies at once to all programs that share the limiter. Returns the transitions
    /// that it caused.
    fn force<'py>(this: &Bound<'py, Limiter>, state: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let text = word("state", state)?;
        let force = text
            .parse()
            .map_err(|error: UnknownName| unknown(state.py(), "state", &text, error.allowed()))?;
        let changed =
            Limiter::using(this, |handle| Ok(advice::changes(&handle.force(force)?, Some(handle))))?;
        advice::as_objects(this.py(), &changed)
    }

    /// Stops all calls for a while, in all processes that share the limiter: calls that wait keep waiting, and new
    /// ones join them. try_acquire(), and timeouts that end before a known end of the pause, raise Refused of
    /// reason "paused".
    ///
    /// duration: seconds, or a timedelta; None = until resume(). reason: why, for people, up to 64 bytes.
    ///
    /// The pause continues after this process ends; a second pause replaces the first. To refuse all calls at once
    /// instead, including those that wait: force("offline").
    #[pyo3(signature = (duration = None, reason = None))]
    fn pause(
        this: &Bound<'_, Limiter>,
        duration: Option<&Bound<'_, PyAny>>,
        reason: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut request = PauseRequest::new();
        if let Some(length) = duration.map(pause_length).transpose()?.flatten() {
            request = request.duration(length);
        }
        if let Some(reason) = reason {
            request = request.reason(word("reason", reason)?);
        }
        Limiter::using(this, |handle| handle.pause(&request).map(drop))
    }

    /// Ends a pause: waiting calls continue in their turn. Returns whether the limiter was paused.
    fn resume(this: &Bound<'_, Limiter>) -> PyResult<bool> {
        Limiter::using(this, |handle| Ok(handle.resume()?.is_some()))
    }

    /// Changes one setting while the limiter is in use, at once and for all programs that share it.
    ///
    /// Common keys: set("rate", "50/s"), or a list of rates for several rules; set("burst", 30), if one rule has a
    /// burst; set("concurrency", 8), or "unlimited"; set("rules.0.limit", 50), where a rule's name can stand for its
    /// number; set("rules.0.reserve", 5); set("breaker.p_throttle", 0.3). docs/configuration.md lists all keys.
    fn set(this: &Bound<'_, Limiter>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = word("key", key)?;
        let is_text_or_none = value.is_none() || value.is_instance_of::<PyString>();
        let value = match key == "rate" && !is_text_or_none {
            true => rates(value)?,
            false => setting("value", value)?,
        };
        Limiter::using(this, |handle| handle.set(&key, &value).map(drop))
    }

    /// Counts an answer that was found in a cache (hit), or was not found. The count is for people and dashboards;
    /// it affects no decision.
    fn count_cache(this: &Bound<'_, Limiter>, hit: bool) -> PyResult<()> {
        Limiter::using(this, |handle| handle.count_cache(hit))
    }

    /// Removes the limiter, its file and all its counts. Returns whether it existed. This handle is closed
    /// afterwards.
    ///
    /// Raises Error of code "in_use", and removes nothing, if other programs or other handles have it open; their
    /// process ids and names are in the message. With force=True it is removed in that case too. Its users then get
    /// Error of code "unknown_limiter" until a program creates it again.
    #[pyo3(signature = (force = false))]
    fn remove(this: &Bound<'_, Limiter>, force: bool) -> PyResult<bool> {
        let py = this.py();
        let limiter = this.get();
        limiter.handle(py)?;
        let handle = limiter.inner().take();
        // This handle would count as a user, so it is dropped first.
        let removed = py.detach(|| {
            drop(handle);
            limiter.builder().remove(force)
        });
        if !matches!(removed, Ok(Removal::Removed | Removal::Absent)) {
            // If this fails, another program has removed the limiter meanwhile, and the handle stays closed.
            *limiter.inner() = py.detach(|| limiter.builder().open_existing()).ok();
        }
        match removed.map_err(|error| errors::raised(py, &error))? {
            Removal::Absent => Ok(false),
            Removal::InUse(users) => Err(errors::in_use(py, &limiter.name, &users)),
            _ => Ok(true),
        }
    }

    /// The limiter's metrics in the text format of Prometheus, with the names that `shmlimit metrics` uses.
    fn metrics(this: &Bound<'_, Limiter>) -> PyResult<String> {
        Limiter::using(this, |handle| Ok(shmlimit::metrics::prometheus([&handle.snapshot()?])))
    }

    /// Raises the exception that acquire() would raise for these arguments, and does nothing else.
    #[staticmethod]
    #[pyo3(signature = (cost = None, priority = None, timeout = None))]
    fn _check(
        cost: Option<&Bound<'_, PyAny>>,
        priority: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        cost.map(arguments::cost).transpose()?;
        priority.map(arguments::priority).transpose()?;
        timeout.map(arguments::timeout).transpose()?;
        Ok(())
    }

    /// Delivers the events that the library reported while this handle was opened.
    fn _deliver(this: &Bound<'_, Limiter>) -> PyResult<()> {
        events::deliver(this)
    }

    /// The state of the limiter at this moment, as nested dictionaries.
    fn _snapshot<'py>(this: &Bound<'py, Limiter>) -> PyResult<Bound<'py, PyDict>> {
        snapshot::as_dict(this.py(), &Limiter::using(this, |handle| handle.snapshot())?.document())
    }

    /// Moves a test clock by the time that a call would sleep. Returns whether there is one: on the machine's clock
    /// the caller must sleep.
    fn _passes(&self, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Some(clock) = &self.clock {
            clock.advance(passing("seconds", seconds)?);
        }
        Ok(self.clock.is_some())
    }

    /// The options that open the limiter again in another process.
    fn _options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.handle(py)?;
        if self.clock.is_some() {
            return Err(PyTypeError::new_err(
                "a limiter on a test clock cannot be passed to another process",
            ));
        }
        let options = PyDict::new(py);
        options.set_item("directory", &self.directory)?;
        options.set_item("group", &self.group)?;
        options.set_item("ignore_environment", self.ignore_environment)?;
        options.set_item("allow_network_fs", self.allow_network_fs)?;
        Ok(options)
    }

    fn __repr__(&self) -> String {
        let closed = if self.inner().is_none() { ", closed" } else { "" };
        format!("<shmlimit.Limiter {:?} in {:?}{closed}>", self.name, self.directory)
    }
}

fn clock_of(clock: &Bound<'_, PyAny>) -> PyResult<shmlimit::TestClock> {
    match clock.cast::<TestClock>() {
        Ok(clock) => Ok(clock.get().clock.clone()),
        Err(_) => Err(wrong_type("test_clock", "a shmlimit.testing.TestClock", clock)),
    }
}

/// One rate, or several, as the text of the setting `rate`.
fn rates(rate: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = rate.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    let wrong = || wrong_type("rate", "a str such as \"100/min\", or a list of them", rate);
    if rate.cast::<PyMapping>().is_ok() {
        return Err(wrong());
    }
    let mut texts = Vec::new();
    for one in rate.try_iter().map_err(|_| wrong())? {
        texts.push(word("a rate", &one?)?);
    }
    if texts.is_empty() {
        return Err(PyValueError::new_err("rate must have at least one rate"));
    }
    Ok(texts.join(", "))
}

fn single_settings(settings: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let Ok(mapping) = settings.cast::<PyMapping>() else {
        return Err(wrong_type("settings", "a mapping of keys to values", settings));
    };
    let mut all = Vec::new();
    for item in mapping.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let key = word("a key of settings", &key)?;
        let value = setting(&format!("settings[{key:?}]"), &value)?;
        all.push((key, value));
    }
    Ok(all)
}
