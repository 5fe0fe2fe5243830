<?php
/*
 * Owns: a small shop that stands in for Magento: the same addresses, pages of the same weight, and
 * what a full-page cache is told: LiteMage's fields and private parts, or tags and a surrogate's
 * parts for Varnish. Ours has no database and costs PHP little; only cached pages compare.
 * Easiest to break: nothing that belongs to one visitor is in a public page.
 */
declare(strict_types=1);

require __DIR__ . '/lab/cache.php';
require __DIR__ . '/lab/catalogue.php';
require __DIR__ . '/lab/template.php';

use function Lab\Cache\{begin, tag, told_esi};

$path = rawurldecode(parse_url($_SERVER['REQUEST_URI'] ?? '/', PHP_URL_PATH) ?: '/');
begin();

if (preg_match('#^/esi/(menu|cart)$#', $path, $found)) {
    part($found[1]);
} elseif (in_array($path, ['/customer/account/login', '/customer/account/login/',
    '/customer/account/create', '/customer/account/create/'], true)) {
    // As in Magento: forms of a session are never kept.
    Lab\Cache\never();
    page('Customer account', form(basename(rtrim($path, '/'))), 'FORM');
} elseif (rtrim($path, '/') === '/catalogsearch/result') {
    $words = is_string($_GET['q'] ?? '') ? substr($_GET['q'] ?? '', 0, 64) : '';
    tag('SEARCH');
    page("Search results for: '$words'", listing(crc32($words) % 600, 12), 'SEARCH');
} elseif (in_array(rtrim($path, '/'), ['/contact', '/catalogsearch/advanced',
    '/privacy-policy-cookie-restriction-mode'], true)) {
    tag('CMS_P');
    page(ucfirst(basename(rtrim($path, '/'))), text_of($path) . form(basename(rtrim($path, '/'))), 'CMS');
} elseif ($path === '/') {
    tag('CMS_P', 'HOME');
    page('Home', banners() . listing(0, 6), 'HOME');
} elseif (isset(CATEGORIES[$path])) {
    tag('CAT_C_' . CATEGORIES[$path]);
    page(title_of($path), listing(CATEGORIES[$path] * 40, 12) . sidebar($path), 'CATEGORY');
} elseif (isset(PRODUCTS[$path])) {
    tag('CAT_P_' . PRODUCTS[$path]);
    page(title_of($path), product(PRODUCTS[$path], $path) . listing(PRODUCTS[$path] + 1, 4), 'PRODUCT');
} else {
    http_response_code(404);
    Lab\Cache\never();
    page('Not found', '<p>There is no such page.</p>', 'MISSING');
}
Lab\Cache\finish();
