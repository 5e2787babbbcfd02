// Asks the gateway, and shows what it says. Nothing is asked while the page can't be seen.

const state = {
  status: null,
  samples: [],
  points: [],
  report: null,
  series: null,
  refusals: null,
  /** What was searched for among the refusals: {name, list, text}. */
  found: null,
  audit: null,
  window: 'start',
  /** The gateway of a fleet whose figures are shown; empty for all of them. */
  gateway: '',
  token: '',
  paused: false,
  failed: null,
  timer: 0,
  asked: 0,
  shownRules: 100
};
/** Who may change something: `none`, `open` (who reaches this address), or `token`. With `lookup`
    no client may, and the token shows what names clients. */
const calls = document.body.dataset.calls;
const mayChange = () => calls === 'open' || (calls === 'token' && state.token !== '');
const mayRead = () => mayChange() || (calls === 'lookup' && state.token !== '');
const takesToken = calls === 'token' || calls === 'lookup';
const pause = 5000;

/** Whether the figures are of other gateways than the one that serves the page. */
const isOfFleet = () => Boolean(state.status?.fleet) && state.gateway !== state.status.fleet.gateway;
/** A page about the gateways whose figures are shown. */
const about = (page) => state.gateway ? `${page}?gateway=${state.gateway}` : page;

const rate = (value) => short(value) + '/s';
const charts = {
  verdicts: new Chart(byID('verdicts'), 'Verdicts', outcomes, { stacked: true, format: rate }),
  latency: new Chart(byID('latency'), 'Latency', [
    { name: 'p50', label: 'p50', className: 'p50' },
    { name: 'p95', label: 'p95', className: 'p95' },
    { name: 'p99', label: 'p99', className: 'p99' },
  ], { stacked: false, format: time }),
};

async function ask(page, options = {}) {
  const headers = state.token ? { Authorization: 'Bearer ' + state.token } : {};
  const response = await fetch(page, {
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: AbortSignal.timeout(10000),
    ...options,
    headers
  });
  const text = await response.text();
  let content = null;
  try { content = JSON.parse(text); } catch { /* No document: the status says enough. */ }
  return { status: response.status, content };
}

/** One round of questions. The next begins after this one, and later where it took long. */
async function round() {
  clearTimeout(state.timer);
  const begun = performance.now();
  const isFull = state.asked % 2 === 0;
  state.asked += 1;
  const { gateway, window } = state;
  try {
    const pages = [ask('status')];
    if (isFull && state.report !== false) {
      // The reports are of a few seconds ago anyway.
      pages.push(ask(about('report/' + (windows[state.window] ? state.window : '5m'))));
      pages.push(ask(about('report/series')));
    }
    const [status, report, series] = await Promise.all(pages);
    if (status.status !== 200) throw new Error(`/status answers ${status.status}`);
    take(status.content);
    // What was chosen meanwhile is asked for by another round.
    if (report && gateway === state.gateway && window === state.window) {
      const isServed = report.status === 200 && series.status === 200;
      if (report.status === 404 && state.gateway) state.gateway = '';
      else if (report.status === 404) state.report = false;
      else if (isServed)[state.report, state.series] = [report.content, series.content];
    }
    if (isFull && mayRead()) await Promise.all([askRefusals(), askAudit()]);
    state.failed = null;
  } catch (error) {
    state.failed = state.failed ?? { at: new Date(), text: String(error.message ?? error) };
  }
  show();
  const took = performance.now() - begun;
  if (!state.paused && !document.hidden) state.timer = setTimeout(round, Math.max(pause, 10 *
    took));
}

function take(status) {
  state.status = status;
  const sample = sampleOf(status);
  const last = state.samples.at(-1);
  const point = last ? between(last, sample) : null;
  if (last && last.started !== sample.started)[state.samples, state.points] = [
    [],
    []
  ];
  if (point) state.points.push(point);
  state.samples.push(sample);
  // An hour, should the page stay open.
  state.samples.splice(0, state.samples.length - 2);
  state.points.splice(0, state.points.length - 720);
}

async function askAudit() {
  const { status, content } = await ask('audit');
  state.audit = status === 200 && content ? content.changes : null;
}

async function askRefusals() {
  const { gateway } = state;
  const { status, content } = await ask(about('refusals'));
  if (status === 401) return lock('This is not the token.');
  if (gateway === state.gateway) state.refusals = status === 200 ? content.refusals : null;
}

// What is shown.

function show() {
  showHeader();
  showNotices();
  showAccess();
  if (!state.status) return;
  showWindows();
  showGateways();
  showTiles();
  showCharts();
  showRules();
  showGroups();
  showReasons();
  showRefusals();
  showFound();
  showAudit();
  showOrigins();
  showParts();
}

