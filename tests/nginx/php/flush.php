<?php header('Content-Type: text/plain');
foreach (['one', 'two', 'three'] as $word) { echo $word, "\n"; flush(); usleep(30000); }
