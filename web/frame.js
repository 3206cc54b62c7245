/*
 * frame.js - the archive's page around a replayed page: the banner above, the page in iframe#replay.
 *
 * The replayed page tells which capture it is (web/replay.js); nothing that it says is shown. Where it is another than
 * the banner's, because a link was followed, this page goes to that capture's own address, so that the banner always
 * comes from the server. Where the frame holds something that tells nothing, the banner says so.
 */
(function () {
  "use strict";

  const ANSWER_MS = 1000;
  const URL_LENGTH_MAX = 8192;
  const element = (id) => document.getElementById(id);
  let isFollowing = false;
  let loads = 0;
  let hasReported = false;
  let hasAnswered = false; // since the last load

  function withoutFragment(url) {
    return url.split("#", 1)[0];
  }

  /* The address of a capture, or null if the frame's words do not make one. */
  function addressOf({ url, time, fragment }) {
    if (typeof url !== "string" || typeof time !== "string" || url.length > URL_LENGTH_MAX) {
      return null;
    }
    if (!/^\d{14}$/.test(time) || !/^https?:\/\/[^\s]+$/i.test(url)) {
      return null;
    }
    const place = typeof fragment === "string" && /^#[^\s]{0,1024}$/.test(fragment) ? fragment : "";
    return `/web/${time}/${withoutFragment(url)}${place}`;
  }

  function hear(event) {
    const frame = element("replay");
    const banner = element("banner");
    const report = event.data;
    if (!frame || event.source !== frame.contentWindow || event.origin !== "null" || !report || report.mnemon !== 1) {
      return;
    }
    hasReported = hasAnswered = true;
    say("");
    const address = addressOf(report);
    const shown = addressOf({ url: banner.dataset.url, time: banner.dataset.time });
    if (address && withoutFragment(address) !== shown && !isFollowing) {
      isFollowing = true;
      location.replace(address);
    }
  }

  function say(text) {
    const notice = element("notice");
    if (notice && notice.textContent !== text) {
      notice.textContent = text;
    }
  }

  /*
   * After each load the page is asked what it is. What the server put there first may be silent, like an image.
   */
  function loaded() {
    const mayBeSilent = loads++ === 0 && !hasReported;
    hasAnswered = false;
    element("replay").contentWindow.postMessage({ mnemon: 1 }, "*");
    setTimeout(() => {
      if (!hasAnswered && !mayBeSilent && !isFollowing) {
        say("The frame shows something that the archive cannot name. It may not be what the banner says.");
      }
    }, ANSWER_MS);
  }

  // ---- the parts of the page: when they were captured ----

  function dayOf(timestamp) {
    const [, year, month, day] = /^(\d{4})(\d\d)(\d\d)/.exec(timestamp);
    const date = new Date(Date.UTC(year, month - 1, day));
    return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  }

  function timeOf(timestamp) {
    const [, hour, minute, second] = /^\d{8}(\d\d)(\d\d)(\d\d)/.exec(timestamp);
    return `${dayOf(timestamp)} ${hour}:${minute}:${second}`;
  }

  function summaryOf({ parts, oldest, newest, missing }) {
    const first = oldest && dayOf(oldest);
    const last = newest && dayOf(newest);
    const span = first === last ? `from ${first}` : `from ${first} to ${last}`;
    const held = parts.filter((part) => part.timestamp).length;
    const text = held === 0 ? "no parts" : `${held} part${held === 1 ? "" : "s"} ${first ? span : ""}`;
    return missing > 0 ? `${text}; ${missing} missing` : text;
  }

  function rowOf(part) {
    const row = document.createElement("li");
    const when = document.createElement("span");
    when.textContent = part.timestamp ? timeOf(part.timestamp) : "missing";
    const name = document.createElement(part.timestamp ? "a" : "span");
    name.textContent = part.url;
    if (part.timestamp && /^\d{14}$/.test(part.timestamp) && /^https?:/.test(part.url)) {
      name.href = `/web/${part.timestamp}/${part.url}`;
    }
    row.append(when, " ", name);
    return row;
  }

  async function showParts() {
    const box = element("parts");
    const { url, time } = element("banner").dataset;
    if (!box) {
      return;
    }
    const query = new URLSearchParams({ url, timestamp: time });
    const answer = await fetch(`/api/v1/parts?${query}`);
    if (!answer.ok) {
      return;
    }
    const report = await answer.json();
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = summaryOf(report);
    const list = document.createElement("ul");
    list.append(...report.parts.map(rowOf));
    details.append(summary, list);
    box.replaceChildren(details);
  }

  function start() {
    const frame = element("replay");
    frame.addEventListener("load", loaded);
    if (location.hash) {
      frame.src = frame.src.split("#", 1)[0] + location.hash;
    }
    showParts().catch(() => {}); // the banner is whole without them
  }

  window.addEventListener("message", hear);
  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();
