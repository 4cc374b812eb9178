// Numbers with their intervals as SVG, a line for each method, a block for each data set. Of fewer than three seeds the
// seeds stand there, and nothing else.
const ROW = 22;

class Dots {
  constructor(figure, data) {
    this.data = data;
    this.box = element(figure, "html:div", { class: "chart" });
    this.place = element(this.box, "html:div", { class: "canvas" });
    this.tip = element(this.box, "html:div", { class: "tip", role: "status" });
    this.tip.hidden = true;
    replaceStill(figure, this.box);
    this.draw();
    new ResizeObserver(() => { if (this.place.clientWidth !== this.width) this.draw(); }).observe(this.place);
  }

  // What was measured sets the scale, and its intervals, whole where there are no seeds. What else would widen it to
  // more than twice that ends at the edge: the intervals of few seeds, and what the paper prints.
  limits() {
    const rows = this.data.blocks.flatMap((block) => block.rows);
    const of = (numbers) => rows.flatMap(numbers).filter((value) => value !== null);
    const measured = of((row) => [row.value, ...row.seeds, ...(row.seeds.length ? [] : [row.low, row.high])]);
    if (this.data.zero) measured.push(0);
    let [low, high] = [Math.min(...measured), Math.max(...measured)];
    for (const others of [of((row) => [row.low, row.high]), of((row) => [row.paper])]) {
      const both = [Math.min(low, ...others), Math.max(high, ...others)];
      if (both[1] - both[0] <= 2 * (high - low)) [low, high] = both;
    }
    const room = 0.05 * (high - low) || 1;
    return [low - room, high + room];
  }

  draw() {
    this.width = Math.max(240, this.place.clientWidth);
    this.place.textContent = "";
    const named = this.data.blocks.filter((block) => block.name).length;
    const lines = this.data.blocks.reduce((sum, block) => sum + block.rows.length, 0) + 1.2 * named;
    const height = lines * ROW + 46;
    const svg = element(this.place, "svg", { viewBox: `0 0 ${this.width} ${height}`, width: this.width, height,
      role: "img", "aria-label": this.data.title });
    const left = this.labels(svg);
    const names = svg.querySelectorAll(".over");
    const [low, high] = this.limits();
    const x = (value) => left + ((value - low) / (high - low)) * (this.width - left - 12);
    const bottom = lines * ROW + 6;
    for (const tick of ticks(low, high, Math.max(3, (this.width - left) / 65))) {
      element(svg, "line", { x1: x(tick), x2: x(tick), y1: 4, y2: bottom, class: "grid" });
      element(svg, "text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, shown(tick));
    }
    if (this.data.zero) {
      element(svg, "line", { x1: x(0), x2: x(0), y1: 4, y2: bottom, class: "mark" });
      element(svg, "text", { x: x(0) + 5, y: 14, class: "known" }, this.data.zero);
    }
    element(svg, "text", { x: (left + this.width) / 2, y: bottom + 34, "text-anchor": "middle" }, this.data.quantity);
    names.forEach((name) => svg.appendChild(name)); // above the grid
    for (const [row, at] of this.places()) this.row(svg, row, at, x, left);
  }

  // Where each line stands, below the name of its block.
  places() {
    const found = [];
    let at = 4;
    for (const block of this.data.blocks) {
      if (block.name) at += 1.2 * ROW;
      for (const row of block.rows) {
        found.push([row, at + ROW / 2]);
        at += ROW;
      }
    }
    return found;
  }

  // The names at the left; returns where the picture begins.
  labels(svg) {
    const made = this.places().map(([row, at]) => element(svg, "text", { x: 0, y: at + 4 }, row.label));
    const most = this.width * 0.42;
    made.forEach((text) => {
      const whole = text.textContent;
      for (let end = whole.length - 1; text.getComputedTextLength() > most && end > 3; end--) text.textContent = `${whole.slice(0, end)}…`;
      if (text.textContent !== whole) element(text, "title", {}, whole);
    });
    let at = 4;
    for (const block of this.data.blocks) {
      if (block.name) element(svg, "text", { x: 0, y: at + 0.85 * ROW, "font-weight": 600, class: "over" }, block.name);
      at += (block.name ? 1.2 * ROW : 0) + block.rows.length * ROW;
    }
    return Math.min(most, Math.max(0, ...made.map((text) => text.getComputedTextLength()))) + 14;
  }

  row(svg, row, at, x, left) {
    const colour = row.colour;
    const inside = (value) => Math.min(Math.max(x(value), left), this.width - 2);
    if (row.low !== null) element(svg, "line", { x1: inside(row.low), x2: inside(row.high), y1: at, y2: at, stroke: colour,
      "stroke-width": 6, opacity: 0.35 });
    for (const seed of row.seeds) element(svg, "circle", { cx: x(seed), cy: at, r: row.value === null ? 4 : 2.2,
      fill: "none", stroke: colour, "stroke-width": row.value === null ? 1.8 : 0.9 });
    if (row.value !== null) element(svg, "circle", { cx: x(row.value), cy: at, r: 4.5, fill: colour });
    if (row.paper !== null) this.printed(svg, row.paper, at, x, left);
    const target = element(svg, "rect", { x: 0, y: at - ROW / 2, width: this.width, height: ROW, fill: "transparent" });
    target.addEventListener("pointermove", (event) => this.tell(row, event));
    target.addEventListener("pointerleave", () => { this.tip.hidden = true; });
  }

  // A diamond; an arrow with the number at the edge where it lies beyond.
  printed(svg, value, at, x, left) {
    const [where, right] = [x(value), this.width - 8];
    if (where >= left && where <= right) {
      element(svg, "path", { d: `M${where},${at - 5.5}l5.5,5.5l-5.5,5.5l-5.5,-5.5Z`, fill: "none", class: "paper" });
    } else {
      const above = where > right;
      element(svg, "text", { x: above ? right : left, y: at + 4, "text-anchor": above ? "end" : "start", class: "known" },
        above ? `◇ ${shown(value)} →` : `← ${shown(value)} ◇`);
    }
  }

  tell(row, event) {
    this.tip.textContent = "";
    element(this.tip, "html:strong", {}, row.label);
    const say = (text) => element(element(this.tip, "html:div"), "html:span", {}, text);
    if (row.value !== null) say(`${row.seeds.length ? "mean " : ""}${shown(row.value)}${row.low === null ? "" : `, ${this.data.level} % interval ${shown(row.low)} to ${shown(row.high)}`}`);
    if (row.seeds.length) say(`seeds: ${row.seeds.map(shown).join(", ")}`);
    if (row.paper !== null) say(`the paper prints ${shown(row.paper)}`);
    showTip(this.tip, this.box, event);
  }
}
