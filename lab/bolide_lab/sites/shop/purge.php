<?php
/* Owns: "something has changed": all pages with a tag are old from now on. Copies on disk know no
 * tags, so all of them go. */
declare(strict_types=1);

$tag = preg_replace('/\W/', '', is_string($_GET['tag'] ?? '') ? $_GET['tag'] ?? '' : '');
header('Content-Type: text/plain');
header('Cache-Control: no-store');
header('X-LiteSpeed-Cache-Control: no-cache');
header("X-LiteSpeed-Purge: tag=$tag");
foreach (@file(__DIR__ . '/lab/copies', FILE_IGNORE_NEW_LINES) ?: [] as $copy) {
    is_file($copy) && unlink($copy);
}
echo "purged\n";
