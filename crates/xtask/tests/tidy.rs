//! The checks as a test, so that what fails them does not land.

#[test]
fn the_tree_is_tidy() {
    let problems = xtask::tidy::check(&xtask::tidy::root());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn dependencies_only_go_down() {
    let problems = xtask::layers::check(&xtask::tidy::root());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
