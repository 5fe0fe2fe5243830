<?php
/*
 * Owns: what a page tells its cache, in the words of the server that is measured; `mode` beside
 * this file names them.
 *
 *   none        nothing: PHP runs for each request
 *   lscache     LiteSpeed's fields, tags, public pages and private parts
 *   surrogate   Cache-Control for shared caches, Magento's tags, ESI for a surrogate
 *   gzip        Cache-Control for shared caches; the page is compressed here, once
 *   plain       the same, not compressed here
 *   disk        a copy of the page, also compressed, where the server finds it without PHP
 *   files       the same in the document root itself, for servers that look only there
 *   basic       a copy that PHP reads for each request
 */
declare(strict_types=1);

namespace Lab\Cache;

const LIFETIME_S = 3600;

final class State
{
    public static string $mode = 'none';
    public static string $scope = 'public';
    /** @var array<string, true> */
    public static array $tags = [];
    public static bool $has_parts = false;
    public static bool $part_is_private = false;
    public static ?string $varies_by = null;
}

/** Before anything else: an old copy may be all that is needed. */
function begin(): void
{
    State::$mode = trim((string) @file_get_contents(__DIR__ . '/mode')) ?: 'none';
    if (State::$mode === 'basic' && is_question() && is_file($file = copy_of_this())) {
        header('Content-Type: text/html; charset=UTF-8');
        $wants_gzip = str_contains($_SERVER['HTTP_ACCEPT_ENCODING'] ?? '', 'gzip');
        header('Vary: Accept-Encoding');
        if ($wants_gzip) {
            header('Content-Encoding: gzip');
        }
        readfile($wants_gzip ? "$file.gz" : $file);
        exit;
    }
    // Whatever a server's configuration made PHP do: pages are compressed here, and say their length.
    while (ob_get_level() > 0 && ob_end_clean()) {
        continue;
    }
    ob_start();
}

function tag(string ...$names): void
{
    foreach ($names as $name) {
        State::$tags[$name] = true;
    }
}

/** Nobody keeps this page. */
function never(): void
{
    State::$scope = 'never';
}

/** This answer belongs to one visitor. */
function own(): void
{
    State::$scope = 'private';
}

function has_parts(): void
{
    State::$has_parts = true;
}

function told_esi(): bool
{
    if (State::$mode === 'lscache') {
        return in_array('esi', explode(',', $_SERVER['X-LSCACHE'] ?? ''), true);
    }
    return State::$mode === 'surrogate'
        && str_contains($_SERVER['HTTP_SURROGATE_CAPABILITY'] ?? '', 'ESI/1.0');
}

/** The cart is a part for every server that knows parts, kept or not. */
function part_is_private(): void
{
    State::$part_is_private = true;
}

/** Whether this visitor's part is asked for by itself: a page without it says that it differs by `$cookie`. */
function keeps_private(string $cookie): bool
{
    if (State::$part_is_private) {
        return true;
    }
    State::$varies_by = $cookie;
    return State::$mode === 'lscache' && isset($_COOKIE[$cookie]);
}

/** Says the fields and gives the page away. */
function finish(): void
{
    $page = (string) ob_get_clean();
    header('Content-Type: text/html; charset=UTF-8');
    echo with_length(encoded(described($page)));
}

/** The fields of the mode, and the copies; the page as it is. */
function described(string $page): string
{
    if (State::$scope !== 'public' || !is_question() || http_response_code() !== 200) {
        if (State::$scope === 'private' && State::$mode === 'lscache') {
            header('X-LiteSpeed-Cache-Control: private,max-age=1800');
            return $page;
        }
        header('Cache-Control: private, no-cache, no-store');
        header('X-LiteSpeed-Cache-Control: no-cache');
        return $page;
    }
    $tags = array_keys(State::$tags);
    if (State::$mode === 'lscache') {
        header('X-LiteSpeed-Cache-Control: public,max-age=' . LIFETIME_S . (State::$has_parts ? ',esi=on' : ''));
        header('X-LiteSpeed-Tag: ' . implode(',', $tags ?: ['all']));
        if (State::$varies_by !== null) {
            header('X-LiteSpeed-Vary: cookie=' . State::$varies_by);
        }
    } elseif (in_array(State::$mode, ['surrogate', 'gzip', 'plain'], true)) {
        header('Cache-Control: public, s-maxage=' . LIFETIME_S);
        header('X-Tags: ' . implode(',', $tags ?: ['all']));
        if (State::$has_parts) {
            header('Surrogate-Control: content="ESI/1.0"');
        }
    } elseif (in_array(State::$mode, ['disk', 'files', 'basic'], true)) {
        keep_copy($page);
    }
    return $page;
}

/** siege waits for ever for the end of an answer that comes in chunks on a kept connection. */
function with_length(string $answer): string
{
    header('Content-Length: ' . strlen($answer));
    return $answer;
}

function encoded(string $page): string
{
    if (State::$mode !== 'gzip') {
        return $page;
    }
    header('Vary: Accept-Encoding');
    if (!str_contains($_SERVER['HTTP_ACCEPT_ENCODING'] ?? '', 'gzip')) {
        return $page;
    }
    header('Content-Encoding: gzip');
    return (string) gzencode($page, 6);
}

function is_question(): bool
{
    return in_array($_SERVER['REQUEST_METHOD'] ?? 'GET', ['GET', 'HEAD'], true);
}

/** A file for this address, below `lab-pages`; with a query, one that PHP alone finds. */
function copy_of_this(): string
{
    [$path, $query] = explode('?', $_SERVER['REQUEST_URI'] ?? '/', 2) + [1 => ''];
    $is_plain = $query === '' && preg_match('#^/[\w./-]*$#', $path) && !str_contains($path, '..');
    $root = dirname(__DIR__);
    if (State::$mode === 'files' && $is_plain) {
        return $root . $path . (str_ends_with($path, '/') ? 'index.html' : '');
    }
    return "$root/lab-pages" . ($is_plain ? rtrim($path, '/') : '/by-hash/' . md5("$path?$query")) . '/index.html';
}

/** Under another name first: no server may see half a page. */
function keep_copy(string $page): void
{
    $file = copy_of_this();
    // What the site has itself is not ours to replace.
    if (is_dir($file) || (State::$mode === 'files' && is_file($file))) {
        return;
    }
    if (!is_dir(dirname($file)) && !@mkdir(dirname($file), 0777, true) && !is_dir(dirname($file))) {
        return;
    }
    foreach (['.gz' => (string) gzencode($page, 9), '' => $page] as $ending => $content) {
        $fresh = "$file$ending." . getmypid();
        file_put_contents($fresh, $content) === strlen($content) && rename($fresh, $file . $ending);
    }
    // Who cleans up needs to know.
    file_put_contents(__DIR__ . '/copies', "$file\n$file.gz\n", FILE_APPEND | LOCK_EX);
}
