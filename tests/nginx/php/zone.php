<?php
header('Content-Type: text/plain');
$file = '@HOME@/php-tmp/count-' . $_SERVER['SERVER_PORT'] . '-' . sha1($_SERVER['SITE'] . strtok($_SERVER['REQUEST_URI'], '?') . $_GET['n']);
$lock = fopen($file, 'c+'); flock($lock, LOCK_EX);
$run = (int) stream_get_contents($lock) + 1;
ftruncate($lock, 0); rewind($lock); fwrite($lock, $run); fclose($lock);
foreach ($_GET['h'] ?? [] as $field) header($field, stripos($field, 'content-type:') === 0);
if (isset($_GET['s'])) http_response_code((int) $_GET['s']);
if ($run >= 2) {
    if (isset($_GET['from2'])) http_response_code((int) $_GET['from2']);
    if (isset($_GET['die2'])) posix_kill(getmypid(), 9);
    usleep((int) ($_GET['ms2'] ?? 0) * 1000);
}
if ($run == 1 && isset($_GET['ms1'])) {
    echo "part\n";
    flush();
    usleep((int) $_GET['ms1'] * 1000);
}
usleep((int) ($_GET['ms'] ?? 0) * 1000);
if (isset($_GET['confirm']) && (isset($_SERVER['HTTP_IF_NONE_MATCH']) || isset($_SERVER['HTTP_IF_MODIFIED_SINCE']))) {
    http_response_code(304);
    exit;
}
$text = "run $run\n";
if (isset($_GET['cond'])) {
    foreach ($_SERVER as $name => $value) if (preg_match('/^HTTP_(IF_|RANGE)/', $name)) $text .= "$name=$value\n";
}
echo str_pad($text, (int) ($_GET['len'] ?? 0), '.');
