<?php header('Content-Type: text/plain');
error_log('one line');
error_log("two\nlines");
error_log('odd: "quoted" \\ ' . chr(1) . ' ü');
if (isset($_GET['long'])) error_log(str_repeat('long ', (int) $_GET['long']));
echo "said\n";
