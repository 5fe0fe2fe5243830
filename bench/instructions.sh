#!/usr/bin/env bash
# Owns: the gate against regressions in instructions per request, which other work
# on the machine cannot disturb as it disturbs times.
#
#   bench/instructions.sh [--update] [h1|h2|h3|page|esi|routing|metrics|htaccess|plugin]...
#
# h1, h2 and h3 ask for a small file, page for a cached page of 30 KB, compressed, over HTTP/2, and
# esi for such a page with five cached fragments. routing is what a request costs more by HTTP/1
# where it goes through 1,000 server names, 200 locations and 20 maps (lab/bolide_lab/large_sites.py) than where
# there is one server; more than routing_max is too many. metrics is how many per cent h1, h2 and page cost more
# where a location has `metrics`; more than metrics_max_percent is too many. htaccess is how many per cent a small
# file over HTTP/2 costs more where `apache_htaccess` obeys a file in each of five directories above it; more than
# htaccess_max_percent is too many. plugin is what a kept page costs more where a `.htaccess` file with all the rules
# that a caching plugin and WordPress write (bench/conf/plugin.htaccess) is obeyed for a browser's request; more than
# plugin_max is too many. All threads but the first are counted.
# The release binary runs under callgrind twice per protocol, for N and for 2N requests;
# (I(2N) - I(N)) / N leaves out what starting and stopping cost. The result may differ from
# bench/instructions.toml by its tolerance. --update writes the results there.
# BOLIDE_BINARY names a binary that is ready, instead of building one.
set -euo pipefail
cd "$(dirname "$0")/.."

export BOLIDE_TOOLS=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
export PATH=$BOLIDE_TOOLS/bin:$PATH:$HOME/.cargo/bin
table=bench/instructions.toml
update=
[ "${1:-}" = --update ] && { update=1; shift; }
protocols=("${@:-}")
[ -n "${protocols[0]}" ] || protocols=(h1 h2 h3 page esi routing metrics htaccess plugin)

binary=${BOLIDE_BINARY:-}
if [ -z "$binary" ]; then
    cargo build --release --locked --bin bolide
    binary=${CARGO_TARGET_DIR:-target}/release/bolide
fi
for tool in valgrind h2load-h3 openssl; do
    command -v $tool >/dev/null || { echo "missing tool: $tool (run scripts/setup.sh test)" >&2; exit 1; }
done

dir=$(mktemp -d)
server= php=
cleanup() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    [ -z "$php" ] || kill "$php" 2>/dev/null || true
    rm -rf "$dir"
}
trap cleanup EXIT

mkdir -p "$dir/site" "$dir/run"
chmod 755 "$dir"
head -c 1024 /dev/zero | tr '\0' x >"$dir/site/1k.jpg"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
    -subj /CN=localhost -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
for conf in nginx.conf fastcgi_params; do
    sed "s|@DIR@|$dir|g" "bench/conf/$conf" >"$dir/$conf"
done
# What nginx does not know stands in no file that it reads, too.
assembled="location ^~ /esi/ { page_cache auto; fastcgi_pass unix:$dir/php.sock;"
assembled="$assembled include $dir/fastcgi_params; }"
shop="location ^~ /shop/ { page_cache auto; fastcgi_pass unix:$dir/php.sock;"
shop="$shop include $dir/fastcgi_params; }"
sed -i "s|^ *location = /page.php.*|$assembled\n$shop\n&|" "$dir/nginx.conf"

sed 's|^ *location = /page.php.*|location = /metrics { metrics on; }\n&|' "$dir/nginx.conf" >"$dir/measured.conf"
measured=

# The same site, whose deepest directory stands below four others; each has a file of its own.
mkdir -p "$dir/site/1/2/3/4"
cp "$dir/site/1k.jpg" "$dir/site/1/2/3/4"
for deep in . 1 1/2 1/2/3 1/2/3/4; do
    printf 'Options -Indexes\n<Files "*.bak">\n    Require all denied\n</Files>\n' >"$dir/site/$deep/.htaccess"
done
sed 's|^ *http2 on;|apache_htaccess on;\n&|' "$dir/nginx.conf" >"$dir/obeying.conf"
mkdir -p "$dir/site/shop"
cp bench/conf/plugin.htaccess "$dir/site/shop/.htaccess"