function showHeader() {
  const status = state.status;
  const [word, level] = state.failed ? ['no answer', 'bad'] : !status ? ['…', ''] :
    status.state !== 'serving' ? [status.state, 'warn'] : status.ready ? ['ready', 'good'] : [
      'not ready', 'bad'
    ];
  setText(byID('state'), word);
  byID('state').className = 'badge ' + level;
  const name = status?.host ? `${status.host} · Portcullis` : 'Portcullis';
  document.title = (level === 'bad' || level === 'warn' ? word + ' · ' : '') + name;
  const when = state.samples.at(-1);
  setText(byID('freshness'), state.paused ? 'paused' : when ? 'as of ' + clock(new Date(when.at)) :
    '');
  if (!status) return;
  setText(byID('facts'), `${status.host ? `${status.host} · ` : ''}version ${status.version} · up ${span(status.uptime_seconds)} · ` +
    `configuration ${status.configuration.generation}`);
}

function notices() {
  const list = [];
  const add = (level, text) => list.push({ level, text });
  if (state.failed) {
    const { at, text } = state.failed;
    add('bad', `No answer since ${clock(at)}: ${text}. The figures below are older.`);
  }
  const status = state.status;
  if (!status) return list;
  if (status.state !== 'serving') add('warn', 'The gateway ends: it drains its connections.');
  for (const reason of status.unready_reasons) {
    if (reason === 'drained') add('warn', 'Operators have drained this gateway.');
    else if (reason !== 'draining') add('bad', `Not ready: ${reason}`);
  }
  if (status.store.degraded) add('bad',
    `The key store can't be used: ${status.store.last_error ?? 'see the log'}`);
  const emergency = status.rules.find(({ source }) => source === 'emergency');
  if (emergency) add('bad', `No rule refuses: all observe, by order (${emergency.order ?? ''})`);
  for (const rule of status.rules) {
    if (rule.source === 'guard') add('bad',
      `${rule.id}: the guard has made the rule observe (${rule.order ?? ''}). Next: find the ` +
      'reason under “Last refusals” or by portcullis why KEY; once its cause is gone, “Change…” ' +
      'begins with a small share, or gives the rule back to its file.');
  }
  if (status.fleet?.rules_differ) {
    add('bad', 'Gateways of the fleet serve different rules: see portcullis fleet status.');
  }
  if (state.report?.alone) add('bad',
    'The fleet’s database does not answer: the figures are of this gateway alone.');
  for (const { name, answered, age_seconds: age } of state.report?.gateways ?? []) {
    if (!answered) add('warn', `${name} has not answered: ` + (age === null ?
      'nothing of it is counted.' : `its figures are ${span(age)} old.`));
  }
  if (status.fleet?.orders_pending > 0) add('warn',
    'An order holds at this gateway alone, until the fleet’s database answers.');
  if (status.configuration.last_reload_error) {
    add('warn', `The last reload was refused: ${status.configuration.last_reload_error}`);
  }
  if (status.certificates.last_error) {
    add('bad', `Changed certificates can't be used: ${status.certificates.last_error}`);
  }
  for (const { file, ends_at: end } of status.certificates.shown) {
    const days = (Date.parse(end) - Date.now()) / 86400e3;
    if (days < 7) add(days < 1 ? 'bad' : 'warn',
      `${file} ${days < 0 ? 'has ended' : 'ends in ' + span(days * 86400)}`);
  }
  for (const origin of status.origins) {
    const up = origin.servers.filter(({ state }) => state === 'up').length;
    if (origin.servers.length > 0 && up === 0) add('bad', `Origin ${origin.name}: no server is up`);
  }
  if (status.unknown_servers.length > 0) add('warn',
    `No address: ${status.unknown_servers.join(', ')}`);
  const lost = status.access_log_lines_dropped + status.log_lines_dropped;
  if (lost > 0) add('warn', `${short(lost)} lines of logs were dropped since the start`);
  return list;
}

function showNotices() {
  keyed(byID('notices'), notices(), ({ text }) => text, () => make('p', { class: 'notice' }),
    (element, { level, text }) => {
      element.className = 'notice ' + level;
      setText(element, text);
    });
}

