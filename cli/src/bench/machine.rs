//! Describes the machine, because figures cannot be compared without it.

use crate::platform;
use serde_json::{Value, json};

pub struct Machine {
    cores: usize,
    facts: platform::Machine,
}

impl Machine {
    pub fn detect() -> Machine {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Machine { cores, facts: platform::machine() }
    }

    pub fn to_text(&self) -> String {
        let Machine { cores, facts: platform::Machine { processor, system, kernel, clock_source, load } } =
            self;
        let busy = load.parse::<f64>().is_ok_and(|load| load > 0.5 * *cores as f64);
        let warning =
            if busy { "\nother programs use the processors, so these figures are too slow" } else { "" };
        format!(
            "shmlimit {} on {processor}, {cores} cores\n{system} {kernel}, clock {clock_source}, load {load}{warning}",
            env!("CARGO_PKG_VERSION")
        )
    }

    pub fn to_json(&self, quick: bool) -> Value {
        json!({
            "bench": "machine",
            "version": env!("CARGO_PKG_VERSION"),
            "processor": self.facts.processor,
            "cores": self.cores,
            "kernel": self.facts.kernel,
            "clock_source": self.facts.clock_source,
            "load": self.facts.load.parse::<f64>().ok(),
            "debug_build": cfg!(debug_assertions),
            "quick": quick,
        })
    }
}
