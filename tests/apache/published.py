"""Trees with the rules that applications document for their .htaccess files, and requests for all of them.

Written after the manuals of WordPress, Joomla, Drupal, Nextcloud, MediaWiki, Laravel, Symfony, Magento, PrestaShop,
TYPO3, Matomo, phpMyAdmin and others. Scripts are files of text here: whose name a rule leads to is what is compared.
"""

FRONT = {"index.html": "home\n", "index.txt": "front\n", "robots.txt": "robots\n", "a.txt": "a\n"}


def front(prefix="", to="index.txt", also=""):
    """The usual front controller."""
    return (f"RewriteEngine On\n{prefix}{also}RewriteCond %{{REQUEST_FILENAME}} !-f\nRewriteCond %{{REQUEST_FILENAME}} !-d\n"
            f"RewriteRule ^ {to} [L]\n")


DENY = "<IfModule mod_authz_core.c>\nRequire all denied\n</IfModule>\n<IfModule !mod_authz_core.c>\nOrder deny,allow\nDeny from all\n</IfModule>\n"
CACHE = ("<IfModule mod_expires.c>\nExpiresActive On\nExpiresDefault \"access plus 1 month\"\nExpiresByType text/html \"access plus 0 seconds\"\n"
         "ExpiresByType text/css \"access plus 1 year\"\nExpiresByType image/png A604800\n</IfModule>\n")
SECURE = ("<IfModule mod_headers.c>\nHeader always set X-Content-Type-Options nosniff\nHeader set X-Frame-Options SAMEORIGIN\n"
          "Header always set Referrer-Policy \"same-origin\"\nHeader unset X-Powered-By\n</IfModule>\n")

