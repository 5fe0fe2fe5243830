<?php header('Content-Type: text/plain');
if (isset($_GET['first'])) { echo "first\n"; flush(); }
usleep((int) $_GET['ms'] * 1000);
echo "slow\n";
