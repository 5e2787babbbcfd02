'use strict';
// Names that come from strangers (paths, hosts, names of keys) are shown as text: nothing here
// makes markup of a string, and the page's policy forbids it (Trusted Types).

const byID = (id) => document.getElementById(id);

/** Makes an element. Children are elements, or values that become text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' :
      value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined)
    .map((child) => child instanceof Node ? child : String(child)));
  return element;
}

function makeSVG(tag, attributes = {}, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Changes a text only where it differs, so that a screen reader is told of changes alone. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Has a parent show one element for each item, in their order. An element stays as long as its
 * item's key does, so that an update takes neither the focus nor an open entry away.
 */
function keyed(parent, items, keyOf, create, update) {
  const known = parent.known ?? (parent.known = new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, element] of known) {
    if (!wanted.has(key)) { element.remove();
      known.delete(key); }
  }
  const shown = new Set(known.values());
  let place = [...parent.children].find((child) => shown.has(child)) ?? null;
  for (const item of items) {
    const key = keyOf(item);
    let element = known.get(key);
    if (!element) known.set(key, element = create(item));
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
    update(element, item);
  }
}

/** A list of names and values. */
function describe(list, entries) {
  keyed(list, entries, ([name]) => name, ([name]) => {
    const entry = make('div', {}, make('dt', {}, name), make('dd'));
    return entry;
  }, (entry, [, value, className]) => {
    setText(entry.lastChild, String(value));
    entry.lastChild.className = className ?? '';
  });
}

function short(number) {
  if (!Number.isFinite(number)) return '–';
  const size = Math.abs(number);
  for (const [unit, name] of [
      [1e9, ' G'],
      [1e6, ' M'],
      [1e4, ' k']
    ]) {
    if (size >= unit) {
      const value = number / (unit === 1e4 ? 1e3 : unit);
      return value.toFixed(Math.abs(value) >= 100 ? 0 : 1) + name;
    }
  }
  if (Number.isInteger(number)) return number.toLocaleString('en');
  return number.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function share(part, whole) {
  if (!whole) return '–';
  const percent = 100 * part / whole;
  if (percent > 0 && percent < 0.01) return '< 0.01 %';
  if (percent < 100 && percent > 99.99) return '> 99.99 %';
  return percent.toFixed(percent === 0 || percent === 100 ? 0 : percent < 10 ? 2 : 1) + ' %';
}

function time(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  if (seconds === 0) return '0';
  if (seconds < 1e-3) return (seconds * 1e6).toFixed(0) + ' µs';
  if (seconds < 1) return (seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0) + ' ms';
  return seconds.toFixed(1) + ' s';
}

function span(seconds) {
  const total = Math.max(0, Math.round(seconds));
  const [d, h, m] = [Math.floor(total / 86400), Math.floor(total / 3600) % 24, Math.floor(total /
    60) % 60];
  if (d > 0) return `${d} d ${h} h`;
  if (h > 0) return `${h} h ${m} min`;
  return m > 0 ? `${m} min` : `${total} s`;
}

function clock(date) {
  return date.toLocaleTimeString('en-GB');
}

/** How long ago an ISO time was, by this computer's clock. */
function ago(text) {
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  return Number.isFinite(seconds) ? (seconds < 1 ? 'now' : span(seconds) + ' ago') : text;
}