TREES = {
    "wordpress-multisite": {
        ".htaccess": "RewriteEngine On\nRewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\nRewriteBase /\nRewriteRule ^index\\.txt$ - [L]\n"
                     "RewriteRule ^([_0-9a-zA-Z-]+/)?wp-admin$ $1wp-admin/ [R=301,L]\nRewriteCond %{REQUEST_FILENAME} -f [OR]\nRewriteCond %{REQUEST_FILENAME} -d\n"
                     "RewriteRule ^ - [L]\nRewriteRule ^([_0-9a-zA-Z-]+/)?(wp-(content|admin|includes).*) $2 [L]\nRewriteRule ^([_0-9a-zA-Z-]+/)?(.*\\.txt)$ $2 [L]\nRewriteRule . index.txt [L]\n",
        "wp-content/x.css": "css\n", "wp-admin/index.html": "admin\n", "wp-includes/.htaccess": DENY, "wp-includes/x.txt": "x\n",
    },
    "wordpress-hardened": {
        ".htaccess": front(also="RewriteBase /\nRewriteRule ^wp-admin/includes/ - [F,L]\nRewriteRule !^wp-includes/ - [S=3]\nRewriteRule ^wp-includes/[^/]+\\.txt$ - [F,L]\n"
                                "RewriteRule ^wp-includes/js/tinymce/langs/.+\\.txt - [F,L]\nRewriteRule ^wp-includes/theme-compat/ - [F,L]\n")
                     + "<Files xmlrpc.txt>\nOrder Allow,Deny\nDeny from all\n</Files>\n<Files ~ \"^.*\\.([Hh][Tt][Aa])\">\nRequire all denied\n</Files>\n" + CACHE + SECURE,
        "xmlrpc.txt": "x\n", "wp-includes/x.txt": "x\n", "wp-includes/y.css": "y\n", "wp-admin/includes/a.txt": "a\n", "wp-content/uploads/.htaccess": "<FilesMatch \"\\.(?i:php|txt)$\">\nRequire all denied\n</FilesMatch>\n",
        "wp-content/uploads/p.png": "p\n", "wp-content/uploads/x.txt": "x\n",
    },
    "wp-super-cache": {
        ".htaccess": "RewriteEngine On\nRewriteBase /\nAddDefaultCharset UTF-8\nRewriteCond %{REQUEST_URI} !^.*[^/]$\nRewriteCond %{REQUEST_METHOD} !POST\nRewriteCond %{QUERY_STRING} ^$\n"
                     "RewriteCond %{HTTP:Cookie} !^.*(comment_author_|logged_in).*$\nRewriteCond %{HTTP:X-Wap-Profile} !^[a-z0-9\\\"]+ [NC]\n"
                     "RewriteCond %{HTTP_USER_AGENT} !^.*(Android|iPhone).* [NC]\nRewriteCond %{DOCUMENT_ROOT}/cache/$1/index.txt -f\nRewriteRule ^(.*) \"/cache/$1/index.txt\" [L]\n" + front(),
        "cache/2026/hello/index.txt": "kept\n", "cache//index.txt": "kept home\n",
    },
    "joomla": {
        ".htaccess": "Options +FollowSymlinks\nOptions -Indexes\n<IfModule mod_headers.c>\nHeader always set X-Content-Type-Options \"nosniff\"\n<FilesMatch \"\\.svg$\">\n"
                     "Header always set Content-Security-Policy \"script-src 'none'\"\n</FilesMatch>\n</IfModule>\nRewriteEngine On\nRewriteCond %{QUERY_STRING} base64_encode[^(]*\\([^)]*\\) [OR]\n"
                     "RewriteCond %{QUERY_STRING} (<|%3C)([^s]*s)+cript.*(>|%3E) [NC,OR]\nRewriteCond %{QUERY_STRING} GLOBALS(=|\\[|\\%[0-9A-Z]{0,2}) [OR]\nRewriteCond %{QUERY_STRING} _REQUEST(=|\\[|\\%[0-9A-Z]{0,2})\n"
                     "RewriteRule .* index.txt [F]\nRewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\nRewriteCond %{REQUEST_URI} ^/api/\nRewriteCond %{REQUEST_URI} !^/api/index\\.txt\n"
                     "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule .* api/index.txt [L]\nRewriteCond %{REQUEST_URI} !^/index\\.txt\nRewriteCond %{REQUEST_FILENAME} !-f\n"
                     "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule .* index.txt [L]\n",
        "api/index.txt": "api\n", "media/x.svg": "<svg/>\n", "administrator/index.html": "admin\n",
    },
    "drupal": {
        ".htaccess": "<FilesMatch \"\\.(engine|inc|install|make|module|profile|po|sh|.*sql|theme|twig|tpl(\\.php)?|xtmpl|yml)(~|\\.sw[op]|\\.bak|\\.orig|\\.save)?$|^(\\.(?!well-known).*|Entries.*|Repository|Root|Tag|Template|composer\\.(json|lock)|web\\.config)$|^#.*#$|\\.php(~|\\.sw[op]|\\.bak|\\.orig|\\.save)$\">\n"
                     + DENY + "</FilesMatch>\nOptions -Indexes\nErrorDocument 404 /index.txt\nDirectoryIndex index.txt index.html index.htm\nAddType image/svg+xml svg svgz\nAddEncoding gzip svgz\n"
                     "<IfModule mod_expires.c>\nExpiresActive On\nExpiresDefault A1209600\n<FilesMatch \\.txt$>\nExpiresActive Off\n</FilesMatch>\n</IfModule>\n"
                     "RewriteEngine on\nRewriteRule ^ - [E=protossl]\nRewriteCond %{HTTPS} on\nRewriteRule ^ - [E=protossl:s]\nRewriteRule \"/\\.|^\\.(?!well-known/)\" - [F]\n"
                     "RewriteCond %{HTTP_HOST} .\nRewriteCond %{HTTP_HOST} ^www\\.(.+)$ [NC]\nRewriteRule ^ http%{ENV:protossl}://%1%{REQUEST_URI} [L,R=301]\n"
                     "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_URI} !=/favicon.ico\nRewriteRule ^ index.txt [L]\n"
                     "RewriteCond %{REQUEST_URI} !/core/[^/]*\\.txt$\nRewriteRule \"^(.+/.*|autoload)\\.php($|/)\" - [F]\n"
                     "<IfModule mod_headers.c>\nHeader always set X-Content-Type-Options nosniff\nRequestHeader unset Proxy\n</IfModule>\n",
        "core/x.txt": "x\n", "core/y.yml": "no\n", "composer.json": "{}\n", "web.config": "x\n", "p.svgz": "z\n", "sites/default/files/.htaccess": "Options -ExecCGI -Includes -MultiViews\nSetHandler none\n<Files *>\nSetHandler none\n</Files>\n",
        "sites/default/files/x.txt": "f\n", "private/.htaccess": DENY, "private/x.txt": "p\n", "autoload.php": "no\n",
    },
    "nextcloud": {
        ".htaccess": "<IfModule mod_headers.c>\n<IfModule mod_setenvif.c>\n<IfModule mod_fcgid.c>\nSetEnvIfNoCase ^Authorization$ \"(.+)\" XAUTHORIZATION=$1\n</IfModule>\n</IfModule>\n"
                     "<IfModule mod_env.c>\nSetEnv modHeadersAvailable true\nHeader onsuccess unset Referrer-Policy\nHeader always set Referrer-Policy \"no-referrer\"\nHeader onsuccess unset X-Robots-Tag\n"
                     "Header always set X-Robots-Tag \"noindex, nofollow\"\n</IfModule>\n<FilesMatch \"\\.(css|js|mjs|svg|gif|png|jpg|webp|ico|wasm|tflite)$\">\n<If \"%{QUERY_STRING} =~ /(^|&)v=/\">\n"
                     "Header set Cache-Control \"max-age=15778463, immutable\"\n</If>\n<Else>\nHeader set Cache-Control \"max-age=15778463\"\n</Else>\n</FilesMatch>\n"
                     "<FilesMatch \"\\.(otf|woff2?)$\">\nHeader set Cache-Control \"max-age=604800\"\n</FilesMatch>\n</IfModule>\n"
                     "<IfModule mod_rewrite.c>\nRewriteEngine on\nRewriteCond %{HTTP_USER_AGENT} DavClnt\nRewriteRule ^$ /remote.txt/webdav/ [L,R=302]\nRewriteRule .* - [env=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\n"
                     "RewriteRule ^\\.well-known/carddav /remote.txt/dav/ [R=301,L]\nRewriteRule ^\\.well-known/caldav /remote.txt/dav/ [R=301,L]\nRewriteRule ^remote/(.*) remote.txt [QSA,L]\n"
                     "RewriteRule ^(?:build|tests|config|lib|3rdparty|templates)/.* - [R=404,L]\nRewriteRule ^\\.well-known/(?!acme-challenge|pki-validation) /index.txt [QSA,L]\n"
                     "RewriteRule ^ocm-provider/?$ index.txt [QSA,L]\nRewriteRule ^(?:\\.(?!well-known)|autotest|occ|issue|indie|db_|console).* - [R=404,L]\n</IfModule>\n"
                     "AddType image/svg+xml svg svgz\nAddEncoding gzip svgz\nDirectoryIndex index.txt index.html\nAddDefaultCharset utf-8\nOptions -Indexes\nErrorDocument 403 \"/index.txt\"\nErrorDocument 404 \"/index.txt\"\n",
        "remote.txt": "remote\n", "core/a.css": "css\n", "core/b.woff2": "w\n", "config/c.txt": "c\n", "data/.htaccess": DENY, "data/x.txt": "x\n", "lib/l.txt": "l\n",
    },
    "mediawiki": {
        ".htaccess": "RewriteEngine On\nRewriteRule ^/?wiki(/.*)?$ %{DOCUMENT_ROOT}/w/index.txt [L]\nRewriteRule ^/?$ %{DOCUMENT_ROOT}/w/index.txt [L]\n",
        "w/index.txt": "wiki\n", "w/images/.htaccess": "Options -ExecCGI -Indexes\n<IfModule rewrite_module>\nRewriteEngine On\nRewriteOptions inherit\nRewriteCond %{QUERY_STRING} \\.[^\\\\/:*?\\x22<>|%]+(#|\\?|$) [nocase]\nRewriteRule . - [forbidden]\n</IfModule>\n",
        "w/images/p.png": "p\n", "w/cache/.htaccess": "Require all denied\n", "w/cache/x.txt": "x\n",
    },
    "laravel": {
        ".htaccess": "<IfModule mod_rewrite.c>\n<IfModule mod_negotiation.c>\nOptions -MultiViews -Indexes\n</IfModule>\nRewriteEngine On\nRewriteCond %{HTTP:Authorization} .\nRewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\n"
                     "RewriteCond %{HTTP:x-xsrf-token} .\nRewriteRule .* - [E=HTTP_X_XSRF_TOKEN:%{HTTP:X-XSRF-Token}]\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_URI} (.+)/$\nRewriteRule ^ %1 [L,R=301]\n"
                     "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ index.txt [L]\n</IfModule>\n",
        "css/app.css": "css\n", "storage/x.txt": "x\n",
    },
    "symfony": {
        ".htaccess": "DirectoryIndex index.txt\n<IfModule mod_negotiation.c>\nOptions -MultiViews\n</IfModule>\n<IfModule mod_rewrite.c>\nRewriteEngine On\nRewriteCond %{REQUEST_URI}::$0 ^(/.+)/(.*)::\\2$\nRewriteRule .* - [E=BASE:%1]\n"
                     "RewriteCond %{HTTP:Authorization} .+\nRewriteRule ^ - [E=HTTP_AUTHORIZATION:%0]\nRewriteCond %{ENV:REDIRECT_STATUS} =\"\"\nRewriteRule ^index\\.txt(?:/(.*)|$) %{ENV:BASE}/$1 [R=301,L]\n"
                     "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ %{ENV:BASE}/index.txt [L]\n</IfModule>\n<IfModule !mod_rewrite.c>\nRedirectMatch 307 ^/$ /index.txt/\n</IfModule>\n",
        "bundles/x.css": "css\n",
    },
    "symfony-below": {
        "app/public/.htaccess": "DirectoryIndex index.txt\nRewriteEngine On\nRewriteCond %{REQUEST_URI}::$0 ^(/.+)/(.*)::\\2$\nRewriteRule .* - [E=BASE:%1]\nRewriteCond %{ENV:REDIRECT_STATUS} =\"\"\n"
                                "RewriteRule ^index\\.txt(?:/(.*)|$) %{ENV:BASE}/$1 [R=301,L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ %{ENV:BASE}/index.txt [L]\n",
        "app/public/index.txt": "below\n", "app/public/x.css": "css\n", ".htaccess": "RewriteEngine On\nRewriteRule ^site/(.*)$ app/public/$1 [L]\n",
    },
    "magento": {
        ".htaccess": "DirectoryIndex index.txt\nOptions +FollowSymLinks\n<IfModule mod_rewrite.c>\nRewriteEngine on\nRewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\nRewriteCond %{REQUEST_METHOD} ^TRAC[EK]\nRewriteRule .* - [L,R=405]\n"
                     "RewriteRule ^\\.user\\.ini - [F]\nRewriteRule ^(pub|lib|setup)/internal - [L,R=404]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_FILENAME} !-l\nRewriteRule .* index.txt [L]\n</IfModule>\n"
                     "AddDefaultCharset Off\nAddType 'text/html; charset=UTF-8' html\n<IfModule mod_expires.c>\nExpiresDefault \"access plus 1 year\"\nExpiresByType text/html A0\nExpiresByType text/plain A0\n</IfModule>\nRedirectMatch 403 /\\.git\n"
                     + "".join(f"<Files {name}>\n<IfVersion < 2.4>\norder allow,deny\ndeny from all\n</IfVersion>\n<IfVersion >= 2.4>\nRequire all denied\n</IfVersion>\n</Files>\n" for name in ("auth.json", "composer.json", "package.json", "*.sample", "cron.txt"))
                     + "ErrorDocument 404 /errors/404.txt\nErrorDocument 403 /errors/404.txt\n<IfModule mod_headers.c>\nHeader set X-UA-Compatible \"IE=edge\"\n<FilesMatch \"\\.(appcache|css|png|txt|webp)$\">\nHeader unset X-UA-Compatible\n</FilesMatch>\n</IfModule>\n",
        "errors/404.txt": "lost\n", "auth.json": "{}\n", "x.sample": "s\n", "cron.txt": "c\n", "media/.htaccess": "Options -Indexes\n<IfModule mod_rewrite.c>\nRewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule .* ../get.txt [L]\n</IfModule>\n",
        "media/p.png": "p\n", "get.txt": "get\n", "media/customer/.htaccess": DENY, "media/customer/x.txt": "x\n",
    },
    "prestashop": {
        ".htaccess": "<IfModule mod_rewrite.c>\n<IfModule mod_env.c>\nSetEnv HTTP_MOD_REWRITE On\n</IfModule>\nRewriteEngine on\nRewriteRule . - [E=REWRITEBASE:/]\nRewriteRule ^api(?:/(.*))?$ %{ENV:REWRITEBASE}dispatcher.txt?url=$1 [QSA,L]\n"
                     "RewriteRule ^([0-9])(\\-[_a-zA-Z0-9-]*)?(-[0-9]+)?/.+\\.png$ %{ENV:REWRITEBASE}img/p/$1/$1$2$3.png [L]\nRewriteRule ^c/([0-9]+)(\\-[\\.*_a-zA-Z0-9-]*)(-[0-9]+)?/.+\\.png$ %{ENV:REWRITEBASE}img/c/$1$2$3.png [L]\n"
                     "RewriteRule ^images_ie/?([^/]+)\\.(png|gif)$ js/images/$1.$2 [L]\nRewriteCond %{REQUEST_FILENAME} -s [OR]\nRewriteCond %{REQUEST_FILENAME} -l [OR]\nRewriteCond %{REQUEST_FILENAME} -d\nRewriteRule ^.*$ - [NC,L]\n"
                     "RewriteRule ^.*$ %{ENV:REWRITEBASE}index.txt [NC,L]\n</IfModule>\nAddType application/vnd.ms-fontobject .eot\nAddType font/ttf .ttf\nAddType font/woff2 .woff2\n"
                     "<IfModule mod_headers.c>\n<FilesMatch \"\\.(ttf|ttc|otf|eot|woff|woff2|svg)$\">\nHeader set Access-Control-Allow-Origin \"*\"\n</FilesMatch>\n<FilesMatch \"\\.pdf$\">\nHeader set Content-Disposition \"Attachment\"\nHeader set X-Content-Type-Options \"nosniff\"\n</FilesMatch>\n</IfModule>\n"
                     "<Files composer.lock>\nRequire all denied\n</Files>\nErrorDocument 404 /index.txt?controller=404\n" + CACHE,
        "dispatcher.txt": "api\n", "img/p/1/1-home.png": "p\n", "img/c/7-cat.png": "c\n", "f.woff2": "w\n", "x.pdf": "pdf\n", "composer.lock": "l\n", "js/images/x.png": "x\n", "empty.css": "",
    },
    "typo3": {
        ".htaccess": "<IfModule mod_deflate.c>\n<IfModule mod_filter.c>\nAddOutputFilterByType DEFLATE text/html text/css\n</IfModule>\n</IfModule>\n" + CACHE
                     + "<IfModule mod_headers.c>\n<FilesMatch \"\\.(css|eot|gif|ico|jpg|png|svg|woff2?)$\">\nHeader append Vary Accept-Encoding\n</FilesMatch>\nHeader set X-UA-Compatible \"IE=edge\"\n</IfModule>\nFileETag None\n"
                     "<IfModule mod_mime.c>\nAddType application/json map topojson\nAddType image/svg+xml svg svgz\nAddEncoding gzip svgz\nAddCharset utf-8 .css .txt\n</IfModule>\nAddDefaultCharset utf-8\n"
                     "Options -Indexes\n<IfModule mod_autoindex.c>\nOptions -Indexes\n</IfModule>\n<IfModule mod_rewrite.c>\nRewriteEngine On\nRewriteCond %{SCRIPT_FILENAME} -d\nRewriteRule \"(?:^|/)\\.\" - [F]\n"
                     "RewriteRule (?:typo3conf/ext|typo3/ext)/[^/]+/(?:Resources/Private|Tests?)/ - [F]\nRewriteRule ^(?:fileadmin/_(?:processed|temp)_?/)(?:.*\\.sh)$ - [F]\n"
                     "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^(.+)\\.(\\d+)\\.(css|png)$ %{ENV:CWD}$1.$3 [L]\nRewriteRule ^(?:(fileadmin/|typo3conf/|uploads/|favicon\\.ico)) - [L]\nRewriteRule ^typo3$ typo3/index.txt [L]\n"
                     "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_FILENAME} !-l\nRewriteRule ^.*$ index.txt [QSA,L]\n</IfModule>\n<IfModule mod_authz_core.c>\n<FilesMatch \"(?:\\.(?:bak|sql|ya?ml|lock))$\">\nRequire all denied\n</FilesMatch>\n</IfModule>\n",
        "fileadmin/x.css": "css\n", "fileadmin/y.svg": "<svg/>\n", "typo3/index.txt": "admin\n", "x.sql": "no\n", "site.yaml": "no\n", "typo3conf/ext/a/Resources/Private/x.txt": "no\n", "m.map": "{}\n",
    },
    "matomo": {
        ".htaccess": "<Files ~ \"^piwik\\.(js|txt)|matomo\\.(js|txt)$\">\nRequire all granted\n</Files>\n<Files \"*.sqlite\">\n" + DENY + "</Files>\n",
        "matomo.js": "js\n", "piwik.txt": "p\n", "x.sqlite": "db\n",
        "config/.htaccess": "<Files \"*\">\n" + DENY + "</Files>\n", "config/config.txt": "c\n",
        "plugins/.htaccess": "<Files \"*\">\n" + DENY + "</Files>\n<Files ~ \"\\.(gif|ico|jpg|png|svg|js|css|htm|html|swf|mp3|woff2?)$\">\n<IfModule mod_authz_core.c>\nRequire all granted\n</IfModule>\n</Files>\n<Files \"robots.txt\">\nRequire all granted\n</Files>\n",
        "plugins/x.css": "css\n", "plugins/x.txt": "x\n", "plugins/robots.txt": "r\n",
        "tmp/.htaccess": DENY, "tmp/x.txt": "t\n", "js/.htaccess": "<IfModule mod_expires.c>\nExpiresActive on\nExpiresDefault A300\n</IfModule>\n", "js/x.css": "j\n",
    },
    "phpmyadmin": {
        ".htaccess": "<IfModule mod_rewrite.c>\nRewriteEngine On\nRewriteCond %{REQUEST_URI} ^/setup [NC]\nRewriteCond %{REMOTE_ADDR} !^10\\.\nRewriteRule .* - [F]\n</IfModule>\n<IfModule mod_headers.c>\nHeader always set X-Frame-Options DENY\nHeader set X-Permitted-Cross-Domain-Policies none\n</IfModule>\n",
        "setup/index.html": "setup\n", "libraries/.htaccess": "Require all denied\n", "libraries/x.txt": "x\n", "templates/.htaccess": DENY, "templates/t.txt": "t\n",
        "locked/.htaccess": "AuthType Basic\nAuthName \"phpMyAdmin\"\nAuthUserFile @ROOT@/.htpasswd\n<RequireAll>\nRequire valid-user\nRequire ip 127.0.0.0/8\n</RequireAll>\n", "locked/x.txt": "l\n", ".htpasswd": "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n",
    },
    "codeigniter": {".htaccess": "<IfModule mod_rewrite.c>\nOptions +FollowSymlinks\nRewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_URI} (.+)/$\nRewriteRule ^ %1 [L,R=301]\nRewriteCond %{HTTPS} !=on\nRewriteCond %{HTTP_HOST} ^www\\.(.+)$ [NC]\n"
                    "RewriteRule ^ http://%1%{REQUEST_URI} [R=301,L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^([\\s\\S]*)$ index.txt/$1 [L,NC,QSA]\nRewriteCond %{HTTP:Authorization} .\nRewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\n</IfModule>\nServerSignature Off\n",
                    "app/.htaccess": DENY, "app/x.txt": "x\n"},
    "cakephp": {".htaccess": "<IfModule mod_rewrite.c>\nRewriteEngine on\nRewriteRule ^(\\.well-known/.*)$ $1 [L]\nRewriteRule ^$ webroot/ [L]\nRewriteRule (.*) webroot/$1 [L]\n</IfModule>\n", "webroot/.htaccess": front(), "webroot/index.txt": "root\n", "webroot/x.css": "css\n", "webroot/index.html": "webroot\n"},
    "yii": {".htaccess": "RewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . index.txt\nRewriteRule \\.(git|svn) - [F]\n", "protected/.htaccess": "deny from all\n", "protected/x.txt": "x\n"},
    "slim": {".htaccess": "RewriteEngine On\nRewriteCond %{REQUEST_URI}::$1 ^(/.+)/(.*)::\\2$\nRewriteRule ^(.*) - [E=BASE:%1]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^(.*)$ %{ENV:BASE}index.txt [QSA,L]\n", "x/y.css": "y\n"},
    "grav": {".htaccess": "RewriteEngine On\nRewriteCond %{REQUEST_URI} {{|}}|{%|%} [OR]\nRewriteCond %{QUERY_STRING} {{|}}|{%25|%25}\nRewriteRule .* index.txt [F]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule .* index.txt [L]\n"
             "RewriteRule ^(\\.git|cache|bin|logs|backup|webserver-configs|tests)/(.*) error [F]\nRewriteRule ^(system|vendor)/(.*)\\.(txt|xml|md|html|yaml|yml|php|pl|py|cgi|twig|sh|bat)$ error [F]\nRewriteRule ^(user)/(.*)\\.(txt|md|json|yaml|yml|php|twig|sh)$ error [F]\n"
             "RewriteRule \\.md$ error [F]\nRewriteRule (^|/)\\.(?!well-known) - [F]\nRewriteRule ^(LICENSE\\.txt|composer\\.lock|\\.htaccess)$ error [F]\nOptions -Indexes\nDirectoryIndex index.txt index.html index.htm\n",
             "cache/x.css": "c\n", "system/x.txt": "x\n", "system/y.css": "y\n", "user/z.md": "z\n", "LICENSE.txt": "l\n", "README.md": "r\n"},
    "moodle": {".htaccess": "AcceptPathInfo On\nDirectoryIndex index.txt index.html\nErrorDocument 404 /a.txt\n<FilesMatch \"^(.*\\.xml|composer\\..*)$\">\nRequire all denied\n</FilesMatch>\nRewriteEngine On\nRewriteRule \"(\\/vendor\\/)\" - [F]\nRewriteRule \"(\\/node_modules\\/)\" - [F]\nRewriteRule \"(^|/)\\.(?!well-known\\/)\" - [F]\n",
               "file.txt": "file\n", "install.xml": "x\n", "lib/vendor/x.txt": "v\n"},
    "opencart": {".htaccess": "Options +FollowSymlinks\nOptions -Indexes\n<FilesMatch \"(?i)((\\.tpl|\\.twig|\\.ini|\\.log|(?<!robots)\\.xml))\">\nRequire all denied\n</FilesMatch>\nRewriteEngine On\nRewriteBase /\nRewriteRule ^sitemap.xml$ index.txt?route=extension/feed/google_sitemap [L]\n"
                 "RewriteRule ^system/storage/(.*) index.txt?route=error/not_found [L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_URI} !.*\\.(ico|gif|jpg|jpeg|png|js|css)\nRewriteRule ^([^?]*) index.txt?_route_=$1 [L,QSA]\n",
                 "x.TPL": "t\n", "a.log": "l\n", "robots.xml": "r\n", "system/storage/x.txt": "x\n"},
    "kirby": {".htaccess": "<IfModule mod_rewrite.c>\nRewriteEngine on\nRewriteBase /\nRewriteRule ^\\.(?!well-known/) index.txt [L]\nRewriteRule ^content/(.*) index.txt [L]\nRewriteRule ^site/(.*) index.txt [L]\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^(.*) index.txt [L]\n</IfModule>\n"
              "SetEnvIf Authorization \"(.*)\" HTTP_AUTHORIZATION=$1\nAddDefaultCharset UTF-8\nAddType font/woff2 woff2\n<IfModule mod_headers.c>\nHeader always set X-Content-Type-Options \"nosniff\"\n</IfModule>\n", "content/x.txt": "c\n", "media/x.css": "m\n"},
    "webp": {".htaccess": "<IfModule mod_rewrite.c>\nRewriteEngine On\nRewriteCond %{HTTP_ACCEPT} image/webp\nRewriteCond %{DOCUMENT_ROOT}/$1.webp -f\nRewriteRule (.+)\\.(jpe?g|png)$ $1.webp [T=image/webp,E=accept:1]\n</IfModule>\n<IfModule mod_headers.c>\nHeader append Vary Accept env=REDIRECT_accept\n</IfModule>\nAddType image/webp .webp\n",
             "p.png": "png\n", "p.webp": "webp\n", "q.png": "q\n", "d/p.png": "dp\n", "d/p.webp": "dw\n"},
    "html5": {".htaccess": SECURE + CACHE + "Options -Indexes\nAddDefaultCharset utf-8\nErrorDocument 404 /a.txt\n<IfModule mod_setenvif.c>\n<IfModule mod_headers.c>\n<FilesMatch \"\\.(png|svg|webp)$\">\nSetEnvIf Origin \":\" IS_CORS\nHeader set Access-Control-Allow-Origin \"*\" env=IS_CORS\n</FilesMatch>\n</IfModule>\n</IfModule>\n"
              "<IfModule mod_rewrite.c>\nRewriteEngine On\nRewriteCond %{REQUEST_URI} \"!(^|/)\\.well-known/([^./]+./?|acme-challenge/.*)\" [NC]\nRewriteCond %{SCRIPT_FILENAME} -d [OR]\nRewriteCond %{SCRIPT_FILENAME} -f\nRewriteRule \"(^|/)\\.\" - [F]\nRewriteCond %{HTTPS} !=on\nRewriteCond %{HTTP_HOST} ^www\\.(.+)$ [NC]\n"
              "RewriteRule ^ http://%1%{REQUEST_URI} [R=301,L]\n</IfModule>\n<FilesMatch \"(^#.*#|\\.(bak|conf|dist|fla|in[ci]|log|orig|psd|sh|sql|sw[op])|~)$\">\nRequire all denied\n</FilesMatch>\n<IfModule mod_mime.c>\nAddType text/vtt vtt\nAddType application/manifest+json webmanifest\nAddCharset utf-8 .css .vtt\nAddLanguage en .en\n</IfModule>\n",
              "x.webmanifest": "{}\n", "x.vtt": "v\n", "x.bak": "b\n", ".hidden": "h\n", "p.png": "p\n", "page.en.txt": "en\n"},
    "maintenance": {".htaccess": "ErrorDocument 503 /down.txt\nRewriteEngine On\nRewriteCond %{REMOTE_ADDR} !^10\\.\nRewriteCond %{REQUEST_URI} !^/down\\.txt$\nRewriteCond %{HTTP_COOKIE} !a=1\nRewriteRule .* - [R=503,L]\nHeader always set Retry-After 60\n", "down.txt": "down\n"},
    "hotlink": {".htaccess": "RewriteEngine on\nRewriteCond %{HTTP_REFERER} !^$\nRewriteCond %{HTTP_REFERER} !^http(s)?://(www\\.)?site.test [NC]\nRewriteRule \\.(jpg|jpeg|png|gif)$ - [NC,F,L]\nSetEnvIfNoCase User-Agent \"badbot\" bad_bot\n<RequireAll>\nRequire all granted\nRequire not env bad_bot\n</RequireAll>\n", "p.png": "p\n"},
    "trailing": {".htaccess": "DirectorySlash Off\nOptions -Indexes\nRewriteEngine On\nRewriteOptions AllowNoSlash\nRewriteCond %{REQUEST_FILENAME} -d\nRewriteCond %{REQUEST_FILENAME}.txt -f\nRewriteRule ^(.+[^/])$ $1.txt [L]\nRewriteCond %{REQUEST_FILENAME}.txt -f\nRewriteRule ^([^.]+)$ $1.txt [L]\n", "dir/x.txt": "x\n", "dir.txt": "beside\n", "page.txt": "page\n"},
    "languages": {".htaccess": "DefaultLanguage de\nAddLanguage en .en\nAddLanguage fr .fr\nAddCharset iso-8859-1 .latin1\nRewriteEngine On\nRewriteCond %{HTTP:Accept-Language} ^fr [NC]\nRewriteCond %{REQUEST_FILENAME}.fr -f\nRewriteRule ^(.*)$ $1.fr [L]\n", "p.txt": "p\n", "p.txt.fr": "fr\n", "p.txt.en": "en\n", "p.en.fr.txt": "both\n", "q.latin1.txt": "q\n",
                  "none/.htaccess": "RemoveLanguage .en\n", "none/p.txt.en": "en\n"},
}

