// What pages build while they run, with the URLs that they would use on the live web.
(function () {
  const box = document.getElementById("box");
  const loaded = (element) => new Promise((resolve, reject) => {
    element.onload = () => resolve("loaded");
    element.onerror = () => reject(new Error("not loaded: " + (element.src || element.href)));
  });
  const added = (element) => { box.append(element); return element; };

  wait("fetch", async () => (await (await fetch("/app/data.json")).json()).word);
  wait("fetchHeaders", async () => {
    const headers = { "X-Requested-With": "XMLHttpRequest", Accept: "application/json" };
    const answer = await fetch(new Request("data.json", { credentials: "include", mode: "same-origin", headers }));
    return [(await answer.json()).url, answer.url].join(" ");
  });
  wait("fetchFar", async () => (await (await fetch("{{other}}/cdn/far.json", { mode: "cors", credentials: "include" })).json()).word);
  wait("xhr", () => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", "/app/fragment.html");
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    request.withCredentials = true;
    request.onload = () => resolve(request.responseText);
    request.onerror = reject;
    request.send();
  }).then((text) => {
    const holder = added(document.createElement("div"));
    holder.innerHTML = text;
    return loaded(document.getElementById("fragment-image")).then(() => [
      document.getElementById("fragment-link").href,
      document.getElementById("fragment-link").getAttribute("href"),
    ].join(" "));
  }));
  wait("image", () => { const image = new Image(); image.src = "/app/new-image.gif"; return loaded(image).then(() => image.src); });
  wait("setAttribute", () => {
    const image = document.createElement("img");
    image.setAttribute("src", "{{other}}/cdn/attribute.gif");
    return loaded(image).then(() => image.getAttribute("src") + " " + image.src);
  });
  wait("srcset", () => { const image = new Image(); image.srcset = "/app/set.gif 1x, /app/set.gif 2x"; return loaded(image).then(() => image.currentSrc); });
  wait("adjacent", () => { box.insertAdjacentHTML("beforeend", '<img alt="" src="/app/adjacent.gif">'); return loaded(box.lastElementChild); });
  wait("contextual", () => {
    box.append(document.createRange().createContextualFragment('<img alt="" src="/app/contextual.gif">'));
    return loaded(box.lastElementChild);
  });
  wait("parser", () => {
    const parsed = new DOMParser().parseFromString('<img alt="" src="/app/parsed.gif">', "text/html");
    return loaded(added(document.importNode(parsed.querySelector("img"), true)));
  });
  wait("shadow", () => {
    const root = added(document.createElement("div")).attachShadow({ mode: "open" });
    root.innerHTML = '<img alt="" src="/app/shadow.gif">';
    return loaded(root.firstElementChild);
  });
  wait("scriptElement", () => { const script = document.createElement("script"); script.src = "/app/added.js"; return loaded(added(script)).then(() => window.isAdded); });
  wait("moduleElement", () => {
    const script = document.createElement("script");
    script.src = "/app/added-module.js";
    script.type = "module";
    return loaded(added(script)).then(() => window.addedModule);
  });
  wait("styleElement", () => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/app/added.css";
    return loaded(added(link)).then(() => getComputedStyle(box).borderTopWidth);
  });
  wait("backgrounds", async () => {
    const names = ["property", "text", "rule", "custom"];
    const boxes = names.map((name) => { const one = added(document.createElement("div")); one.id = "bg-" + name; one.textContent = name; return one; });
    boxes[0].style.backgroundImage = "url(/app/bg-property.gif)";
    boxes[1].style.cssText = "background: url('{{other}}/cdn/bg-text.gif')";
    boxes[3].style.setProperty("background-image", 'url("/app/bg-custom.gif")');
    const sheet = added(document.createElement("style")).sheet;
    sheet.insertRule("#bg-rule { background-image: url(/app/bg-rule.gif) }");
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    return names.length;
  });
  wait("worker", () => new Promise((resolve, reject) => {
    const worker = new Worker("/app/worker.js");
    worker.onmessage = (event) => resolve(event.data);
    worker.onerror = (event) => reject(new Error(event.message));
  }));
  wait("blobWorker", () => new Promise((resolve, reject) => {
    const blob = new Blob(['importScripts("{{other}}/cdn/worker-far.js"); postMessage(far);'], { type: "text/javascript" });
    const url = URL.createObjectURL(blob);
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    worker.onmessage = (event) => resolve(event.data);
    worker.onerror = (event) => reject(new Error(event.message));
  }));
  wait("message", () => new Promise((resolve) => {
    window.addEventListener("message", (event) => {
      const child = document.getElementById("child").contentWindow;
      if (event.data.hello) {
        child.postMessage({ for: "nobody" }, "http://nobody.example");
        child.postMessage({ question: 1 }, event.origin);
      } else {
        resolve([event.data.answer, event.data.origin, event.origin, event.source === child].join(" "));
      }
    });
    document.getElementById("child").contentWindow.postMessage({ ready: 1 }, "{{other}}");
  }));

  history.pushState({ n: 1 }, "", "/app/state?x=1#y");
  results.pushed = location.href;
  results.afterPush = new URL("deep", document.baseURI).href;
  history.replaceState(null, "", "{{plain}}/app/");
  results.replaced = location.pathname;

  const link = document.createElement("a");
  link.href = "../news.html?a=1#b";
  results.link = [link.href, link.host, link.pathname, link.search, link.hash, link.origin, String(link)].join(" ");
  link.pathname = "/other";
  results.linkChanged = link.href;

  localStorage.setItem("a", "1");
  sessionStorage.b = 2;
  results.storage = [localStorage.getItem("a"), localStorage.length, sessionStorage.getItem("b"), Object.keys(sessionStorage), localStorage.none === undefined].join(" ");
  document.cookie = "a=1; path=/";
  document.cookie = "b=2; max-age=100";
  document.cookie = "a=; max-age=0";
  results.cookie = document.cookie;
  results.beacon = navigator.sendBeacon("/beacon", "x");
  results.absent = ["serviceWorker" in navigator, typeof indexedDB, typeof caches].join(" ");
  results.opened = window.open("/news.html") === null;
  wait("socket", () => new Promise((resolve) => {
    const socket = new WebSocket("ws://" + location.host + "/socket");
    socket.onclose = () => resolve("closed " + socket.readyState);
  }));
  window.isFeaturesDone = true;
})();
