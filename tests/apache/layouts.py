"""Whole configurations of Apache as packages and panels lay them out, and what is asked of each.

@PORT@ is the server's port, @SIDE@ its own directory, @WWW@ the files that both share, @BACK@ a backend's port.
"""

import guarded
import passed

VHOST = """<VirtualHost *:@PORT@>
    ServerName one.test
    ServerAlias www.one.test *.wild.test
    DocumentRoot @WWW@/one
    ErrorDocument 404 /missing.html
    Alias /media @WWW@/media
    Redirect permanent /old http://one.test/new
    Redirect gone /gone
    RedirectMatch 302 ^/num/([0-9]+)$ /n/$1
    ProxyPass /app/private http://127.0.0.1:@BACK@/private
    ProxyPass /app/static !
    ProxyPass /app http://127.0.0.1:@BACK@/
    ProxyPassReverse /app http://127.0.0.1:@BACK@/
    <Directory @WWW@/one>
        Options Indexes FollowSymLinks
        AllowOverride All
        Require all granted
    </Directory>
    <Directory @WWW@/media>
        Require all granted
    </Directory>
    <Directory @WWW@/one/private>
        Require all denied
    </Directory>
    <Directory @WWW@/one/limited>
        AllowOverride AuthConfig Limit
    </Directory>
    <Directory @WWW@/one/noread>
        AllowOverride None
    </Directory>
    <DirectoryMatch "/\\.git(/|$)">
        Require all denied
    </DirectoryMatch>
    <FilesMatch "\\.(bak|sql)$">
        Require all denied
    </FilesMatch>
    <Location /closed>
        Require all denied
    </Location>
    <Location /app/private>
        Require all denied
    </Location>
    ErrorLog @SIDE@/one.log
    CustomLog @SIDE@/one-access.log combined
</VirtualHost>
"""

SECOND = """<VirtualHost *:@PORT@>
    ServerName two.test
    DocumentRoot @WWW@/two
    DirectoryIndex start.html
    Header set X-Two yes
    <Directory @WWW@/two>
        Require all granted
        RewriteEngine On
        RewriteCond %{REQUEST_FILENAME} !-f
        RewriteRule . /start.html [L]
    </Directory>
</VirtualHost>
<VirtualHost *:@PORT@>
    ServerName secure.test
    ServerAlias www.secure.test
    RewriteEngine on
    RewriteCond %{SERVER_NAME} =www.secure.test [OR]
    RewriteCond %{SERVER_NAME} =secure.test
    RewriteRule ^ https://%{SERVER_NAME}%{REQUEST_URI} [END,NE,R=permanent]
</VirtualHost>
<VirtualHost *:@PORT@>
    ServerName rules.test
    DocumentRoot @WWW@/one
    <Directory @WWW@/one>
        Require all granted
    </Directory>
    RewriteEngine on
    RewriteCond %{HTTP_HOST} ^(.+)\\.rules\\.test$ [NC]
    RewriteRule ^/(.*)$ http://rules.test/%1/$1 [R=301,L]
    RewriteRule ^/in/(.*)$ /$1 [L]
    RewriteRule \\.secret$ - [F]
    RewriteCond %{QUERY_STRING} ^x=1$
    RewriteRule ^/query$ /index.html? [R,L]
    ServerAlias *.rules.test
</VirtualHost>
"""

FILES = {
    "default/index.html": "the default", "one/index.html": "one", "one/a.txt": "text", "one/missing.html": "not here",
    "one/private/x.txt": "secret", "one/listed/file.txt": "x", "one/.git/config": "git", "one/dump.sql": "sql",
    "one/closed/x.txt": "x", "one/limited/.htaccess": "Options -Indexes\n", "one/limited/x.txt": "x",
    "one/noread/.htaccess": "Require all denied\n", "one/noread/x.txt": "open", "one/htaccess/x.txt": "x",
    "one/htaccess/.htaccess": "Redirect 302 /htaccess/go /a.txt\n<Files x.txt>\nRequire all denied\n</Files>\n",
    "one/app/static/s.txt": "static", "one/in.txt": "in", "one/x.secret": "s", "one/UPPER.TXT": "upper",
    "media/pic.txt": "a picture", "media/sub/index.html": "sub", "two/start.html": "two", "two/real.txt": "real",
    "account/public_html/index.html": "account", "account/public_html/.htaccess": "DirectoryIndex other.html\n",
    "account/public_html/other.html": "other", "account/secret.txt": "s",
}


