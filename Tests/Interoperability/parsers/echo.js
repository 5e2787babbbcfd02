// usage: node [--insecure-http-parser] echo.js PORT LOG; as backends.py, for Node's http.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');

const [port, path] = process.argv.slice(2);

function echo(request, response) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const fields = [];
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      fields.push([request.rawHeaders[i], request.rawHeaders[i + 1]]);
    }
    const line = JSON.stringify({
      method: request.method,
      target: request.url,
      fields,
      length: body.length,
      sha256: crypto.createHash('sha256').update(body).digest('hex'),
      how: 'raw',
    }) + '\n';
    fs.appendFileSync(path, line);
    response.end(line);
  });
}

http.createServer({ keepAliveTimeout: 30000 }, echo).listen(Number(port), '127.0.0.1');
