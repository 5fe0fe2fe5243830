<?php header('Content-Type: text/plain');
no_such_function();
