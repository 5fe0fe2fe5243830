<?php
/*
 * Plugin Name: Tells the page cache
 * Description: Says in LSCache's fields who may be shown what, and what has changed.
 *
 * Owns: what WordPress tells the server's page cache, and a shop of one ware. Pages for everybody
 * are public; what names a person is private, or a part of its own where the server puts pages
 * together (ESI). Easiest to break: a public page has nothing in it that belongs to one visitor.
 */
namespace TellsTheCache;

const WEEK = 604800;
const HALF_AN_HOUR = 1800;
const QUEUE = 'tells_the_cache_queue';

/** What this request has to say; it is said when the whole output is there. */
final class Words
{
    /** @var array<string, true> */
    public static array $tags = [];
    /** @var array<string, true> */
    public static array $changed = [];
    public static bool $has_parts = false;
}

function told(string $token): bool
{
    return in_array($token, explode(',', $_SERVER['X-LSCACHE'] ?? ''), true);
}

function prefix(): string
{
    return substr(md5(__FILE__), -3) . '_';
}

function tag(string ...$names): void
{
    foreach ($names as $name) {
        Words::$tags[$name] = true;
    }
}

/** Tags whose pages are no longer true; said at once, or with the next answer that has a head. */
function changed(string ...$names): void
{
    foreach ($names as $name) {
        Words::$changed[$name] = true;
    }
    if (PHP_SAPI === 'cli' || wp_doing_cron() || headers_sent()) {
        $queue = array_merge(get_option(QUEUE, []), array_keys(Words::$changed));
        update_option(QUEUE, array_values(array_unique($queue)), true);
        return;
    }
    $tags = array_map(fn ($name) => 'tag=' . prefix() . $name, array_keys(Words::$changed));
    header('X-LiteSpeed-Purge: public,' . implode(',', $tags));
}

// ---- who is asking -------------------------------------------------------

function cart_cookie(): string
{
    return 'wp_woocommerce_session_' . COOKIEHASH;
}

function cart(): string
{
    $session = $_COOKIE[cart_cookie()] ?? '';
    return is_string($session) && preg_match('/^[0-9a-f]{32}$/', $session) ? $session : '';
}

function is_commenter(): bool
{
    return ($_COOKIE['comment_author_' . COOKIEHASH] ?? '') !== '';
}

function is_on_the_move(): bool
{
    return (bool) preg_match('/mobile|android|iphone/i', $_SERVER['HTTP_USER_AGENT'] ?? '');
}

/** What tells this visitor's copies from those of others, in the cookie `_lscache_vary`. */
function kind(?\WP_User $user, bool $has_cart, bool $has_commented): string
{
    $kind = $user && $user->exists() ? ['logged-in:1', 'role:' . implode('+', $user->roles)] : [];
    if ($has_commented && !$kind) {
        $kind[] = 'commenter';
    }
    if ($has_cart) {
        $kind[] = 'cart:1';
    }
    return $kind === [] || $kind === ['commenter'] ? implode($kind) : md5(AUTH_SALT . implode(';', $kind));
}

function set_kind(string $kind): void
{
    if ($kind !== ($_COOKIE['_lscache_vary'] ?? '')) {
        $until = $kind === '' ? 1 : time() + 2 * DAY_IN_SECONDS;
        setcookie('_lscache_vary', $kind, $until, '/', '', is_ssl(), true);
    }
}

add_action('set_logged_in_cookie', function ($cookie, $expire, $expiration, $id) {
    set_kind(kind(get_userdata($id), cart() !== '', false));
    header('X-LiteSpeed-Purge2: private,*');
}, 10, 4);
add_action('clear_auth_cookie', function () {
    set_kind(kind(null, cart() !== '', is_commenter()));
    header('X-LiteSpeed-Purge2: private,*');
});
add_action('set_comment_cookies', function ($comment, $user, $consents = true) {
    if ($consents && !$user->exists()) {
        set_kind(kind(null, cart() !== '', true));
    }
}, 20, 3);

// ---- pages ---------------------------------------------------------------

