// The last refusals, the origins, and what the gateway is made of.

function showRefusals() {
  const told = mayRead() ? state.refusals ?? [] : [];
  // What somebody reads stays, also when the gateway has forgotten it.
  const isTold = new Set(told.map(nameOf));
  const list = told.concat([...byID('refusals').children].filter((entry) => mayRead() && entry
    .open &&
    !isTold.has(nameOf(entry.note))).map((entry) => entry.note));
  showReasonChoice(list);
  const text = calls === 'none' ?
    'They name clients, so they are shown where calls are served: see “Read-only” above.' :
    !mayRead() ? 'They name clients, so they need the token.' :
    list.length === 0 ? 'None is remembered.' : '';
  setText(byID('refusals-text'), text);
  byID('refusals-text').hidden = text === '';
  const reason = byID('reason').value;
  const shown = list.filter((note) => reason === '' || note.reason === reason);
  keyed(byID('refusals'), shown, nameOf, makeRefusal,
    (entry, note) => setText(entry.firstChild.firstChild, ago(note.time)));
}

/** What was found by a request id, a trace id or a key, above the last refusals. */
function showFound() {
  byID('find-form').hidden = !mayRead();
  if (!mayRead()) state.found = null;
  const { text, list } = state.found ?? { text: '', list: [] };
  setText(byID('found-text'), text);
  byID('found-text').hidden = text === '';
  keyed(byID('found'), list, nameOf, makeRefusal,
    (entry, note) => setText(entry.firstChild.firstChild, ago(note.time)));
}

/** Asks what `portcullis why` asks. A name that is asked for later counts alone. */
async function find(name) {
  const asked = state.found = name === '' ? null : { name, list: [], text: 'Asking…' };
  showFound();
  if (!asked) return;
  let answer = null;
  try { answer = await ask(about('why/json'), { method: 'POST', body: name }); } catch { /* Below. */ }
  if (state.found !== asked) return;
  if (answer?.status === 401) {
    lock('This is not the token.');
    return show();
  }
  asked.list = answer?.status === 200 ? answer.content?.refusals ?? [] : [];
  asked.text = answer === null ? 'No answer; try again.' : asked.list.length > 0 ?
    `${asked.list.length === 1 ? 'One refusal' : `${asked.list.length} refusals`} of ${name}, ` +
    'the latest first:' : answer.status === 404 || answer.status === 200 ?
    `No refusal of ${name} is remembered: it passed, is too old, or went to a process that has ` +
    'ended. The access log says more.' : `The gateway answers ${answer.status}.`;
  showFound();
}

byID('find-form').addEventListener('submit', (event) => {
  event.preventDefault();
  find(byID('find').value.trim());
});
// Emptied by hand, by Escape or by its cross.
byID('find').addEventListener('input', (event) => {
  if (event.target.value === '') find('');
});

/** The reasons that the list has, and the one that is chosen. */
function showReasonChoice(list) {
  const select = byID('reason');
  const chosen = select.value;
  const reasons = [...new Set([...list.map(({ reason }) => reason), ...(chosen ? [chosen] : [])])]
    .sort();
  byID('reason-label').hidden = reasons.length < 2 && chosen === '';
  if (select.shown === reasons.join(' ')) return;
  select.shown = reasons.join(' ');
  select.replaceChildren(make('option', { value: '' }, 'all'),
    ...reasons.map((reason) => make('option', { value: reason }, reason)));
  select.value = chosen;
}

/** Who has changed which rollout, the latest first. */
function showAudit() {
  const changes = mayRead() && state.audit ? [...state.audit].reverse().slice(0, 20) : [];
  byID('audit-panel').hidden = !mayRead() || !state.audit;
  byID('no-audit').hidden = changes.length > 0;
  keyed(byID('audit'), changes.map((change, place) => ({ ...change, place })),
    ({ at, rule, to, place }) => `${at} ${rule} ${to} ${changes.length - place}`,
    ({ at, rule, from, to, by, why }) => make('li', {},
      make('span', {}, `${rule === '*' ? 'all rules' : rule}: ${from} → ${to}`),
      make('time', { datetime: at, class: 'quiet' }, at),
      make('small', { class: 'quiet' }, `${by}${why ? `: ${why}` : ''}`)), () => {});
}

const nameOf = (note) => `${note.time} ${note.request_id}`;

