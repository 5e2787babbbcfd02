<?php
// A front controller, as frameworks have: the path is what parse_url makes of REQUEST_URI, without
// the controller's own name before it.
require __DIR__ . '/record.php';

$routes = [
    '/' => ['root', null], '/pay' => ['pay', ['POST']], '/upload' => ['upload', ['POST']],
    '/profile' => ['profile', ['GET', 'HEAD']], '/item' => ['item', ['DELETE']],
    '/v1/orders' => ['orders', null], '/hosted' => ['hosted', ['POST']],
    '/checkin' => ['checkin', ['POST']], '/told' => ['told', ['POST']],
    '/trial' => ['trial', ['POST']], '/open' => ['open', null],
];
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/';
if (str_starts_with($path, '/index.php/')) $path = substr($path, strlen('/index.php'));
// An optional format, as API Platform's routes have: /v1/orders{._format}.
$path = preg_replace('#^(/v1/orders)\.[a-z]+$#', '$1', $path);
[$handler, $methods] = $routes[$path] ?? ['none', null];
if (str_starts_with($path, '/files/')) {
    $rest = ltrim(preg_replace('#/+#', '/', rawurldecode(substr($path, 7))), '/');
    $handler = str_starts_with($rest, 'private/') ? 'private' : 'files';
}
if ($methods && !in_array($_SERVER['REQUEST_METHOD'], $methods)) $handler = 'none';
execute($handler, $path, $handler === 'none' ? 404 : 200);
