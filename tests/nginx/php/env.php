<?php
header('Content-Type: text/plain');
$skip = ['REMOTE_PORT', 'REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'USER', 'HOME', 'FCGI_ROLE', 'POOL'];
ksort($_SERVER);
foreach ($_SERVER as $name => $value) {
    if (!in_array($name, $skip)) echo "$name=", json_encode($value, JSON_UNESCAPED_SLASHES), "\n";
}