COMMON = [
    "/", "/a.txt", "/robots.txt", "/index.txt", "/index.html", "/none", "/none/", "/some/deep/page", "/some/deep/page/", "/none.css", "/none.txt?x=1", "/?p=1", "/a%20b", "/A.TXT", "/.git/config", "/.env",
    "/.well-known/x", "/a.txt/", "/a.txt/more", "/index.txt/x", "/favicon.ico", "/%2e%2e/x", "/none%3Fx", "/x?a=%3Cscript%3E", "/x?GLOBALS[a]=1", "/api/x", "/index.txt?a=b", "//a.txt", "/./a.txt",
    ("HEAD", "/a.txt", {}), ("HEAD", "/none", {}), ("GET", "/none", {"Host": "www.site.test"}), ("GET", "/a.txt?x=1", {"Host": "WWW.site.test"}),
    ("GET", "/a.txt", {"User-Agent": "Mozilla/5.0 (iPhone)"}), ("GET", "/", {"User-Agent": "badbot"}), ("GET", "/", {"Authorization": "Basic Ym9iOnB3"}), ("GET", "/a.txt", {"Cookie": "a=1"}),
    ("GET", "/none", {"X-Forwarded-Proto": "https"}), ("GET", "/a.txt", {"Accept-Encoding": "gzip"}), ("GET", "/a.txt", {"Origin": "http://x.test"}),
]


