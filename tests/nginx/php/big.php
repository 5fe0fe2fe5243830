<?php header('Content-Type: text/plain');
for ($n = 0; $n < (int) ($_GET['n'] ?? 1000); $n++) echo "line_{$n}_of a long answer\n";
