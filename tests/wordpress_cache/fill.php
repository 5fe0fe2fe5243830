<?php
/*
 * Owns: a WordPress that has been lived in: fill.php DIR URL installs the one in DIR, which is to be
 * found at URL, with people, posts, pages and comments.
 */
[, $dir, $url] = $argv;
$parts = parse_url($url);
$_SERVER['HTTP_HOST'] = $parts['host'] . ':' . $parts['port'];
$_SERVER['HTTPS'] = 'on';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
define('WP_INSTALLING', true);
define('WP_SITEURL', $url);
require "$dir/wp-load.php";
require ABSPATH . 'wp-admin/includes/upgrade.php';

/** Nobody is told by mail, and no other host is asked for anything. */
function wp_new_blog_notification() {}
add_filter('pre_wp_mail', '__return_true');
add_filter('pre_http_request', fn () => new WP_Error('offline', 'Nobody is asked.'));

wp_install("Bolide's site", 'editor', 'editor@example.org', true, '', 'correct horse battery');
update_option('home', $url);
update_option('siteurl', $url);
update_option('posts_per_page', 5);
update_option('timezone_string', 'UTC');

// It would look at the front page, at a time of its own.
wp_schedule_event(time() + DAY_IN_SECONDS, 'twicedaily', 'wp_https_detection');
update_option('permalink_structure', '/%postname%/');

foreach (['ada' => 'author', 'reader-one' => 'subscriber', 'reader-two' => 'subscriber'] as $name => $role) {
    $people[$name] = wp_insert_user(['user_login' => $name, 'user_pass' => 'correct horse battery',
        'user_email' => "$name@example.org", 'role' => $role, 'display_name' => ucfirst($name)]);
}
foreach (['Comets', 'Meteors'] as $name) {
    $categories[] = wp_insert_term($name, 'category')['term_id'];
}
for ($n = 1; $n <= 8; $n++) {
    $post = wp_insert_post(['post_title' => "Observation $n", 'post_status' => 'publish',
        'post_author' => $n % 2 ? 1 : $people['ada'], 'post_category' => [$categories[$n % 2]],
        'tags_input' => [$n % 3 ? 'bright' : 'faint'],
        'post_date' => sprintf('2026-%02d-%02d 21:00:00', 1 + $n % 3, $n),
        'post_content' => "<!-- wp:paragraph --><p>Seen in the night, number $n.</p><!-- /wp:paragraph -->"]);
    wp_insert_comment(['comment_post_ID' => $post, 'comment_author' => 'Edmond',
        'comment_content' => "I saw number $n too.", 'comment_approved' => 1]);
}
// The next request knows all kinds of pages and makes rules for them.
delete_option('rewrite_rules');
echo "filled\n";