def on(host, *paths):
    return [("GET", path, {"Host": host}) for path in paths]


ONE = on("one.test", "/", "/a.txt", "/none", "/private/x.txt", "/private/", "/listed/", "/listed", "/media/pic.txt",
         "/media", "/media/sub/", "/media/none", "/mediax", "/old", "/old/x?y=1", "/oldx", "/gone", "/gone/x",
         "/num/12", "/num/x", "/.git/config", "/dump.sql", "/closed/x.txt", "/closed", "/limited/x.txt",
         "/noread/x.txt", "/htaccess/x.txt", "/htaccess/go", "/.htaccess", "/app/x?q=1", "/app/private/x",
         "/app/private", "/app/static/s.txt", "/app", "/app/moved", "/UPPER.TXT", "/a.txt/", "/%61.txt", "//a.txt",
         "/icons/")
HOSTS = [("GET", "/", {"Host": host}) for host in
         ("one.test", "www.one.test", "x.wild.test", "a.b.wild.test", "wild.test", "ONE.test", "two.test",
          "unknown.test", "one.test:81", "one.test.")]
TWO = on("two.test", "/", "/real.txt", "/virtual/path", "/start.html") + \
    on("secure.test", "/", "/a/b?c=d") + on("www.secure.test", "/x") + \
    on("rules.test", "/", "/in/in.txt", "/x.secret", "/query?x=1", "/query?x=2", "/in/x.secret") + \
    on("Sub.rules.test", "/deep/x?y")
METHODS = [("HEAD", "/", {"Host": "one.test"}), ("OPTIONS", "/app/x", {"Host": "one.test"}),
           ("POST", "/app/x", {"Host": "one.test"})]

MODULES = """mpm_event authn_core authn_file authz_core authz_host authz_user auth_basic alias dir autoindex env
 expires headers mime rewrite setenvif proxy proxy_http access_compat""".split()

RHEL = {
    "conf/httpd.conf": """ServerRoot "@SIDE@"
Listen 127.0.0.1:@PORT@
Include conf.modules.d/*.conf
User www-data
Group www-data
PidFile @SIDE@/pid
ServerAdmin root@localhost
ServerName main.test
<Directory />
    AllowOverride none
    Require all denied
</Directory>
DocumentRoot "@WWW@/default"
<Directory "@WWW@/default">
    AllowOverride None
    Require all granted
</Directory>
<IfModule dir_module>
    DirectoryIndex index.html
</IfModule>
<Files ".ht*">
    Require all denied
</Files>
ErrorLog "error.log"
LogLevel warn
<IfModule log_config_module>
    LogFormat "%h %l %u %t \\"%r\\" %>s %b" common
    CustomLog "access.log" common
</IfModule>
<IfModule mime_module>
    TypesConfig @SIDE@/mime.types
    AddType application/x-gzip .gz .tgz
</IfModule>
AddDefaultCharset UTF-8
EnableSendfile on
IncludeOptional conf.d/*.conf
""",
    "conf.modules.d/00-base.conf": "".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in MODULES),
    "conf.d/one.conf": VHOST, "conf.d/two.conf": SECOND,
}

