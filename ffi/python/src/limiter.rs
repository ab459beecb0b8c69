//! The handle.

use crate::advice;
use crate::arguments::{passing, pause_length, setting, unknown, word, wrong_type};
use crate::errors;
use crate::snapshot;
use crate::test_clock::TestClock;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use shmlimit::config::{self, ConfigSource};
use shmlimit::{OwnedGrant, PauseRequest, Request, UnknownName};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The Rust half of shmlimit.Limiter.
#[pyclass(frozen, subclass, weakref, module = "shmlimit._shmlimit")]
pub struct Limiter {
    /// Nothing once it is closed. Held only while Python's own lock is, and never across anything that waits.
    inner: Mutex<Option<shmlimit::Limiter>>,
    name: String,
    directory: PathBuf,
    group: Option<String>,
    ignore_environment: bool,
    allow_network_fs: bool,
    clock: Option<shmlimit::TestClock>,
}

impl Limiter {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn inner(&self) -> MutexGuard<'_, Option<shmlimit::Limiter>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The library's handle, unless it is closed.
    #[inline]
    pub fn handle(&self, py: Python<'_>) -> PyResult<shmlimit::Limiter> {
        // A statement of its own: making an exception may let other threads run, which must not find this locked.
        let handle = self.inner().clone();
        handle.ok_or_else(|| errors::closed(py, &self.name))
    }

    /// A grant that can be had without waiting for anybody; nothing if it cannot.
    #[inline]
    pub fn at_once(&self, py: Python<'_>, request: &Request<'_>) -> PyResult<Option<OwnedGrant>> {
        let tried = self
            .inner()
            .as_ref()
            .map(|handle| handle.acquire_at_once(request).map(shmlimit::Grant::into_owned));
        tried.ok_or_else(|| errors::closed(py, &self.name))
    }

    /// Does something with the library's handle that may take a while.
    fn using<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&shmlimit::Limiter) -> Result<R, shmlimit::Error> + Send,
    ) -> PyResult<R> {
        let handle = self.handle(py)?;
        py.detach(|| work(&handle)).map_err(|error| errors::raised(py, &error))
    }
}

#[pymethods]
impl Limiter {
    #[new]
    #[pyo3(signature = (
        name, *, directory = None, preset = None, config = None, settings = None, group = None, rate = None,
        burst = None, concurrency = None, create = true, replace = false, ignore_environment = false, allow_network_fs = false,
        clock = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
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
        concurrency: Option<&Bound<'_, PyAny>>,
        create: bool,
        replace: bool,
        ignore_environment: bool,
        allow_network_fs: bool,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Limiter> {
        let name = word("name", name)?;
        if replace && !create {
            return Err(PyValueError::new_err("replace makes the limiter, which create=False forbids"));
        }
        let mut source = ConfigSource::default();
        if let Some(preset) = preset {
            source = source.preset(word("preset", preset)?);
        }
        if let Some(text) = config {
            source = source.text(word("config", text)?);
        }
        for (key, value) in [("rate", rate), ("burst", burst), ("concurrency", concurrency)] {
            if let Some(value) = value {
                source = source.setting(key, setting(key, value)?);
            }
        }
        for (key, value) in settings.map(single_settings).transpose()?.unwrap_or_default() {
            source = source.setting(key, value);
        }
        let group = group.map(|group| word("group", group)).transpose()?;
        let mut builder = shmlimit::Limiter::builder(&name).config(source);
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
        let clock = clock.map(test_clock).transpose()?;
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

    /// Its name.
    #[getter(name)]
    fn get_name(&self) -> &str {
        &self.name
    }

    /// The directory it lives in, a pathlib.Path.
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
    fn config(&self, py: Python<'_>) -> PyResult<String> {
        self.using(py, |handle| Ok(config::to_toml(&handle.policy()?)))
    }

    /// What variables of the environment changed in the limiter when this handle opened it, for every program that uses it:
    /// a sentence each. They are also logged as warnings by the logger "shmlimit".
    #[getter]
    fn environment_changes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.using(py, |handle| Ok(handle.environment_changes().iter().map(ToString::to_string).collect()))
    }

