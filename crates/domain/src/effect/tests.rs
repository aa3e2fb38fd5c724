use super::*;
#[test]
fn placeholder_compiles() {}
