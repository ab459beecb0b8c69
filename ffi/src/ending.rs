//! Functions that end a grant without an outcome.

use crate::boundary::call;
use crate::grant::{end, shmlimit_grant};
use shmlimit::OwnedGrant;

/// Returns the permit of a grant when its call is over, without an outcome. After a failure, such as SHMLIMIT_BUSY,
/// the grant is still valid. If you know how the call ended, use shmlimit_record().
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_release(grant: shmlimit_grant) -> i32 {
    call(|| end(grant, OwnedGrant::try_release))
}

/// Returns the permit and the cost of a call that was never sent. Rules that cannot take units back keep them.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_cancel(grant: shmlimit_grant) -> i32 {
    call(|| end(grant, OwnedGrant::try_cancel))
}
