"""Trees with .htaccess files, and what is asked of them.

A site is its name, its files by path (those called .htaccess are Apache's), and requests: a path, or a
tuple of method, path and fields.
"""

LONG = "a line that is worth to be compressed, and another one\n" * 40

WORDPRESS = r"""
<IfModule mod_rewrite.c>
RewriteEngine On
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteBase /
RewriteRule ^index\.php$ - [L]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule . /index.php [L]
</IfModule>
"""

LARAVEL = r"""
<IfModule mod_rewrite.c>
    RewriteEngine On
    RewriteCond %{REQUEST_FILENAME} !-d
    RewriteCond %{REQUEST_URI} (.+)/$
    RewriteRule ^ %1 [L,R=301]
    RewriteCond %{REQUEST_FILENAME} !-d
    RewriteCond %{REQUEST_FILENAME} !-f
    RewriteRule ^ index.txt [L]
</IfModule>
"""

DRUPAL = r"""
<FilesMatch "\.(engine|inc|install|module|profile|po|sh|.*sql|theme|twig|tpl(\.php)?|xtmpl|yml)(~|\.sw[op]|\.bak|\.orig|\.save)?$|^(\.(?!well-known).*|Entries.*|Repository|Root|Tag|Template)$">
  <IfModule mod_authz_core.c>
    Require all denied
  </IfModule>
  <IfModule !mod_authz_core.c>
    Order allow,deny
  </IfModule>
</FilesMatch>
Options -Indexes
ErrorDocument 404 /index.txt
DirectoryIndex index.txt index.html
AddType image/svg+xml svg svgz
AddEncoding gzip svgz
RewriteEngine on
RewriteRule "/\.|^\.(?!well-known/)" - [F]
RewriteCond %{HTTP_HOST} ^www\.(.+)$ [NC]
RewriteRule ^ http://%1%{REQUEST_URI} [L,R=301]
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteCond %{REQUEST_URI} !=/favicon.ico
RewriteRule ^ index.txt [L]
"""

JOOMLA = r"""
Options +FollowSymlinks
Options -Indexes
RewriteEngine On
RewriteCond %{QUERY_STRING} base64_encode[^(]*\([^)]*\) [OR]
RewriteCond %{QUERY_STRING} (<|%3C)([^s]*s)+cript.*(>|%3E) [NC,OR]
RewriteCond %{QUERY_STRING} GLOBALS(=|\[|\%[0-9A-Z]{0,2}) [OR]
RewriteCond %{QUERY_STRING} _REQUEST(=|\[|\%[0-9A-Z]{0,2})
RewriteRule .* index.txt [F]
RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]
RewriteCond %{REQUEST_URI} !^/index\.txt
RewriteCond %{REQUEST_FILENAME} !-f
RewriteCond %{REQUEST_FILENAME} !-d
RewriteRule .* index.txt [L]
"""

NEXTCLOUD = r"""
<IfModule mod_headers.c>
  <IfModule mod_setenvif.c>
    SetEnvIfNoCase ^Authorization$ "(.+)" XAUTHORIZATION=$1
    RequestHeader set XAuthorization %{XAUTHORIZATION}e env=XAUTHORIZATION
  </IfModule>
  Header onsuccess unset Referrer-Policy
  Header always set Referrer-Policy "no-referrer"
  Header always set X-Content-Type-Options "nosniff"
  <FilesMatch "\.(css|js|mjs|svg|gif|png|jpg|webp|ico|wasm)$">
    Header set Cache-Control "max-age=15778463"
  </FilesMatch>
</IfModule>
<IfModule mod_rewrite.c>
  RewriteEngine on
  RewriteCond %{HTTP_USER_AGENT} DavClnt
  RewriteRule ^$ /remote.txt/webdav/ [L,R=302]
  RewriteRule ^\.well-known/carddav /remote.txt/dav/ [R=301,L]
  RewriteRule ^(?:build|tests|config|lib|3rdparty|templates)/.* - [R=404,L]
  RewriteRule ^(?:\.(?!well-known)|autotest|occ|issue|indie|db_|console).* - [R=404,L]
</IfModule>
AddDefaultCharset utf-8
Options -Indexes
"""

PLAIN = {"index.html": "index\n", "a.txt": "a\n", "index.txt": "front\n", "index.php": "php\n"}

