<?php header('Content-Type: text/plain');
echo $undefined, "warned\n";
