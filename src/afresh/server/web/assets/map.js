// The map of a site: the start page in the centre, and a ring for each click away.

const panel = document.querySelector("[data-map]");
const canvas = document.getElementById("map");
const pen = canvas?.getContext("2d");
const info = document.getElementById("map-info");
const RING = 120;
const LEAST = 0.02, MOST = 12;

let nodes = [], byId = new Map(), links = [], ends = new Map();
let view = { x: 0, y: 0, zoom: 1 };
let wide = 0, high = 0, chosen = null, colours = {}, waiting = false;

// ---- layout

function place(root, first, last, ring) {
  // A page gets a share of its ring by its number of leaves. Iterative, since a chain of pages may be long.
  const open = [[root, first, last, ring]];
  while (open.length) {
    const [node, from, to, depth] = open.pop();
    const angle = (from + to) / 2;
    node.x = depth * RING * Math.cos(angle);
    node.y = depth * RING * Math.sin(angle);
    let at = from;
    for (const child of node.children) {
      const share = ((to - from) * child.leaves) / node.leaves;
      open.push([child, at, at + share, depth + 1]);
      at += share;
    }
  }
}

function arrange(data) {
  nodes = data.nodes.map((node) => ({ ...node, children: [], leaves: 0 }));
  byId = new Map(nodes.map((node) => [node.id, node]));
  // Files and lists have no start page: then the centre stays empty.
  const top = panel.dataset.kind === "web" ? nodes[0] : { children: [], leaves: 0 };
  for (const node of nodes) {
    if (node === top) continue;
    const parent = byId.get(node.parent);
    node.loose = !parent;
    (parent ?? top).children.push(node);
  }
  const order = [top];
  for (let at = 0; at < order.length; at += 1) order.push(...order[at].children);
  for (const node of order.reverse()) {
    node.leaves = node.children.reduce((sum, child) => sum + child.leaves, 0) || 1;
    node.size = 3 + 2 * Math.log1p(node.children.length);
  }
  canvas.dataset.lines = String(nodes.filter((node) => node !== top && !node.loose).length);
  place(top, -Math.PI / 2, 1.5 * Math.PI, 0);
  spread();
  links = data.links.map(([from, to]) => [byId.get(from), byId.get(to)]).filter(([a, b]) => a && b);
  ends = new Map();
  for (const [a, b] of links) {
    for (const end of [a, b]) ends.set(end, [...(ends.get(end) ?? []), [a, b]]);
  }
}

function spread() {
  // Move a crowded ring, and all further ones, outwards.
  const rings = [];
  for (const node of nodes) {
    const depth = Math.round(Math.hypot(node.x, node.y) / RING);
    (rings[depth] ??= []).push(node);
  }
  let radius = 0;
  rings.forEach((ring, depth) => {
    if (!depth) return;
    radius = Math.max(radius + RING, (ring.length * 11) / (2 * Math.PI));
    for (const node of ring) {
      const angle = Math.atan2(node.y, node.x);
      node.x = radius * Math.cos(angle);
      node.y = radius * Math.sin(angle);
    }
  });
}

// ---- drawing

function readColours() {
  colours = {};
  for (const swatch of panel.querySelectorAll(".swatch")) {
    colours[swatch.classList[1]] = getComputedStyle(swatch).backgroundColor;
  }
  const style = getComputedStyle(canvas);
  colours.ink = getComputedStyle(document.body).color;
  colours.ground = style.backgroundColor;
  colours.line = getComputedStyle(info).color;
}

const STATUS = { active: "good", ready_for_indexing: "good", redirect: "info", error: "bad" };

function colourOf(node) {
  if (document.getElementById("map-colour").value === "status") {
    return colours[node.doubtful ? "warn" : STATUS[node.status] ?? "plain"];
  }
  const rate = node.changes_per_month;
  if (rate === null) return colours.plain;
  return colours[rate === 0 ? "r0" : rate < 1 / 3 ? "r1" : rate < 1 ? "r2" : rate < 4.3 ? "r3" : "r4"];
}

const across = (node) => [node.x * view.zoom + view.x, node.y * view.zoom + view.y];
const radiusOf = (node) => Math.max(1.6, node.size * Math.min(1.6, Math.max(0.35, view.zoom)));