def paths_of(files):
    """Every file and directory of a tree, asked for in several ways."""
    all_of = []
    for path in files:
        if "/.ht" in f"/{path}" or "//" in path:
            continue
        all_of += [f"/{path}", f"/{path}?v=2", f"/{path}/x"]
        if "/" in path:
            directory = path.rpartition("/")[0]
            all_of += [f"/{directory}", f"/{directory}/", f"/{directory}/none"]
            all_of += [("GET", f"/{path}", {"Accept": "image/webp", "Referer": "http://other.test/"}), ("GET", f"/{path}", {"Authorization": "Basic Ym9iOnB3"})]
        all_of += [("GET", f"/{path}", {"Referer": "http://other.test/", "Accept": "text/html,image/webp"}), ("GET", f"/{path}", {"Origin": "http://x.test", "Accept-Language": "fr"})]
    seen = []
    for request in all_of:
        if request not in seen:
            seen.append(request)
    return seen


PUBLISHED = [(name, FRONT | files, COMMON + paths_of(FRONT | files)) for name, files in TREES.items()]
# Applications stand in a directory of their own as well, with their rules as they are.
PUBLISHED += [(f"{name}-in-a-directory", {f"shop/{path}": text for path, text in (FRONT | files).items()} | {"a.txt": "outside\n"},
               ["/shop", "/a.txt", "/none"] + [f"/shop{request}" if isinstance(request, str) else (request[0], f"/shop{request[1]}", request[2]) for request in COMMON + paths_of(files)])
              for name, files in TREES.items()]

