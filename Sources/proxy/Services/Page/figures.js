// What the gateway says, as the page counts it.

/** The three outcomes that charts and tables have. */
const outcomes = [
  { name: 'verified', label: 'verified', className: 'verified' },
  { name: 'would', label: 'would be refused', className: 'would' },
  { name: 'refused', label: 'refused', className: 'refused' },
];

const windows = { '5m': ['the last 5 minutes', 300], '1h': ['the last hour', 3600], '1d': [
    'the last day', 86400
  ] };

/** A rule's verdicts in /status: counts since the start of the gateway. */
function countsOf(rule) {
  const counts = { judged: 0, verified: 0, would: 0, refused: 0, reasons: new Map() };
  for (const { verdict, reason, enforced, count } of rule.verdicts) {
    // It is forwarded unjudged, whatever the rule does.
    if (reason === 'preflight') continue;
    counts.judged += count;
    if (verdict === 'pass') { counts.verified += count; continue; }
    const kind = enforced === 'true' ? 'refused' : 'would';
    counts[kind] += count;
    const told = counts.reasons.get(reason) ?? { would: 0, refused: 0 };
    told[kind] += count;
    counts.reasons.set(reason, told);
  }
  counts.p50 = rule.request_seconds?.count ? rule.request_seconds.p50 : NaN;
  counts.p99 = rule.request_seconds?.count ? rule.request_seconds.p99 : NaN;
  return counts;
}

/** The same of a window of /report, with what shares would refuse, and versions. */
function countsOfWindow(told) {
  const failed = told.missing + told.unsupported + told.invalid + told.errors;
  return {
    judged: told.requests - told.preflight,
    verified: told.verified,
    refused: told.refused,
    would: Math.max(0, failed - told.refused),
    // A report does not say of each reason what was observed; the rule's own share does.
    reasons: new Map(told.reasons.filter(({ reason }) => reason !== 'preflight')
      .map(({ reason, count }) => [reason,
        failed > 0 ? { would: count * (1 - told.refused / failed), refused: count * told
            .refused / failed } :
        { would: count, refused: 0 }
      ])),
    p50: told.latency.count ? told.latency.p50 : NaN,
    p99: told.latency.count ? told.latency.p99 : NaN,
    proofs: told.proofs,
    steps: told.steps,
    versions: told.versions,
    seconds: told.seconds,
    installs: told.installs,
  };
}

/** All of a snapshot that a rate is made of. */
function sampleOf(status) {
  const sample = {
    at: Date.now(),
    verified: 0,
    would: 0,
    refused: 0,
    requests: status.counters.requests_total,
    started: status.started_at,
    cpu: status.process?.cpu_seconds ?? 0,
    buckets: status.request_seconds_buckets
  };
  for (const rule of status.rules) {
    const counts = countsOf(rule);
    for (const { name } of outcomes) sample[name] += counts[name];
  }
  return sample;
}

/** Rates and percentiles between two samples; null when the gateway has started anew. */
function between(before, now) {
  const seconds = (now.at - before.at) / 1000;
  if (before.started !== now.started || seconds <= 0) return null;
  const point = { at: now.at, requests: (now.requests - before.requests) / seconds };
  for (const { name } of outcomes) point[name] = Math.max(0, now[name] - before[name]) / seconds;
  const counts = now.buckets.map(({ seconds: bound, count }, place) => [bound, count - (before
    .buckets[place]?.count ?? 0)]);
  point.p50 = quantile(counts, 0.5);
  point.p95 = quantile(counts, 0.95);
  point.p99 = quantile(counts, 0.99);
  return point;
}

/** Of cumulative counts, [[bound, count], …]: linear between the bounds, as Prometheus does. */
function quantile(counts, part) {
  const total = counts.at(-1)?.[1] ?? 0;
  if (total <= 0) return NaN;
  const rank = part * total;
  let [below, seen] = [0, 0];
  for (const [bound, count] of counts) {
    if (count >= rank) return below + (bound - below) * (count > seen ? (rank - seen) / (count -
      seen) : 1);
    [below, seen] = [bound, count];
  }
  return below;
}

/**
 * The points of a chart out of /report/series: all rules together. The last one is the newest slot,
 * over the part of it that has passed.
 */
function pointsOf(series, name) {
  const [, length] = windows[name];
  const step = { '5m': 10, '1h': 60, '1d': 900 } [name];
  const now = Date.parse(series.now) / 1000;
  const begin = Math.max(now - length, Date.parse(series.started_at) / 1000);
  const rows = series.all.series.find(({ seconds }) => seconds === step)?.rows ?? [];
  // The gateway's slots begin at any second, the same one for all of them.
  const offset = (rows.at(-1)?.[0] ?? 0) % step;
  const told = new Map(rows.map((row) => [Math.round((row[0] - offset) / step) * step + offset,
    row]));
  const points = [];
  const first = Math.ceil((begin - offset) / step) * step + offset;
  for (let at = first; at < now; at += step) {
    const row = told.get(at);
    const seconds = Math.min(step, now - at);
    // A slot that has just begun is no rate yet: one request would look like many.
    if (seconds < 2) break;
    const of = (name) => row?.[series.columns.indexOf(name)] ?? 0;
    // Where nothing was asked, nothing took any time.
    const timeOf = (name) => of(name) || NaN;
    const failed = ['missing', 'unsupported', 'invalid', 'errors'].reduce((all, name) => all +
      of(name), 0);
    points.push({
      at: at * 1000,
      verified: of('verified') / seconds,
      refused: of('refused') / seconds,
      would: Math.max(0, failed - of('refused')) / seconds,
      p50: timeOf('p50'), p95: timeOf('p95'), p99: timeOf('p99'),
    });
  }
  return points;
}
