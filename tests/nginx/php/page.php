<?php
for ($n = 0; $n < 250; $n++) echo "<p>This is paragraph $n of the page.</p>\n";
