//! How buckets are named in Redis: `prefix:{kind:id}:bucket`. The braces are a hash tag, so that all buckets of a client lie in one
//! slot of a cluster, where `RL.MTAKE` can take from several of them at once.

use crate::client::Client;
use crate::policy::PolicyName;

/// The key of a client's bucket.
pub(crate) fn bucket(prefix: &str, client: &Client, bucket: &PolicyName) -> String {
    [prefix, ":{", client.in_key(), "}:", bucket.as_str()].concat()
}

/// The key of a client's own limits. No bucket has it: `#` is in no policy's name.
pub(crate) fn own_limits(prefix: &str, client: &Client) -> String {
    [prefix, ":{", client.in_key(), "}:#limits"].concat()
}

/// The client and the bucket that a key names.
pub(crate) fn read<'a>(prefix: &str, key: &'a str) -> Option<(Client, &'a str)> {
    let (client, bucket) = key.strip_prefix(prefix)?.strip_prefix(":{")?.rsplit_once("}:")?;
    Some((Client::from_key(client)?, bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_can_be_read_back() {
        let name = PolicyName::new("login").unwrap();
        for client in [Client::user("a}:x{b"), Client::unknown(), Client::user("ip:::1")] {
            let key = bucket("rl", &client, &name);
            assert_eq!(read("rl", &key), Some((client, "login")));
        }
        assert_eq!(bucket("rl", &Client::user("42"), &name), "rl:{user:42}:login");
        assert_eq!(read("rl", "other:{user:42}:login"), None);
    }
}