/** Nothing is kept unless something below says so. */
add_action('init', function () {
    if (PHP_SAPI === 'cli' || headers_sent()) {
        return;
    }
    header('X-LiteSpeed-Cache-Control: no-cache');
    if (!wp_doing_cron() && ($queue = get_option(QUEUE))) {
        delete_option(QUEUE);
        changed(...$queue);
    }
    if (isset($_GET['part'])) {
        part((string) $_GET['part']);
    } elseif (($_POST['cart'] ?? '') === 'add') {
        add_to_cart();
    }
}, 0);

add_action('template_redirect', fn () => ob_start(__NAMESPACE__ . '\finish'), 0);

/** The page is there: what it is made of is known now. */
function finish(string $page): string
{
    set_kind(kind(wp_get_current_user(), cart() !== '', is_commenter()));
    $control = control();
    $esi = Words::$has_parts ? ',esi=on' : '';
    header("X-LiteSpeed-Cache-Control: $control$esi");
    if (is_on_the_move()) {
        header('X-LiteSpeed-Vary: value=ismobile');
    }
    if ($control !== 'no-cache') {
        describe();
        say_tags(str_starts_with($control, 'private'));
    }
    return $page;
}

function control(): string
{
    $is_question = in_array($_SERVER['REQUEST_METHOD'], ['GET', 'HEAD'], true);
    $is_own = is_preview() || isset($_GET['unapproved']) || is_singular() && is_commenter();
    $is_locked = is_singular() && get_queried_object()->post_password !== '';
    if (!$is_question || http_response_code() !== 200 || $is_own || $is_locked || is_search() || is_404()) {
        return 'no-cache';
    }
    // The form for comments says who is logged in.
    $names_user = is_user_logged_in() && (is_admin_bar_showing() || is_singular() || !told('esi'));
    $names_cart = cart() !== '' && !told('esi');
    return $names_user || $names_cart
        ? 'private,max-age=' . HALF_AN_HOUR
        : 'public,max-age=' . WEEK;
}

/** Tags by what kind of page it is; those of the posts that it shows are there already. */
function describe(): void
{
    $what = get_queried_object();
    if (is_front_page()) {
        tag('F');
    }
    if (is_home()) {
        tag('H', 'PT.post');
    }
    if (is_feed()) {
        tag('FD');
    }
    if (is_singular()) {
        tag('Po.' . $what->ID, 'PT.' . $what->post_type);
    } elseif ($what instanceof \WP_Term) {
        tag('T.' . $what->term_id);
    } elseif (is_author()) {
        tag('A.' . get_queried_object_id());
    } elseif (is_date()) {
        tag('D');
    }
    if (is_admin_bar_showing()) {
        tag('MOD');
    }
}

/** The bare prefix is the tag of all pages of this site. */
function say_tags(bool $is_private): void
{
    $public = $is_private ? 'public:' : '';
    $tags = $is_private ? [prefix() . 'own'] : [];
    foreach (['', ...array_keys(Words::$tags)] as $name) {
        $tags[] = $public . prefix() . $name;
    }
    header('X-LiteSpeed-Tag: ' . implode(',', $tags));
}

/** Every post whose title or text is somewhere in the page. */
add_action('the_post', fn ($post) => tag('Po.' . $post->ID));
add_filter('the_title', function ($title, $id = 0) {
    if ($id) {
        tag('Po.' . (int) $id);
    }
    return $title;
}, 10, 2);
add_action('pre_get_posts', function ($query) {
    if (!$query->is_main_query() && !is_admin()) {
        tag('LIST');
    }
});

// ---- what changes --------------------------------------------------------

