// usage: node plain.js PORT; Node's http and `new URL(request.url, base)`, as in its documentation.
'use strict';
const http = require('http');
const { entered, executed, fileHandler } = require('./record.js');
const routes = require('./routes.js');

function find(method, path) {
  for (const [route, handler, methods] of routes) {
    if (route === path && (!methods || methods.includes(method))) return handler;
  }
  if (path.startsWith('/files/')) return fileHandler(decodeURIComponent(path.slice(7)));
  return 'none';
}

const lists = (pairs) => {
  const found = {};
  for (const [name, value] of pairs) (found[name] = found[name] || []).push(value);
  return found;
};

// A connection's authentication, as NTLM and Negotiate: whoever comes later on it is that user.
function who(request, response) {
  const said = request.headers.authorization || '';
  if (said.startsWith('NTLM ')) request.socket.user = said.slice(5);
  const user = request.socket.user;
  response.writeHead(user ? 200 : 401, user ? {} : { 'WWW-Authenticate': 'NTLM' });
  response.end(JSON.stringify({ user: user || null }));
}

http.createServer((request, response) => {
  if (request.url.startsWith('/who')) {
    who(request, response);
    return;
  }
  let url;
  try {
    url = new URL(request.url, 'http://interop.test');
  } catch {
    response.writeHead(400).end();
    return;
  }
  const handler = find(request.method, url.pathname);
  const query = lists(url.searchParams);
  entered(handler, request.method, url.pathname, query);
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('error', () => {});
  request.on('end', () => {
    const content = Buffer.concat(chunks);
    executed(handler, request.method, url.pathname, query,
      lists(new URLSearchParams(content.toString('latin1'))), request.headers, content);
    if (url.searchParams.has('drop')) {
      request.socket.destroy();
      return;
    }
    response.writeHead(handler === 'none' ? 404 : 200);
    response.end(JSON.stringify({ handler, query }));
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
