//! What the machine is: figures without it mean nothing.

use serde_json::{Value, json};
use std::fs::read_to_string;

pub struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    clock_source: String,
    load: String,
}

impl Machine {
    pub fn look() -> Machine {
        let read = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
        let described = read("/proc/cpuinfo");
        // Not every architecture has a name for its processors.
        let name = described.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            processor: name.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }

    pub fn in_words(&self) -> String {
        let Machine { processor, cores, kernel, clock_source, load } = self;
        let busy = load.parse::<f64>().is_ok_and(|load| load > 0.5 * *cores as f64);
        let warning = if busy { "\nothers work here too, and the figures suffer" } else { "" };
        format!(
            "shmlimit {} on {processor}, {cores} cores\nLinux {kernel}, clock {clock_source}, load {load}{warning}",
            env!("CARGO_PKG_VERSION")
        )
    }

    pub fn to_json(&self, quick: bool) -> Value {
        json!({
            "bench": "machine",
            "version": env!("CARGO_PKG_VERSION"),
            "processor": self.processor,
            "cores": self.cores,
            "kernel": self.kernel,
            "clock_source": self.clock_source,
            "load": self.load.parse::<f64>().ok(),
            "debug_build": cfg!(debug_assertions),
            "quick": quick,
        })
    }
}