function lines(pairs, alpha, width) {
  pen.globalAlpha = alpha;
  pen.lineWidth = width;
  pen.strokeStyle = colours.line;
  pen.beginPath();
  for (const [a, b] of pairs) {
    pen.moveTo(...across(a));
    pen.lineTo(...across(b));
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

function draw() {
  waiting = false;
  const dots = window.devicePixelRatio || 1;
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, wide, high);
  lines(nodes.flatMap((node) => node.children.filter((child) => !child.loose).map((child) => [node, child])), nodes.length > 400 && view.zoom < 1 ? 0.1 : 0.35, 1);
  if (document.getElementById("map-links").checked) lines(links, 0.1, 0.7);
  if (chosen) lines(ends.get(chosen) ?? [], 0.8, 1.2);
  for (const node of nodes) {
    const [x, y] = across(node);
    if (x < -20 || y < -20 || x > wide + 20 || y > high + 20) continue;
    pen.fillStyle = colourOf(node);
    pen.beginPath();
    pen.arc(x, y, radiusOf(node), 0, 7);
    pen.fill();
  }
  names();
  if (chosen) ring(chosen);
}

function ring(node) {
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(...across(node), radiusOf(node) + 3, 0, 7);
  pen.stroke();
}

const nameOf = (node) => node.title || node.url;

function names() {
  // The nearest pages first; a name that would overlap another is left out.
  const taken = [];
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const crowded = nodes.length > 400 && view.zoom < 1;  // then only pages with children are named
  for (const node of chosen ? [chosen, ...nodes] : nodes) {
    const [x, y] = across(node);
    if (crowded && node !== chosen && !node.children.length) continue;
    if (x < 0 || y < 0 || x > wide || y > high) continue;
    const text = nameOf(node).slice(0, 40);
    const length = pen.measureText(text).width, gap = radiusOf(node) + 4;
    const outside = node.x < -1 ? x - gap - length : x + gap;
    const left = outside < 0 ? x + gap : outside + length > wide ? x - gap - length : outside;
    const box = [left, y - 8, left + length, y + 8];
    if (taken.length > (crowded ? 30 : 60)) break;
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
    taken.push(box);
    pen.strokeStyle = colours.ground;
    pen.lineWidth = 3;
    pen.strokeText(text, left, y);
    pen.fillStyle = colours.ink;
    pen.fillText(text, left, y);
  }
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(draw);
}

// ---- navigation

function fit() {
  const far = Math.max(60, ...nodes.map((node) => Math.hypot(node.x, node.y))) * 1.08;
  view = { x: wide / 2, y: high / 2, zoom: Math.min(2, Math.min(wide, high) / 2 / far) };
  note();
}

function zoom(times, x = wide / 2, y = high / 2) {
  const next = Math.min(MOST, Math.max(LEAST, view.zoom * times));
  const by = next / view.zoom;
  view = { x: x - (x - view.x) * by, y: y - (y - view.y) * by, zoom: next };
  note();
}

function move(x, y) {
  view = { ...view, x: view.x + x, y: view.y + y };
  note();
}

function note() {
  canvas.dataset.zoom = view.zoom.toFixed(3);
  redraw();
}

function resize() {
  const before = wide;
  wide = canvas.clientWidth;
  high = canvas.clientHeight;
  const dots = window.devicePixelRatio || 1;
  canvas.width = wide * dots;
  canvas.height = high * dots;
  if (!before) fit(); else redraw();
}

function under(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  let best = null, near = 12;
  for (const node of nodes) {
    const [left, top] = across(node);
    const far = Math.hypot(left - x, top - y) - radiusOf(node);
    if (far < near) [best, near] = [node, far];
  }
  return best;
}

function choose(node) {
  if (node === chosen) return;
  chosen = node;
  canvas.classList.toggle("over", Boolean(node));
  if (node) {
    const rate = node.changes_per_month;
    const often = rate === null ? "" : `, ${rate} changes per month`;
    info.textContent = `${nameOf(node)} (${node.status.replaceAll("_", " ")}, depth ${node.depth}${often}) ${node.url}`;
  }
  redraw();
}

function step(by) {
  const at = chosen ? nodes.indexOf(chosen) + by : 0;
  const node = nodes[(at + nodes.length) % nodes.length];
  choose(node);
  const [x, y] = across(node);
  if (x < 40 || y < 40 || x > wide - 40 || y > high - 40) move(wide / 2 - x, high / 2 - y);
}

const open = (node) => { if (node) location.assign(`/pages/${node.id}`); };

const KEYS = {
  "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: fit,
  ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
  n: () => step(1), p: () => step(-1), Enter: () => open(chosen),
};

function listen() {
  const held = new Map();
  let moved = 0;
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, event);
    if (held.size === 1) moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) { choose(under(event)); return; }
    const x = event.clientX - before.clientX, y = event.clientY - before.clientY;
    moved += Math.abs(x) + Math.abs(y);
    if (held.size === 2) pinch(held, event); else if (moved > 4) move(x, y);
    canvas.classList.toggle("moving", moved > 4);
    held.set(event.pointerId, event);
  });
  const lift = (event) => {
    const was = held.delete(event.pointerId);
    canvas.classList.remove("moving");
    if (was && event.type === "pointerup" && event.button === 0 && !held.size && moved <= 4) open(under(event));
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  for (const button of panel.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => ({ in: () => zoom(1.4), out: () => zoom(1 / 1.4), fit })[button.dataset.zoom]());
  }
  document.getElementById("map-colour").addEventListener("change", legend);
  document.getElementById("map-links").addEventListener("change", redraw);
}

function legend() {
  for (const kind of ["status", "rate"]) {
    document.getElementById(`map-${kind}`).hidden = document.getElementById("map-colour").value !== kind;
  }
  redraw();
}

function pinch(held, event) {
  const [other] = [...held.values()].filter((each) => each.pointerId !== event.pointerId);
  const before = held.get(event.pointerId);
  const apart = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
  const box = canvas.getBoundingClientRect();
  const x = (event.clientX + other.clientX) / 2 - box.left, y = (event.clientY + other.clientY) / 2 - box.top;
  zoom(apart(event, other) / apart(before, other), x, y);
}

function recolour() {
  readColours();
  redraw();
}

async function start() {
  const answer = await fetch(panel.dataset.map, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const data = await answer.json();
  arrange(data);
  readColours();
  new ResizeObserver(resize).observe(canvas);
  new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  listen();
  legend();  // a browser that goes back keeps the selection
  if (data.pages_left_out) {
    const number = (value) => value.toLocaleString("en");
    document.getElementById("map-size").textContent =
      `Showing the ${number(nodes.length)} nearest of ${number(data.pages)} pages.`;
  }
  canvas.dataset.ready = String(nodes.length);
}

if (panel) start().catch((error) => { info.textContent = `Could not draw the map: ${error.message}. See the list below.`; });
