<?php
// What runs for the folder itself.
require __DIR__ . '/../record.php';
execute('folder', '/api/');
