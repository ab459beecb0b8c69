use super::*;

const COLLEAGUE: &str = "S-1-5-21-1-2-3-1001";
const TEAM: &str = "S-1-5-21-1-2-3-2002";

fn account(text: &str) -> Account {
    Account::group(text).unwrap().unwrap()
}

fn me() -> Account {
    Account::me().unwrap()
}

/// Parses a descriptor in which ME stands for this user, and TEAM and COLLEAGUE for others.
fn access(text: &str) -> Access {
    let text = text.replace("ME", &me().to_string()).replace("TEAM", TEAM).replace("COLLEAGUE", COLLEAGUE);
    Access { rights: Descriptor::parse(&text).unwrap().rights(), me: me() }
}

fn problem(text: &str, chosen: bool) -> String {
    access(text).trusted(chosen).unwrap_err().problem
}

#[test]
fn private_directory_of_this_user_or_the_system_is_trusted() {
    for owner in ["ME", "BA", "SY"] {
        let text = format!("O:{owner}D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;ME)");
        assert_eq!(access(&text).trusted(false), Ok(None), "{owner}");
    }
    assert_eq!(access("O:MED:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;ME)").trusted(true), Ok(None), "inherited");
}

#[test]
fn p5_directory_writable_by_everyone_is_refused() {
    for who in [
        "WD",
        "AU",
        "IU",
        "AN",
        "BG",
        "NU",
        "SU",
        "RC",
        "AC",
        "S-1-2-0",
        "S-1-5-14",
        "S-1-5-113",
        "S-1-5-64-10",
        "S-1-18-1",
    ] {
        for protected in ["", "P"] {
            let text = format!("O:MED:{protected}(A;OICI;FA;;;ME)(A;OICI;0x1301bf;;;{who})");
            assert!(problem(&text, true).contains("every user"), "{who}");
        }
    }
    // The list that a directory in %ProgramData% inherits.
    assert!(problem("O:MED:AI(A;OICIID;FA;;;ME)(A;CIID;0x100116;;;BU)", true).contains("every user"));
    assert!(problem("O:ME", true).contains("every user"), "no list at all");
    let remedy = |text| access(text).trusted(true).unwrap_err().remedy;
    assert!(
        remedy("O:MED:AI(A;OICIID;FA;;;ME)(A;CIID;0x100116;;;BU)").contains("icacls"),
        "it can be closed"
    );
    assert!(remedy("O:MED:(A;;FA;;;WD)").contains(&format!("*{}:", me())), "also for what is made elevated");
    assert!(!remedy("O:COLLEAGUED:(A;;FA;;;WD)").contains("icacls"), "not by us");
    assert_eq!(
        access("O:MED:(A;;FA;;;ME)(A;;0x1200a9;;;WD)").trusted(true),
        Ok(None),
        "reading changes nothing"
    );
}

#[test]
fn directory_is_shared_on_purpose_with_one_account() {
    let shared = "O:MED:P(A;OICI;FA;;;SY)(A;OICI;FA;;;ME)(A;OICI;0x1301bf;;;TEAM)";
    assert_eq!(access(shared).trusted(true), Ok(Some(account(TEAM))));
    assert!(problem(&shared.replace("D:P", "D:"), true).contains("not shared on purpose"));
    assert!(problem(&format!("{shared}(A;;FA;;;COLLEAGUE)"), true).contains("not shared on purpose"));
    assert_eq!(access(&shared.replace("TEAM", "BU")).trusted(true), Ok(Some(Account::USERS)));
}

#[test]
fn p5_directory_of_another_user_is_used_only_if_chosen_and_shared_with_this_user() {
    assert!(problem("O:COLLEAGUED:P(A;;FA;;;COLLEAGUE)(A;;FA;;;ME)", true).contains("belongs to"));
    let shared = "O:COLLEAGUED:P(A;;FA;;;COLLEAGUE)(A;;0x1301bf;;;BU)";
    assert_eq!(access(shared).trusted(true).is_ok(), Account::USERS.includes_me());
    assert!(problem(shared, false).contains("belongs to"), "a stranger put it where a default is looked for");
    assert!(problem("O:COLLEAGUED:P(A;;FA;;;COLLEAGUE)(A;;0x1301bf;;;TEAM)", true).contains("belongs to"));
}

