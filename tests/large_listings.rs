//! Listings of large directories, which another thread writes, say what those of small ones say.

use std::fs;

use crate::{report, site};

/// More than are listed in the turn.
const MANY: usize = 1500;

#[test]
fn a_large_directory_is_listed_row_by_row_as_a_small_one() {
    let mut failures = Vec::new();
    for format in ["html", "json", "jsonp", "xml"] {
        let server = site(&format!("autoindex on; autoindex_format {format};"));
        for (directory, files) in [("few", MANY / 2..MANY / 2 + 1), ("many", 0..MANY)] {
            fs::create_dir(server.www(directory)).unwrap();
            for number in files {
                let path = server.www(&format!("{directory}/file{number:05}"));
                fs::File::create(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }
        }
        let [few, many] =
            ["/few/?callback=c", "/many/?callback=c"].map(|path| server.connect().get(path, ""));
        let row = |text: &str| text.lines().find(|line| line.contains("file")).map(str::to_owned);
        let wanted = row(&few.text()).unwrap_or_default();
        let mine = format!("file{:05}", MANY / 2);
        let wanted: Vec<String> =
            (0..MANY).map(|n| wanted.replace(&mine, &format!("file{n:05}"))).collect();
        let text = many.text();
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("file")).collect();
        let rows = rows.iter().map(|row| row.trim_end_matches(',')).collect::<Vec<_>>();
        let has_same_kind = few.header("content-type") == many.header("content-type");
        if rows != wanted || !has_same_kind || few.status != 200 || many.status != 200 {
            failures.push(format!("{format}: {} rows, {:?}", rows.len(), rows.first()));
        }
        let bad = server.get("/many/?callback=%28").status;
        if (bad == 400) != (format == "jsonp") {
            failures.push(format!("{format}: {bad}"));
        }
    }
    report(8, &failures);
}
