<?php
/* Owns: what the shop has to sell, made from numbers. */
declare(strict_types=1);

use function Lab\Cache\tag;

const CATEGORIES = ['/what-is-new.html' => 1, '/women.html' => 2, '/men.html' => 3,
    '/gear.html' => 4, '/training.html' => 5, '/sale.html' => 6, '/gear/bags.html' => 7,
    '/women/tops-women/hoodies-and-sweatshirts-women.html' => 8,
    '/men/tops-men/hoodies-and-sweatshirts-men.html' => 9];
const PRODUCTS = ['/tiffany-fitness-tee.html' => 1101, '/adrienne-trek-jacket.html' => 1102,
    '/zoltan-gym-tee.html' => 1103, '/taurus-elements-shell.html' => 1104,
    '/luma-analog-watch.html' => 1105];
const COLOURS = ['Black', 'Blue', 'Gray', 'Green', 'Orange', 'Purple', 'Red', 'White', 'Yellow'];
const SIZES = ['XS', 'S', 'M', 'L', 'XL'];
const THINGS = ['Hoodie', 'Tee', 'Jacket', 'Tank', 'Short', 'Pant', 'Duffle', 'Backpack', 'Watch'];
const NAMES = ['Aether', 'Circe', 'Driven', 'Erika', 'Frankie', 'Helios', 'Ingrid', 'Josie', 'Kenobi'];

function title_of(string $path): string
{
    return ucwords(str_replace('-', ' ', basename($path, '.html')));
}

function name_of(int $id): string
{
    return NAMES[$id % 9] . ' ' . COLOURS[intdiv($id, 9) % 9] . ' ' . THINGS[intdiv($id, 3) % 9];
}

function price_of(int $id): string
{
    return '$' . number_format(19 + $id * 7 % 80, 2);
}

/** The pictures are files that any server can serve alone. */
function picture_of(int $id): string
{
    return '/media/catalog/product/' . $id % 24 . '.jpg';
}

function listing(int $first, int $count): string
{
    $items = '';
    for ($id = $first; $id < $first + $count; $id++) {
        tag("CAT_P_$id");
        $items .= item($id);
    }
    return "<div class=\"products wrapper grid products-grid\"><ol class=\"products list items product-items\">"
        . "$items</ol></div>";
}

/** Swatches and data attributes are most of the weight, as they are there. */
function item(int $id): string
{
    $name = name_of($id);
    $swatches = '';
    foreach ([['size', SIZES], ['color', COLOURS]] as [$kind, $values]) {
        foreach ($values as $at => $value) {
            $hash = md5("$id$kind$at");
            $swatches .= "<div class=\"swatch-option $kind\" id=\"option-label-$kind-$id-item-$at\" "
                . "index=\"$at\" aria-checked=\"false\" aria-label=\"$value\" tabindex=\"0\" "
                . "data-option-type=\"1\" data-option-id=\"$at\" data-option-label=\"$value\" "
                . "data-option-tooltip-value=\"#$hash\" role=\"option\">$value</div>";
        }
    }
    return "<li class=\"item product product-item\"><div class=\"product-item-info\" data-container=\"product-grid\">"
        . "<a href=\"/p/$id.html\" class=\"product photo product-item-photo\" tabindex=\"-1\">"
        . '<img class="product-image-photo" src="' . picture_of($id) . "\" width=\"240\" height=\"300\" alt=\"$name\"></a>"
        . "<strong class=\"product name product-item-name\"><a href=\"/p/$id.html\">$name</a></strong>"
        . '<span class="price-wrapper" data-price-type="finalPrice">' . price_of($id) . "</span>$swatches"
        . "<form data-role=\"tocart-form\" method=\"post\" action=\"/checkout/cart/add\"><input type=\"hidden\" "
        . "name=\"product\" value=\"$id\"><button type=\"submit\" title=\"Add to Cart\">Add to Cart</button></form></div></li>";
}

function product(int $id, string $path): string
{
    $gallery = '';
    for ($n = 0; $n < 4; $n++) {
        $gallery .= '<img src="' . picture_of($id + $n) . '" alt="">';
    }
    $options = json_encode(array_map(fn ($n) => ['id' => $id * 100 + $n, 'price' => price_of($id + $n),
        'sku' => md5("$id/$n"), 'image' => picture_of($n)], range(0, 44)));
    return "<div class=\"product media\">$gallery</div><div class=\"product-info-price\">" . price_of($id)
        . "</div><script type=\"text/x-magento-init\">$options</script>" . text_of($path);
}
