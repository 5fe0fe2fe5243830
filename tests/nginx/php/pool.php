<?php header('Content-Type: text/plain');
if (isset($_GET['s'])) http_response_code((int) $_GET['s']);
echo getenv('POOL'), "\n";