# PHP is asked once; it is stopped with the server that asked it.
start_php() {
    local fpm
    fpm=$(ls /usr/sbin/php-fpm* 2>/dev/null | tail -1)
    [ -n "$fpm" ] || { echo "missing tool: php-fpm (run scripts/setup.sh test)" >&2; return 1; }
    cat >"$dir/site/page.php" <<'PHP'
<?php for ($i = 0; $i < 600; $i++) echo "<p class='item'>", $i, ' of a list whose lines are much alike', "</p>\n";
PHP
    { printf "<?php header('X-LiteSpeed-Cache-Control: public,max-age=3600'); ?>"; cat "$dir/site/page.php"; } \
        >"$dir/site/shop/page.php"
    mkdir -p "$dir/site/esi"
    cat >"$dir/site/esi/page.php" <<'PHP'
<?php header('X-LiteSpeed-Cache-Control: public,max-age=3600,esi=on');
for ($i = 0; $i < 500; $i++) {
    echo "<p class='item'>", $i, ' of a list whose lines are much alike', "</p>\n";
    if ($i % 100 == 50) echo "<esi:include src='/esi/part.php?from=", $i, "'/>\n";
}
PHP
    cat >"$dir/site/esi/part.php" <<'PHP'
<?php header('X-LiteSpeed-Cache-Control: public,max-age=3600');
for ($i = 0; $i < 20; $i++)
    echo "<p class='part'>", $_GET['from'] + $i, ' of a list whose lines are much alike', "</p>\n";
PHP
    printf '[global]\nerror_log=%s/php.log\n[www]\nuser=nobody\nlisten=%s/php.sock\n' "$dir" "$dir" \
        >"$dir/php.conf"
    printf 'listen.mode=0666\npm=static\npm.max_children=1\n' >>"$dir/php.conf"
    "$fpm" -F -y "$dir/php.conf" >>"$dir/php.log" 2>&1 &
    php=$!
    for _ in $(seq 100); do [ -S "$dir/php.sock" ] && return; sleep 0.1; done
    cat "$dir/php.log" >&2
    return 1
}

browser=(-H 'user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
    -H 'accept-language: de-DE,de;q=0.8' -H 'cookie: theme=dark; seen=1'
    -H 'accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8'
    -H 'referer: https://www.example.org/some/page.html')

# load PROTOCOL N: one connection, so that each run has the same turns
load() {
    local url=https://127.0.0.1:8443/1k.jpg alpn=$1 streams=10 more=()
    [ "$1" != h1 ] || alpn=http/1.1 streams=1
    [ "$1" != below ] || url=https://127.0.0.1:8443/1/2/3/4/1k.jpg alpn=h2
    if [ "$1" = page ] || [ "$1" = esi ] || [ "$1" = shop ]; then
        url=https://127.0.0.1:8443/page.php alpn=h2 more=(-H accept-encoding:gzip)
        [ "$1" != shop ] || url=https://127.0.0.1:8443/shop/page.php more+=("${browser[@]}")
        [ "$1" != esi ] || url=https://127.0.0.1:8443/esi/page.php
        # The first answer is kept, the second asks for its compressed form.
        h2load-h3 "${more[@]}" -n 2 -c 1 $url >"$dir/load"
        sleep 2
    fi
    h2load-h3 "${more[@]}" --alpn-list="$alpn" -n "$2" -c 1 -m "$streams" "$url" >"$dir/load" 2>&1
    grep -q "status codes: $2 2xx" "$dir/load" || { cat "$dir/load" >&2; return 1; }
}

# route N: as many requests to a server by name, by wildcard and by expression, for a file that no
# expression of fifty claims and for one that the last of them does
route() {
    local host path agent='Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
    local more=(-H "user-agent: $agent" -H 'accept-language: de-DE,de;q=0.8'
        -H 'cookie: session=0123456789abcdef0123456789abcdef; theme=dark'
        -H 'referer: https://www.example.org/some/page.html')
    for host in $(PYTHONPATH=lab python3 -m bolide_lab.large_sites hosts); do
        for path in /plain.html /final/page/42.html; do
            h2load-h3 --h1 -H "host: $host" "${more[@]}" -n "$1" -c 1 -m 1 \
                "http://127.0.0.1:8080$path" >"$dir/load" 2>&1
            grep -q "status codes: $1 2xx" "$dir/load" || { cat "$dir/load" >&2; return 1; }
        done
    done
}

