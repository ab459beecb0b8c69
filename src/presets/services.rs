//! Presets for GitHub and language model providers, whose response headers set the pace (R138).

use super::{HOUR, MINUTE, Preset, adaptive, named, window};
use crate::headers::HeaderFormat;
use shmlimit_kernel::policy::WindowKind;
use shmlimit_kernel::{Algorithm, PolicyDraft, RuleDraft};

pub(super) const ALL: &[Preset] = &[GITHUB, OPENAI, ANTHROPIC];

const GITHUB: Preset = Preset {
    name: "github",
    about: "GitHub's REST API with a user's token: 5000 in any hour, paced by x-ratelimit-*",
    source: "2025-10, the provider's documentation: 5000 an hour for a user; apps of an enterprise have up to 15000.",
    notes: &[
        "There are also secondary limits: 100 calls at a time, 900 points a minute, and 80 calls a minute that create \
         content. concurrency = 20 stays well below.",
        "The limit is per user, not per token.",
    ],
    draft: PolicyDraft {
        provider: "github",
        rules: &[named("hour", Algorithm::SlidingLog, 5000, HOUR)],
        adaptive: Some(adaptive(HeaderFormat::GitHub, &[window("core", 5000, HOUR, WindowKind::Fixed)])),
        ..PolicyDraft::DEFAULT
    },
};

const OPENAI: Preset = Preset {
    name: "openai",
    about: "OpenAI: 500 requests and 30000 tokens a minute, paced by x-ratelimit-*-requests and -tokens",
    source: "2025: the first tier of the GPT-4o family, the lowest that pays. Limits depend on model and tier, and \
             newer models have more: set those that the limits page of your account shows.",
    notes: &[
        "State how much a call may use: --cost tokens=900, for the prompt and max_tokens together; Outcome::cost \
         returns the unused part.",
        "Limits are per project and model family: use one limiter for each.",
    ],
    draft: model("openai", HeaderFormat::OpenAi, &OPENAI_RULES, &OPENAI_WINDOWS),
};

const ANTHROPIC: Preset = Preset {
    name: "anthropic",
    about: "Anthropic: 50 requests and 30000 tokens a minute, paced by anthropic-ratelimit-*",
    source: "2025: the first tier of the Claude Sonnet 4 family, input tokens. Limits depend on model and tier: set \
             those that the limits page of the console shows.",
    notes: &[
        "The provider uses token buckets, and so does this preset.",
        "Output tokens have a separate limit (8000 a minute in the first tier): if that limit is reached first, add a \
         rule with the unit output_tokens.",
        "Limits are per organisation and model class: use one limiter for each.",
    ],
    draft: model("anthropic", HeaderFormat::Anthropic, &ANTHROPIC_RULES, &ANTHROPIC_WINDOWS),
};

const OPENAI_RULES: [RuleDraft<'static>; 2] = rules(500, 30_000);
const OPENAI_WINDOWS: [PaceWindow; 2] = windows(500, 30_000);
const ANTHROPIC_RULES: [RuleDraft<'static>; 2] = rules(50, 30_000);
const ANTHROPIC_WINDOWS: [PaceWindow; 2] = windows(50, 30_000);

type PaceWindow = shmlimit_kernel::policy::PaceWindowDraft<'static>;

const fn model(
    provider: &'static str,
    parser: HeaderFormat,
    rules: &'static [RuleDraft<'static>],
    windows: &'static [PaceWindow],
) -> PolicyDraft<'static> {
    PolicyDraft { provider, rules, adaptive: Some(adaptive(parser, windows)), ..PolicyDraft::DEFAULT }
}

const fn rules(requests: u64, tokens: u64) -> [RuleDraft<'static>; 2] {
    [
        named("rpm", Algorithm::TokenBucket, requests, MINUTE),
        RuleDraft { unit: Some("tokens"), ..named("tpm", Algorithm::TokenBucket, tokens, MINUTE) },
    ]
}

/// Fixed windows, because the headers say when a window is full again.
const fn windows(requests: u64, tokens: u64) -> [PaceWindow; 2] {
    [
        window("requests", requests, MINUTE, WindowKind::Fixed),
        window("tokens", tokens, MINUTE, WindowKind::Fixed),
    ]
}
