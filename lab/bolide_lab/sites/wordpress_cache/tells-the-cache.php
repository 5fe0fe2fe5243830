<?php
/*
 * Plugin Name: Tells the cache
 * Description: Says in the words of the server that is measured how long pages may be kept.
 *
 * Owns: WordPress's side of every page cache of the laboratory, by `lab/cache.php`. Only pages for
 * everybody are kept: no users, commenters, previews, searches, errors.
 */
declare(strict_types=1);

require_once ABSPATH . 'lab/cache.php';

function lab_is_for_everybody(): bool
{
    return !is_user_logged_in() && !is_preview() && !is_search() && !is_404() && !post_password_required()
        && !preg_grep('/^(comment_author|wordpress_logged_in|wp-postpass)/', array_keys($_COOKIE));
}

// `lab/cache.php` looked for an old copy before WordPress began, where there is one.
add_action('template_redirect', function (): void {
    ob_start(function (string $page): string {
        lab_is_for_everybody() || Lab\Cache\never();
        return Lab\Cache\with_length(Lab\Cache\encoded(Lab\Cache\described($page)));
    });
}, 0);

add_action('the_post', fn (WP_Post $post) => Lab\Cache\tag('Po.' . $post->ID));