# instructions PROTOCOL N: sets `count` to those of a server that lives for N requests.
instructions() {
    local out=$dir/callgrind.out i conf=nginx
    # Each run begins without stored pages: else only the first one would store them.
    rm -rf "$out"* "$dir/run/cache"
    case $1 in one | large) conf=$1 ;; esac
    [ -z "$measured" ] || conf=$measured
    valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file="$out" \
        "$binary" -p "$dir" -c "$dir/$conf.conf" >"$dir/log" 2>&1 &
    server=$!
    for i in $(seq 600); do
        kill -0 $server 2>/dev/null || { cat "$dir/log" >&2; return 1; }
        if (exec 3<>/dev/tcp/127.0.0.1/8443) 2>/dev/null; then break; fi
        sleep 0.1
    done
    case $1 in
        one | large) route "$2" ;;
        *) load "$1" "$2" ;;
    esac || { cat "$dir/log" >&2; return 1; }
    kill -s TERM $server
    for i in $(seq 300); do
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 $server 2>/dev/null; then
        echo "the server did not end on TERM" >&2
        return 1
    fi
    server=
    # The first thread reads the configuration and starts the others; it serves nobody.
    rm -f "$out-01"
    count=$(awk 'FNR == 1 { sum += most; most = 0 }
        /^(summary|totals):/ { if ($2 > most) most = $2 }
        END { if (!(sum += most)) exit 1; print sum }' "$out"-*)
}

# per_request PROTOCOL N: sets `got`
per_request() {
    local once
    instructions "$1" "$2"
    once=$count
    instructions "$1" $((2 * $2))
    got=$(((count - once) / $2))
}

# with_metrics: says what requests cost more where they are counted; fails if it is too much
with_metrics() {
    local max one failed=0
    max=$(value metrics_max_percent)
    [ -n "$php" ] || start_php
    for one in h1 h2 page; do
        per_request $one 5000
        costs_more metrics $one measured "$max" || failed=1
    done
    return $failed
}

# costs_more WHAT PROTOCOL CONF MAX: says what requests cost more with another configuration; fails if it is more
# than MAX per cent. `got` is what they cost without.
costs_more() {
    local plain=$got
    measured=$3
    per_request "$2" 5000
    measured=
    awk -v what="$1" -v name="$2" -v plain="$plain" -v got="$got" -v max="$4" 'BEGIN {
        more = (got - plain) * 100 / plain
        printf "%s: %s costs %+.2f %% more (%d, without %d)\n", what, name, more, got, plain
        exit more > max
    }'
}

value() { awk -v key="$1" '$1 == key { print $3 }' "$table"; }

tolerance=$(value tolerance_percent)
failed=0
for protocol in "${protocols[@]}"; do
    n=5000
    if [ "$protocol" = metrics ]; then
        with_metrics || { echo "metrics: more than $(value metrics_max_percent) %" >&2; failed=1; }
        continue
    fi
    if [ "$protocol" = htaccess ]; then
        max=$(value htaccess_max_percent)
        per_request below $n
        costs_more htaccess below obeying "$max" || { echo "htaccess: more than $max %" >&2; failed=1; }
        continue
    fi
    if [ "$protocol" = plugin ]; then
        [ -n "$php" ] || start_php
        per_request shop $n
        plain=$got measured=obeying
        per_request shop $n
        measured=
        max=$(value plugin_max)
        echo "plugin: $((got - plain)) instructions more ($got, without $plain)"
        [ $((got - plain)) -le "$max" ] || { echo "plugin: more than $max" >&2; failed=1; }
        continue
    fi
    case $protocol in page | esi) [ -n "$php" ] || start_php ;; esac
    if [ "$protocol" = routing ]; then
        PYTHONPATH=lab python3 -m bolide_lab.large_sites routing "$dir"
        per_request one 300
        one=$got
        per_request large 300
        # Six requests each.
        got=$(((got - one) / 6))
        if [ "$got" -gt "$(value routing_max)" ]; then
            echo "routing: $got instructions, more than $(value routing_max)" >&2
            failed=1
        fi
    else
        per_request "$protocol" $n
        fewest=$got
        # How many acknowledgements of a client come together depends on what else the machine does:
        # over HTTP/3 the fewest of three count.
        for _ in 1 2; do
            [ "$protocol" = h3 ] || break
            per_request "$protocol" $n
            fewest=$((got < fewest ? got : fewest))
        done
        got=$fewest
    fi
    want=$(value "$protocol")
    if [ -n "$update" ]; then
        sed -i "s/^$protocol = .*/$protocol = $got/" "$table"
        printf '%s: %s instructions per request (was %s)\n' "$protocol" "$got" "$want"
        continue
    fi
    verdict=$(awk -v got="$got" -v want="$want" -v tolerance="$tolerance" 'BEGIN {
        if (want == 0) { print "no number to compare with"; exit }
        change = (got - want) * 100 / want
        said = "ok"
        if (change > tolerance) said = "TOO MANY"
        if (change < -tolerance) said = "fewer: run bench/instructions.sh --update"
        printf "%+.1f %%: %s", change, said
    }')
    printf '%s: %s instructions per request, %s expected, %s\n' "$protocol" "$got" "$want" "$verdict"
    case $verdict in *TOO\ MANY*) failed=1 ;; esac
done
exit $failed