/** Which time the counts can be of: that of the report, or since the start. */
function showWindows() {
  // What a gateway has counted since its start, it says of itself alone.
  const names = [...(state.report ? Object.keys(windows) : []),
    ...(isOfFleet() && state.report ? [] : ['start'])];
  if (!names.includes(state.window)) state.window = '5m';
  const select = byID('window');
  if (select.options.length !== names.length) {
    if (state.report && state.window === 'start') state.window = '5m';
    select.replaceChildren(...names.map((name) =>
      make('option', { value: name }, windows[name]?.[0] ?? 'all since the start')));
    select.value = state.window;
  }
}

function isOfReport() { return Boolean(state.report && windows[state.window]); }

/** The counts of a rule in the time that is chosen. */
function countsNow(rule) {
  if (isOfReport()) {
    const told = state.report.rules.find(({ id }) => id === rule.id)?.windows
      .find(({ window }) => window === state.window);
    return told ? countsOfWindow(told) : countsOf({ verdicts: [] });
  }
  return countsOf(rule);
}

function showTiles() {
  const status = state.status;
  const fleet = isOfFleet() ? status.fleet : null;
  const point = (fleet && state.series ? pointsOf(state.series, '5m') : state.points).at(-1);
  const judged = point ? point.verified + point.would + point.refused : 0;
  const tiles = [
    fleet ? ['Requests', point ? rate(judged) : '…',
      `judged, at ${state.gateway || `${fleet.gateways.filter(isHeard).length} gateways`}`
    ] : ['Requests', point ? rate(point.requests) : '…',
      `${short(status.counters.requests_total)} since the start`
    ],
    ['Verified', point && judged > 0 ? share(point.verified, judged) : '–', point ?
      `${rate(point.verified)} of ${rate(judged)} judged` : ''
    ],
    ['Would be refused', point ? rate(point.would) : '…', judged ? share(point.would, judged) +
      ' of the judged' : 'forwarded all the same', point?.would > 0 ? 'would' : ''
    ],
    ['Refused', point ? rate(point.refused) : '…', judged ? share(point.refused, judged) +
      ' of the judged' : '', point?.refused > 0 ? 'refused' : ''
    ],
    ['Latency', point ? time(point.p50) : '…', !point ? '' : Number.isFinite(point.p50) ?
      `p99 ${time(point.p99)}` : 'nothing was asked'],
    ['Clients', short(status.connections_open),
      `connections · ${short(status.sessions_open)} sessions` + (fleet ? `, at ${fleet.gateway}` : '')
    ],
    ['Keys', short(status.store.keys), `${short(status.store.keys_revoked)} revoked`],
  ];
  keyed(byID('tiles'), tiles, ([name]) => name, ([name]) =>
    make('div', { class: 'tile' }, make('h3', {}, name), make('strong'), make(
    'span', { class: 'quiet' })),
    (tile, [, value, note, className]) => {
      setText(tile.children[1], value);
      tile.children[1].className = className ?? '';
      setText(tile.children[2], note);
    });
}

function showCharts() {
  // A process that has just begun has fewer slots than a line needs; what was asked for has more.
  const told = isOfReport() && state.series ? pointsOf(state.series, state.window) : [];
  const points = told.length >= 2 || isOfFleet() ? told : state.points;
  const marks = state.series?.marks ?? [];
  charts.verdicts.show(points, marks);
  charts.latency.show(points, marks);
}

function showReasons() {
  const all = new Map();
  for (const rule of state.status.rules) {
    for (const [reason, { would, refused }] of countsNow(rule).reasons) {
      const sum = all.get(reason) ?? { reason, would: 0, refused: 0 };
      sum.would += would;
      sum.refused += refused;
      all.set(reason, sum);
    }
  }
  const list = [...all.values()].sort((a, b) => b.would + b.refused - a.would - a.refused).slice(0,
    12);
  const most = list.length ? list[0].would + list[0].refused : 1;
  setText(byID('reasons-window'), isOfReport() ? windows[state.window][0] : 'since the start');
  byID('no-reasons').hidden = list.length > 0;
  keyed(byID('reasons'), list, ({ reason }) => reason, ({ reason }) =>
    make('li', {}, make('code', {}, reason), make('b'), make(
    'span', { class: 'bar', 'aria-hidden': 'true' },
      make('i', { class: 'refused' }), make('i', { class: 'would' })), make(
    'small', { class: 'quiet' })),
    (item, { would, refused }) => {
      setText(item.children[1], short(Math.round(would + refused)));
      item.children[2].children[0].style.width = `${100 * refused / most}%`;
      item.children[2].children[1].style.width = `${100 * would / most}%`;
      setText(item.children[3], refused > 0 && would > 0 ?
        `${short(Math.round(refused))} refused, ${short(Math.round(would))} would be` :
        refused > 0 ? 'refused' : 'would be refused');
    });
}