/** The build and the system that a refusal names. */
function clientOf({ app_version: version, app_version_source: source, os, os_version: number }) {
  return [version ? `build ${version}${source === 'claimed' ? ' (claimed)' : ''}` : '',
    os ? `${os} ${number} (claimed)` : ''].filter(Boolean).join(', ');
}

function makeRefusal(note) {
  const place = note.rule ? `${note.rule}, ${note.mode}` : `the endpoint ${note.endpoint}`;
  const answer = note.fate === 'forwarded' ?
    'none of the gateway’s: forwarded, since the rule or its rollout only observes' :
    note.fate === 'cut-off' ? 'the connection was reset' : String(note.status);
  const key = note.key ?
    `${note.key}${note.app ? `, ${note.app}, ${note.environment}` : ', not known'}` +
    (note.signed ? '; it has signed the request' :
      '; it is not shown that the request comes from it') : 'no key is named';
  const list = make('dl');
  describe(list, [
    ['Why', note.title],
    ['Asked', `${note.method} ${note.host} ${note.path}`],
    ['By', note.client],
    ...(note.gateway ? [['Gateway', note.gateway]] : []),
    ['Rule', place],
    ...(note.app_version || note.os ? [['Client', clientOf(note)]] : []),
    ['Found', key],
    ['Answer', answer],
    ['The client', note.advice],
    ['At', note.time],
    ['Request id', note.request_id],
    ...(note.trace_id ? [['Trace id', note.trace_id]] : []),
  ]);
  const entry = make('details', { class: 'refusal' },
    make('summary', {}, make('time', { datetime: note.time }),
      make('code', { class: note.fate === 'forwarded' ? 'would' : 'refused' }, note.reason),
      make('span', { class: 'path' }, `${note.method} ${note.path}`),
      make('span', { class: 'quiet' }, note.rule ?? note.endpoint)), list);
  entry.note = note;
  return entry;
}

/** A row of the table of servers, without figures. */
function makeServer({ server }) {
  const button = make('button', { type: 'button' });
  button.addEventListener('click', () => drain(server.server, button.dataset.action));
  const figures = ['Active', 'Served', 'Failed', 'Origin’s p50 · p99']
    .map((name) => make('td', { class: 'n', 'data-label': name }));
  return make('tr', {}, make('th', { scope: 'row' }), make('td', {}, make('span')), ...figures,
    make('td', { 'data-label': 'Last failure' }), make('td', {}, button));
}

function updateServer(row, { origin, server }) {
  const place = server.server === server.address
    ? server.server : `${server.server} (${server.address})`;
  setText(row.cells[0], `${origin.name} · ${place}${server.backup ? ' · backup' : ''}`);
  const badge = row.cells[1].firstChild;
  setText(badge, server.state);
  badge.className = 'badge ' + ({ up: 'good', drained: 'warn' }[server.state] ?? 'bad');
  setText(row.cells[2], short(server.requests_active));
  setText(row.cells[3], short(server.requests));
  setText(row.cells[4], short(server.failures));
  const times = origin.response_seconds;
  setText(row.cells[5], times.count > 0 ? `${time(times.p50)} · ${time(times.p99)}` : '–');
  setText(row.cells[6], server.last_failure
    ? `${server.last_failure}, ${ago(server.last_failure_at)}` : 'never');
  const button = row.cells[7].firstChild;
  const isDrained = server.state === 'drained';
  button.dataset.action = isDrained ? 'undrain' : 'drain';
  setText(button, isDrained ? 'Undrain' : 'Drain…');
  button.setAttribute('aria-label', `${isDrained ? 'Undrain' : 'Drain'} ${server.server}`);
  button.hidden = !mayChange();
}

function showOrigins() {
  const rows = state.status.origins
    .flatMap((origin) => origin.servers.map((server) => ({ origin, server }))).slice(0, 200);
  byID('no-origins').hidden = rows.length > 0;
  byID('origins').hidden = rows.length === 0;
  const nameOfRow = ({ origin, server }) => `${origin.name} ${server.server} ${server.address}`;
  keyed(byID('origins').tBodies[0], rows, nameOfRow, makeServer, updateServer);
}

/** Whether a gateway of the fleet serves, as far as is known. */
const isHeard = ({ standing, age_seconds: age }) => standing !== 'ended' && age <= 10;

