<?php
/* Owns: the moment before WordPress begins, when an old copy may be all that is needed. */
declare(strict_types=1);

require_once ABSPATH . 'lab/cache.php';

Lab\Cache\begin();
ob_end_clean();