CPANEL = {
    "conf/httpd.conf": """ServerRoot "@SIDE@"
Include "@SIDE@/conf.modules.d/*.conf"
<IfModule core.c>
LoadModule macro_module /usr/lib/apache2/modules/mod_macro.so
</IfModule>
PidFile @SIDE@/pid
Listen 127.0.0.1:@PORT@
User www-data
Group www-data
ServerName panel.test
ErrorLog @SIDE@/error.log
TypesConfig @SIDE@/mime.types
DirectoryIndex index.html
<Directory "/">
    AllowOverride All
    Options FollowSymLinks SymLinksIfOwnerMatch
</Directory>
<Directory "@WWW@/default">
    Options Indexes
    AllowOverride None
    Require all granted
</Directory>
<Files ~ "^error_log$">
    Order allow,deny
    Deny from all
    Satisfy All
</Files>
<FilesMatch "^\\.ht">
    Require all denied
</FilesMatch>
<VirtualHost *:@PORT@>
    ServerName panel.test
    DocumentRoot @WWW@/default
</VirtualHost>
<Macro Account $name $dir>
<VirtualHost *:@PORT@>
    ServerName $name.test
    ServerAlias www.$name.test mail.$name.test
    DocumentRoot $dir/public_html
    ServerAdmin webmaster@$name.test
    UseCanonicalName Off
    <IfModule mod_suphp.c>
        suPHP_UserGroup $name $name
    </IfModule>
    <IfModule !mod_disable_suexec.c>
    <IfModule mod_suexec.c>
        SuexecUserGroup $name $name
    </IfModule>
    </IfModule>
    Include "@SIDE@/userdata/$name/*.conf"
</VirtualHost>
</Macro>
Use Account account @WWW@/account
UndefMacro Account
""",
    "conf.modules.d/00-base.conf": RHEL["conf.modules.d/00-base.conf"],
    "userdata/account/extra.conf": "<Location /secret>\n  Require ip 192.0.2.1\n</Location>\nHeader set X-Panel yes\n",
}

PLESK = {
    "conf/httpd.conf": RHEL["conf/httpd.conf"],
    "conf.modules.d/00-base.conf": RHEL["conf.modules.d/00-base.conf"],
    "conf.d/zz_plesk.conf": """<IfModule mod_ssl.c>
Listen 127.0.0.1:1
</IfModule>
<VirtualHost *:@PORT@ >
    ServerName "one.test:@PORT@"
    ServerAlias "www.one.test"
    UseCanonicalName Off
    <IfModule mod_suexec.c>
        SuexecUserGroup "one" "psacln"
    </IfModule>
    ServerAdmin "root@one.test"
    DocumentRoot "@WWW@/one"
    CustomLog @SIDE@/plesk.log "%a %l %u %t \\"%r\\" %>s %O"
    ErrorLog "@SIDE@/plesk-error.log"
    <IfModule mod_userdir.c>
        UserDir "@WWW@/none"
    </IfModule>
    <Directory "@WWW@/one">
        <IfModule mod_fcgid.c>
            <Files ~ (\\.fcgi$)>
                SetHandler fcgid-script
            </Files>
        </IfModule>
        SSLRequireSSL
        Options -Includes -ExecCGI
    </Directory>
    <Directory "@WWW@/one/listed">
        Require all granted
    </Directory>
    DirectoryIndex "index.html" "index.cgi"
    <Directory "@WWW@/one">
        Options +FollowSymLinks
        AllowOverride AuthConfig FileInfo Indexes Limit Options=Indexes,SymLinksIfOwnerMatch
        Require all granted
    </Directory>
</VirtualHost>
""".replace("        SSLRequireSSL\n", ""),
}

BALANCER = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
                   for name in ("slotmem_shm", "proxy_balancer", "lbmethod_byrequests"))
LAYOUTS = [
    ("debian", None, "apache2.conf", ONE + HOSTS + TWO + METHODS),
    ("rhel", RHEL, "conf/httpd.conf", ONE + HOSTS + TWO),
    ("cpanel", CPANEL, "conf/httpd.conf",
     on("account.test", "/", "/index.html", "/secret/x", "/none") + on("mail.account.test", "/") +
     on("unknown.test", "/", "/error_log")),
    ("plesk", PLESK, "conf/httpd.conf", on("one.test", "/", "/a.txt", "/listed/", "/limited/x.txt", "/none") +
     on("x", "/")),
    ("guarded", {**RHEL, "conf.d/one.conf": guarded.CONF, "conf.d/two.conf": ""}, "conf/httpd.conf",
     guarded.REQUESTS),
    ("passed", {**RHEL, "conf.modules.d/01-balancer.conf": BALANCER, "conf.d/one.conf": passed.CONF,
                "conf.d/two.conf": ""}, "conf/httpd.conf", passed.REQUESTS),
]
