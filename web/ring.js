// The ring on the dashboard: a circle with this node's places and arcs, its neighbours and fingers, what the nodes do together, the crowd and the groups, kept up to date.
"use strict";
(() => {
  const PERIOD_MS = 1000;
  const TOGETHER_PERIOD_MS = 3000;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 640;
  const HEIGHT = 360;
  const X = WIDTH / 2;
  const Y = HEIGHT / 2;
  const RADIUS = 130;
  const LINE = 15; // between two labels
  const LABELS_MAX = 40; // more do not fit beside the circle
  const LABEL_SIZE_MAX = 26; // characters; the whole is in the title
  const GAP = 14; // between the circle and its labels
  const MOVED = 6; // a label so far from its dot gets a line to it

  const figure = document.getElementById("ring-figure");
  const text = document.getElementById("ring-text");
  const table = document.getElementById("ring-neighbours");
  const list = document.getElementById("ring-complaints");
  const live = ["ring-together", "crowd-live", "groups-live", "mirrors-live"].map((id) => document.getElementById(id)).filter((section) => section);

  function element(name, attributes, content) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    if (content !== undefined) {
      made.textContent = content;
    }
    return made;
  }

  // An ID of 32 hexadecimal digits as a part of the circle, 0 at the top, clockwise.
  const part = (id) => parseInt(id.slice(0, 12), 16) / 2 ** 48;

  function point(fraction, radius) {
    const angle = fraction * 2 * Math.PI - Math.PI / 2;
    return [X + radius * Math.cos(angle), Y + radius * Math.sin(angle)].map((value) => value.toFixed(2));
  }

  function arc(from, to) {
    const way = (to - from + 1) % 1;
    if (way === 0) {
      return element("circle", { cx: X, cy: Y, r: RADIUS, class: "arc" });
    }
    const [x1, y1] = point(from, RADIUS);
    const [x2, y2] = point(to, RADIUS);
    return element("path", { d: `M ${x1} ${y1} A ${RADIUS} ${RADIUS} 0 ${way > 0.5 ? 1 : 0} 1 ${x2} ${y2}`, class: "arc" });
  }

  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "ring" });
  const arcs = element("g", {});
  const lines = element("g", {});
  const dots = element("g", {});
  svg.append(element("circle", { cx: X, cy: Y, r: RADIUS, class: "circle" }), lines, arcs, dots);

  // One group per position: a node that comes fades in, one that goes fades out.
  const groups = new Map();

  const shorten = (label) => (label.length > LABEL_SIZE_MAX ? `${label.slice(0, 14)}…${label.slice(-11)}` : label);

  // Title, line to the label, dot, label.
  function makeGroup(place) {
    const fraction = part(place.id);
    const [x, y] = point(fraction, RADIUS);
    const group = element("g", { class: "new" });
    group.append(
      element("title", {}),
      element("line", { x1: x, y1: y, x2: x, y2: y, class: "leader" }),
      element("circle", { cx: x, cy: y }),
      element("text", { x, y, "dominant-baseline": "middle", "text-anchor": fraction < 0.5 ? "start" : "end" }),
    );
    requestAnimationFrame(() => requestAnimationFrame(() => group.classList.remove("new")));
    return group;
  }

  // Without a label: one of many, small.
  function mark(place, kind, label, title) {
    let group = groups.get(place.id);
    if (!group) {
      group = makeGroup(place);
      groups.set(place.id, group);
    }
    dots.append(group); // what is drawn later lies above
    const [name, , dot, words] = group.children;
    group.classList.remove("gone");
    name.textContent = `${title}\n${place.id}`;
    dot.setAttribute("class", kind);
    dot.setAttribute("r", label === "" ? 3 : 6);
    words.textContent = shorten(label);
  }

  function forget(shown) {
    for (const [id, group] of groups) {
      if (!shown.has(id)) {
        group.classList.add("gone");
        groups.delete(id);
        setTimeout(() => group.remove(), 700);
      }
    }
  }

  // Down one side: each below the one before, and if that leads too far, all of them a bit up again.
  function heights(wanted) {
    const made = [];
    wanted.forEach((y, index) => made.push(index === 0 ? Math.max(y, LINE / 2) : Math.max(y, made[index - 1] + LINE)));
    for (let index = made.length - 1, lowest = HEIGHT - LINE / 2; index >= 0 && made[index] > lowest; index--, lowest -= LINE) {
      made[index] = lowest;
    }
    return made;
  }

  // Labels of one side, none over another, all of them outside the circle.
  function spread(side) {
    const labelled = [...groups].filter(([id, group]) => part(id) < 0.5 === side && group.lastElementChild.textContent !== "");
    labelled.sort(([a], [b]) => (part(a) < part(b) === side ? -1 : 1));
    const wanted = labelled.map(([id]) => Number(point(part(id), RADIUS + GAP)[1]));
    heights(wanted).forEach((y, index) => {
      const group = labelled[index][1];
      const words = group.lastElementChild;
      const line = group.children[1];
      const way = Math.sqrt(Math.max((RADIUS + GAP) ** 2 - (y - Y) ** 2, GAP ** 2));
      const x = side ? X + way : X - way;
      const isMoved = Math.abs(y - wanted[index]) > MOVED;
      words.setAttribute("x", x);
      words.setAttribute("y", y);
      line.setAttribute("x2", isMoved ? x + (side ? -3 : 3) : line.getAttribute("x1"));
      line.setAttribute("y2", isMoved ? y : line.getAttribute("y1"));
    });
  }

  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function draw(ring) {
    const places = ring.places || [];
    const neighbours = ring.neighbours || [];
    const fingers = ring.fingers || [];
    const shown = new Set();
    arcs.replaceChildren(...places.filter((place) => place.from).map((place) => arc(part(place.from), part(place.id))));
    lines.replaceChildren(
      ...fingers.filter(() => places.length > 0).map((finger) => {
        const [x1, y1] = point(part(places[0].id), RADIUS);
        const [x2, y2] = point(part(finger.id), RADIUS);
        return element("line", { x1, y1, x2, y2, class: "finger" });
      }),
    );
    const talked = new Map([...fingers, ...neighbours].map((place) => [place.id, place]));
    for (const other of (ring.others || []).filter((place) => !talked.has(place.id))) {
      shown.add(other.id);
      mark(other, "other far", "", other.address);
    }
    for (const place of talked.values()) {
      shown.add(place.id);
      mark(place, place.misses > 0 ? "other silent" : "other", talked.size <= LABELS_MAX ? place.address : "", place.address);
    }
    for (const place of places) {
      const label = `this node, ${percent(place.share)}`;
      shown.add(place.id);
      mark(place, "own", label, label);
    }
    forget(shown);
    spread(true);
    spread(false);
    const share = places.reduce((sum, place) => sum + place.share, 0);
    svg.setAttribute(
      "aria-label",
      `The ring: about ${ring.estimated_size} places; this node is responsible for ${percent(share)}; its neighbours are listed below`,
    );
    if (figure.hidden) {
      figure.append(svg);
      figure.hidden = false;
    }
  }

  function row(neighbour) {
    const made = document.createElement("tr");
    const rtt = neighbour.rtt_milliseconds === null ? "" : `${neighbour.rtt_milliseconds.toFixed(2)} ms`;
    const cells = [["", neighbour.address], ["", neighbour.version], ["key", `${neighbour.id.slice(0, 8)}…`], ["", neighbour.role], ["number", rtt]];
    for (const [name, content] of cells) {
      const cell = document.createElement("td");
      cell.className = name;
      cell.textContent = content;
      made.append(cell);
    }
    return made;
  }

  function item(complaint) {
    const made = document.createElement("li");
    made.textContent = complaint.count > 1 ? `${complaint.text} (${complaint.count} times)` : complaint.text;
    return made;
  }

  async function look() {
    const answer = await fetch("/api/v1/ring", { cache: "no-store" });
    if (!answer.ok) {
      return;
    }
    const ring = await answer.json();
    text.textContent = ring.text;
    table.replaceChildren(...(ring.neighbours || []).map(row));
    list.replaceChildren(...(ring.complaints || []).map(item));
    draw(ring);
  }

  // What the nodes do together is written by the node alone: the sections of the page as they are now.
  async function lookTogether() {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) {
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const section of live) {
      const now = page.getElementById(section.id);
      if (now && now.innerHTML !== section.innerHTML && !isUsed(section)) {
        section.replaceChildren(...now.childNodes);
      }
    }
  }

  // Somebody marks its text, or scrolls a table by the keyboard.
  function isUsed(section) {
    const selection = getSelection();
    return section.contains(document.activeElement) || (!selection.isCollapsed && selection.containsNode(section, true));
  }

  // Again and again while the page is seen, each after the answer to the one before.
  function repeat(work, period) {
    const next = () => setTimeout(() => (document.hidden ? next() : work().catch(() => {}).finally(next)), period);
    work().catch(() => {}).finally(next); // the node may be stopping; the next one tells
  }

  if (figure) {
    repeat(look, PERIOD_MS); // else in no ring, but in a group
  }
  repeat(lookTogether, TOGETHER_PERIOD_MS);
})();
