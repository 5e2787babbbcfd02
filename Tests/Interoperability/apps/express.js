// usage: node express.js PORT; an Express application. What it executes goes to INTEROP_LOG.
'use strict';
const cookie = require('cookie');
const express = require('express');
const { entered, executed, fileHandler } = require('./record.js');
const routes = require('./routes.js');

const app = express();
const keep = (request, response, content) => { request.content = content; };
app.use(express.urlencoded({ extended: false, limit: '2mb', verify: keep, type: () => true }));

// What cookie-parser does; the names are those of record.py.
function cookies(request) {
  const read = cookie.parse(request.headers.cookie || '');
  return Object.fromEntries(['session', 'app_session'].filter((name) => name in read)
    .map((name) => [`cookie:${name}`, read[name]]));
}

function execute(handler, status) {
  return (request, response) => {
    const query = { ...request.query };
    entered(handler, request.method, request.path, query);
    executed(handler, request.method, request.path, query, { ...request.body },
      { ...request.headers, ...cookies(request) }, request.content);
    if ('mirror' in query) {
      for (const [name, value] of Object.entries(request.headers)) {
        if (name.startsWith('app-attest')) response.set(name, value);
      }
    }
    if ('set' in query) response.set(query.set, query.to);
    response.status(status || 200).json({ handler, query });
  };
}

for (const [path, handler, methods] of routes) {
  if (!methods) app.all(path, execute(handler));
  else for (const method of methods) app[method.toLowerCase()](path, execute(handler));
}
// The name of the file is the parameter, which Express decodes.
app.get('/files/:folder/:name', (request, response) =>
  execute(fileHandler(`${request.params.folder}/${request.params.name}`))(request, response));
app.get('/files/:name', (request, response) =>
  execute(fileHandler(request.params.name))(request, response));
app.use(execute('none', 404));
// Errors, such as a request that was broken off, run no handler.
app.use((error, request, response, next) => response.status(400).end());

app.listen(Number(process.argv[2]), '127.0.0.1');
