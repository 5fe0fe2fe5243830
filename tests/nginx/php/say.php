<?php
header('Content-Type: text/plain');
foreach ($_GET['h'] ?? [] as $field) header($field, stripos($field, 'content-type:') === 0);
if (isset($_GET['s'])) http_response_code((int) $_GET['s']);
echo $_GET['b'] ?? "said\n";
echo str_repeat('0123456789abcde\n', (int) ($_GET['n'] ?? 0) >> 4);
