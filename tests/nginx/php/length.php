<?php header('Content-Type: text/plain');
$t = str_repeat('length ', (int) ($_GET['n'] ?? 10));
header('Content-Length: ' . (strlen($t) + (int) ($_GET['d'] ?? 0)));
echo $t;
