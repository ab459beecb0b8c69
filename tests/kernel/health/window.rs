//! The outcome window (R42 to R48).

use super::*;

#[test]
fn r42_the_window_counts_young_entries_among_the_newest() {
    let mut rig = Rig::tmdb(|_| {});
    rig.record(OutcomeClass::Ok);
    rig.now = 30 * SECOND - 1;
    assert_eq!(rig.window(), (1, 0));
    rig.now += 1;
    assert_eq!(rig.window(), (0, 0), "an age of exactly 30 s is out");
    rig.force(BreakerCommand::Normal);
    assert_eq!(rig.records(OutcomeClass::Ok, 301).samples, 300);
}

#[test]
fn r43_errors_are_429_5xx_and_net() {
    let mut rig = Rig::tmdb(|_| {});
    for class in [OutcomeClass::Ok, OutcomeClass::Throttled, OutcomeClass::Server, OutcomeClass::Net] {
        rig.record(class);
    }
    assert_eq!(rig.window(), (4, 3));
    assert_eq!(
        [429, 500, 599, 404, 401].map(OutcomeClass::of_status).map(|class| class.map(OutcomeClass::as_str)),
        [Some("429"), Some("5xx"), Some("5xx"), Some("ignored"), Some("ignored"),]
    );
}

#[test]
fn r44_r122_other_4xx_change_only_their_count() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Throttled, 2);
    let before = rig.health();
    let verdict = rig.records(OutcomeClass::Ignored, 1000);
    assert_eq!(rig.health(), before);
    assert_eq!((verdict.consec429, verdict.samples, verdict.advice.source), (2, 2, None));
    assert_eq!(rig.m.tallies().other, 1000);
    rig.record(OutcomeClass::Throttled);
    assert_eq!(rig.state(), BreakerState::Throttle, "the run goes on");
}

#[test]
fn r45_1xx_and_3xx_are_successes() {
    assert!(
        [100, 200, 304, 399].iter().all(|status| OutcomeClass::of_status(*status) == Some(OutcomeClass::Ok))
    );
    assert!([99, 600, 0].iter().all(|status| OutcomeClass::of_status(*status).is_none()));
}

#[test]
fn r46_every_class_is_counted() {
    let mut rig = Rig::tmdb(|_| {});
    for (n, class) in [
        OutcomeClass::Ok,
        OutcomeClass::Throttled,
        OutcomeClass::Server,
        OutcomeClass::Net,
        OutcomeClass::Ignored,
    ]
    .into_iter()
    .enumerate()
    {
        rig.records(class, n + 1);
    }
    let all = rig.m.tallies();
    assert_eq!([all.ok, all.throttled, all.server, all.net, all.other], [1, 2, 3, 4, 5]);
}

#[test]
fn r47_too_few_samples_do_not_throttle() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Server, 9);
    assert_eq!(rig.state(), BreakerState::Normal, "nine of nine");
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Normal, "the tenth is the first evaluation that counts");
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Throttle);
}

#[test]
fn r48_only_429_in_a_row_count() {
    for between in [OutcomeClass::Ok, OutcomeClass::Server, OutcomeClass::Net] {
        let mut rig = Rig::tmdb(|_| {});
        assert_eq!(rig.records(OutcomeClass::Throttled, 2).consec429, 2);
        assert_eq!(rig.record(between).consec429, 0);
        assert_eq!(rig.records(OutcomeClass::Throttled, 2).consec429, 2);
        assert_eq!(rig.state(), BreakerState::Normal);
    }
}

#[test]
fn r139_network_errors_can_be_left_out() {
    let breaker = Breaker::of(BreakerKind::Fsm).with_network_errors(false);
    let mut rig = Rig::new(&PolicyDraft { breaker, ..PolicyDraft::default() });
    let verdict = rig.records(OutcomeClass::Net, 50);
    assert_eq!((rig.state(), verdict.samples, verdict.advice.retry), (BreakerState::Normal, 0, false));
    rig.force(BreakerCommand::HalfOpen);
    rig.record(OutcomeClass::Net);
    assert_eq!(rig.state(), BreakerState::HalfOpen);
    let mut counted = Rig::tmdb(|_| {});
    counted.records(OutcomeClass::Net, 11);
    assert_eq!(counted.state(), BreakerState::Throttle);
}
