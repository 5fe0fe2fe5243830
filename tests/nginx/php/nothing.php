<?php header_remove(); ini_set('default_mimetype', ''); exit;
