//! Files that are there and cannot be opened are not taken for files that are not there.

use std::time::Duration;

use bolide_files::OpenFailure;
use bolide_http::Method;
use bolide_world::{FuzzWorld, request};

const CONFIG: &str = r"
events {}
http {
    types { text/css css; text/html html; }
    server {
        listen 80;
        server_name any.test;
        root /srv/www;
        error_page 404 =200 /nowhere;
        location /tried/ { alias /srv/www/; try_files $uri /fallback; }
        location /strict/ { alias /srv/www/; try_files $uri =404; }
        location /asked/ { alias /srv/www/; if (!-f $request_filename) { return 204; } }
        location /index/ { alias /srv/www/; index none.html a.css /fallback; }
        location = /fallback { return 200 fallback; }
        location = /nowhere { return 200 nowhere; }
        location /coded/ { alias /srv/www/; gzip_static on; }
    }
}
";

const NONE_LEFT: OpenFailure = OpenFailure::Other(24);

fn status(world: &mut FuzzWorld, path: &str) -> u16 {
    world.ask(request(Method::Get, "any.test", path, &[])).status
}

#[test]
fn what_is_there_decides_and_its_own_failure_answers() {
    for (failure, wanted) in [(NONE_LEFT, 500), (OpenFailure::PermissionDenied, 403)] {
        let mut world = FuzzWorld::of(CONFIG);
        world.door.shut("/srv/www/a.css", failure);
        for path in ["/tried/a.css", "/strict/a.css", "/asked/a.css", "/index/"] {
            assert_eq!(status(&mut world, path), wanted, "{path}, {failure:?}");
        }
        // A moment later it can be.
        world.door.put("/srv/www/a.css", b"there");
        world.pass(Duration::from_secs(2));
        for path in ["/tried/a.css", "/strict/a.css", "/asked/a.css", "/index/"] {
            assert_eq!(status(&mut world, path), 200, "{path}, {failure:?}");
        }
    }
}

#[test]
fn a_compressed_form_that_could_not_be_opened_is_looked_for_again() {
    let mut world = FuzzWorld::of(CONFIG);
    world.door.put("/srv/www/a.css", b"plain");
    world.door.shut("/srv/www/a.css.gz", NONE_LEFT);
    let ask = |world: &mut FuzzWorld| {
        let fields = [("Accept-Encoding", "gzip")];
        world.ask(request(Method::Get, "any.test", "/coded/a.css", &fields)).text()
    };
    assert_eq!(ask(&mut world), "plain");
    world.door.put("/srv/www/a.css.gz", b"coded");
    world.pass(Duration::from_millis(1));
    assert_eq!(ask(&mut world), "coded");
}
