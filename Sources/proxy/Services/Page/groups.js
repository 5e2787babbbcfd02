// Which rule refuses which system or build: the requests of all rules by what clients claim to be.

/** Lines that are shown; the filter finds the others. */
const groupsMax = 40;

const isApples = new Set(['ios', 'ipados', 'macos', 'tvos', 'watchos', 'visionos']);

/** Whether a word of the filter is meant by a word of a name: `26` by `26.1`, `iOS` by `apple`. */
const isNamed = (word, cell) => cell === word || cell.startsWith(word + '.') ||
  (isApples.has(word) && cell === 'apple') || (word === 'ipados' && cell === 'ios');

function nameOfGroup(group, kind) {
  if (kind === 'os') {
    return group.os === null ? 'not known' :
      group.os_version === null ? group.os : `${group.os} ${group.os_version}`;
  }
  return (group.version ?? 'not known') + (group.source === 'claimed' ? ' (claimed)' : '');
}

/** One entry for each group and rule, of which the first are refused the most. */
function groupsNow(kind) {
  const groups = new Map();
  for (const rule of state.report.rules) {
    const told = rule.windows.find(({ window }) => window === state.window);
    for (const group of (kind === 'os' ? told?.systems : told?.versions) ?? []) {
      const name = nameOfGroup(group, kind);
      const key = JSON.stringify([name, rule.id]);
      const sum = groups.get(key) ??
        { key, name, rule: rule.id, verified: 0, failed: 0, refused: 0, reasons: new Map() };
      sum.verified += group.verified;
      sum.failed += group.missing + group.unsupported + group.invalid + group.errors;
      sum.refused += group.refused ?? 0;
      for (const { reason, count } of group.reasons) {
        if (reason !== 'preflight') sum.reasons.set(reason, (sum.reasons.get(reason) ?? 0) + count);
      }
      groups.set(key, sum);
    }
  }
  return [...groups.values()].filter(({ verified, failed }) => verified + failed > 0)
    .sort((a, b) => b.refused - a.refused || b.failed - a.failed || b.verified - a.verified ||
      a.name.localeCompare(b.name));
}

function showGroups() {
  byID('groups-panel').hidden = !isOfReport();
  if (!isOfReport()) return;
  const kind = byID('groups-by').value;
  const words = byID('groups-only').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = groupsNow(kind).filter(({ name }) => {
    const cells = name.toLowerCase().split(' ');
    return words.every((word) => cells.some((cell) => isNamed(word, cell)));
  });
  setText(byID('groups-name'), kind === 'os' ? 'System' : 'Build');
  const over = `${windows[state.window][0]}. `;
  setText(byID('groups-text'), found.length === 0 ? `${over}No such request was judged.` :
    over + (kind === 'os' ? 'A system is what the client claims; “apple” is one of Apple’s systems.'
      : 'A build is signed by the device, unless it is “claimed”.') + (found.length > groupsMax ?
      ` The first ${groupsMax} of ${found.length} lines.` : ''));
  byID('groups').hidden = found.length === 0;
  keyed(byID('groups').tBodies[0], found.slice(0, groupsMax), ({ key }) => key, () =>
    make('tr', {}, make('th', { scope: 'row' }), make('td', { 'data-label': 'Rule' }),
      ...['Judged', 'Verified', 'Would be refused', 'Refused']
        .map((name) => make('td', { class: 'n', 'data-label': name })),
      make('td', { 'data-label': 'Reasons' })), updateGroup);
}

function updateGroup(row, { name, rule, verified, failed, refused, reasons }) {
  const judged = verified + failed;
  const would = Math.max(0, failed - refused);
  const part = (count) => count > 0 ? `${short(count)} · ${share(count, judged)}` : '0';
  const most = [...reasons].sort((a, b) => b[1] - a[1]);
  const told = most.slice(0, 3).map(([reason, count]) => `${reason} ${short(count)}`);
  [name, rule, short(judged), share(verified, judged), part(would), part(refused),
    told.join(', ') + (most.length > 3 ? ', …' : '')
  ].forEach((text, place) => setText(row.cells[place], text));
  row.cells[4].className = would > 0 ? 'n would' : 'n';
  row.cells[5].className = refused > 0 ? 'n refused' : 'n';
}

for (const name of ['groups-by', 'groups-only']) byID(name).addEventListener('input', showGroups);
