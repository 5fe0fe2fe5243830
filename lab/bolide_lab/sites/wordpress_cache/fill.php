<?php
/* Owns: a WordPress that is used: fill.php DIR URL installs the one in DIR with posts and comments. */
declare(strict_types=1);

[, $dir, $url] = $argv;
$_SERVER += ['HTTP_HOST' => parse_url($url, PHP_URL_HOST), 'REQUEST_URI' => '/',
    'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET'];
define('WP_INSTALLING', true);
require "$dir/wp-load.php";
require ABSPATH . 'wp-admin/includes/upgrade.php';
function wp_new_blog_notification() {}
add_filter('pre_wp_mail', '__return_true');
wp_install('The laboratory', 'editor', 'editor@example.org', true, '', 'correct horse battery');
update_option('posts_per_page', 10);
update_option('permalink_structure', '/%postname%/');
update_option('timezone_string', 'UTC');
$words = explode(' ', 'comet meteor bolide night sky trail bright faint stone light east west');
for ($n = 1; $n <= 12; $n++) {
    $text = '';
    for ($p = 0; $p < 6; $p++) {
        $line = [];
        for ($w = 0; $w < 60; $w++) {
            $line[] = $words[crc32("$n/$p/$w") % count($words)];
        }
        $text .= '<!-- wp:paragraph --><p>' . ucfirst(implode(' ', $line)) . '.</p><!-- /wp:paragraph -->';
    }
    $id = wp_insert_post(['post_title' => "Observation $n", 'post_status' => 'publish',
        'post_author' => 1, 'post_content' => $text,
        'post_date' => sprintf('2024-01-%02d 21:00:00', $n)]);
    wp_insert_comment(['comment_post_ID' => $id, 'comment_author' => 'Edmond',
        'comment_content' => "I saw number $n too.", 'comment_approved' => 1,
        'comment_date' => '2024-02-01 12:00:00', 'comment_date_gmt' => '2024-02-01 12:00:00']);
}
wp_schedule_event(time() + DAY_IN_SECONDS, 'twicedaily', 'wp_https_detection');
delete_option('rewrite_rules');
echo "filled\n";
