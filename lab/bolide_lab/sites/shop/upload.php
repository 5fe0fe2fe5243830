<?php
/* Owns: what becomes of an upload: it is read to its end and its size is told. */
declare(strict_types=1);

$size = 0;
$input = fopen('php://input', 'rb');
while (!feof($input)) {
    $size += strlen((string) fread($input, 65536));
}
header('Content-Type: text/plain');
header('Cache-Control: no-store');
echo "$size\n";