#[test]
fn p5_files_owned_by_or_open_to_other_users_are_refused() {
    let private = access("O:MED:(A;;FA;;;SY)(A;;FA;;;ME)");
    assert_eq!(private.danger(me(), None), None);
    let theirs = access("O:COLLEAGUED:(A;;FA;;;COLLEAGUE)");
    assert!(theirs.danger(me(), None).unwrap().contains("belongs to"));
    assert_eq!(theirs.danger(account(COLLEAGUE), None), None, "the directory's owner");
    let team = access("O:COLLEAGUED:(A;;FA;;;COLLEAGUE)(A;;0x1301bf;;;TEAM)");
    assert_eq!(team.danger(me(), Some(account(TEAM))), None);
    let open = access("O:MED:(A;;FA;;;ME)(A;;FA;;;TEAM)");
    assert!(open.danger(me(), None).unwrap().contains("other users may write"));
    assert_eq!(open.danger(me(), Some(account(TEAM))), None);
}

#[test]
fn unexpected_permissions_are_reported() {
    let private = access("O:MED:(A;;FA;;;SY)(A;;FA;;;ME)");
    assert_eq!(private.permission_mismatch(me(), None), None);
    assert!(
        private
            .permission_mismatch(me(), Some(account(TEAM)))
            .unwrap()
            .contains("members of the group cannot")
    );
    let read = access("O:MED:(A;;FA;;;ME)(A;;FR;;;WD)");
    assert!(read.permission_mismatch(me(), None).unwrap().contains("open to"));
    let shared = access("O:MED:(A;;FA;;;ME)(A;;0x1301bf;;;TEAM)");
    assert_eq!(shared.permission_mismatch(me(), Some(account(TEAM))), None);
    assert!(shared.permission_mismatch(me(), None).is_some());
}

#[test]
fn created_directory_is_trusted_and_shared_with_no_other_account() {
    let of = |shared_with| Access { rights: list(&[me()], shared_with, "OICI").unwrap().rights(), me: me() };
    assert_eq!(of(None).owner(), me(), "whatever rights are in use");
    assert_eq!(of(None).trusted(false), Ok(None));
    assert_eq!(of(Some(account(TEAM))).trusted(false), Ok(Some(account(TEAM))));
}

#[test]
fn semaphores_are_open_only_to_accounts_that_may_change_the_file() {
    let wake_words = access("O:BAD:(A;;FA;;;SY)(A;;0x1301bf;;;TEAM)(A;;FR;;;WD)").of_wake_words().unwrap();
    let who: Vec<Account> = wake_words.given().iter().map(|right| right.who).collect();
    assert_eq!(who, [me(), Account::ADMINISTRATORS, Account::SYSTEM, account(TEAM)]);
}

/// Files that an elevated program creates belong to the administrators, and other programs of the same user are not
/// elevated.
#[test]
fn files_created_with_elevation_stay_usable_by_their_creator_and_the_team() {
    let made = "O:BAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;FA;;;COLLEAGUE)(A;ID;0x1301bf;;;TEAM)";
    let (colleague, team) = (account(COLLEAGUE), Some(account(TEAM)));
    assert_eq!(access(made).danger(colleague, team), None);
    assert_eq!(access(made).permission_mismatch(colleague, team), None, "it is as files are made there");
    assert!(access(made).permission_mismatch(me(), team).is_some(), "elsewhere it is open to a stranger");
    // The same file, created by a member of the team.
    let attachment = made.replace("O:BA", "O:S-1-5-21-1-2-3-1002");
    assert_eq!(
        (
            access(&attachment).danger(colleague, team),
            access(&attachment).permission_mismatch(colleague, team)
        ),
        (None, None)
    );
    let repaired = list(&[Account::ADMINISTRATORS, colleague], team, "").unwrap().rights();
    let keeps = |who| repaired.given.iter().any(|right| right.who == who && right.changes);
    assert!(keeps(colleague) && keeps(account(TEAM)), "putting permissions right locks nobody out");
    assert_eq!(repaired.owner, Account::ADMINISTRATORS);
}

/// The directory refuses access, but its owner can still be read.
#[test]
fn owner_without_access_is_told_to_change_the_access_list() {
    let mine = tempfile::tempdir().unwrap();
    assert!(why_closed(mine.path()).unwrap().remedy.contains("icacls"));
    assert!(why_closed(&mine.path().join("missing")).is_none());
}
