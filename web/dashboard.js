// The dashboard, kept up to date: numbers from /api/v1/status, lines drawn from /api/v1/history.
"use strict";
(() => {
  const PERIOD_MS = 2000;
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 300;
  const HEIGHT = 60;

  function size(bytes) {
    const units = ["bytes", "KB", "MB", "GB", "TB"];
    let value = bytes;
    let unit = 0;
    while (value >= 1000 && unit < units.length - 1) {
      value /= 1000;
      unit++;
    }
    return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
  }

  function duration(seconds) {
    const pad = (number) => String(number).padStart(2, "0");
    const whole = Math.floor(seconds);
    const rest = `${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}`;
    return whole >= 3600 ? `${Math.floor(whole / 3600)}:${rest}` : rest;
  }

  const units = {
    count: (value) => Math.round(value).toLocaleString("en-US"),
    size,
    rate: (value) => `${value.toFixed(1)}/s`,
    "size-rate": (value) => `${size(value)}/s`,
    milliseconds: (value) => `${value.toFixed(1)} ms`,
    percent: (value) => `${value.toFixed(0)} %`,
    seconds: duration,
    text: (value) => value,
  };

  const member = (object, path) => path.split(".").reduce((at, name) => (at ? at[name] : undefined), object);

  function element(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    return made;
  }

  // A line over a soft area, from the oldest to the newest; its top is the largest value of the window.
  function draw(figure, values, step) {
    const [name, unit, ...words] = figure.dataset.series.split(" ");
    const label = words.join(" ");
    const top = Math.max(...values, 1e-9);
    const last = values.length ? values[values.length - 1] : 0;
    const x = (index) => (values.length > 1 ? (index * WIDTH) / (values.length - 1) : 0);
    const y = (value) => HEIGHT - 2 - (value / top) * (HEIGHT - 4);
    const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
    const minutes = Math.max(1, Math.round((values.length * step) / 60));
    const svg = element("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: "100%",
      height: HEIGHT,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${label}, the last ${minutes} minutes: now ${units[unit](last)}, at most ${units[unit](Math.max(...values, 0))}`,
      class: "chart line",
    });
    svg.style.color = "var(--accent)";
    if (points.length > 1) {
      svg.append(
        element("polygon", { points: `0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`, fill: "currentColor", opacity: "0.15" }),
        element("polyline", { points: points.join(" "), fill: "none", stroke: "currentColor", "stroke-width": "1.5", "vector-effect": "non-scaling-stroke" }),
      );
    }
    const caption = document.createElement("figcaption");
    caption.className = "quiet";
    caption.textContent = `${label}: ${units[unit](last)}, at most ${units[unit](Math.max(...values, 0))}`;
    figure.replaceChildren(caption, svg);
    figure.hidden = false;
    figure.dataset.name = name;
  }

  function showStatus(status) {
    for (const place of document.querySelectorAll("[data-path]")) {
      const value = member(status, place.dataset.path);
      if (value !== undefined) {
        place.textContent = units[place.dataset.unit](value);
      }
    }
    const list = document.getElementById("slow");
    const texts = status.slow.length ? status.slow.map((item) => item.text) : ["Nothing is held up."];
    const shown = [...list.children].map((item) => item.textContent.trim());
    if (texts.join("\n") !== shown.join("\n")) {
      list.replaceChildren(
        ...texts.map((text) => {
          const item = document.createElement("li");
          item.textContent = text;
          return item;
        }),
      );
    }
  }

  function showHistory(history) {
    for (const figure of document.querySelectorAll("figure[data-series]")) {
      draw(figure, history.series[figure.dataset.series.split(" ")[0]] || [], history.step_seconds);
    }
  }

  async function get(path) {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) {
      throw new Error(path);
    }
    return answer.json();
  }

  async function look() {
    const [status, history] = await Promise.all([get("/api/v1/status"), get("/api/v1/history")]);
    showStatus(status);
    showHistory(history);
  }

  const lookQuietly = () => look().catch(() => {}); // the node may be stopping; the next one tells
  lookQuietly();
  setInterval(() => {
    if (!document.hidden) {
      lookQuietly();
    }
  }, PERIOD_MS);
})();
