<?php
header('Content-Type: text/plain');
$body = file_get_contents('php://input');
echo $_SERVER['REQUEST_METHOD'], ' ', strlen($body), ' ', md5($body), "\n", substr($body, 0, 60), "\n";
foreach (['CONTENT_LENGTH', 'CONTENT_TYPE', 'HTTP_TRANSFER_ENCODING', 'HTTP_CONTENT_LENGTH', 'HTTP_EXPECT'] as $name) {
    echo $name, '=', json_encode($_SERVER[$name] ?? null), "\n";
}
$files = [];
foreach ($_FILES as $name => $file) {
    $files[$name] = [$file['name'], $file['type'], $file['error'], $file['size'], @md5_file($file['tmp_name'])];
}
echo json_encode([$_GET, $_POST, $files]), "\n";
