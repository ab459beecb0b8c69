//! A limiter at one moment, as nested dictionaries; `python/shmlimit/_snapshot.py` makes dataclasses of them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use shmlimit::{Condition, Counts, Snapshot};
use shmlimit_kernel::policy::WHOLE_SHARE;
use std::time::Duration;

/// Makes a dictionary; every key is the name of a dataclass's field.
macro_rules! dict {
    ($py:expr, $($key:literal: $value:expr),+ $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($key, $value)?;)+
        dict
    }};
}

/// The whole of it.
pub fn as_dict<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let queueing = snapshot.policy.queueing();
    Ok(dict! { py,
        "name": &snapshot.name,
        "directory": &snapshot.directory,
        "provider": snapshot.policy.provider().as_str(),
        "concurrency": snapshot.policy.concurrency(),
        "concurrency_background": snapshot.policy.concurrency_background(),
        "in_flight": snapshot.in_flight,
        "in_flight_background": snapshot.in_flight_background,
        "held_by_dead": snapshot.held_by_dead,
        "resets": snapshot.resets,
        "counts": dict! { py,
            "granted": snapshot.counts.granted,
            "refused": snapshot.counts.refused,
            "looked": snapshot.counts.looked,
            "cache_hits": snapshot.counts.cache_hits,
            "cache_misses": snapshot.counts.cache_misses,
            "codes": codes(py, &snapshot.counts)?,
        },
        "paused": paused(py, snapshot)?,
        "condition": condition(py, &snapshot.condition)?,
        "fairness": queueing.fairness.as_str(),
        "background_share": f64::from(queueing.background_share) / f64::from(WHOLE_SHARE),
        "rules": rules(py, snapshot)?,
        "participants": participants(py, snapshot)?,
        "queue": queue(py, snapshot)?,
    })
}

fn paused<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(pause) = &snapshot.paused else { return Ok(None) };
    Ok(Some(dict! { py,
        "paused_for": seconds(pause.paused_for),
        "ends_in": pause.ends_in.map(seconds),
        "pid": pause.pid,
        "program": &pause.program,
        "reason": &pause.reason,
    }))
}

fn rules<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (rule, settings) in snapshot.rules.iter().zip(snapshot.policy.rules()) {
        list.append(dict! { py,
            "name": &rule.name,
            "algorithm": rule.algorithm,
            "unit": &rule.unit,
            "limit": rule.limit,
            "period": seconds(rule.period),
            "capacity": rule.capacity,
            "reserve": settings.reserve,
            "remaining": rule.remaining,
            "remaining_background": rule.remaining_background,
            "next_in": rule.next_in.map(seconds),
            "full_in": rule.full_in.map(seconds),
        })?;
    }
    Ok(list)
}

fn participants<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for one in &snapshot.participants {
        list.append(dict! { py,
            "pid": one.pid,
            "program": &one.program,
            "attached_for": seconds(one.attached_for),
            "held": one.held,
            "held_for": one.held_for.map(seconds),
            "granted": one.granted,
            "refused": one.refused,
            "looked": one.looked,
        })?;
    }
    Ok(list)
}

fn queue<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for one in &snapshot.queue {
        let cost = PyDict::new(py);
        for (unit, amount) in &one.cost {
            cost.set_item(unit, amount)?;
        }
        list.append(dict! { py,
            "pid": one.pid,
            "program": &one.program,
            "priority": one.priority.as_str(),
            "group": format!("{:016x}", one.group),
            "cost": cost,
            "waited_for": seconds(one.waited_for),
            "looks_in": seconds(one.looks_in),
            "late": one.late,
            "gives_up_in": one.gives_up_in.map(seconds),
        })?;
    }
    Ok(list)
}

fn condition<'py>(py: Python<'py>, now: &Condition) -> PyResult<Bound<'py, PyDict>> {
    let gate = match &now.gate {
        None => None,
        Some(gate) => Some(dict! { py,
            "opens_in": seconds(gate.opens_in),
            "pid": gate.pid,
            "program": &gate.program,
            "recorded": seconds(gate.recorded),
        }),
    };
    let transitions = PyList::empty(py);
    for (one, ago) in &now.transitions {
        transitions.append(dict! { py,
            "from_state": one.from.as_str(now.breaker),
            "to_state": one.to.as_str(now.breaker),
            "reason": one.cause.as_str(),
            "ago": seconds(*ago),
        })?;
    }
    Ok(dict! { py,
        "state": now.state_name,
        "state_for": seconds(now.state_for),
        "reason": now.cause.map(|cause| cause.as_str()),
        "eta": now.eta.map(seconds),
        "offline": now.offline,
        "rate": now.rate,
        "concurrency_now": now.concurrency,
        "gate": gate,
        "samples": now.samples,
        "error_ratio": now.error_ratio,
        "consec429": now.consec429,
        "failures": now.failures,
        "outcomes": dict! { py,
            "ok": now.outcomes.ok,
            "throttled": now.outcomes.throttled,
            "server": now.outcomes.server,
            "net": now.outcomes.net,
            "other": now.outcomes.other,
        },
        "pace": pace(py, now)?,
        "transitions": transitions,
    })
}

fn pace<'py>(py: Python<'py>, now: &Condition) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(pace) = &now.pace else { return Ok(None) };
    let windows = PyList::empty(py);
    for window in &pace.windows {
        windows.append(dict! { py,
            "name": &window.name,
            "limit": window.limit,
            "remaining": window.remaining,
            "usage": window.usage(),
            "resets_in": window.resets_in.map(seconds),
        })?;
    }
    Ok(Some(dict! { py,
        "interval": seconds(pace.interval),
        "bottleneck": &pace.bottleneck,
        "windows": windows,
    }))
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// How often calls ended how.
fn codes<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let codes = PyDict::new(py);
    for (code, count) in &counts.codes {
        codes.set_item(code.to_string(), count)?;
    }
    Ok(codes)
}
