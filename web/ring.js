// The ring on the dashboard: a circle with this node's places and arcs, its neighbours and fingers, kept up to date.
"use strict";
(() => {
  const PERIOD_MS = 1000;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 640;
  const HEIGHT = 360;
  const X = WIDTH / 2;
  const Y = HEIGHT / 2;
  const RADIUS = 130;
  const LINE = 15; // between two labels
  const LABELS_MAX = 24; // with more nodes they would cover each other

  const figure = document.getElementById("ring-figure");
  const text = document.getElementById("ring-text");
  const table = document.getElementById("ring-neighbours");
  const list = document.getElementById("ring-complaints");

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

  // One group per place; who comes fades in, who goes fades out.
  const groups = new Map();

  function mark(place, kind, label) {
    let group = groups.get(place.id);
    if (!group) {
      const fraction = part(place.id);
      const [x, y] = point(fraction, RADIUS);
      const [labelX, labelY] = point(fraction, RADIUS + 14);
      group = element("g", { class: "new" });
      group.append(
        element("title", {}),
        element("circle", { cx: x, cy: y, r: 7 }),
        element("text", { x: labelX, y: labelY, "dominant-baseline": "middle", "text-anchor": fraction < 0.5 ? "start" : "end" }),
      );
      dots.append(group);
      groups.set(place.id, group);
      requestAnimationFrame(() => requestAnimationFrame(() => group.classList.remove("new")));
    }
    const [title, dot, words] = group.children;
    group.classList.remove("gone");
    title.textContent = `${label}\n${place.id}`;
    dot.setAttribute("class", kind);
    words.textContent = groups.size <= LABELS_MAX ? label : "";
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

  // Labels of one side below each other, none over another.
  function spread(side) {
    const labels = [...groups.keys()].filter((id) => part(id) < 0.5 === side).sort((a, b) => (part(a) < part(b) === side ? -1 : 1));
    let free = -Infinity;
    for (const id of labels) {
      const y = Math.max(Number(point(part(id), RADIUS + 14)[1]), free);
      groups.get(id).lastElementChild.setAttribute("y", y);
      free = y + LINE;
    }
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
    for (const finger of fingers) {
      shown.add(finger.id);
      mark(finger, finger.misses > 0 ? "other silent" : "other", finger.address);
    }
    for (const neighbour of neighbours) {
      shown.add(neighbour.id);
      mark(neighbour, neighbour.misses > 0 ? "other silent" : "other", neighbour.address);
    }
    for (const place of places) {
      shown.add(place.id);
      mark(place, "own", `this node, ${percent(place.share)}`);
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
    const cells = [["", neighbour.address], ["key", `${neighbour.id.slice(0, 8)}…`], ["", neighbour.role], ["number", rtt]];
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

  const lookQuietly = () => look().catch(() => {}); // the node may be stopping; the next one tells
  lookQuietly();
  setInterval(() => {
    if (!document.hidden) {
      lookQuietly();
    }
  }, PERIOD_MS);
})();
