<?php header('Content-Type: text/plain');
http_response_code((int) ($_GET['s'] ?? 404));
echo 'error page for ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['REDIRECT_STATUS'] ?? '', ' ', $_SERVER['REQUEST_METHOD'], "\n";
