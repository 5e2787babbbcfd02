<?php
// As record.py: what the script executed goes to INTEROP_LOG.

function write_line($line) {
    $flags = JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES;
    file_put_contents($_SERVER['INTEROP_LOG'] ?? getenv('INTEROP_LOG'),
        json_encode($line, $flags) . "\n", FILE_APPEND);
}

function listed($values) {
    return (object) array_map(fn ($value) => is_array($value) ? $value : [$value], $values);
}

function execute($handler, $path, $status = 200) {
    $fields = [];
    foreach ($_SERVER as $name => $value) {
        if (str_starts_with($name, 'HTTP_')) {
            $fields[strtolower(strtr(substr($name, 5), '_', '-'))] = $value;
        }
    }
    foreach (['session', 'app_session'] as $name) {
        $cookie = $_COOKIE[$name] ?? null;
        if ($cookie !== null) $fields["cookie:$name"] = is_string($cookie) ? $cookie : 'a list';
    }
    $seen = ['handler' => $handler, 'method' => $_SERVER['REQUEST_METHOD'], 'path' => $path,
        'query' => listed($_GET)];
    write_line(['stage' => 'entered'] + $seen);
    $content = file_get_contents('php://input');
    write_line(['stage' => 'executed'] + $seen + ['form' => listed($_POST), 'fields' => (object) $fields,
        'length' => strlen($content), 'sha256' => hash('sha256', $content),
        'content' => substr($content, 0, 512)]);
    http_response_code($status);
    // As response_fields in routes.py.
    foreach (isset($_GET['mirror']) ? $fields : [] as $name => $value) {
        if (str_starts_with($name, 'app-attest')) header("$name: $value");
    }
    if (isset($_GET['set'])) header("{$_GET['set']}: {$_GET['to']}");
    header('Content-Type: application/json');
    echo json_encode(['handler' => $handler, 'query' => listed($_GET)]);
}