SITES = [
    ("wordpress", {".htaccess": WORDPRESS, **PLAIN, "wp-content/x.css": "css\n"}, [
        "/", "/a.txt", "/2026/hello/", "/x?y=z", "/wp-content/x.css", "/wp-content", "/wp-content/",
        "/index.php", "/.htaccess", "/a%20b", "/A.TXT", "/nope.php?q=1",
    ]),
    ("laravel", {".htaccess": LARAVEL, **PLAIN, "css/x.css": "css\n"}, [
        "/users/7", "/users/", "/users/?a=b", "/css", "/css/x.css", "/", "/a.txt/",
    ]),
    ("drupal", {".htaccess": DRUPAL, **PLAIN, "x.inc": "no\n", "core/y.yml": "no\n", "core/z.txt": "z\n",
                "favicon.svgz": "zz\n", "i.svg": "<svg/>\n"}, [
        "/", "/node/1", "/x.inc", "/core/y.yml", "/core/", "/core/z.txt", "/.git/config",
        "/.well-known/x", "/favicon.ico", "/favicon.svgz", "/i.svg", "/Entries.x",
        ("GET", "/a.txt", {"Host": "www.site.test"}), ("GET", "/a?b=c", {"Host": "www.site.test"}),
    ]),
    ("joomla", {".htaccess": JOOMLA, **PLAIN, "dir/a.txt": "d\n"}, [
        "/", "/a.txt", "/some/article", "/x?GLOBALS[a]=1", "/x?_REQUEST=1", "/dir/", "/dir/none",
        "/x?a=%3Cscript%3E",
    ]),
    ("nextcloud", {".htaccess": NEXTCLOUD, **PLAIN, "a.css": "css\n", "config/c.txt": "c\n", "i.png": "p\n"}, [
        "/", ("GET", "/", {"User-Agent": "Microsoft DavClnt"}), "/a.css", "/i.png", "/config/c.txt",
        "/occ", "/.well-known/carddav", "/nothing", "/a.txt", "/index.html",
    ]),
    ("denied", {".htaccess": "Require all denied\n", "a.txt": "a\n", "open/.htaccess": "Require all granted\n",
                "open/a.txt": "a\n", "open/deny/.htaccess": "Deny from all\n", "open/deny/a.txt": "a\n",
                "open/deny/grant/.htaccess": "Require all granted\n", "open/deny/grant/a.txt": "a\n",
                "open/deny/allow/.htaccess": "Allow from all\n", "open/deny/allow/a.txt": "a\n"}, [
        "/a.txt", "/", "/none", "/open/a.txt", "/open/none", "/open/deny/a.txt", "/open/deny/grant/a.txt",
        "/open/deny/allow/a.txt", "/open/deny",
    ]),
    ("order", {"a/.htaccess": "Order allow,deny\nAllow from 127.0.0.1\n", "a/x.txt": "x\n",
               "b/.htaccess": "Order deny,allow\nDeny from 127.0.0.0/8\n", "b/x.txt": "x\n",
               "c/.htaccess": "Order allow,deny\nAllow from all\nDeny from env=bad\nSetEnvIf User-Agent Bad bad\n",
               "c/x.txt": "x\n",
               "d/.htaccess": "<Limit POST>\nRequire all denied\n</Limit>\n", "d/x.txt": "x\n",
               "e/.htaccess": "<LimitExcept GET>\nOrder deny,allow\nDeny from all\n</LimitExcept>\n", "e/x.txt": "x\n",
               "f/.htaccess": "<RequireAll>\nRequire all granted\nRequire not ip 127\n</RequireAll>\n", "f/x.txt": "x\n",
               "g/.htaccess": "<RequireAny>\nRequire ip 10\nRequire expr %{QUERY_STRING} == 'in'\n</RequireAny>\n", "g/x.txt": "x\n",
               "h/.htaccess": "Require method GET\n", "h/x.txt": "x\n",
               "i/.htaccess": "Require not ip 10\n", "i/x.txt": "x\n",
               "j/.htaccess": "Require env ok\nSetEnvIf X-Ok ^1$ ok\n", "j/x.txt": "x\n"}, [
        "/a/x.txt", "/b/x.txt", "/c/x.txt", ("GET", "/c/x.txt", {"User-Agent": "Bad"}), "/d/x.txt",
        ("POST", "/d/x.txt", {}), "/e/x.txt", ("HEAD", "/e/x.txt", {}), ("POST", "/e/x.txt", {}),
        "/f/x.txt", "/g/x.txt", "/g/x.txt?in", "/h/x.txt", ("POST", "/h/x.txt", {}), "/i/x.txt",
        "/j/x.txt", ("GET", "/j/x.txt", {"X-Ok": "1"}),
    ]),
    ("auth", {".htpasswd": "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n", ".htgroup": "staff: bob ann\n",
              "a/.htaccess": "AuthType Basic\nAuthName \"a \\\"b\\\"\"\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n",
              "a/x.txt": "x\n",
              "b/.htaccess": "AuthType Basic\nAuthName b\nAuthUserFile @ROOT@/.htpasswd\nRequire user ann\n", "b/x.txt": "x\n",
              "c/.htaccess": "AuthType Basic\nAuthName c\nAuthUserFile @ROOT@/.htpasswd\nAuthGroupFile @ROOT@/.htgroup\nRequire group staff\n", "c/x.txt": "x\n",
              "d/.htaccess": "AuthType Basic\nAuthName d\nAuthUserFile @ROOT@/none\nRequire valid-user\n", "d/x.txt": "x\n",
              "e/.htaccess": "AuthType Basic\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n", "e/x.txt": "x\n",
              "f/.htaccess": "AuthType Basic\nAuthName f\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\nSatisfy Any\nOrder allow,deny\nAllow from 127.0.0.1\n", "f/x.txt": "x\n",
              "g/.htaccess": "AuthType Basic\nAuthName g\nAuthUserFile @ROOT@/.htpasswd\n", "g/x.txt": "x\n",
              "h/.htaccess": "AuthType Basic\nAuthName h\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\nRewriteEngine On\nRewriteRule ^ http://x.test/ [R]\n", "h/x.txt": "x\n"}, [
        request for letter in "abcdefgh" for request in (
            f"/{letter}/x.txt", ("GET", f"/{letter}/x.txt", {"Authorization": "Basic Ym9iOnB3"}),
            ("GET", f"/{letter}/x.txt", {"Authorization": "Basic Ym9iOnh4"}))
    ] + ["/.htpasswd", "/a/.htaccess"]),
    ("headers", {".htaccess": "Header set X-A 1\nHeader always set X-B 2\nHeader append X-A 3\nHeader unset ETag\n"
                 "Header set X-C \"a b\" env=moz\nSetEnvIf User-Agent Moz moz\nHeader add X-D 1\nHeader add X-D 2\n"
                 "Header merge X-A 3\nHeader set X-E \"expr=%{REQUEST_URI}\"\nHeader edit X-E txt TXT\n",
                 **PLAIN, "sub/.htaccess": "Header set X-A sub\n<Files b.txt>\nHeader set X-F f\n</Files>\n",
                 "sub/b.txt": "b\n"}, [
        "/a.txt", "/none", "/sub", "/sub/b.txt", ("GET", "/a.txt", {"User-Agent": "Moz"}), ("HEAD", "/a.txt", {}),
    ]),
    ("expires", {".htaccess": "ExpiresActive On\nExpiresDefault A300\nExpiresByType text/css \"access plus 1 month\"\n"
                 "ExpiresByType image/* A7\nHeader append Cache-Control public\n", **PLAIN, "x.css": "c\n", "x.png": "p\n",
                 "off/.htaccess": "ExpiresActive Off\n", "off/x.css": "c\n"}, [
        "/a.txt", "/x.css", "/x.png", "/none", "/off/x.css",
    ]),
    ("errors", {".htaccess": "ErrorDocument 404 /404.html\nErrorDocument 403 \"No <b>way</b>\n", "404.html": "lost\n",
                "no/.htaccess": "Require all denied\nErrorDocument 404 default\n", "no/x": "x\n",
                "away/.htaccess": "ErrorDocument 404 http://x.test/lost\n", "away/x": "x\n",
                "loop/.htaccess": "ErrorDocument 404 /none.html\n", "loop/x": "x\n"}, [
        "/none", "/no/x", "/no/none", "/away/none", "/loop/none", "/404.html", ("HEAD", "/none", {}),
    ]),
    ("redirect", {".htaccess": "Redirect 301 /old /new\nRedirect /temp http://x.test/t\nRedirectMatch 302 ^/m/(.*)\\.gif$ /i/$1.png\n"
                  "Redirect gone /gone\nRedirect 404 /hidden\nRedirectPermanent /p /q?own=1\nRedirect seeother /s /t\n", **PLAIN}, [
        "/old", "/old/x%20y?a=b", "/older", "/temp/a", "/m/a/b.gif", "/gone", "/gone/x", "/hidden", "/p?x=1", "/s", "/a.txt",
    ]),
    ("rules", {".htaccess": "RewriteEngine On\nRewriteBase /\n"
               "RewriteRule ^r1$ /a.txt\nRewriteRule ^r2$ a.txt [R]\nRewriteRule ^r3/(.*)$ /t/$1 [R=301,L]\n"
               "RewriteRule ^r4$ - [F]\nRewriteRule ^r5$ - [G]\nRewriteRule ^r6$ /x [R=404]\n"
               "RewriteRule ^r7$ /a.txt?x=1 [QSA,R]\nRewriteRule ^r8$ /x#y [R,NE]\nRewriteRule ^r9$ /x#y [R]\n"
               "RewriteRule ^q1/(.*)$ /a.txt?q=$1 [L]\nRewriteRule ^q2/(.*)$ /a.txt?q=$1 [B,L]\n"
               "RewriteRule ^q3/(.*)$ /s?q=$1 [B,R,L]\nRewriteRule ^q4/(.*)$ /s?q=$1 [B,BNP,NE,R,L]\n"
               "RewriteCond %{QUERY_STRING} ^id=(\\d+)$\nRewriteRule ^c1$ /n/%1? [R,L]\n"
               "RewriteRule ^loop(.*)$ /loop$1x [L]\nRewriteRule ^up$ /../x\nRewriteRule ^ftp$ ftp://x/y\n"
               "RewriteRule ^ck$ /a.txt [CO=n:v:.x.test:0:/:secure:HttpOnly:Lax]\n"
               "RewriteRule ^n(a+)$ nb$1 [C]\nRewriteRule ^nb - [F]\nRewriteRule ^t/a$ /a.txt [QSD,R]\n"
               "RewriteCond %{HTTP_ACCEPT} webp\nRewriteRule ^pic$ /a.txt [L]\n", **PLAIN}, [
        "/r1", "/r2", "/r2?x=y", "/r3/a%20b", "/r3/%C3%A9", "/r4", "/r5", "/r6", "/r7?y=2", "/r8", "/r9",
        "/q1/a", "/q1/a%20b", "/q2/a%20b", "/q3/a%26b%20c", "/q4/a%26b%20c", "/c1?id=7", "/c1?id=x", "/loop", "/up",
        "/ftp", "/ck", "/naa", "/t/a?x=y", "/pic", ("GET", "/pic", {"Accept": "image/webp"}), "/q1/a%3Fb", "/r1%3Fx",
    ]),
    ("inherit", {".htaccess": "RewriteEngine On\nRewriteRule x$ /parent.txt\n", "parent.txt": "parent\n",
                 "a/.htaccess": "Options -Indexes\n", "a/f.txt": "f\n", "b/.htaccess": "RewriteEngine On\n", "b/f.txt": "f\n",
                 "c/.htaccess": "RewriteOptions Inherit\nRewriteRule ^y$ f.txt\n", "c/f.txt": "f\n",
                 "d/.htaccess": "RewriteOptions InheritBefore\nRewriteRule ^(x|y)$ f.txt\n", "d/f.txt": "f\n",
                 "e/.htaccess": "RewriteRule ^x$ f.txt\n", "e/f.txt": "f\n", "g/f.txt": "f\n"}, [
        f"/{directory}/{name}" for directory in "abcdeg" for name in ("x", "y", "f.txt")
    ]),
    ("index", {".htaccess": "DirectoryIndex first.txt second.txt\n", "second.txt": "2\n", "index.html": "i\n",
               "d/.htaccess": "DirectoryIndex disabled\nOptions -Indexes\n", "d/second.txt": "2\n",
               "e/.htaccess": "DirectoryIndex /second.txt\n", "e/x": "x\n",
               "f/.htaccess": "Options -Indexes\n", "f/x": "x\n", "g/second.txt": "g\n",
               "h/.htaccess": "FallbackResource /second.txt\n", "h/x": "x\n"}, [
        "/", "/d/", "/e/", "/f/", "/g/", "/g", "/h/none", "/h/none/more", "/h/x", "/h/x/more",
    ]),
    ("types", {".htaccess": "AddType image/webp .webp\nAddType text/x-own own\nAddCharset utf-8 .css\nForceType None\n"
               "<Files f.bin>\nForceType text/plain\n</Files>\nAddDefaultCharset koi8-r\nRemoveType .rm\n",
               "a.webp": "w\n", "b.own": "o\n", "c.css": "c\n", "f.bin": "f\n", "d.txt": "d\n", "e.txt.own": "e\n"}, [
        "/a.webp", "/b.own", "/c.css", "/f.bin", "/d.txt", "/e.txt.own",
    ]),
    ("sections", {".htaccess": "<Files \"*.f\">\nHeader set X-S files\n</Files>\n<FilesMatch \"^x\">\nHeader append X-S match\n</FilesMatch>\n"
                  "<If \"%{REQUEST_URI} =~ m#^/if#\">\nHeader append X-S if\n</If>\n<ElseIf \"%{QUERY_STRING} == 'e'\">\nHeader append X-S elseif\n</ElseIf>\n"
                  "<Else>\nHeader append X-S else\n</Else>\n<IfModule mod_nope.c>\nGarbage\n</IfModule>\n<IfVersion >= 2.4>\nHeader set X-V 24\n</IfVersion>\n",
                  "a.f": "a\n", "x.f": "x\n", "if/x.f": "x\n", "b": "b\n"}, [
        "/a.f", "/x.f", "/if/x.f", "/b", "/b?e", "/x.f?e",
    ]),
    ("broken", {f"{at}/.htaccess": text for at, text in enumerate([
        "Foo on\n", "RewriteEngine maybe\n", "Require foo\n", "<Files x>\nRequire all denied\n", "Order Allow, Deny\n",
        "RewriteRule ^( x\n", "Options All -Indexes\n", "ServerName x\n", "<IfModule nope.c>\nx\n", "</Files>\n",
        "\ufeffRequire all granted\n", "Header set X-A\n", "RewriteRule a b # c\n", "ErrorDocument 999 x\n",
        "<IfModule mod_headers.c>\nHeader set X-A 1\n", "# only a comment \\\nFoo\n", "  require   ALL   granted  \r\n",
        "AuthType Basic\nRequire valid-user\n", "RewriteEngine On\nRewriteRule a b [ZZ]\n",
    ])} | {f"{at}/x.txt": "x\n" for at in range(19)}, [f"/{at}/x.txt" for at in range(19)] + [f"/{at}/none" for at in range(19)]),
    ("conditions", {".htaccess": "RewriteEngine On\n" + "".join(
        f"RewriteCond {condition}\nRewriteRule ^{at}$ /yes.txt [L]\n" for at, condition in enumerate([
            "%{REQUEST_METHOD} =GET", "%{REQUEST_METHOD} !=GET", "%{QUERY_STRING} >b", "%{QUERY_STRING} <b",
            "%{QUERY_STRING} >=b", "%{QUERY_STRING} -gt5", "%{QUERY_STRING} -le5", "%{HTTP_HOST} ^SITE [NC]",
            "%{HTTP_HOST} ^SITE", "%{HTTPS} off", "%{HTTPS} !=on", "%{REQUEST_FILENAME} -f", "%{DOCUMENT_ROOT}/yes.txt -f",
            "%{DOCUMENT_ROOT}/sub -d", "%{DOCUMENT_ROOT}/empty -s", "%{DOCUMENT_ROOT}/empty !-s", "%{DOCUMENT_ROOT}/link -l",
            "%{HTTP:X-Own} ^a(b)$", "%{ENV:SEEN} =1", "%{THE_REQUEST} ^GET\\ /18", "%{REQUEST_URI} ^/19$",
            "%{SERVER_PORT} =80", "%{NOSUCH} =\"\"", "expr \"%{QUERY_STRING} -in {'b','c'}\"", "%{REMOTE_ADDR} ^127\\.",
            "%{SERVER_NAME} =site.test", "%{REQUEST_SCHEME} =http", "%{HTTP_COOKIE} (^|;\\s*)a=1", "%{TIME_YEAR} >2000",
            "expr \"%{QUERY_STRING} in {'b','c'}\"", "%{QUERY_STRING} (?i)^B$", "%{IS_SUBREQ} =false",
        ]) if "-in" not in condition) + "SetEnvIf X-Own a SEEN=1\n", "yes.txt": "yes\n", "empty": "", "sub/x": "x\n"}, [
        request for at in range(32) for request in (
            f"/{at}", f"/{at}?b", f"/{at}?c", f"/{at}?7", ("GET", f"/{at}", {"X-Own": "ab", "Cookie": "b=2; a=1"}))
    ]),
    ("subdirectory", {"d/.htaccess": "RewriteEngine On\nRewriteRule ^a$ b.txt\nRewriteRule ^r$ b.txt [R]\nRewriteRule ^(.*)\\.old$ $1.txt\n"
                      "RewriteRule ^s/(.*)$ /d/b.txt?x=$1 [R=302,QSA]\nRewriteRule ^$ b.txt [L]\nRewriteRule ^e/?$ f/ [R]\n",
                      "d/b.txt": "b\n", "d/index.html": "i\n", "d/f/x": "x\n",
                      "based/.htaccess": "RewriteEngine On\nRewriteBase /d\nRewriteRule ^a$ b.txt\nRewriteRule ^r$ b.txt [R]\n", "based/x": "x\n"}, [
        "/d/a", "/d/r", "/d/b.old", "/d/s/1?y=2", "/d/", "/d", "/d/e", "/d/e/", "/based/a", "/based/r", "/d/none", "/d/f", "/d/f/",
    ]),
    ("environment", {".htaccess": "SetEnv A 1\nSetEnvIf Request_URI \\.txt$ IS_TXT\nSetEnvIf Request_Method GET M=$0\nSetEnvIfNoCase X-Up ^(ab) UP=$1x !NOT\n"
                     "BrowserMatch Moz moz=yes\nSetEnvIf X-None ^$ NONE\nUnsetEnv A\nHeader set X-E \"%{A}e|%{IS_TXT}e|%{M}e|%{UP}e|%{moz}e|%{NONE}e\"\n"
                     "SetEnvIfExpr \"%{QUERY_STRING} =~ /q=(.)/\" Q=$1\nHeader set X-Q %{Q}e env=Q\nHeader set X-N none env=!Q\n"
                     "RewriteEngine On\nRewriteRule ^a\\.txt$ - [E=RW:%{QUERY_STRING},E=!IS_TXT]\nHeader set X-R %{RW}e\n", **PLAIN}, [
        "/a.txt", "/index.html", "/a.txt?q=7", ("GET", "/a.txt", {"X-Up": "ABc", "User-Agent": "Moz"}), ("HEAD", "/a.txt", {}),
        ("GET", "/a.txt", {"X-None": "1"}),
    ]),
    ("edits", {".htaccess": "Header set X-A \"a,b\"\nHeader append X-A c\nHeader merge X-A b\nHeader merge X-A d\nHeader edit X-A a A\nHeader edit* X-A [bc] -\n"
               "Header add X-L one\nHeader add X-L two\nHeader edit X-L (o) <$1>\nHeader setifempty X-A never\nHeader setifempty X-S set\n"
               "Header unset X-S\nHeader set X-T: colon\nHeader set X-V \"\"\nHeader set X-P \"100%%\"\nHeader echo ^X-Echo\n"
               "Header always append X-W w\nHeader append X-W v\nHeader set Content-Type text/own \"expr=%{QUERY_STRING} == 'own'\"\nHeader set X-X \"expr=%{tolower:ABC}-%{REQUEST_METHOD}\"\n"
               "Header set X-H \"expr=%{req:X-Echo-A}\"\nHeader set X-Y y \"expr=%{REQUEST_STATUS} == 200\"\n", **PLAIN}, [
        "/a.txt", "/a.txt?own", "/none", ("GET", "/a.txt", {"X-Echo-A": "1", "X-Echo-B": "2"}), "/none?own",
    ]),
    ("answers", {".htaccess": "Header always set X-Frame DENY \"expr=%{CONTENT_TYPE} =~ m#text/html#i\"\nHeader set X-S a \"expr=resp('Content-Type') =~ /html/\"\n"
                 "Header set X-R \"expr=%{resp:X-A}.%{REQUEST_STATUS}\"\nHeader set X-A one\nHeader set X-Q \"expr=%{resp:x-a}\"\nHeader always set X-W \"expr=%{REQUEST_STATUS}\"\n"
                 "Header set X-U u \"expr=%{REQUEST_STATUS} -in { '200', '304' } && resp('X-Q') == 'one'\"\nRedirect 302 /go /a.txt\nRedirect 410 /gone\n",
                 "page.htm": "<p>\n", "refused/.htaccess": "Require expr \"%{CONTENT_TYPE} == ''\"\n", **PLAIN}, [
        "/", "/a.txt", "/index.html", "/page.htm", "/none", "/go", "/gone", ("HEAD", "/index.html", {}),
    ]),
    ("none", {"a/.htaccess": "<RequireNone>\nRequire ip 10.0.0.1\n</RequireNone>\nRequire all granted\n", "a/a.txt": "a\n",
              "b/.htaccess": "<RequireNone>\nRequire ip 10.0.0.1\n</RequireNone>\n", "b/a.txt": "b\n",
              "c/.htaccess": "<RequireAll>\n<RequireNone>\nRequire ip 10.0.0.1\n</RequireNone>\nRequire all granted\n</RequireAll>\n", "c/a.txt": "c\n",
              "d/.htaccess": "<Limit GET>\n<RequireNone>\nRequire all denied\n</RequireNone>\n</Limit>\n", "d/a.txt": "d\n",
              "e/.htaccess": "<Files a.txt>\n<RequireNone>\nRequire all denied\n</RequireNone>\n</Files>\n", "e/a.txt": "e\n", **PLAIN}, [
        "/a/a.txt", "/b/a.txt", "/c/a.txt", "/d/a.txt", "/e/a.txt",
    ]),
    ("feeds", {".htaccess": "RewriteEngine On\nRewriteRule ^x(.*)$ - [F]\nRedirectMatch 410 ^/y(.*)$\n<FilesMatch \"^z.txt$\">\nRequire all denied\n</FilesMatch>\n"
               "RewriteRule ^w$ - [G]\nSetEnvIf Request_URI ^/v$ V\nHeader always set X-V v env=V\n", **PLAIN}, [
        "/x%0ay", "/y%0ay", "/z.txt", "/z.txt%0a", "/w", "/w%0a", "/v", "/v%0a", "/x%0a",
    ]),
    ("codings", {".htaccess": "<IfModule mod_deflate.c>\n<IfModule mod_filter.c>\nAddOutputFilterByType DEFLATE text/plain TEXT/CSS\n</IfModule>\n</IfModule>\n"
                 "SetEnvIfNoCase Request_URI \\.(?:gif|jpe?g|png)$ no-gzip dont-vary\nBrowserMatch ^Old no-gzip\nBrowserMatch ^Odd gzip-only-text/html\n"
                 "Header append Vary User-Agent env=!dont-vary\n",
                 "a.txt": LONG, "a.css": LONG, "a.png": LONG, "a.svg": LONG,
                 "all/.htaccess": "SetOutputFilter DEFLATE\nSetEnvIf Request_URI n\\. no-gzip\n", "all/a.png": LONG, "all/n.txt": LONG,
                 "none/.htaccess": "SetOutputFilter NONE\n", "none/a.svg": LONG, "all/off/.htaccess": "SetOutputFilter None\n", "all/off/a.svg": LONG,
                 "br/.htaccess": "<IfModule mod_brotli.c>\nSetOutputFilter BROTLI_COMPRESS;DEFLATE\n</IfModule>\n", "br/a.svg": LONG,
                 "typed/.htaccess": "AddType text/plain .own\nAddEncoding gzip .gz\n", "typed/a.own": LONG, "typed/a.own.gz": LONG}, [
        ("GET", path, {"Accept-Encoding": coding, "User-Agent": agent})
        for path in ("/a.txt", "/a.css", "/a.png", "/a.svg", "/all/a.png", "/all/n.txt", "/all/off/a.svg", "/none/a.svg", "/br/a.svg", "/typed/a.own", "/typed/a.own.gz")
        for coding in ("gzip", "br, gzip", "identity") for agent in ("New", "Old", "Odd")
    ]),
    ("bodies", {".htaccess": "LimitRequestBody 5\n", "a.txt": "a\n", "any/.htaccess": "LimitRequestBody 0\n", "any/a.txt": "a\n",
                "bad/.htaccess": "LimitRequestBody few\n", "bad/a.txt": "a\n"}, [
        ("GET", f"{directory}/a.txt", {"Content-Length": length}, "x" * int(length))
        for directory in ("", "/any", "/bad") for length in ("0", "5", "6")
    ]),
    ("behind", {".htaccess": "FallbackResource /f.txt\n", "f.txt": "fallback\n", "d/x.txt": "x\n", "a.txt": "a\n",
                "own/.htaccess": "FallbackResource /own/g.txt\n", "own/g.txt": "g\n", "own/e/y.txt": "y\n",
                "off/.htaccess": "FallbackResource disabled\nOptions -Indexes\n", "off/d/x.txt": "x\n"}, [
        "/none", "/none/", "/none/deep/", "/d/", "/d/none/", "/a.txt/", "/a.txt/x", "/own/", "/own/none/", "/own/e/", "/off/", "/off/none/", "/off/d/", "/?a=b", "/none/?a=b",
    ]),
    ("merging", {".htaccess": "Require ip 10\n", "x": "x\n",
                 "and/.htaccess": "AuthMerging And\nRequire all granted\n", "and/x": "x\n",
                 "or/.htaccess": "AuthMerging Or\nRequire all granted\n", "or/x": "x\n",
                 "off/.htaccess": "Require all granted\n", "off/x": "x\n",
                 "files/.htaccess": "Require all granted\n<Files x>\nRequire all denied\n</Files>\n<Files y>\nDeny from all\n</Files>\n", "files/x": "x\n", "files/y": "y\n", "files/z": "z\n",
                 "if/.htaccess": "Require all granted\n<If \"%{QUERY_STRING} == 'no'\">\nRequire all denied\n</If>\n", "if/x": "x\n",
                 "none/.htaccess": "<RequireAll>\nRequire all granted\n<RequireNone>\nRequire ip 127.0.0.1\n</RequireNone>\n</RequireAll>\n", "none/x": "x\n",
                 "any/.htaccess": "<RequireAny>\nRequire all denied\n<RequireAll>\nRequire ip 127\nRequire method GET\n</RequireAll>\n</RequireAny>\n", "any/x": "x\n",
                 "local/.htaccess": "Require local\n", "local/x": "x\n", "mf/.htaccess": "Require all granted\nOrder mutual-failure\nAllow from 127\n", "mf/x": "x\n",
                 "host/.htaccess": "Require host example.com\n", "host/x": "x\n", "partial/.htaccess": "Require ip 127.0\n", "partial/x": "x\n",
                 "mask/.htaccess": "Require ip 127.0.0.0/255.0.0.0 ::1\n", "mask/x": "x\n"}, [
        f"/{directory}/x" for directory in ("", "and", "or", "off", "files", "if", "none", "any", "local", "mf", "host", "partial", "mask")
    ] + ["/files/y", "/files/z", "/if/x?no", ("POST", "/any/x", {}), ("HEAD", "/any/x", {})]),
    ("rounds", {".htaccess": "RewriteEngine On\nRewriteRule ^one$ /two [L]\nRewriteRule ^two$ /three [L]\nRewriteRule ^three$ /a.txt [L]\n"
                "RewriteRule ^end$ /one [END]\nRewriteRule ^pt$ /a.txt [PT]\nRewriteRule ^skip - [S=1]\nRewriteRule ^(skip|noskip)$ /b.txt [L]\nRewriteRule ^skip$ /a.txt [L]\n"
                "RewriteRule ^c1$ - [C]\nRewriteRule ^c1$ /a.txt [L]\nRewriteRule ^n(o*)$ n/$1 [C]\nRewriteRule ^n/(.*)$ /a.txt?$1 [R,L]\n"
                "RewriteRule ^dots$ /x/../a.txt [L]\nRewriteRule ^twice$ //a.txt [L]\nRewriteRule ^abs$ %{DOCUMENT_ROOT}/a.txt [L]\nRewriteRule ^root$ %{REQUEST_SCHEME}://%{HTTP_HOST}/a.txt [R=307,L]\n"
                "RewriteRule ^type$ - [T=text/own]\nRewriteRule ^typed\\.txt$ - [T=text/own]\nRewriteRule ^s303$ /a [R=seeother]\nRewriteRule ^s308$ /a [R=308]\nRewriteRule ^g - [G,L]\n"
                "Redirect /moved /a.txt\nRewriteRule ^go$ /moved [L]\n", **PLAIN, "b.txt": "b\n", "typed.txt": "t\n", "type": "t\n"}, [
        "/one", "/two", "/end", "/pt", "/skip", "/noskip", "/c1", "/noo", "/dots", "/twice", "/abs", "/root", "/type", "/typed.txt",
        "/s303", "/s308", "/g", "/go", "/moved?x", "/moved/y",
    ]),
    ("documents", {".htaccess": "ErrorDocument 404 \"plain text\nErrorDocument 403 /e/403.txt\nErrorDocument 410 /e/410.txt?own=1\nErrorDocument 401 /e/401.txt\n"
                   "RewriteEngine On\nRewriteRule ^no$ - [F]\nRewriteRule ^gone$ - [G]\nRewriteRule ^teapot$ - [R=418]\n".replace("RewriteRule ^teapot$ - [R=418]\n", ""),
                   "e/403.txt": "forbidden\n", "e/410.txt": "gone\n", "e/401.txt": "who\n", ".htpasswd": "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n",
                   "a/.htaccess": "AuthType Basic\nAuthName a\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n", "a/x": "x\n",
                   "sub/.htaccess": "ErrorDocument 404 /e/403.txt\n", "sub/x": "x\n"}, [
        "/none", "/no", "/gone", "/a/x", ("GET", "/a/x", {"Authorization": "Basic Ym9iOnB3"}), "/sub/none", ("POST", "/no", {}), ("HEAD", "/gone", {}),
    ]),
    ("tolerated", {f"{at}/.htaccess": text for at, text in enumerate([
        "ReWriteEngine ON\nREWRITERULE ^r$ x.txt\n", "Header set X-A 'single quotes'\r\nHeader set X-B b\r\n", "\tHeader\tset\tX-A\ttabs\n",
        "Header set X-A \"open to the end\n", "Header set \\\nX-A continued\n", "# comment\n\n\n   # indented\nHeader set X-A 1",
        "<IfModule mod_headers.c>\n<IfModule mod_rewrite.c>\nHeader set X-A nested\n</IfModule>\n</IfModule>\n",
        "<IfModule headers_module>\nHeader set X-A id\n</IfModule>\n", "<IfModule MOD_HEADERS.C>\nHeader set X-A case\n</IfModule>\n",
        "<IfDefine NOPE>\nFoo\n</IfDefine>\n<IfDefine !NOPE>\nHeader set X-A def\n</IfDefine>\n", "RewriteEngine On\nRewriteCond %{X} ^$\n",
        "<FilesMatch ^x>\nHeader set X-A unquoted\n</FilesMatch>\n", "<Files ~ \"^x\">\nHeader set X-A tilde\n</Files>\n",
        "<Files \"x.*\">\n<If \"true\">\nHeader set X-A inner\n</If>\n</Files>\n", "Header set X-A plain\n",
        "Options none +indexes\n", "AddType text/own .TXT\n", "ExpiresActive on\nExpiresByType text/plain A5\nExpiresByType TEXT/PLAIN A9\n",
        "Satisfy ALL\nRequire all granted\n", "DirectoryIndex x.txt\nDirectoryIndex y.txt\n", "Header set X-A \"quote \\\" inside\"\n", "Header set X-A back\\\\slash\n",
    ])} | {f"{at}/x.txt": "x\n" for at in range(22)}, [f"/{at}/{name}" for at in range(22) for name in ("x.txt", "r", "")]),
    ("refused", {f"{at}/.htaccess": text for at, text in enumerate([
        "Header frob X 1\n", "Header set X-A %{X}q\n", "<If \"\">\n</If>\n", "<If \"%{NOSUCH} == 'a'\">\n</If>\n", "<Else>\n</Else>\n", "<Limit>\n</Limit>\n",
        "<Limit GET>\n<Files x>\n</Files>\n</Limit>\n", "<RequireAny>\nRequire not ip 10\n</RequireAny>\n", "<RequireAll>\n</RequireAll>\n", "Require\n", "Require all\n", "Require ip\n",
        "Allow 10\n", "Deny from\n", "Order deny\n", "Satisfy\n", "AuthType\n", "ExpiresActive maybe\n", "ExpiresDefault soon\n", "ExpiresByType text/html\n", "ErrorDocument 404\n",
        "ErrorDocument 200 x\n", "Redirect 301\n", "Redirect 404 /a /b\n", "RedirectMatch ^( /x\n", "Redirect /a b\n", "RewriteCond a\n", "RewriteRule a\n", "RewriteBase a\n", "RewriteOptions x\n",
        "RewriteCond a ^( \n", "RewriteRule a b [NC,XX]\n", "RewriteCond a b [XX]\n", "SetEnvIf A\n", "SetEnvIf A ^( b\n", "SetEnv\n", "SetEnv A b c\n", "UnsetEnv\n", "FileETag Foo\n", "AddType text/html\n",
        "ForceType\n", "DirectorySlash maybe\n", "Options\n".replace("Options\n", "Options +Foo\n"), "LoadModule a b\n", "AllowOverride All\n", "<VirtualHost *>\n</VirtualHost>\n", "<IfVersion foo>\n</IfVersion>\n", "Listen 80\n",
        "BrowserMatch a\n", "</FilesMatch>\n", "<FilesMatch>\n</FilesMatch>\n", "<Files a b>\n</Files>\n", "AuthName a b\n", "AuthUserFile\n",
    ])} | {f"{at}/x.txt": "x\n" for at in range(54)}, [f"/{at}/x.txt" for at in range(54)]),
]