# What a search (explore.py) found once, by name of what it is about.
FOUND = {
    "redirect-before-rules": {".htaccess": "RewriteEngine on\nRewriteRule ^old a.txt?made [L]\nRewriteRule ^shut - [F]\nRewriteRule ^secret index.txt [L]\nRedirect /old /new\nRedirect /shut /new\nRedirectMatch 403 /secret\n"},
    "index-by-rules": {".htaccess": "DirectoryIndex index.html\nRewriteEngine on\nRewriteRule ^index.html$ a.txt\nRewriteRule ^sent/index.html$ /x [R=301]\nRewriteRule ^away/index.html$ http://x.test/\nRewriteRule ^shut/index.html$ - [F]\nRewriteCond %{IS_SUBREQ} true\nRewriteRule ^inner/index.html$ inner/b.txt\n",
                       "sent/index.html": "sent\n", "away/index.html": "away\n", "shut/index.html": "shut\n", "inner/index.html": "i\n", "inner/b.txt": "b\n"},
    "document-that-is-missing": {".htaccess": "ErrorDocument 404 /gone.html\nErrorDocument 403 /gone.html\nErrorDocument 503 /gone.html\nHeader always set X-A 1\nRewriteEngine on\nRewriteRule ^no - [F]\nRewriteRule ^busy - [R=503]\n", "sub/.htaccess": "Header always set X-A sub\nErrorDocument 404 /lost/\n", "sub/x.txt": "x\n"},
    "links-and-files": {".htaccess": "RewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_FILENAME} !-l\nRewriteRule .* index.txt [L]\n"},
    "options-below": {".htaccess": "RewriteOptions InheritBefore\nRewriteEngine on\nRewriteRule y$ /a.txt\n", "d/.htaccess": "RewriteRule ^x$ a.txt\n", "d/a.txt": "d\n", "d/e/.htaccess": "RewriteEngine on\n", "d/e/a.txt": "e\n", "f/.htaccess": "RewriteOptions AllowNoSlash\nRewriteRule ^z$ a.txt\n", "f/a.txt": "f\n"},
    "slashes": {".htaccess": "RewriteEngine on\nRewriteRule ^d$ a.txt?x=1\nRewriteRule ^e$ - [F]\nRewriteRule ^f$ /else [R]\nRewriteRule ^g$ a.txt [CO=n:v:site.test]\n", "d/x": "x\n", "e/x": "x\n", "f/x": "x\n", "g/x": "x\n", "h/.htaccess": "DirectorySlash off\n", "h/x": "x\n", "i/.htaccess": "DirectorySlash off\nOptions -Indexes\nDirectoryIndex x\n", "i/x": "x\n", "j/.htaccess": "RewriteEngine on\nRewriteRule ^ - [F]\n", "j/x": "x\n"},
    "names-on-the-way": {".htaccess": "RewriteEngine on\nRewriteRule ^go/(.*)$ d/$1\nRewriteCond %{REQUEST_FILENAME} -f\nRewriteRule ^ - [E=SEEN:%{REQUEST_FILENAME},L]\nRewriteRule ^ /a.txt [L]\n", "d/x.txt": "x\n"},
    "types": {".htaccess": "RemoveType .txt\nForceType None\nAddType TEXT/Own .own\nAddCharset UTF-8 .css\n", "x.own": "x\n", "x.own.txt": "x\n", "y.css": "y\n", "forced/.htaccess": "ForceType Text/PLAIN\n", "forced/y.css": "y\n"},
    "expressions": {".htaccess": "<If \"%{REQUEST_URI} -fnmatch '/*.txt'\">\nHeader set X-A f\n</If>\n<If \"%{REQUEST_URI} -strmatch '/*.txt'\">\nHeader set X-B s\n</If>\n<If \"%{REQUEST_URI} -fnmatch '/d/*'\">\nHeader set X-C d\n</If>\n", "d/x.txt": "x\n", "d/e/x.txt": "x\n"},
    "fallback": {".htaccess": "FallbackResource /d/b.txt\n", "d/.htaccess": "RewriteEngine on\nRewriteRule ^b.txt$ /x [R]\n", "d/b.txt": "b\n"},
    "cookies-of-errors": {".htaccess": "RewriteEngine on\nRewriteRule ^a /to/$1 [CO=n:v:site.test]\n"},
    "paths-behind-files": {".htaccess": "AcceptPathInfo on\n", "off/.htaccess": "AcceptPathInfo off\n", "off/x.txt": "x\n", "as/.htaccess": "AcceptPathInfo default\n", "as/x.txt": "x\n"},
    "names-of-directories": {".htaccess": "<Files \"\">\nHeader set X-A none\n</Files>\n<Files \"d\">\nHeader set X-A d\n</Files>\n", "d/x.txt": "x\n"},
    "index-asked-as-part": {".htaccess": "Options +Indexes\nRewriteEngine on\nRewriteRule ^sent/index /x [R=403]\nRewriteRule ^sent/index - [R]\nRewriteRule ^sent/index a.txt\nRewriteRule ^shut/$ - [END]\nRewriteRule ^shut/index - [F]\nRewriteRule ^bare/index - [G]\nRewriteRule ^away/index http://x.test/ [L]\nRewriteRule ^loop/index loop/ [END]\nRewriteRule ^typed/$ - [T=text/own]\n<Files index.html>\n<Limit POST>\nRequire all denied\n</Limit>\n</Files>\n",
                           "sent/index.html": "i\n", "shut/index.html": "i\n", "bare/x": "x\n", "away/x": "x\n", "loop/index.html": "i\n", "typed/index.html": "i\n",
                           "denied/.htaccess": "<Files index.html>\nRequire all denied\n</Files>\n", "denied/x": "x\n", "named/.htaccess": "DirectoryIndex /shut/index.html none\n", "named/x": "x\n",
                           "env/.htaccess": "SetEnvIf Request_URI index SEEN\n<Files index.html>\nRequire env SEEN\n</Files>\n", "env/index.html": "i\n",
                           "moved/.htaccess": "Redirect /moved/index.html /to\n", "moved/x": "x\n", "handled/.htaccess": "SetHandler default-handler\n", "handled/x": "x\n"},
    "made-so-far": {".htaccess": "RewriteEngine on\nRewriteRule ^q1 /none?z\nRewriteCond %{QUERY_STRING} >m\nRewriteRule . /a.txt\nRewriteRule ^q2 /to?%{QUERY_STRING} [R,L]\nRewriteRule ^q3 /to?%{QUERY_STRING}&m [R,L]\nRewriteRule ^q4(.*) /to?n=$1 [NE,R,L]\nRewriteCond %{QUERY_STRING} >m [NC]\nRewriteRule ^q5 - [G]\nRewriteCond %{DOCUMENT_ROOT}%{REQUEST_URI} -f\nRewriteRule ^a.txt/ - [G]\n",
                    "based/.htaccess": "RewriteEngine on\nRewriteBase /\nRewriteRule ^x @ROOT@/a.txt\nRewriteRule ^y @ROOT@/based/b.txt\n", "based/b.txt": "b\n",
                    "set/.htaccess": "SetEnvIf Host . A\nSetEnv B b\nUnsetEnv A\nUnsetEnv B\nHeader set X-A 1 env=A\nHeader set X-B 1 env=B\n", "set/x.txt": "x\n",
                    "linked/.htaccess": "Options -FollowSymLinks +SymLinksIfOwnerMatch\nRewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-l\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ /a.txt [END]\n", "linked/x.txt": "x\n"},
    "documents-of-who-is-refused": {".htaccess": "ErrorDocument 403 /403.txt\nErrorDocument 404 /d/404.txt\nErrorDocument 401 /private/401.txt\n", "403.txt": "no\n", "d/404.txt": "none\n", "d/.htaccess": "RewriteEngine on\nRewriteRule ^404 - [G]\n",
                                    "private/.htaccess": "AuthType Basic\nAuthName a\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n", "private/401.txt": "who\n", "private/x.txt": "x\n", ".htpasswd": "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n",
                                    "shut/.htaccess": "Require all denied\nErrorDocument 403 /shut/403.txt\n", "shut/403.txt": "shut\n", "shut/x.txt": "x\n", "shut/in/x.txt": "x\n",
                                    "other/.htaccess": "ErrorDocument 404 /other/doc.txt\nRewriteEngine on\nRewriteRule ^doc http://x.test/\n", "other/doc.txt": "x\n",
                                    "loop/.htaccess": "ErrorDocument 500 \"broken\nRewriteEngine on\nRewriteRule ^x(.*) xx$1\n", "loop/y": "y\n"},
    "sections-in-sections": {".htaccess": "<If \"true\">\n<If \"%{REQUEST_URI} =~ /x.txt/\">\nRequire all denied\n</If>\n</If>\n", "x.txt": "x\n",
                             "d/.htaccess": "Require all denied\n<If \"true\">\n<Files z>\nRequire all granted\n</Files>\n</If>\n", "d/z": "z\n"},
    "itself": {".htaccess": "RewriteEngine on\nRewriteRule ^(kept/.*)$ $1 [L]\nRewriteRule ^(a.txt)$ $1\n", "kept/x.txt": "x\n"},
}
PUBLISHED += [(f"found-{name}", FRONT | files, COMMON[:12] + ["/old/x?q", "/shut", "/secret/x", "/no", "/busy", "/go/x.txt", "/go/none", "/d/e/y", "/d/y", "/f/z", "/q1", "/q2?a%20b", "/q3?a%20b", "/q4%20x", "/q5?n", "/q5?aa", "/a.txt/", "/based/x", "/based/y", "/d/none", "/other/none", "/loop/x", "/linked/none"] + paths_of(FRONT | files)) for name, files in FOUND.items()]
# The same rules in three places above the file, so that what is kept of directories has a part in it.
PUBLISHED += [(f"{name}-three-times", {f"{place}{path}": text for place in ("", "one/", "one/two/") for path, text in (FRONT | files).items()},
               [f"{place}{request}" if isinstance(request, str) else (request[0], f"{place}{request[1]}", request[2]) for place in ("", "/one", "/one/two") for request in COMMON[:16]]
               + paths_of({f"one/two/{path}": text for path, text in files.items()})[:12]) for name, files in TREES.items()]
# One application with another one below it: the rules of both have a say there.
NAMES = list(TREES)
PUBLISHED += [(f"{above}-above-{below}", FRONT | TREES[above] | {f"shop/{path}": text for path, text in (FRONT | TREES[below]).items()},
               COMMON[:6] + [f"/shop{request}" for request in COMMON if isinstance(request, str)] + paths_of({f"shop/{path}": text for path, text in TREES[below].items()})[:15])
              for above, below in zip(NAMES, NAMES[1:] + NAMES[:1])]
