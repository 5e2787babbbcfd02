// What changes something. The token is kept in this page's memory alone: it is gone with the page.

function showAccess() {
  const text = calls === 'open' ? 'You may change rules and servers: this address says who may.' :
    calls === 'token' && state.token ?
    'You may change rules and servers: you have shown the token.' :
    calls === 'token' ?
    'Read-only. The token (admin.token_file) unlocks changes and the last refusals.' :
    calls === 'lookup' && state.token ? 'Read-only. You have shown the token.' :
    calls === 'lookup' ?
    'Read-only. The token (admin.read_token_file) unlocks the last refusals.' :
    'Read-only. Changes need an admin listener that serves calls.';
  setText(byID('access-text'), state.lockText ? `${state.lockText} ${text}` : text);
  byID('access').className = mayChange() ? 'open' : '';
  byID('token-form').hidden = !takesToken || state.token !== '';
  byID('forget').hidden = !takesToken || state.token === '';
}

function lock(text) {
  [state.token, state.refusals, state.lockText] = ['', null, text];
  showAccess();
}

byID('token-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const input = byID('token');
  // A field takes visible ASCII only; what is no token need not be sent.
  const token = input.value.trim();
  input.value = '';
  if (!/^[\x21-\x7e]{32,256}$/.test(token)) return lock('This is not the token.');
  [state.token, state.lockText] = [token, ''];
  try { await askRefusals(); } catch { lock('No answer.'); }
  show();
  if (state.token) byID('forget').focus();
});
byID('forget').addEventListener('click', () => {
  lock('');
  show();
  byID('token').focus();
});

/** What the dialog is about: {title, now, send}, and a rule where there is a choice. */
let change = null;

function openDialog(next) {
  // The dialog shows this version of the fleet's orders: where there is a newer one, the gateway
  // refuses what may cost clients.
  change = { ...next, after: state.status?.fleet?.order };
  setText(byID('change-title'), next.title);
  setText(byID('change-now'), next.now);
  setText(byID('change-fault'), '');
  byID('change-choices').hidden = !next.rule;
  byID('why').value = '';
  byID('why').parentElement.hidden = Boolean(next.server);
  byID('change-do').className = next.isDangerous ? 'main danger' : 'main';
  byID('change-do').disabled = false;
  showThen();
  byID('change').showModal();
}

function openChange(id) {
  const rule = state.status.rules.find((rule) => rule.id === id);
  const percent = parseFloat(rule.rollout);
  byID('share').value = rule.mode === 'enforce' && Number.isFinite(percent) ? percent : 1;
  const value = rule.mode === 'observe' ? 'observe' : 'share';
  document.querySelector(`#change-choices [value=${value}]`).checked = true;
  const now = rule.mode + (rule.mode === 'enforce' ? ` ${rule.rollout}` : '');
  openDialog({
    rule,
    title: `Change ${id}`,
    now: `Now: ${now}, by ${rule.source}. File: ${rule.file}.`
      + (rule.ramp ? ` The rule: ${rule.ramp}.` : ''),
  });
}

byID('observe-all').addEventListener('click', (event) => {
  const all = event.target.dataset.to;
  const isEmergency = all === 'observe';
  openDialog({
    all,
    isDangerous: isEmergency,
    title: isEmergency ? 'Observe all' : 'Resume all',
    now: isEmergency ? 'Every rule that enforces only observes, at once, until “Resume all”. '
      + 'No request is refused by a rule.' : 'Each rule goes by its order or its file again.',
  });
});

function drain(server, action) {
  if (action === 'undrain') {
    change = { server, action };
    return send();
  }
  openDialog({
    server,
    action,
    isDangerous: true,
    title: `Drain ${server}`,
    now: 'It gets no new request, in all origins that have it; those under way end by '
      + 'themselves. A restart forgets it.',
  });
}

function wanted() {
  const to = document.querySelector('#change-choices :checked').value;
  return to === 'share' ? `${Number(byID('share').value)}%` : to;
}

