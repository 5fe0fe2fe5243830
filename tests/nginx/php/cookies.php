<?php header('Content-Type: text/plain');
setcookie('a', '1', ['path' => '/']);
setcookie('b', '2', ['secure' => true, 'httponly' => true]);
echo json_encode($_COOKIE), "\n";