/** The gateways of the fleet, and the choice of those whose figures are shown. */
function showGateways() {
  const fleet = state.status.fleet;
  byID('gateways-panel').hidden = byID('of-label').hidden = !fleet;
  if (!fleet) return;
  const names = [...new Set(fleet.gateways.map(({ name }) => name))];
  const select = byID('of');
  if (select.shown !== names.join(' ')) {
    select.shown = names.join(' ');
    select.replaceChildren(make('option', { value: '' }, 'all gateways'),
      ...names.map((name) => make('option', { value: name }, name)));
  }
  select.value = state.gateway;
  keyed(byID('gateways').tBodies[0], fleet.gateways, (gateway) => gateway.name +
    gateway.started_at, () => make('tr', {}, make('th', { scope: 'row' }), make('td', {}, make(
    'span')), ...['Order', 'Rules', 'Version', 'Address', 'Said'].map((name) =>
      make('td', { 'data-label': name }))), (row, gateway) => {
    const badge = row.cells[1].firstChild;
    const isSilent = gateway.standing !== 'ended' && !isHeard(gateway);
    setText(badge, isSilent ? 'silent' : gateway.standing);
    badge.className = 'badge ' + (isSilent ? 'bad' : gateway.standing === 'serving' ? 'good' :
      'warn');
    const said = gateway.age_seconds <= 2 ? 'now' : `${span(gateway.age_seconds)} ago`;
    const waiting = gateway.orders_pending > 0 ? `, ${gateway.orders_pending} pending` : '';
    [gateway.name + (gateway.self ? ' (this one)' : ''), null, gateway.order + waiting,
      gateway.rules_digest.slice(0, 8), gateway.version, gateway.address, said
    ].forEach((text, place) => { if (text !== null) setText(row.cells[place], String(text)); });
  });
}

function certificateEntry({ listener, file, names, ends_at: end }) {
  const days = (Date.parse(end) - Date.now()) / 86400e3;
  const when = days < 0 ? 'ended' : 'ends in ' + span(days * 86400);
  const level = days < 1 ? 'bad' : days < 7 ? 'warn' : '';
  return [`${file} at ${listener}`, `${names.join(', ')} · ${when} (${end.slice(0, 10)})`, level];
}

/** How busy the process was between the last two looks. */
function cpuShare() {
  const [before, last] = state.samples.slice(-2);
  if (!last || !(last.at > before.at)) return '…';
  return share(Math.max(0, last.cpu - before.cpu), (last.at - before.at) / 1000);
}

function showParts() {
  const { store, certificates, configuration, apple, event_loops, process, fleet } = state.status;
  const commits = store.commit_seconds;
  describe(byID('store'), [
    ['State', store.degraded ? 'can’t be used' : 'in use', store.degraded ? 'bad' : 'good'],
    ['Keys', `${short(store.keys)}, ${short(store.keys_revoked)} revoked`],
    ['Commits', commits.count ? `p50 ${time(commits.p50)}, p99 ${time(commits.p99)}` : 'none yet'],
    ['Waiting', `${short(store.commits_pending)} changes`],
    ['Failed', short(store.commit_failures), store.commit_failures > 0 ? 'bad' : ''],
    ...(store.last_error ? [['Last error', store.last_error, 'bad']] : []),
  ]);
  describe(byID('certificates'), certificates.shown.length === 0
    ? [['None', 'no listener has TLS']] : certificates.shown.slice(0, 50).map(certificateEntry));
  const busy = event_loops.map(({ requests }) => requests);
  const read = ago(configuration.last_reload_at ?? state.status.started_at);
  const spread = `${short(Math.min(...busy))} to ${short(Math.max(...busy))}`;
  describe(byID('process'), [
    ...(state.status.host ? [['Host', state.status.host]] : []),
    ['Started', state.status.started_at],
    ...(process ? [
      ['Memory', `${(process.resident_bytes / 1048576).toFixed(0)} MiB resident`],
      ['CPU', `${cpuShare()} of one core, ${span(process.cpu_seconds)} since the start`],
    ] : []),
    ['Configuration', `${configuration.generation}, read ${read}`],
    ...(fleet ? [['Fleet', `${fleet.gateway}, order ${fleet.order}, ` +
      `${fleet.gateways.filter(isHeard).length} gateways`]] : []),
    ['Reloads refused', short(configuration.reloads_refused),
      configuration.last_reload_error ? 'warn' : ''],
    ['Event loops', `${event_loops.length}, with ${spread} requests each`],
    ...apple.hosts.map((host) => [`Apple, ${host.service}, ${host.environment}`,
      `breaker ${host.breaker}, ${host.calls_waiting} waiting`,
      host.breaker === 'closed' ? '' : 'warn']),
  ]);
}
