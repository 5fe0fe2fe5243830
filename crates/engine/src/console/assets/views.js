// What the page is made of: texts for figures, tables that change in place, small charts.
// Nothing here asks the server or keeps state.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Writes a text where it is another one: readers of screens are told of changes only. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Texts

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const whole = (value) => WHOLE.format(value);
export const short = (value) => (value < 10_000 ? WHOLE.format(value) : SHORT.format(value));
export const rate = (value) => (value > 0 && value < 9.95 ? value.toFixed(1) : short(value));
export const percent = (part, all) => (all > 0 ? `${((100 * part) / all).toFixed(1)} %` : "–");

export function bytes(value) {
  if (value === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(value, 1)) / 10));
  const scaled = value / 1024 ** at;
  return `${scaled < 10 && at > 0 ? scaled.toFixed(1) : WHOLE.format(scaled)} ${units[at]}`;
}

export function duration(micros) {
  if (micros >= 1e6) return `${(micros / 1e6).toFixed(micros < 1e7 ? 1 : 0)} s`;
  if (micros >= 1e3) return `${(micros / 1e3).toFixed(micros < 1e4 ? 1 : 0)} ms`;
  return `${Math.round(micros)} µs`;
}

export function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [unit, size] = units[at];
  const rest = units[at + 1] && Math.floor((seconds % size) / units[at + 1][1]);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${units[at + 1][0]}` : ""}`;
}

export const clock = (millis) => new Date(millis).toLocaleTimeString("en-GB");

// Tables

/**
 * A table whose rows change in place, so that neither focus nor selection is lost. A column has a
 * name, a function from a row to its text, and a class; one with `make` makes its cell once.
 */
export class Table {
  constructor(place, caption, columns, none, keyOf) {
    Object.assign(this, { place, columns, keyOf, rows: new Map() });
    this.none = el("p", { class: "none" }, none);
    this.body = el("tbody");
    const heads = columns.map(({ name, style = "" }) =>
      el("th", { scope: "col", class: style }, name || el("span", { class: "unseen" }, "Actions")));
    this.scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), this.body));
    place.replaceChildren(this.none, this.scroll);
  }

  update(all) {
    this.none.hidden = all.length > 0;
    this.scroll.hidden = all.length === 0;
    const left = new Map(this.rows);
    all.forEach((item, at) => {
      const key = this.keyOf(item);
      left.delete(key);
      const row = this.rows.get(key) ?? this.add(key, item);
      this.fill(row, item);
      if (this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] ?? null);
    });
    for (const [key, row] of left) {
      row.remove();
      this.rows.delete(key);
    }
  }

  add(key, item) {
    const cells = this.columns.map(({ make, style = "" }, at) =>
      el(at === 0 ? "th" : "td", { class: style, ...(at === 0 && { scope: "row" }) },
        ...(make ? [make(item)] : [])));
    const row = el("tr", {}, ...cells);
    this.rows.set(key, row);
    return row;
  }

  fill(row, item) {
    this.columns.forEach(({ text, mood, style = "" }, at) => {
      const cell = row.children[at];
      if (text) write(cell, text(item));
      if (mood) cell.className = `${style} ${mood(item)}`;
    });
  }
}

// Charts

const WIDTH = 600;

const points = (values, top, height) =>
  values.map((value, at) => [(at / (values.length - 1)) * WIDTH, height - (value / top) * height]);

const path = (all) => all.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** A line without axes; its label says what it shows. */
export function spark(values, label) {
  const svg = shape("svg", { class: "spark", viewBox: `0 0 ${WIDTH} 26`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  if (values.length > 1) {
    const top = Math.max(...values, 1e-9);
    svg.append(shape("path", { d: path(points(values, top, 25)) }));
  }
  return svg;
}

/** Areas on top of one another, each with the class of its name. */
export function stack(series, top, label) {
  const height = 150;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  for (const part of [0.25, 0.5, 0.75, 1]) {
    const y = height * part;
    svg.append(shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y }));
  }
  const count = series[0]?.values.length ?? 0;
  if (count < 2) return svg;
  let below = new Array(count).fill(0);
  for (const { name, values } of series) {
    const sum = values.map((value, at) => value + below[at]);
    const edge = [...points(sum, top, height), ...points(below, top, height).reverse()];
    svg.append(shape("path", { class: `area ${name}`, d: `${path(edge)}Z` }));
    below = sum;
  }
  return svg;
}

/** A key of a legend. */
export const key = (name) =>
  shape("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, shape("rect", { class: name, width: 10, height: 10, rx: 2 }));

/** Rows of a name, a bar and a text. */
export function bars(rows) {
  const most = Math.max(...rows.map(({ value }) => value), 1);
  return el("dl", { class: "bars" }, ...rows.flatMap(({ name, value, text, style = "h1" }) => {
    const bar = shape("svg", { viewBox: "0 0 100 9", preserveAspectRatio: "none", "aria-hidden": "true" },
      shape("rect", { class: "track", width: 100, height: 9, rx: 1 }),
      shape("rect", { class: style, width: ((100 * value) / most).toFixed(2), height: 9, rx: 1 }));
    return [el("dt", {}, name), el("dd", {}, bar), el("dd", { class: "count" }, text)];
  }));
}
