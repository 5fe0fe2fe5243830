//! Owns: what changes leave of each other on a real disk.

use std::path::Path;

use bolide_conf::model::FileAccess;
use bolide_engine::{FileChange, FileChangeKind, FileTransfer};
use bolide_files::SymlinkPolicy;
use bolide_io::epoll::Epoll;
use bolide_testkit::site::TempDir;

use super::FileWork;

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

/// `COPY` of a directory.
fn copy(from: &Path, to: &Path) -> FileWork {
    let (from, to) = (bytes(&from.join("")), bytes(&to.join("")));
    FileWork::new(FileChange {
        kind: FileChangeKind::Copy(FileTransfer {
            from_uri: from.clone(),
            to_uri: to.clone(),
            from,
            to,
            overwrites: true,
            access: FileAccess::OWNER,
        }),
        symlinks: SymlinkPolicy::Follow,
    })
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Goes on until a file below `directory` is being copied.
fn until_a_file_is_copied(work: &mut FileWork, directory: &Path, io: &mut Epoll) {
    while names(directory).is_empty() {
        assert!(work.go_on(io, 1).is_none());
    }
}

#[test]
fn a_copy_whose_directory_is_renamed_meanwhile_leaves_nothing_of_it() {
    let (root, mut io) = (TempDir::new(), Epoll::new().unwrap());
    let [from, to, moved] = ["from", "to", "moved"].map(|name| root.join(name));
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("a"), vec![b'a'; 200_000]).unwrap();
    let mut work = copy(&from, &to);
    until_a_file_is_copied(&mut work, &to, &mut io);
    std::fs::rename(&to, &moved).unwrap();
    assert_eq!(work.go_on(&mut io, 100).unwrap().status, 500);
    assert_eq!(names(&moved), Vec::<String>::new());
}

#[test]
fn a_copy_takes_no_name_from_another_one() {
    let (root, mut io) = (TempDir::new(), Epoll::new().unwrap());
    let [from, to, moved] = ["from", "to", "moved"].map(|name| root.join(name));
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("a"), vec![b'a'; 200_000]).unwrap();
    let mut one = copy(&from, &to);
    until_a_file_is_copied(&mut one, &to, &mut io);
    std::fs::rename(&to, &moved).unwrap();
    let mut other = copy(&from, &to);
    until_a_file_is_copied(&mut other, &to, &mut io);
    // The other one's file has the name that this one's had.
    assert_eq!(one.go_on(&mut io, 100).unwrap().status, 500);
    assert_eq!(names(&to).len(), 1);
    assert_ne!(names(&to), ["a"]);
    assert_eq!(other.go_on(&mut io, 100).unwrap().status, 201);
    assert_eq!(names(&to), ["a"]);
    assert_eq!(std::fs::read(to.join("a")).unwrap().len(), 200_000);
    assert_eq!(names(&moved), Vec::<String>::new());
}
