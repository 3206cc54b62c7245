// The table of jobs, kept up to date. Without this script the page shows the same when it is loaded again.
"use strict";
(() => {
  const PERIOD_MS = 2000;
  const rows = () => [...document.querySelectorAll("tr[data-job]")];

  const count = (number) => Math.round(number || 0).toLocaleString("en-US");

  function size(bytes) {
    const units = ["bytes", "KB", "MB", "GB", "TB"];
    let value = bytes || 0;
    let unit = 0;
    while (value >= 1000 && unit < units.length - 1) {
      value /= 1000;
      unit++;
    }
    return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
  }

  function set(row, name, text) {
    const cell = row.querySelector("." + name);
    if (cell && cell.textContent !== text) {
      cell.textContent = text;
    }
  }

  function show(job, row) {
    set(row, "state", job.state);
    set(row, "stored", count(job.stored));
    set(row, "waiting", count(job.waiting));
    set(row, "known", count(job.known));
    set(row, "received", size(job.received_bytes));
    set(row, "failed", count(job.failed));
    set(row, "whole", (job.ring || {}).text || "");
  }

  // A page that somebody is typing into is left as it is.
  const isTouched = () =>
    [...document.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue) ||
    ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement.tagName);

  async function look() {
    const answer = await fetch("/api/v1/jobs", { cache: "no-store" });
    if (!answer.ok) {
      return;
    }
    const jobs = new Map((await answer.json()).jobs.map((job) => [job.job, job]));
    const shown = new Set();
    for (const row of rows()) {
      const job = jobs.get(row.dataset.job);
      row.hidden = !job;
      shown.add(row.dataset.job);
      if (job) {
        show(job, row);
      }
    }
    if ([...jobs.keys()].some((name) => !shown.has(name)) && !isTouched()) {
      location.reload();
    }
  }

  setInterval(() => {
    if (!document.hidden) {
      look().catch(() => {}); // the node may be stopping; the next one tells
    }
  }, PERIOD_MS);
})();
