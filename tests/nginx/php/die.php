<?php header('Content-Type: text/plain');
if (isset($_GET['first'])) { echo "first\n"; flush(); usleep(50000); }
posix_kill(getmypid(), 9);
