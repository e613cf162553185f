//! The ports that tests start their servers on: were one given twice, whatever came second would not start, now and then.

use std::collections::HashSet;

use crate::support::free_port;

#[test]
fn no_port_is_given_twice() {
    let ports: HashSet<u16> = (0..1000).map(|_| free_port()).collect();
    assert_eq!(ports.len(), 1000);
}
