<?php
/* Owns: a page that is another one for each query, to be asked for once. */
declare(strict_types=1);

require __DIR__ . '/lab/cache.php';
require __DIR__ . '/lab/catalogue.php';
require __DIR__ . '/lab/template.php';

Lab\Cache\begin();
Lab\Cache\tag('COLD');
page('Cold', listing(crc32($_SERVER['QUERY_STRING'] ?? '') % 600, 12), 'COLD');
Lab\Cache\finish();