/** What the choice would have refused in the last hour, as the command says it. */
async function showThen() {
  const place = byID('change-then');
  const asked = change.rule ? JSON.stringify({ rule: change.rule.id, to: wanted() })
    : change.all ? JSON.stringify({ all: change.all }) : '';
  if (asked === change.asked) return;
  change.asked = asked;
  place.hidden = true;
  byID('change-do').classList.toggle('danger', Boolean(change.isDangerous));
  // Half a number, or what refuses nobody.
  const mayRefuse = change.rule ? /^(file|[\d.]+%)$/.test(wanted()) : change.all === 'resume';
  if (!mayRefuse) return;
  const about = change;
  let answer = null;
  try {
    answer = await ask('rollout/forecast', { method: 'POST', body: asked });
  } catch { /* Nothing is known; the change can be made all the same. */ }
  if (change !== about || change.asked !== asked || answer?.status !== 200) return;
  const { lines, confirm, doubt, limit } = answer.content;
  const warning = doubt === 'few-requests' ? ['So few requests do not say whom this refuses.']
    : doubt === 'many-refused' && limit ? [`This is more than ${limit}.`] : [];
  setText(place, [...lines, ...warning].join('. '));
  place.hidden = lines.length === 0;
  byID('change-do').classList.toggle('danger', confirm === 'needed');
}

async function send() {
  const why = byID('why').value;
  const order = change.all ? { all: change.all, why, after: change.after }
    : change.rule ? { rule: change.rule.id, to: wanted(), why, after: change.after } : null;
  const [page, content] = order ? ['rollout/change', JSON.stringify(order)]
    : [`origins/${change.action}`, change.server];
  byID('change-do').disabled = true;
  try {
    const { status, content: answer } = await ask(page, { method: 'POST', body: content });
    if (status === 200) {
      byID('change').close();
      return round();
    }
    if (status === 401) lock('This is not the token.');
    setText(byID('change-fault'), [answer?.title ?? `The gateway answers ${status}.`, ...(answer
      ?.problems ?? [])].join(' '));
  } catch (error) {
    setText(byID('change-fault'),
      `No answer: ${error.message}. The change may have been made; look at the table.`);
  }
  byID('change-do').disabled = false;
  if (!byID('change').open) {
    state.lockText = byID('change-fault').textContent;
    showAccess();
  }
}

byID('change-form').addEventListener('submit', (event) => {
  event.preventDefault();
  send();
});
byID('change-form').addEventListener('input', (event) => {
  if (event.target.id === 'share') document.querySelector('#change-choices [value=share]')
    .checked = true;
  showThen();
});
byID('change-cancel').addEventListener('click', () => byID('change').close());

// The page's own switches.

const themes = ['auto', 'light', 'dark'];

function showTheme(name) {
  document.documentElement.dataset.theme = name;
  setText(byID('theme'), `Theme: ${name}`);
}

byID('theme').addEventListener('click', () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes
    .length];
  showTheme(next);
  try { localStorage.setItem('theme',
    next); } catch { /* The browser keeps nothing: the page is auto again. */ }
});
byID('pause').addEventListener('click', () => {
  state.paused = !state.paused;
  byID('pause').setAttribute('aria-pressed', String(state.paused));
  setText(byID('pause'), state.paused ? 'Go on' : 'Pause');
  if (state.paused) { clearTimeout(state.timer);
    show(); } else round();
});
byID('window').addEventListener('change', () => {
  state.window = byID('window').value;
  state.asked = 0;
  round();
});
byID('filter').addEventListener('input', showRules);
byID('of').addEventListener('change', () => {
  state.gateway = byID('of').value;
  [state.report, state.series, state.refusals, state.asked] = [null, null, null, 0];
  round();
});
byID('reason').addEventListener('change', showRefusals);
document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(state.timer);
  else if (!state.paused) round();
});

let theme = null;
try { theme = localStorage.getItem('theme'); } catch { /* As above. */ }
showTheme(themes.includes(theme) ? theme : 'auto');
show();
round();
