/**
 * A chart of one value or several over time: areas on top of each other, or lines.
 *
 * It can be read by keyboard: the arrow keys move the cursor, and the line below says the values.
 */
class Chart {
  /** series: [{name, label, className}]; format: of a value. */
  constructor(parent, title, series, { stacked, format }) {
    Object.assign(this, { title, series, stacked, format, points: [], marks: [], cursor: null });
    this.svg = makeSVG('svg', { class: 'chart', role: 'img', tabindex: '0' });
    this.readout = make('p', { class: 'legend' });
    parent.append(this.svg, this.readout);
    this.svg.addEventListener('pointermove', (event) => this.point(event));
    this.svg.addEventListener('pointerleave', () => this.move(null));
    this.svg.addEventListener('blur', () => this.move(null));
    this.svg.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 } [event.key];
      if (!step || this.points.length === 0) return;
      event.preventDefault();
      const last = this.points.length - 1;
      this.move(Math.min(last, Math.max(0, (this.cursor ?? last + (step < 0 ? 1 : 0)) +
        step)));
    });
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  /**
   * points: [{at: milliseconds, name: value, …}], the oldest first; marks: [{at: seconds, kind,
   * text}], of what may explain a step.
   */
  show(points, marks = []) {
    this.points = points;
    const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 0];
    this.marks = marks.filter(({ at }) => at * 1000 >= first && at * 1000 <= last + 60e3);
    if (this.cursor !== null && this.cursor >= points.length) this.cursor = null;
    this.draw();
  }

  point(event) {
    if (this.points.length < 2) return;
    const box = this.svg.getBoundingClientRect();
    const [first, last] = [this.points[0].at, this.points.at(-1).at];
    const part = (event.clientX - box.left - this.left) / Math.max(1, box.width - this.left - 4);
    const at = first + part * (last - first);
    let nearest = 0;
    this.points.forEach((point, place) => {
      if (Math.abs(point.at - at) < Math.abs(this.points[nearest].at - at)) nearest = place;
    });
    this.move(nearest);
  }

  move(cursor) {
    if (this.cursor === cursor) return;
    this.cursor = cursor;
    this.draw();
  }

  get left() { return 52; }

  draw() {
    const [width, height] = [this.svg.clientWidth || 600, this.svg.clientHeight || 180];
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    this.write();
    const points = this.points;
    if (points.length < 2) {
      const text = 'The chart begins when figures have been asked for twice.';
      this.svg.append(makeSVG('text', { x: width / 2, y: height / 2, 'text-anchor': 'middle' },
        text));
      return;
    }
    const [first, last] = [points[0].at, points.at(-1).at];
    const [top, bottom] = [8, height - 20];
    const x = (at) => this.left + (width - this.left - 4) * (at - first) / Math.max(1, last -
      first);
    const sum = (point) => this.series.reduce((all, { name }) => all + (point[name] ?? 0), 0);
    const high = Math.max(...points.map((point) => this.stacked ? sum(point) :
      Math.max(...this.series.map(({ name }) => point[name] || 0))));
    const scale = Chart.niceMax(high);
    const y = (value) => bottom - (bottom - top) * value / scale;
    for (const part of [0, 0.5, 1]) {
      const line = y(scale * part);
      this.svg.append(
        makeSVG('line', { class: 'grid', x1: this.left, x2: width - 4, y1: line, y2: line }),
        makeSVG('text', { x: this.left - 6, y: line + 4, 'text-anchor': 'end' }, this.format(
          scale * part)));
    }
    for (const [at, anchor] of [
        [first, 'start'],
        [last, 'end']
      ]) {
      this.svg.append(makeSVG('text', { x: x(at), y: height - 4, 'text-anchor': anchor }, clock(
        new Date(at))));
    }
    this.drawSeries(points, x, y);
    for (const { at, kind, text } of this.marks) {
      const line = x(Math.min(at * 1000, last));
      const mark = makeSVG('g', { class: `mark ${kind}` });
      mark.append(makeSVG('line', { x1: line, x2: line, y1: top, y2: bottom }),
        makeSVG('path', { d: `M${line - 4} ${top - 6}h8l-4 6Z` }),
        makeSVG('title', {}, `${clock(new Date(at * 1000))} ${kind}: ${text}`));
      this.svg.append(mark);
    }
    if (this.cursor !== null) {
      const line = x(points[this.cursor].at);
      this.svg.append(makeSVG('line', { class: 'cursor', x1: line, x2: line, y1: top,
        y2: bottom }));
    }
  }

  drawSeries(points, x, y) {
    const below = points.map(() => 0);
    for (const { name, className } of this.series) {
      const path = (values) => values.map((value, place) =>
        `${place ? 'L' : 'M'}${x(points[place].at).toFixed(1)} ${y(value).toFixed(1)}`).join('');
      if (this.stacked) {
        const base = below.slice();
        points.forEach((point, place) => { below[place] += point[name] ?? 0; });
        const back = base.map((value, place) =>
          `L${x(points[place].at).toFixed(1)} ${y(value).toFixed(1)}`).reverse().join('');
        this.svg.append(makeSVG('path', { class: `area ${className}`, d: path(below) + back +
            'Z' }));
      } else {
        this.svg.append(makeSVG('path', { class: `line ${className}`,
          d: Chart.lineOf(points.map((point) => [x(point.at), y(point[name])])) }));
      }
    }
  }

  /** The path of a line with gaps where there is no value. A value alone is a dot. */
  static lineOf(places) {
    let isDrawn = false;
    return places.map(([left, top], place) => {
      const [wasDrawn, next] = [isDrawn, places[place + 1]];
      isDrawn = Number.isFinite(top);
      if (!isDrawn) return '';
      const at = `${left.toFixed(1)} ${top.toFixed(1)}`;
      return wasDrawn ? `L${at}` : Number.isFinite(next?.[1]) ? `M${at}` : `M${at}h1`;
    }).join('');
  }

  /** The names and colours of the series, with the values at the cursor or now. */
  write() {
    const point = this.points[this.cursor ?? this.points.length - 1];
    const when = point ? (this.cursor === null ? 'now' : clock(new Date(point.at))) : '';
    const values = this.series.map(({ name, label, className }) => [label, className,
      point ? this.format(point[name] ?? NaN) : '–'
    ]);
    this.readout.replaceChildren(...values.map(([label, className, value]) =>
        make('span', {}, make('i', { class: className }), `${label} `, make('b', {}, value))),
      make('span', { class: 'when' }, when), ...this.nearMarks(point).map(({ at, kind, text }) =>
        make('span', { class: `mark ${kind}` },
          `${clock(new Date(at * 1000))} ${kind}: ${text}`)));
    this.svg.setAttribute('aria-label',
      `${this.title}, ${when}: ${values.map(([label, , value]) => `${label} ${value}`).join(', ')}`
      );
  }

  /** The marks at the cursor; without one, the last. */
  nearMarks(point) {
    if (this.cursor === null || !point) return this.marks.slice(-1);
    const step = (this.points.at(-1).at - this.points[0].at) / (this.points.length - 1) / 2;
    return this.marks.filter(({ at }) => Math.abs(at * 1000 - point.at) <= step).slice(-3);
  }

  static niceMax(value) {
    if (!(value > 0)) return 1;
    const unit = 10 ** Math.floor(Math.log10(value));
    return unit * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * unit >= value);
  }
}
