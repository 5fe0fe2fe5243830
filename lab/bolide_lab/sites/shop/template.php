<?php
/* Owns: what is around every page: head, menu, cart, foot. */
declare(strict_types=1);

use function Lab\Cache\told_esi;

const STYLES = ['styles-m', 'styles-l', 'calendar'];
const SCRIPTS = ['require', 'mixins', 'requirejs-config', 'jquery', 'knockout', 'theme', 'menu', 'swatch'];

function page(string $title, string $content, string $kind): void
{
    $title = htmlspecialchars($title);
    echo "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>$title</title>\n";
    foreach (STYLES as $name) {
        echo "<link rel=\"stylesheet\" type=\"text/css\" media=\"all\" href=\"/static/css/$name.css\">\n";
    }
    foreach (SCRIPTS as $name) {
        echo "<script type=\"text/javascript\" src=\"/static/js/$name.js\"></script>\n";
    }
    echo "</head><body class=\"page-layout-2columns-left catalog-$kind\"><header class=\"page-header\">",
        '<a class="logo" href="/"><img src="/static/images/logo.svg" alt="Luma" width="148" height="43"></a>',
        shown('cart'), '</header><div class="sections nav-sections">', shown('menu'), '</div>',
        "<main id=\"maincontent\"><h1 class=\"page-title\">$title</h1>\n$content</main>", foot(), "</body></html>\n";
}

/** A part's place in the page, where the server puts pages together; else the part itself. */
function shown(string $name): string
{
    // As with LiteMage, an empty cart stands in the page, and who has one gets it as a private part;
    // Magento's own is filled in by script.
    $is_part = told_esi() && ($name === 'menu' || Lab\Cache\keeps_private('cart_items'));
    if ($is_part) {
        Lab\Cache\has_parts();
        return "<esi:include src=\"/esi/$name\" />";
    }
    return $name === 'menu' ? menu() : cart(0);
}

function part(string $name): void
{
    if ($name === 'cart') {
        Lab\Cache\own();
        echo cart((int) ($_COOKIE['cart_items'] ?? 0));
        return;
    }
    Lab\Cache\tag('CAT_C');
    echo menu();
}

function cart(int $count): string
{
    return "<div data-block=\"minicart\" class=\"minicart-wrapper\"><a class=\"action showcart\" href=\"/checkout/cart\">"
        . "<span class=\"counter qty\">$count</span></a></div>";
}

function menu(): string
{
    $text = '<nav class="navigation" data-action="navigation"><ul>';
    foreach (array_keys(CATEGORIES) as $at => $path) {
        $text .= "<li class=\"level0 nav-$at category-item level-top parent\" role=\"presentation\"><a href=\"$path\" "
            . 'class="level-top ui-corner-all"><span>' . title_of($path) . '</span></a><ul class="level0 submenu">';
        foreach (THINGS as $n => $thing) {
            $text .= "<li class=\"level1 nav-$at-$n category-item\" role=\"presentation\"><a href=\"$path?cat=$n\" "
                . "class=\"ui-corner-all\" role=\"menuitem\"><span>{$thing}s</span></a></li>";
        }
        $text .= '</ul></li>';
    }
    return $text . '</ul></nav>';
}

function sidebar(string $path): string
{
    $text = '<div class="sidebar sidebar-main"><dl class="filter-options" id="narrow-by-list">';
    foreach (['size' => SIZES, 'color' => COLOURS, 'style' => THINGS, 'material' => NAMES] as $kind => $values) {
        $text .= "<dt class=\"filter-options-title\">$kind</dt><dd class=\"filter-options-content\"><ol class=\"items\">";
        foreach ($values as $at => $value) {
            $count = crc32("$path$kind$value") % 40;
            $text .= "<li class=\"item\"><a href=\"$path?$kind=$at\">$value<span class=\"count\">$count</span></a></li>";
        }
        $text .= '</ol></dd>';
    }
    return $text . '</dl></div>';
}

function banners(): string
{
    $text = '<div class="blocks-promo">';
    foreach (['home-main.jpg', 'home-pants.jpg', 'home-t-shirts.png', 'home-erin.jpg', 'home-eco.jpg'] as $file) {
        $text .= "<a class=\"block-promo\" href=\"/sale.html\"><img src=\"/media/wysiwyg/home/$file\" alt=\"\"></a>";
    }
    return "$text</div>";
}

function form(string $name): string
{
    $text = "<form class=\"form $name\" method=\"post\" action=\"#\">";
    foreach (['firstname', 'lastname', 'email', 'telephone', 'comment', 'password'] as $field) {
        $text .= "<div class=\"field $field required\"><label class=\"label\" for=\"$field\"><span>$field</span></label>"
            . "<div class=\"control\"><input name=\"$field\" id=\"$field\" class=\"input-text\" data-validate=\"{required:true}\"></div></div>";
    }
    return "$text<button type=\"submit\" class=\"action primary\">Submit</button></form>";
}

function text_of(string $path): string
{
    $text = '';
    for ($n = 0; $n < 30; $n++) {
        $text .= '<p>' . str_repeat(name_of(crc32("$path$n") % 1000) . ' is made for long days outside. ', 4) . '</p>';
    }
    return $text;
}

/** Scripts within the page, which no cache may leave out. */
function foot(): string
{
    $settings = [];
    for ($n = 0; $n < 90; $n++) {
        $settings["Magento_Part$n/js/view"] = ['component' => md5("part $n"), 'lifetime' => 3600, 'url' => "/part/$n"];
    }
    $json = json_encode($settings);
    return "<footer class=\"page-footer\"><p>Copyright of nobody.</p></footer><script type=\"text/x-magento-init\">$json</script>";
}
