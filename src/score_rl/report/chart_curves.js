// Curves as SVG: values under the pointer, a zoom, a switch for each method and for the seeds.
// No library: two kinds of figures do not need one, and a page has to open in twenty years, without a network.
const MOST_WITH_SEEDS = 10; // methods: of more, seeds and intervals are shown on request

class Curves {
  constructor(figure, data) {
    this.data = data;
    this.hidden = new Set();
    this.seeds = data.series.length <= MOST_WITH_SEEDS;
    this.zoom = null;
    this.box = element(figure, "html:div", { class: "chart" });
    this.legend = element(this.box, "html:div", { class: "legend" });
    this.place = element(this.box, "html:div", { class: "canvas" });
    this.tip = element(this.box, "html:div", { class: "tip", role: "status" });
    this.tip.hidden = true;
    replaceStill(figure, this.box);
    this.makeLegend();
    this.draw();
    new ResizeObserver(() => { if (this.place.clientWidth !== this.width) this.draw(); }).observe(this.place);
  }

  makeLegend() {
    this.data.series.forEach((series, number) => {
      const button = element(this.legend, "html:button", { type: "button", "aria-pressed": "true" });
      const line = element(button, "svg", { width: 26, height: 10, "aria-hidden": "true" });
      element(line, "line", { x1: 1, x2: 25, y1: 5, y2: 5, stroke: series.colour, "stroke-width": 2.5,
        "stroke-dasharray": series.dash });
      element(button, "html:span", {}, series.label);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(number)) this.hidden.add(number);
        button.setAttribute("aria-pressed", String(!this.hidden.has(number)));
        this.draw();
      });
    });
    if (this.data.series.some((series) => series.mean && series.runs.length > 1)) {
      const button = element(this.legend, "html:button", { type: "button", "aria-pressed": String(this.seeds) }, "seeds");
      button.addEventListener("click", () => {
        this.seeds = !this.seeds;
        button.setAttribute("aria-pressed", String(this.seeds));
        this.draw();
      });
    }
    this.whole = element(this.legend, "html:button", { type: "button", class: "whole" }, "whole curve");
    this.whole.hidden = true;
    this.whole.addEventListener("click", () => { this.zoom = null; this.draw(); });
  }

  visible() { return this.data.series.filter((_, number) => !this.hidden.has(number)); }

  limits() {
    const all = this.data.series.flatMap((series) => [...series.runs, ...series.broken, series.mean || { x: [], y: [] }]);
    const steps = all.flatMap((curve) => curve.x);
    const [first, last] = this.zoom || [Math.min(...steps), Math.max(...steps)];
    const inside = [];
    for (const series of this.visible()) {
      const curves = this.seeds || !series.mean ? [...series.runs, ...series.broken] : [];
      for (const curve of [...curves, series.mean || { x: [], y: [] }]) {
        curve.x.forEach((step, place) => { if (step >= first && step <= last) inside.push(curve.y[place]); });
      }
    }
    const values = inside.map((value) => this.scaled(value)).filter(Number.isFinite);
    let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const room = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
    return { first, last: last > first ? last : first + 1, low: low - room, high: high + room };
  }

  scaled(value) { return this.data.logarithmic ? Math.log10(value) : value; }

  draw() {
    this.width = Math.max(240, this.place.clientWidth);
    this.height = Math.round(Math.min(420, Math.max(230, this.width * 0.5)));
    this.place.textContent = "";
    const view = this.limits();
    const inner = { width: this.width - MARGIN.left - MARGIN.right, height: this.height - MARGIN.top - MARGIN.bottom };
    const x = (step) => MARGIN.left + ((step - view.first) / (view.last - view.first)) * inner.width;
    const y = (value) => MARGIN.top + (1 - (this.scaled(value) - view.low) / (view.high - view.low)) * inner.height;
    const svg = element(this.place, "svg", { viewBox: `0 0 ${this.width} ${this.height}`, width: this.width,
      height: this.height, role: "img", "aria-label": this.data.title });
    const clip = `clip-${Math.random().toString(36).slice(2)}`;
    element(element(element(svg, "defs"), "clipPath", { id: clip }), "rect", { x: MARGIN.left, y: MARGIN.top,
      width: inner.width, height: inner.height });
    this.axes(svg, view, x, y, inner);
    const inside = element(svg, "g", { "clip-path": `url(#${clip})`, fill: "none" });
    const path = (curve) => curve.x.map((step, place) => `${place ? "L" : "M"}${x(step).toFixed(1)},${y(curve.y[place]).toFixed(1)}`).join("");
    for (const series of this.visible()) {
      if (series.mean && series.mean.low && this.seeds) {
        const upper = path({ x: series.mean.x, y: series.mean.high });
        const lower = path({ x: [...series.mean.x].reverse(), y: [...series.mean.low].reverse() }).replace("M", "L");
        element(inside, "path", { d: `${upper}${lower}Z`, fill: series.colour, opacity: 0.16 });
      }
      const alone = !series.mean;
      for (const run of (this.seeds && series.runs.length > 1) || alone ? series.runs : []) {
        element(inside, "path", { d: path(run), stroke: series.colour, "stroke-width": alone ? 1.6 : 0.8, opacity: alone ? 1 : 0.45,
          "stroke-dasharray": alone ? series.dash : "" });
      }
      for (const run of series.broken) {
        element(inside, "path", { d: path(run), stroke: series.colour, "stroke-width": 1, opacity: 0.7 });
        const end = [x(run.x[run.x.length - 1]), y(run.y[run.y.length - 1])];
        element(inside, "path", { d: `M${end[0] - 4},${end[1] - 4}l8,8m0,-8l-8,8`, stroke: series.colour, "stroke-width": 1.6 });
      }
      if (series.mean) {
        element(inside, "path", { d: path(series.mean), stroke: series.colour, "stroke-width": 2, "stroke-dasharray": series.dash });
        if (series.mean.x.length === 1) element(inside, "circle", { cx: x(series.mean.x[0]), cy: y(series.mean.y[0]), r: 4, fill: series.colour });
      }
    }
    this.known(svg, y, inner);
    this.listen(svg, view, x, inner);
    this.whole.hidden = this.zoom === null;
  }

  axes(svg, view, x, y, inner) {
    const bottom = MARGIN.top + inner.height;
    const down = ticks(view.low, view.high, Math.max(3, inner.height / 55));
    for (const tick of this.data.logarithmic ? down.filter(Number.isInteger) : down) {
      const value = this.data.logarithmic ? 10 ** tick : tick;
      element(svg, "line", { x1: MARGIN.left, x2: MARGIN.left + inner.width, y1: y(value), y2: y(value), class: "grid" });
      element(svg, "text", { x: MARGIN.left - 7, y: y(value) + 4, "text-anchor": "end" }, shown(value));
    }
    for (const tick of ticks(view.first, view.last, Math.max(2, inner.width / 90))) {
      element(svg, "line", { x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4, class: "mark" });
      element(svg, "text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, shown(tick / this.data.unit[0]));
    }
    element(svg, "line", { x1: MARGIN.left, x2: MARGIN.left + inner.width, y1: bottom, y2: bottom, class: "mark" });
    element(svg, "text", { x: MARGIN.left + inner.width / 2, y: this.height - 6, "text-anchor": "middle" }, this.data.unit[1]);
    element(svg, "text", { transform: `translate(12,${MARGIN.top + inner.height / 2}) rotate(-90)`, "text-anchor": "middle" }, this.data.quantity);
  }

  // The curves set the scale. A line outside it is named at the edge.
  known(svg, y, inner) {
    const bottom = MARGIN.top + inner.height;
    const taken = [];
    this.data.lines.forEach(({ label, value }) => {
      const at = y(value);
      const outside = at < MARGIN.top || at > bottom || !Number.isFinite(at);
      let where = outside ? (at < MARGIN.top ? MARGIN.top + 11 : bottom - 6) : at - 4;
      while (taken.some((other) => Math.abs(other - where) < 14)) where += at < MARGIN.top ? 14 : -14;
      taken.push(where);
      if (!outside) element(svg, "line", { x1: MARGIN.left, x2: MARGIN.left + inner.width, y1: at, y2: at, class: "known" });
      const arrow = outside ? (at < MARGIN.top ? " ↑" : " ↓") : "";
      element(svg, "text", { x: MARGIN.left + inner.width - 4, y: where, "text-anchor": "end", class: "known" },
        `${label} ${shown(value)}${arrow}`);
    });
  }

  listen(svg, view, x, inner) {
    const line = element(svg, "line", { y1: MARGIN.top, y2: MARGIN.top + inner.height, class: "pointer", visibility: "hidden" });
    const band = element(svg, "rect", { y: MARGIN.top, height: inner.height, class: "chosen", visibility: "hidden" });
    const step = (event) => {
      const at = Math.min(Math.max(event.clientX - svg.getBoundingClientRect().left, MARGIN.left), MARGIN.left + inner.width);
      return view.first + ((at - MARGIN.left) / inner.width) * (view.last - view.first);
    };
    let from = null;
    svg.addEventListener("pointermove", (event) => {
      const here = step(event);
      if (from !== null) {
        const [low, high] = [Math.min(from, here), Math.max(from, here)];
        band.setAttribute("x", x(low));
        band.setAttribute("width", x(high) - x(low));
        band.setAttribute("visibility", "visible");
      }
      this.tell(here, event, line, x);
    });
    svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") from = step(event); });
    svg.addEventListener("pointerup", (event) => {
      const here = step(event);
      if (from !== null && Math.abs(x(here) - x(from)) > 12) {
        this.zoom = [Math.min(from, here), Math.max(from, here)];
        this.draw();
      }
      from = null;
      band.setAttribute("visibility", "hidden");
    });
    svg.addEventListener("pointerleave", () => { from = null; this.tip.hidden = true; line.setAttribute("visibility", "hidden"); band.setAttribute("visibility", "hidden"); });
    svg.addEventListener("dblclick", () => { this.zoom = null; this.draw(); });
  }

  tell(wanted, event, line, x) {
    const rows = [];
    let at = null;
    for (const series of this.visible()) {
      const drawn = (series.mean ? [series.mean] : series.runs.length ? series.runs : series.broken).filter((curve) => curve.x.length);
      if (!drawn.length) continue;
      const places = drawn.map((curve) => nearest(curve.x, wanted));
      const [curve, place] = [drawn[0], places[0]];
      if (at === null || Math.abs(curve.x[place] - wanted) < Math.abs(at - wanted)) at = curve.x[place];
      const interval = series.mean && series.mean.low ? ` (${shown(series.mean.low[place])} to ${shown(series.mean.high[place])})` : "";
      rows.push([curve.y[place], series, `${drawn.map((each, number) => shown(each.y[places[number]])).join(", ")}${interval}`]);
    }
    if (at === null) return;
    line.setAttribute("x1", x(at));
    line.setAttribute("x2", x(at));
    line.setAttribute("visibility", "visible");
    this.tip.textContent = "";
    element(this.tip, "html:strong", {}, `${this.data.pointed[0]}${at.toLocaleString("en")}${this.data.pointed[1]}`);
    for (const [, series, text] of rows.sort((one, other) => other[0] - one[0])) {
      const row = element(this.tip, "html:div");
      element(row, "html:i").style.background = series.colour;
      element(row, "html:span", {}, `${series.label}: ${text}`);
    }
    showTip(this.tip, this.box, event);
  }
}