# Classes that the explorer found.
SITES += [
    ("redirect-marks", {".htaccess": "RedirectMatch ^/x(.*)$ /y$1\nRedirectMatch ^/z(.*)$ \"http://h.test/a%20b$1?own\"\n"
                        "RedirectMatch ^/w(.*)$ /a#b$1\n"},
     ["/x", "/x%3Fq", "/x%3Fq?o=1", "/x%23f", "/x%23f?o=1", "/x%3Fa%23b", "/xa%20b?c", "/z", "/z%3Fq", "/z?o", "/w", "/w?q"]),
    ("fallback-before-index", {".htaccess": "DirectoryIndex none.html b.html\nFallbackResource /a.txt\n", "a.txt": "a\n",
                               "b.html": "b\n", "d/none.html": "none\n", "e/b.html": "e\n", "f/.htaccess": "FallbackResource disabled\n",
                               "f/b.html": "f\n", "g/.htaccess": "DirectoryIndex b.html none.html\n", "g/b.html": "g\n"},
     ["/", "/d/", "/e/", "/f/", "/g/", "/none"]),
    ("cookie-of-an-index", {".htaccess": "RewriteEngine on\nRewriteRule x - [CO=n:v:site.test]\n", "bare/a": "a\n"},
     ["/bare/", "/bare/a", "/"]),
    ("query-of-an-error", {".htaccess": "Header always set X-Q \"expr=%{QUERY_STRING}\"\nRewriteEngine on\n"
                           "RewriteRule a b?m=1\nRewriteRule b - [F]\n", "d/.htaccess": "DirectoryIndex e.html none.html f.html\n"
                           "RewriteEngine on\nRewriteRule [.]html$ x?m=1 [QSA]\nRewriteRule . - [R=404]\n", "d/e.html": "e\n"},
     ["/a", "/a?x=1", "/b?x=1", "/d/", "/d/?x=1", "/d/e.html?x=1"]),
    ("no-user-file", {".htaccess": "AuthType Basic\nAuthName U\nRequire user bob\n", "a.txt": "a\n"},
     ["/a.txt", ("GET", "/a.txt", {"Authorization": "Basic Ym9iOnB3"})]),
]
