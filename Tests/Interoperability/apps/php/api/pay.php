<?php
// A script of its own, reached by its path.
require __DIR__ . '/../record.php';
execute($_SERVER['REQUEST_METHOD'] === 'POST' ? 'script' : 'none', '/api/pay.php');
