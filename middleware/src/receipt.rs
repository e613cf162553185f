//! What was charged, kept as long as it can be given back.

use std::fmt;
use std::sync::Arc;

use rl_core::Tokens;

use crate::client::Client;
use crate::leases::Pool;
use crate::policy::Policy;

/// What a request was charged, for those who give it back.
#[derive(Clone, Default)]
pub struct Receipt {
    pub(crate) client: Option<Client>,
    pub(crate) charges: Vec<Charged>,
}

/// What one bucket was charged.
#[derive(Clone)]
pub(crate) struct Charged {
    pub(crate) key: String,
    pub(crate) policy: Arc<Policy>,
    pub(crate) cost: Tokens,
    pub(crate) by: By,
}

/// Who has charged it.
#[derive(Clone)]
pub(crate) enum By {
    Redis,
    Lease(Arc<Pool>),
    Local,
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.charges.iter().map(|charged| (&charged.key, charged.cost.get()))).finish()
    }
}
