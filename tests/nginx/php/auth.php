<?php header('Content-Type: text/plain');
echo json_encode([$_SERVER['PHP_AUTH_USER'] ?? null, $_SERVER['PHP_AUTH_PW'] ?? null, $_SERVER['HTTP_AUTHORIZATION'] ?? null, $_SERVER['REMOTE_USER'] ?? null, $_SERVER['AUTH_TYPE'] ?? null]), "\n";
