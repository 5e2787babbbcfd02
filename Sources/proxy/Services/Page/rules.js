// The table of rules. Each rule is a body of two rows, the second with what is asked for rarely.

function showRules() {
  const text = byID('filter').value.trim().toLowerCase();
  const all = state.status.rules.filter((rule) => rule.id.toLowerCase().includes(text));
  const rules = all.slice(0, state.shownRules);
  byID('filter-label').hidden = state.status.rules.length < 8;
  setText(byID('more-rules'), all.length > rules.length ?
    `The first ${rules.length} of ${all.length} rules; the filter finds the others.` : '');
  byID('more-rules').hidden = all.length <= rules.length;
  const isEmergency = state.status.rules.some(({ source }) => source === 'emergency');
  const button = byID('observe-all');
  button.hidden = !mayChange();
  button.dataset.to = isEmergency ? 'resume' : 'observe';
  setText(button, isEmergency ? 'Resume all…' : 'Observe all…');
  const seconds = isOfReport() ? Math.max(0, ...state.report.rules
    .flatMap((rule) => rule.windows.map((window) => window.seconds))) : 0;
  const over = isOfReport() ? `over ${span(seconds)}`
    : `since the start of the gateway, ${span(state.status.uptime_seconds)} ago`;
  setText(byID('counted'), `Counted ${over}. “Would be refused” was forwarded: the rule observes, `
    + 'or the client is outside the rollout.');
  keyed(byID('rules'), rules, ({ id }) => id, makeRule, updateRule);
}

function makeRule({ id }) {
  const more = make('button', { type: 'button', class: 'more', 'aria-expanded': 'false' }, id);
  const change = make('button', { type: 'button', 'aria-label': `Change ${id}` }, 'Change…');
  const cells = ['Judged', 'Verified', 'Would be refused', 'Refused', 'p50 · p99']
    .map((name) => make('td', { class: 'n', 'data-label': name }));
  const meter = make('span', { class: 'meter', 'aria-hidden': 'true' }, make('i'));
  const mode = make('td', {}, make('span', { class: 'badge' }), meter,
    make('small', { class: 'quiet' }));
  const row = make('tr', {}, make('th', { scope: 'row' }, more), mode, ...cells,
    make('td', {}, change));
  const details = make('tr', { class: 'details', hidden: true },
    make('td', { colspan: '8' }, make('div')));
  more.addEventListener('click', () => {
    details.hidden = !details.hidden;
    more.setAttribute('aria-expanded', String(!details.hidden));
    showRules();
  });
  change.addEventListener('click', () => openChange(id));
  return make('tbody', {}, row, details);
}

function updateRule(body, rule) {
  const counts = countsNow(rule);
  const [row, details] = body.rows;
  const [badge, meter, note] = row.cells[1].children;
  const percent = rule.mode === 'enforce' ? parseFloat(rule.rollout) : 0;
  const isPart = rule.mode === 'enforce' && Number.isFinite(percent) && percent < 100;
  setText(badge, isPart ? `enforce ${rule.rollout}` : rule.mode);
  const level = { enforce: 'good', observe: 'would', deny: 'refused' }[rule.mode] ?? '';
  badge.className = `badge ${level}`;
  meter.hidden = rule.mode !== 'enforce';
  meter.firstChild.style.width = `${Number.isFinite(percent) ? percent : 100}%`;
  const source = { file: '', delayed: `ramp delayed; file: ${rule.file}` };
  setText(note, source[rule.source] ?? `by ${rule.source}; file: ${rule.file}`);
  const part = (count) => count > 0
    ? `${short(Math.round(count))} · ${share(count, counts.judged)}` : '0';
  const values = [short(counts.judged),
    counts.judged > 0 ? share(counts.verified, counts.judged) : '–',
    part(counts.would), part(counts.refused),
    Number.isFinite(counts.p50) ? `${time(counts.p50)} · ${time(counts.p99)}` : '–'];
  values.forEach((value, place) => setText(row.cells[place + 2], value));
  row.cells[4].className = counts.would > 0 ? 'n would' : 'n';
  row.cells[5].className = counts.refused > 0 ? 'n refused' : 'n';
  // What the file does not verify has no order: nothing says what requests must carry.
  row.cells[7].firstChild.hidden = !mayChange() || !/^(enforce|observe)/.test(rule.file);
  if (!details.hidden) updateDetails(details.cells[0].firstChild, rule, counts);
}

function updateDetails(place, rule, counts) {
  const shown = JSON.stringify([rule.file, rule.order, rule.ramp, rule.responses, counts.steps,
    counts.versions, counts.proofs, [...counts.reasons]]);
  if (place.shown === shown) return;
  place.shown = shown;
  const responses = Object.entries(rule.responses ?? {})
    .map(([name, count]) => `${name} ${short(count)}`).join(', ');
  const facts = make('dl');
  describe(facts, [
    ['File', rule.file],
    ...(rule.order ? [['Order', `${rule.source}: ${rule.order}`]] : []),
    ...(rule.ramp ? [['Ramp', rule.ramp]] : []),
    ['Origin', rule.origin || 'none'],
    ['Responses', responses || 'none yet'],
  ]);
  const parts = [facts];
  const reasons = [...counts.reasons]
    .map(([reason, { would, refused }]) => ({ reason, would, refused }))
    .sort((a, b) => b.would + b.refused - a.would - a.refused).slice(0, 8);
  if (reasons.length > 0) {
    parts.push(table(['Reason', 'Would be refused', 'Refused'],
      reasons.map(({ reason, would, refused }) =>
        [reason, short(Math.round(would)), short(Math.round(refused))])));
  }
  const proofs = Object.entries(counts.proofs ?? {});
  if (proofs.length > 0) {
    parts.push(table(['Verified by', 'Requests'],
      proofs.map(([name, count]) => [name, short(count)])));
  }
  if (counts.steps) {
    parts.push(table(['Enforced for', 'Would refuse', 'Installs', 'Addresses'],
      counts.steps.map(({ percent, requests, installs, addresses }) =>
        [`${percent} %`, short(requests), short(installs), short(addresses)])));
  }
  if (counts.versions?.length > 0) {
    const names = ['verified', 'missing', 'unsupported', 'invalid', 'errors'];
    parts.push(table(['version', 'environment', ...names],
      counts.versions.slice(0, 20).map((version) => [
        (version.version ?? 'not known') + (version.source === 'claimed' ? ' (claimed)' : ''),
        version.environment, ...names.map((name) => short(version[name])),
      ])));
  }
  place.replaceChildren(...parts);
}

function table(names, rows) {
  const cells = (values, tag) => values
    .map((value, column) => make(tag, column ? { class: 'n' } : {}, value));
  return make('table', { class: 'small' },
    make('thead', {}, make('tr', {}, ...cells(names, 'th'))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...cells(row, 'td')))));
}