add_action('wp_after_insert_post', function ($id, $post, $update, $before) {
    $old = $before->post_status ?? 'new';
    $is_seen = in_array('publish', [$old, $post->post_status], true);
    // The editor makes a place for styles when it first looks for them.
    $is_empty = $post->post_type === 'wp_global_styles' && !$update;
    if (!$is_seen || $is_empty || wp_is_post_revision($id)) {
        return;
    }
    if (str_starts_with($post->post_type, 'wp_')) {
        changed('');
        return;
    }
    $tags = ['Po.' . $id, 'F', 'H', 'FD', 'D', 'A.' . $post->post_author];
    foreach (get_object_taxonomies($post) as $taxonomy) {
        foreach (wp_get_post_terms($id, $taxonomy, ['fields' => 'ids']) as $term) {
            $tags[] = 'T.' . $term;
        }
    }
    if ($old !== $post->post_status) {
        array_push($tags, 'PT.' . $post->post_type, 'LIST');
    }
    changed(...$tags);
}, 10, 4);
add_action('before_delete_post', fn ($id, $post) => $post->post_status === 'publish'
    && changed('Po.' . $id, 'PT.' . $post->post_type, 'LIST', 'F', 'H', 'FD'), 10, 2);

function comment_changed($comment): void
{
    changed('MOD', 'FD', 'Po.' . $comment->comment_post_ID);
}
add_action('wp_insert_comment', fn ($id, $comment) => $comment->comment_approved === '1'
    ? comment_changed($comment) : changed('MOD'), 10, 2);
add_action('transition_comment_status', fn ($new, $old, $comment) => comment_changed($comment), 10, 3);
add_action('edit_comment', fn ($id) => comment_changed(get_comment($id)));

foreach (['edited_term', 'delete_term', 'switch_theme', 'permalink_structure_changed',
    'update_option_blogname', 'update_option_blogdescription'] as $hook) {
    add_action($hook, fn () => changed(''));
}
// The editor keeps its settings in the profile.
add_action('profile_update', fn ($id, $before) =>
    get_userdata($id)->display_name === $before->display_name || changed(''), 10, 2);

// ---- the bar above each page, and the shop ------------------------------

add_filter('show_admin_bar', fn ($shown) => $shown && current_user_can('edit_posts'));

add_action('wp_body_open', function () {
    $copy = is_on_the_move() ? 'mobile' : 'desktop';
    $style = 'display:flex;gap:2em;align-items:center;padding:1em 2em;background:#eef';
    echo "<div id='shop' style='$style' data-copy='$copy'>", shown('greeting'), shown('cart');
    echo "<form method='post' action='/'><button name='cart' value='add'>Add to cart</button></form>";
    echo "<span>Made as a $copy copy</span></div>";
});

/** A part's place in the page, or the part itself. */
function shown(string $name): string
{
    if (!told('esi') || is_admin_bar_showing()) {
        return text($name);
    }
    Words::$has_parts = true;
    return "<esi:include src=\"/?part=$name\" />";
}

function text(string $name): string
{
    if ($name === 'greeting') {
        $user = wp_get_current_user();
        $name = $user->exists() ? esc_html($user->display_name) : 'stranger';
        return "<b id='greeting'>Hello, $name!</b>";
    }
    $count = cart() === '' ? 0 : (int) get_transient('cart_' . cart());
    return "<span id='cart'>In your cart: $count</span>";
}

/** A part asked for alone: private to whom it names, and the same for all others. */
function part(string $name): never
{
    $is_own = $name === 'greeting' ? is_user_logged_in() : cart() !== '';
    $control = $is_own ? 'private,max-age=' . HALF_AN_HOUR : 'public,max-age=' . WEEK;
    header("X-LiteSpeed-Cache-Control: $control");
    tag($name === 'greeting' ? 'greeting' : 'cart');
    say_tags($is_own);
    echo in_array($name, ['greeting', 'cart'], true) ? text($name) : '';
    exit;
}

function add_to_cart(): never
{
    $session = cart() ?: bin2hex(random_bytes(16));
    set_transient('cart_' . $session, (int) get_transient('cart_' . $session) + 1, DAY_IN_SECONDS);
    setcookie(cart_cookie(), $session, 0, '/', '', is_ssl(), true);
    set_kind(kind(wp_get_current_user(), true, is_commenter()));
    header('X-LiteSpeed-Purge: private,' . prefix() . 'own');
    wp_safe_redirect(wp_get_raw_referer() ?: home_url('/'), 303);
    exit;
}
