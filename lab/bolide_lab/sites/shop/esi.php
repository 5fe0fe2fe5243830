<?php
/* Owns: a public page with a part that belongs to one visitor, for servers that put pages together. */
declare(strict_types=1);

require __DIR__ . '/lab/cache.php';
require __DIR__ . '/lab/catalogue.php';
require __DIR__ . '/lab/template.php';

Lab\Cache\begin();
Lab\Cache\tag('CAT_C_7');
Lab\Cache\part_is_private();
page('Bags', listing(280, 12) . sidebar('/gear/bags.html'), 'CATEGORY');
Lab\Cache\finish();
