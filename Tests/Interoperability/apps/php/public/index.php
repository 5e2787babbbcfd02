<?php
// A front controller in a folder, as Laravel and CakePHP are found on shared hosts: what follows its
// name is the route.
$_SERVER['REQUEST_URI'] = $_SERVER['PATH_INFO'] ?? '/';
require __DIR__ . '/../index.php';
