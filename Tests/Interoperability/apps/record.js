// As record.py, for Node.
'use strict';
const crypto = require('crypto');
const fs = require('fs');

const write = (line) => fs.appendFileSync(process.env.INTEROP_LOG, JSON.stringify(line) + '\n');
const listed = (values) => Object.fromEntries(
  Object.entries(values).map(([name, value]) => [name, Array.isArray(value) ? value : [value]]));

exports.entered = (handler, method, path, query) =>
  write({ stage: 'entered', handler, method, path, query: listed(query) });

exports.executed = (handler, method, path, query, form, fields, content = Buffer.alloc(0)) =>
  write({
    stage: 'executed', handler, method, path, query: listed(query), form: listed(form), fields,
    length: content.length,
    sha256: crypto.createHash('sha256').update(content).digest('hex'),
    content: content.toString('latin1').slice(0, 512),
  });

exports.fileHandler = (rest) =>
  (rest.replace(/\/+/g, '/').replace(/^\//, '').startsWith('private/') ? 'private' : 'files');