    /// Lets go of the limiter: every later call here raises Error of code "closed". Grants that are out stay valid.
    fn close(&self, py: Python<'_>) {
        let handle = self.inner().take();
        py.detach(|| drop(handle));
    }

    /// Puts the breaker into a state ("normal", "throttle", "sleep", "half_open", "cache_only", "offline", "online",
    /// "closed", "open"), or opens the gate that a Retry-After closed and forgets the pace that headers taught
    /// ("clear_gate"), for all who share the limiter at once. Returns what that changed.
    fn force<'py>(&self, py: Python<'py>, state: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let text = word("state", state)?;
        let force = text.parse().map_err(|error: UnknownName| unknown("state", &text, error.allowed()))?;
        let changed = self.using(py, |handle| Ok(advice::changes(&handle.force(force)?, Some(handle))))?;
        advice::as_objects(py, &changed)
    }

    /// Stops all calls for a while, in all processes that share the limiter: calls that wait keep waiting, and new ones join
    /// them. try_acquire(), and timeouts that end before a known end of the pause, raise Refused of reason "paused".
    ///
    /// duration: seconds, or a timedelta; None = until resume(). reason: why, for people, up to 64 bytes.
    ///
    /// The pause outlasts this process; a second pause replaces the first. To refuse all calls at once instead, also those
    /// that wait: force("offline").
    #[pyo3(signature = (duration = None, reason = None))]
    fn pause(
        &self,
        py: Python<'_>,
        duration: Option<&Bound<'_, PyAny>>,
        reason: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut request = PauseRequest::new();
        if let Some(length) = duration.map(pause_length).transpose()?.flatten() {
            request = request.lasting(length);
        }
        if let Some(reason) = reason {
            request = request.reason(word("reason", reason)?);
        }
        self.using(py, |handle| handle.pause(&request).map(drop))
    }

    /// Ends a pause: waiting calls go on in their turn. Returns whether the limiter was paused.
    fn resume(&self, py: Python<'_>) -> PyResult<bool> {
        self.using(py, |handle| Ok(handle.resume()?.is_some()))
    }

    /// Changes one setting while the limiter is in use, for all who share it at once: set("concurrency", 8). The keys are
    /// those of a configuration file (docs/configuration.md).
    fn set(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (word("key", key)?, setting("value", value)?);
        self.using(py, |handle| handle.set(&key, &value).map(drop))
    }

    /// Counts an answer that was found in a cache (hit), or was not: for people and dashboards, nothing is decided by it.
    fn count_cache(&self, py: Python<'_>, hit: bool) -> PyResult<()> {
        self.using(py, |handle| handle.count_cache(hit))
    }

    /// Everything there is to see, as nested dictionaries.
    fn _snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        snapshot::as_dict(py, &self.using(py, |handle| handle.snapshot())?.document())
    }

    /// Lets time pass that a call would sleep. Returns whether that was done: on the machine's clock it must sleep.
    fn _passes(&self, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Some(clock) = &self.clock {
            clock.advance(passing("seconds", seconds)?);
        }
        Ok(self.clock.is_some())
    }

    /// What opens it again in another process.
    fn _options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.handle(py)?;
        if self.clock.is_some() {
            return Err(PyTypeError::new_err("a limiter on a test clock cannot go to another process"));
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

fn test_clock(clock: &Bound<'_, PyAny>) -> PyResult<shmlimit::TestClock> {
    match clock.cast::<TestClock>() {
        Ok(clock) => Ok(clock.get().clock.clone()),
        Err(_) => Err(wrong_type("clock", "a shmlimit.testing.TestClock", clock)),
    }
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
