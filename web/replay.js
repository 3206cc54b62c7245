/*
 * replay.js - runs first in every replayed page, so that URLs made by its scripts lead into the archive.
 *
 *     <script src="/static/replay.js" data-url="http://example.org/" data-time="20260102…" data-prefix="/web/…/">
 *
 * The server has rewritten what stands in the page; this is for what the page builds while it runs. The page is kept in
 * by the sandbox and the Content-Security-Policy of its response (an opaque origin, no live web); nothing here can do
 * what its own scripts could not. Only what no policy forbids is taken away here: WebRTC, and early connections.
 *
 * Every change is a Proxy around the browser's own function: if a shim fails, the call goes through as it was.
 *
 *     mnemonReplay()      URLs, requests, workers, location; its text is also the first thing that runs in workers
 *     replayDocument()    elements, markup, styles, frames, storage
 */
(function () {
"use strict";

function mnemonReplay(scope, page) {
  const { archive, prefix, time, url: pageUrl } = page;
  const { apply, construct } = Reflect;
  const inWindow = typeof scope.document === "object";
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const root = prefix.replace(/~[^/]*\/$/, ""); // the prefix may end with a key, which other replay URLs lack
  const REPLAY = new RegExp(`^(?:${escaped(archive)})?${escaped(root)}(?:~[^/]*/)?\\d{1,14}(?:~[0-9a-f]{16})?([a-z]{2,3}_)?/+(.+)$`, "s");
  const OTHER_SCHEME = /^(?!https?:|wss?:)[a-z][a-z0-9+.-]*:/i;
  const baseGetter = inWindow && Object.getOwnPropertyDescriptor(scope.Node.prototype, "baseURI").get;

  // ---- URLs ----

  /* What the page knows as its URL, of what the browser knows. */
  function original(text) {
    const match = REPLAY.exec(text);
    if (match) {
      return match[2].replace(/^(https?|wss?):\/*/i, "$1://");
    }
    // Made from the archive's host by the browser: "/x" of the page.
    return text.startsWith(archive + "/") ? new URL(text.slice(archive.length), pageUrl).href : text;
  }

  function base() {
    const text = inWindow ? baseGetter.call(scope.document) : pageUrl;
    return /^https?:/.test(text) ? original(text) : pageUrl;
  }

  /* The replay URL of a reference in the page; itself if there is none. */
  function replay(value, modifier) {
    const text = String(value).trim();
    if (text === "" || text[0] === "#" || OTHER_SCHEME.test(text) || REPLAY.test(text)) {
      return value;
    }
    if (/^[^?]*\/static\/replay\.js/.test(text)) {
      return value; // of a frame in the page
    }
    let url = new URL(text, base());
    if (url.origin === archive) {
      url = new URL(url.href.slice(archive.length), pageUrl);
    }
    return archive + prefix + time + modifier + "/" + url.href;
  }

  function replayCss(text) {
    return String(text)
      .replace(/(\burl\(\s*)(["']?)((?:\\.|[^"'()\\])+)\2(\s*\))/gi, (all, head, quote, url, tail) =>
        head + quote + replay(url, "oe_") + quote + tail
      )
      .replace(/(@import\s+)(["'])([^"']+)\2/gi, (all, head, quote, url) => head + quote + replay(url, "cs_") + quote);
  }

  // ---- changing the browser's functions ----

  function attempt(work, fallback) {
    try {
      return work();
    } catch {
      return fallback;
    }
  }

  function define(object, name, descriptor) {
    attempt(() => Object.defineProperty(object, name, { configurable: true, enumerable: true, ...descriptor }));
  }

  /* instead(native, self, args): what is done instead of the call. */
  function replace(object, name, instead) {
    const native = object && object[name];
    if (typeof native !== "function") {
      return;
    }
    const value = new Proxy(native, { apply: instead });
    define(object, name, { value, writable: true });
  }

  /* before(args, self) changes the arguments, of calls and of "new". */
  function prepare(object, name, before) {
    const native = object && object[name];
    if (typeof native !== "function") {
      return;
    }
    const value = new Proxy(native, {
      apply(target, self, args) {
        attempt(() => before(args, self));
        return apply(target, self, args);
      },
      construct(target, args, newTarget) {
        attempt(() => before(args, null));
        return construct(target, args, newTarget);
      },
    });
    define(object, name, { value, writable: true });
  }

  /* read(value, self) changes what a property gives, write(value, self) what it is given. */
  function adjust(constructor, name, { read, write }) {
    const prototype = constructor && constructor.prototype;
    const own = prototype && Object.getOwnPropertyDescriptor(prototype, name);
    if (!own || !own.get) {
      return;
    }
    define(prototype, name, {
      enumerable: own.enumerable,
      get() {
        const value = own.get.call(this);
        return read ? attempt(() => read(value, this), value) : value;
      },
      set: own.set && function (value) {
        own.set.call(this, write ? attempt(() => write(value, this), value) : value);
      },
    });
  }

  // ---- requests: an opaque origin may ask, without credentials and without headers that need asking first ----

  const PLAIN_HEADERS = /^(?:accept|accept-language|content-language|range)$/i;
  const asked = (value) => replay(value, "id_"); // scripts get the bytes as they were

  function plainInit(init) {
    const out = { ...init, credentials: "omit" };
    for (const name of ["referrer", "referrerPolicy", "cache", "targetAddressSpace"]) {
      delete out[name];
    }
    if (init && init.mode !== undefined && init.mode !== "no-cors") {
      out.mode = "cors";
    }
    if (init && init.headers) {
      const headers = [...new Headers(init.headers)];
      out.headers = headers.filter(([name]) => PLAIN_HEADERS.test(name));
    }
    return out;
  }

  function prepareRequest(args) {
    if (!(args[0] instanceof scope.Request)) {
      args[0] = asked(args[0]);
    }
    args[1] = plainInit(args[1]);
  }

  prepare(scope, "fetch", prepareRequest);
  prepare(scope, "Request", prepareRequest);
  adjust(scope.Request, "url", { read: original });
  adjust(scope.Response, "url", { read: original });

  if (scope.XMLHttpRequest) {
    const prototype = scope.XMLHttpRequest.prototype;
    prepare(prototype, "open", (args) => {
      args[1] = asked(args[1]);
      args.splice(3);
    });
    replace(prototype, "setRequestHeader", (native, self, args) =>
      PLAIN_HEADERS.test(args[0]) ? apply(native, self, args) : undefined
    );
    adjust(scope.XMLHttpRequest, "withCredentials", { write: () => false });
    adjust(scope.XMLHttpRequest, "responseURL", { read: original });
  }
  prepare(scope, "EventSource", (args) => {
    args[0] = asked(args[0]);
    args.splice(1);
  });
  adjust(scope.EventSource, "url", { read: original });
  replace(scope.Navigator && scope.Navigator.prototype, "sendBeacon", () => true);

  /* There is nobody at the other end: as when the network is down. */
  class ClosedSocket extends EventTarget {
    constructor(url) {
      super();
      this.url = attempt(() => new URL(url, base()).href.replace(/^http/, "ws"), String(url));
      this.readyState = ClosedSocket.CONNECTING;
      this.bufferedAmount = 0;
      this.extensions = this.protocol = "";
      this.binaryType = "blob";
      this.onopen = this.onmessage = this.onerror = this.onclose = null;
      setTimeout(() => this.close(1006));
    }
    send() {
      if (this.readyState === ClosedSocket.CONNECTING) {
        throw new DOMException("Still in CONNECTING state.", "InvalidStateError");
      }
    }
    close(code) {
      if (this.readyState === ClosedSocket.CLOSED) {
        return;
      }
      this.readyState = ClosedSocket.CLOSED;
      for (const event of [new Event("error"), new CloseEvent("close", { code: code || 1005, wasClean: false })]) {
        const handler = this["on" + event.type];
        if (typeof handler === "function") {
          attempt(() => handler.call(this, event));
        }
        this.dispatchEvent(event);
      }
    }
  }
  for (const [state, name] of ["CONNECTING", "OPEN", "CLOSING", "CLOSED"].entries()) {
    define(ClosedSocket, name, { value: state });
    define(ClosedSocket.prototype, name, { value: state });
  }
  define(scope, "WebSocket", { value: ClosedSocket, writable: true });
  for (const name of ["WebTransport", "RTCPeerConnection", "webkitRTCPeerConnection", "SharedWorker"]) {
    attempt(() => delete scope[name]);
  }

  // ---- what an opaque origin lacks: absent, rather than an error when it is touched ----

  for (const name of ["indexedDB", "caches", "cookieStore"]) {
    define(scope, name, { get: () => undefined });
  }
  attempt(() => delete scope.Navigator.prototype.serviceWorker);

  // ---- workers: of an opaque origin, they can only be made of blobs, which begin with this function ----

  const blobs = new Map(); // as long as their URLs live
  const { createObjectURL, revokeObjectURL } = URL;
  const urlOf = (...parts) => createObjectURL.call(URL, new Blob(parts, { type: "text/javascript" }));

  function workerUrl(value, isModule) {
    const target = String(replay(value, isModule ? "esm_" : "wkr_"));
    const place = JSON.stringify({ ...page, url: REPLAY.test(target) ? original(target) : here() });
    const prelude = urlOf(`"use strict";(${mnemonReplay})(self, ${place});`);
    const script = blobs.has(target) ? urlOf(blobs.get(target)) : target; // the page may revoke its own at once
    const [first, second] = [prelude, script].map((url) => JSON.stringify(url));
    // Chromium makes module workers of data: URLs, but not of blobs, if the origin is opaque.
    return isModule
      ? `data:text/javascript,${encodeURIComponent(`import ${first};import ${second};`)}`
      : urlOf(`importScripts(${first});importScripts(${second});`);
  }

  replace(URL, "createObjectURL", (native, self, [object]) => {
    const url = native.call(URL, object);
    if (object instanceof Blob) {
      blobs.set(url, object);
    }
    return url;
  });
  replace(URL, "revokeObjectURL", (native, self, [url]) => {
    blobs.delete(url);
    revokeObjectURL.call(URL, url);
  });
  prepare(scope, "Worker", (args) => {
    args[0] = workerUrl(args[0], Boolean(args[1]) && args[1].type === "module");
  });
  prepare(scope, "importScripts", (args) => args.forEach((url, i) => (args[i] = replay(url, "wkr_"))));
  prepare(scope.Worklet && scope.Worklet.prototype, "addModule", (args) => (args[0] = replay(args[0], "esm_")));

  // ---- location ----

  const real = scope.location;
  const ownModifier = (inWindow && (REPLAY.exec(real.href) || [])[1]) || "mp_";
  const pageReplay = (value) => replay(value, ownModifier);
  const here = () => (/^https?:/.test(real.href) ? original(real.href) : pageUrl);

  const place = {
    assign: (url) => real.assign(pageReplay(url)),
    replace: (url) => real.replace(pageReplay(url)),
    reload: () => real.reload(),
    toString: here,
  };
  for (const name of Object.keys(place)) {
    define(place, name, { value: place[name], enumerable: name !== "toString" });
  }
  define(place, "ancestorOrigins", { value: { length: 0, item: () => null, contains: () => false } });
  define(place, "href", { get: here, set: (url) => (real.href = pageReplay(url)) });
  define(place, "origin", { get: () => new URL(here()).origin });
  for (const part of ["protocol", "host", "hostname", "port", "pathname", "search"]) {
    define(place, part, {
      get: () => new URL(here())[part],
      set(value) {
        const url = new URL(here());
        url[part] = value;
        place.href = url.href;
      },
    });
  }
  define(place, "hash", { get: () => new URL(here()).hash, set: (value) => (real.hash = value) });
  attempt(() => Object.setPrototypeOf(place, Object.getPrototypeOf(real)));

  /* Rewritten scripts say __mnemon_NAME for NAME; objects of their own have a NAME of their own. */
  function alias(name, get, set) {
    define(scope, `__mnemon_${name}`, { get, set, enumerable: false, configurable: name !== "location" });
    define(Object.prototype, `__mnemon_${name}`, {
      enumerable: false,
      get() {
        return this[name];
      },
      set(value) {
        this[name] = value;
      },
    });
  }
  alias("location", () => place, (url) => (place.href = url));
  const isUrl = /^(?:\.{0,2}\/|[a-z][a-z0-9+.-]*:)/i;
  const specified = (specifier, from) =>
    isUrl.test(specifier) ? replay(new URL(specifier, from || here()), "esm_") : specifier;
  define(scope, "__mnemon_import", {
    value: (from) => async (specifier, options) =>
      import(attempt(() => specified(String(specifier), from), specifier), options),
    enumerable: false,
  });
  define(scope, "__mnemon_meta", { value: (url) => attempt(() => original(url), url), enumerable: false });
  define(scope, "origin", { get: () => place.origin });

  return { apply, REPLAY, original, replay, replayCss, attempt, define, replace, prepare, adjust, alias, place,
    pageReplay, here };
}

/* The document: elements, markup, styles, frames, storage. */
function replayDocument(page, script) {
  const outer = window.parent; // a page of the archive, if it is the top
  const isOutermost = outer !== window && outer === window.top;
  const send = window.postMessage;

  /* Tell the archive's page around this one what it shows; it trusts none of it, and asks the server. */
  function report() {
    outer.postMessage({ mnemon: 1, url: page.url, time: page.time, fragment: location.hash }, page.archive);
  }
  if (isOutermost) {
    report();
  }

  const kit = mnemonReplay(window, page);
  const { apply, REPLAY, original, replay, replayCss, place, pageReplay, here } = kit;
  const { attempt, define, replace, prepare, adjust, alias } = kit;

  // ---- attributes: which hold URLs, and as what they ask ----

  const LINKS = { stylesheet: "cs_", modulepreload: "esm_" };
  const PRELOADS = { style: "cs_", script: "js_", image: "im_", worker: "wkr_", document: "mp_" };
  const SIMPLE = {
    a: { href: "mp_" },
    area: { href: "mp_" },
    audio: { src: "oe_" },
    base: { href: "mp_" },
    body: { background: "im_" },
    button: { formaction: "mp_" },
    embed: { src: "oe_" },
    form: { action: "mp_" },
    frame: { src: "fr_" },
    iframe: { src: "if_", srcdoc: "html" },
    image: { href: "im_", "xlink:href": "im_" },
    img: { src: "im_", srcset: "srcset", longdesc: "mp_" },
    input: { src: "im_", formaction: "mp_" },
    link: { href: "oe_", imagesrcset: "srcset" },
    object: { data: "oe_" },
    script: { src: "js_", href: "js_", "xlink:href": "js_" },
    source: { src: "oe_", srcset: "srcset" },
    table: { background: "im_" },
    td: { background: "im_" },
    th: { background: "im_" },
    track: { src: "oe_" },
    use: { href: "im_", "xlink:href": "im_" },
    video: { src: "oe_", poster: "im_" },
  };
  const getAttribute = Element.prototype.getAttribute;
  const setAttribute = Element.prototype.setAttribute;
  const given = new WeakMap(); // element -> { attribute: [as the page wrote it, as it is] }

  /* A modifier, "srcset", "css", "html", or nothing. */
  function kindOf(element, name) {
    if (name === "style") {
      return "css";
    }
    const tagName = element.localName;
    const kind = SIMPLE[tagName] && SIMPLE[tagName][name];
    if (tagName === "script" && kind && getAttribute.call(element, "type") === "module") {
      return "esm_";
    }
    if (tagName === "link" && name === "href") {
      const rel = (getAttribute.call(element, "rel") || "").toLowerCase().split(/\s+/);
      const known = rel.find((word) => LINKS[word]);
      const isEarly = rel.includes("preload") || rel.includes("prefetch");
      return (known && LINKS[known]) || (isEarly && PRELOADS[getAttribute.call(element, "as")]) || kind;
    }
    return kind;
  }

  function convert(value, kind) {
    switch (kind) {
      case "css":
        return replayCss(value);
      case "srcset":
        return String(value).replace(/([\s,]*)(\S*[^\s,])(,|[^,]*)/g, (all, gap, url, rest) =>
          gap + replay(url, "im_") + rest
        );
      case "html":
        return script + replayHtml(value);
      case "mp_":
        return pageReplay(value);
      default:
        return replay(value, kind);
    }
  }

  function convertAttribute(element, name, value) {
    const kind = kindOf(element, name);
    if (!kind || value === null || value === undefined) {
      return value;
    }
    const changed = convert(value, kind);
    if (changed !== value) {
      const texts = given.get(element) || {};
      texts[name] = [String(value), changed];
      given.set(element, texts);
    }
    return changed;
  }

  /* What stands in an element's attributes; also modifiers that do not fit ("type" came after "src"). True: changed. */
  function fix(element) {
    let isChanged = false;
    for (const { name, value } of [...element.attributes]) {
      const kind = kindOf(element, name);
      if (!kind || (kind === "html" && value.startsWith(script))) {
        continue;
      }
      const replayed = element.localName === "script" && REPLAY.exec(value);
      const isOther = replayed && replayed[1] !== kind;
      const changed = isOther ? replay(original(value), kind) : convertAttribute(element, name, value);
      if (changed !== value) {
        setAttribute.call(element, name, changed);
        isChanged = true;
      }
    }
    if (element.localName === "style" && element.firstChild) {
      const changed = replayCss(element.textContent);
      if (changed !== element.textContent) {
        element.textContent = changed;
      }
    }
    return isChanged;
  }

  prepare(Element.prototype, "setAttribute", (args, self) => {
    args[1] = convertAttribute(self, String(args[0]).toLowerCase(), args[1]);
  });
  prepare(Element.prototype, "setAttributeNS", (args, self) => {
    args[2] = convertAttribute(self, String(args[1]), args[2]);
  });
  for (const name of ["setAttributeNode", "setAttributeNodeNS"]) {
    prepare(Element.prototype, name, ([attribute], self) => {
      attribute.value = convertAttribute(self, attribute.name, attribute.value);
    });
  }
  adjust(Attr, "value", {
    write: (value, self) => (self.ownerElement ? convertAttribute(self.ownerElement, self.name, value) : value),
  });
  for (const name of ["setNamedItem", "setNamedItemNS"]) {
    replace(NamedNodeMap.prototype, name, (native, self, args) => {
      const old = apply(native, self, args);
      attempt(() => (args[0].value = args[0].value)); // now it is known of which element
      return old;
    });
  }
  replace(Element.prototype, "getAttribute", (native, self, args) => {
    const value = apply(native, self, args);
    return attempt(() => {
      const name = String(args[0]).toLowerCase();
      const texts = value && given.get(self);
      if (texts && texts[name] && texts[name][1] === value) {
        return texts[name][0];
      }
      return value && REPLAY.test(value) && kindOf(self, name) ? original(value) : value;
    }, value);
  });

  /* The same as properties, which have other capitals: formAction. Links follow below. */
  const inert = document.implementation.createHTMLDocument("");
  const adjusted = new Map(); // prototype -> names; audio and video share theirs
  for (const tagName of Object.keys(SIMPLE).filter((one) => one !== "a" && one !== "area")) {
    const parentOf = Object.getPrototypeOf;
    let { constructor } = inert.createElement(tagName);
    for (; constructor.prototype; constructor = parentOf(constructor)) {
      for (const name of Object.getOwnPropertyNames(constructor.prototype)) {
        const attribute = name.toLowerCase();
        const known = adjusted.get(constructor) || new Set();
        if (SIMPLE[tagName][attribute] && !known.has(name)) {
          adjusted.set(constructor, known.add(name));
          adjust(constructor, name, {
            read: (value) => (REPLAY.test(value) ? original(value) : value),
            write: (value, self) => convertAttribute(self, attribute, value),
          });
        }
      }
    }
  }
  for (const constructor of [HTMLImageElement, HTMLMediaElement]) {
    adjust(constructor, "currentSrc", { read: original });
  }
  // The type may come after the URL, which then asked for the wrong thing.
  for (const [constructor, name] of [[HTMLScriptElement, "type"], [HTMLLinkElement, "rel"], [HTMLLinkElement, "as"]]) {
    const own = Object.getOwnPropertyDescriptor(constructor.prototype, name);
    define(constructor.prototype, name, {
      get: own.get,
      set(value) {
        own.set.call(this, value);
        attempt(() => fix(this));
      },
    });
  }
  prepare(window, "Audio", (args) => {
    if (args.length > 0) {
      args[0] = replay(args[0], "oe_");
    }
  });

  /* Links show their parts; changing one makes a new link. */
  for (const constructor of [HTMLAnchorElement, HTMLAreaElement]) {
    adjust(constructor, "href", {
      read: (value) => (/^https?:/.test(value) ? original(value) : value),
      write: (value, self) => convertAttribute(self, "href", value),
    });
    const parts = ["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
    for (const part of [...parts, "origin"]) {
      const own = Object.getOwnPropertyDescriptor(constructor.prototype, part);
      define(constructor.prototype, part, {
        get() {
          return attempt(() => new URL(this.href)[part], own.get.call(this));
        },
        set: own.set && function (value) {
          attempt(() => {
            const url = new URL(this.href);
            url[part] = value;
            this.href = url.href;
          });
        },
      });
    }
    replace(constructor.prototype, "toString", (native, self) => self.href);
  }

  // ---- styles ----

  prepare(CSSStyleDeclaration.prototype, "setProperty", (args) => (args[1] = replayCss(args[1])));
  adjust(CSSStyleDeclaration, "cssText", { write: replayCss });
  for (const name of ["insertRule", "replace", "replaceSync"]) {
    prepare(CSSStyleSheet.prototype, name, (args) => (args[0] = replayCss(args[0])));
  }
  prepare(window, "FontFace", (args) => {
    if (typeof args[1] === "string") {
      args[1] = replayCss(args[1]);
    }
  });

  // ---- markup ----

  const RAW = /^(?:script|style|textarea|title|xmp|noscript|noframes|noembed|iframe)$/;
  const TAG = /<!--[^]*?-->|<\/[^>]*>|<([a-z][^\s/>]*)(?:[^>"']|"[^"]*"|'[^']*')*>/giy;
  const CUT_OFF = /^<(?:[a-z!/][^>]*)?$/i;
  const setInner = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML").set;

  /* One start tag, by the browser's own parser; itself if nothing had to be changed. */
  function replayTag(text, name) {
    if (!SIMPLE[name] && !/\sstyle\s*=/i.test(text)) {
      return text;
    }
    const holder = inert.createElement("template");
    setInner.call(holder, text);
    const element = holder.content.firstElementChild;
    if (!element || element.localName !== name || !fix(element)) {
      return text;
    }
    return element.cloneNode(false).outerHTML.replace(/<\/[^>]*>$/, "");
  }

  /* Where the text of the raw element ends, as far as it is there. */
  function rawEnd(text, at, name) {
    const end = text.slice(at).search(new RegExp(`</${name}[\\s/>]`, "i"));
    const cut = end < 0 ? text.slice(at).search(/<\/?[a-z]*$/i) : end;
    return cut < 0 ? text.length : at + cut;
  }

  /* Markup by pieces, as for document.write(): what is cut off waits in state.rest; state.raw is an element of text. */
  function replayPiece(piece, state) {
    const text = state.rest + piece;
    let out = "";
    let at = 0;
    state.rest = "";
    while (at < text.length) {
      if (state.raw) {
        const end = rawEnd(text, at, state.raw);
        const body = text.slice(at, end);
        out += state.raw === "style" ? replayCss(body) : body;
        at = end;
        if (text.slice(at).includes(">")) {
          state.raw = "";
        } else {
          state.rest = text.slice(at);
          return out;
        }
      }
      const open = text.indexOf("<", at) < 0 ? text.length : text.indexOf("<", at);
      out += text.slice(at, open);
      at = TAG.lastIndex = open;
      const match = TAG.exec(text);
      if (match) {
        const name = (match[1] || "").toLowerCase();
        out += attempt(() => replayTag(match[0], name), match[0]);
        at += match[0].length;
        state.raw = RAW.test(name) ? name : "";
      } else if (text.indexOf(">", at) < 0 && CUT_OFF.test(text.slice(at))) {
        state.rest = text.slice(at);
        return out;
      } else {
        out += text.slice(at, at + 1);
        at++;
      }
    }
    return out;
  }

  function replayHtml(value) {
    const state = { rest: "", raw: "" };
    return replayPiece(String(value), state) + state.rest;
  }

  function replayInner(value, element) {
    if (element instanceof HTMLStyleElement) {
      return replayCss(value);
    }
    return element instanceof HTMLScriptElement ? value : replayHtml(value);
  }

  adjust(Element, "innerHTML", { write: replayInner });
  adjust(Element, "outerHTML", { write: replayHtml });
  adjust(ShadowRoot, "innerHTML", { write: replayHtml });
  prepare(Element.prototype, "insertAdjacentHTML", (args) => (args[1] = replayHtml(args[1])));
  prepare(Range.prototype, "createContextualFragment", (args) => (args[0] = replayHtml(args[0])));
  prepare(Element.prototype, "setHTMLUnsafe", (args) => (args[0] = replayHtml(args[0])));
  prepare(ShadowRoot.prototype, "setHTMLUnsafe", (args) => (args[0] = replayHtml(args[0])));
  prepare(DOMParser.prototype, "parseFromString", (args) => {
    if (args[1] === "text/html") {
      args[0] = replayHtml(args[0]);
    }
  });
  const written = { rest: "", raw: "" };
  for (const name of ["write", "writeln"]) {
    prepare(Document.prototype, name, (args) => {
      const text = args.map(String).join("");
      args.splice(0, args.length, replayPiece(text, written));
    });
  }

  // ---- the last nets: what comes into the document another way ----

  const NAMES = [...new Set(Object.values(SIMPLE).flatMap(Object.keys)), "style"];
  const NET = { childList: true, subtree: true, attributes: true, attributeFilter: NAMES };
  const SOURCES = NAMES.map((name) => `[${name.replace(":", "\\:")}]`).join(",") + ",style";
  const net = new MutationObserver((records) => {
    for (const { type, target, addedNodes } of records) {
      if (type === "attributes" || target.localName === "style") {
        attempt(() => fix(target));
      }
      for (const node of addedNodes) {
        attempt(() => fixTree(node));
      }
    }
  });
  net.observe(document, NET);
  function fixTree(node) {
    if (node instanceof Element) {
      fix(node);
    }
    if (node instanceof Element || node instanceof DocumentFragment) {
      node.querySelectorAll(SOURCES).forEach(fix);
    }
  }
  // Some elements ask as soon as they are in the document.
  for (const [constructor, names] of [
    [Node, ["appendChild", "insertBefore", "replaceChild"]],
    [Element, ["append", "prepend", "replaceChildren", "before", "after", "replaceWith", "insertAdjacentElement"]],
    [Document, ["append", "prepend", "replaceChildren"]],
    [DocumentFragment, ["append", "prepend", "replaceChildren"]],
    [CharacterData, ["before", "after", "replaceWith"]],
    [Range, ["insertNode"]],
  ]) {
    names.forEach((name) => prepare(constructor.prototype, name, (args) => args.forEach(fixTree)));
  }
  replace(Element.prototype, "attachShadow", (native, self, args) => {
    const root = apply(native, self, args);
    net.observe(root, NET);
    return root;
  });

  // ---- the document's own names ----

  const jar = new Map(); // cookies, as long as the page lives
  const names = {
    URL: { get: here },
    documentURI: { get: here },
    domain: { get: () => place.hostname, set() {} },
    referrer: { get: () => "" }, // the browser's is that of the archive's page
    cookie: { get: () => [...jar].map(([name, value]) => (name ? `${name}=` : "") + value).join("; "), set: setCookie },
    __mnemon_location: { get: () => place, set: (url) => (place.href = url), enumerable: false },
  };
  for (const [name, descriptor] of Object.entries(names)) {
    define(Document.prototype, name, descriptor);
  }
  adjust(Node, "baseURI", { read: (value) => (/^https?:/.test(value) ? original(value) : value) });

  function setCookie(value) {
    const [pair, ...attributes] = String(value).split(";");
    const at = pair.indexOf("=");
    const name = at < 0 ? "" : pair.slice(0, at).trim();
    const isOver = attributes.some((attribute) => {
      const [key, text] = attribute.split("=").map((word) => word.trim());
      const isPast = /^expires$/i.test(key) && Date.parse(text) <= Date.now();
      return isPast || (/^max-age$/i.test(key) && Number(text) <= 0);
    });
    jar.delete(name);
    if (!isOver) {
      jar.set(name, pair.slice(at + 1).trim());
    }
  }

  /* A Storage that lives with the page. */
  function memoryStorage() {
    const items = new Map();
    const methods = {
      getItem: (key) => (items.has(String(key)) ? items.get(String(key)) : null),
      setItem: (key, value) => void items.set(String(key), String(value)),
      removeItem: (key) => void items.delete(String(key)),
      clear: () => items.clear(),
      key: (index) => [...items.keys()][index] ?? null,
    };
    return new Proxy(Object.create(Storage.prototype), {
      get(target, key) {
        const value = key === "length" ? items.size : methods[key];
        return value ?? (typeof key === "symbol" ? target[key] : items.get(key));
      },
      set: (target, key, value) => (methods.setItem(key, value), true),
      has: (target, key) => key in methods || items.has(key),
      deleteProperty: (target, key) => (items.delete(key), true),
      ownKeys: () => [...items.keys()],
      getOwnPropertyDescriptor: (target, key) =>
        items.has(key) ? { value: items.get(key), writable: true, enumerable: true, configurable: true } : undefined,
    });
  }
  for (const name of ["localStorage", "sessionStorage"]) {
    const storage = memoryStorage();
    define(window, name, { get: () => storage });
  }

  // ---- history, links and forms: all in this frame ----

  for (const name of ["pushState", "replaceState"]) {
    prepare(History.prototype, name, (args) => {
      if (args[2] !== undefined && args[2] !== null) {
        args[2] = pageReplay(args[2]);
      }
    });
  }

  const frameNames = (name) =>
    [...document.querySelectorAll("iframe[name],frame[name]")].some((frame) => frame.name === name);

  /* There are no other windows: what would open one goes here. */
  function keepInside(element) {
    const fallback = document.querySelector("base[target]");
    const target = getAttribute.call(element, "target") || (fallback && fallback.target) || "";
    if (target !== "" && target !== "_self" && !(target === "_parent" && !isOutermost) && !frameNames(target)) {
      setAttribute.call(element, "target", "_self");
    }
  }

  window.addEventListener("click", (event) => {
    const link = event.composedPath().find((node) => node.localName === "a" || node.localName === "area");
    if (link && link.href) {
      keepInside(link);
    }
  });
  window.addEventListener("submit", (event) => keepInside(event.target));
  prepare(HTMLFormElement.prototype, "submit", (args, self) => keepInside(self));
  prepare(HTMLElement.prototype, "click", (args, self) => {
    if (self.localName === "a" && self.href) {
      keepInside(self);
    }
  });
  replace(window, "open", (native, self, [url, name]) => {
    if (url !== undefined && url !== "" && frameNames(name)) {
      return native.call(window, pageReplay(url), name);
    }
    const mayOpen = navigator.userActivation && navigator.userActivation.isActive;
    if (!mayOpen || url === undefined || url === "") {
      return null; // as if a popup was blocked
    }
    place.assign(url);
    return window;
  });

  // ---- other frames: each replayed one has an opaque origin of its own, and says what it was ----

  const standIns = new WeakMap();

  function pack(data, target) {
    return { mnemon: "message", data, origin: place.origin, target: target === "/" ? place.origin : String(target) };
  }

  function post(other, args) {
    const [data, second, third] = args;
    const options = typeof second === "object" && second !== null ? second : { targetOrigin: second, transfer: third };
    const target = options.targetOrigin === undefined ? "/" : options.targetOrigin;
    const native = other === window ? send : other.postMessage;
    return apply(native, other, [pack(data, target), "*", options.transfer || []]);
  }

  /* In place of a window that cannot be looked into: messages and places as the page means them. */
  function standIn(other) {
    if (other === null || other === window || attempt(() => Boolean(other.document), false)) {
      return other;
    }
    if (!standIns.has(other)) {
      standIns.set(other, new Proxy({}, {
        get(target, name) {
          switch (name) {
            case "postMessage":
              return (...args) => post(other, args);
            case "location":
            case "__mnemon_location":
              return placeOf(other);
            case "parent":
            case "__mnemon_parent":
              return other === topmost ? standIn(other) : standIn(other.parent);
            case "top":
            case "__mnemon_top":
              return standIn(topmost);
            case "window":
            case "self":
            case "frames":
              return standIn(other);
          }
          const value = /^\d+$/.test(String(name)) ? standIn(other[name]) : other[name];
          return typeof value === "function" ? value.bind(other) : value;
        },
        set(target, name, value) {
          if (name === "location" || name === "__mnemon_location") {
            other.location = pageReplay(value);
          } else {
            other[name] = value;
          }
          return true;
        },
      }));
    }
    return standIns.get(other);
  }

  function placeOf(other) {
    const go = (url) => (other.location = pageReplay(url));
    const out = { assign: go, replace: (url) => other.location.replace(pageReplay(url)) };
    define(out, "href", { get: () => other.location.href, set: go });
    return out;
  }

  /* The page believes that it is the top. */
  let topmost = window;
  while (topmost.parent !== topmost && topmost.parent !== window.top) {
    topmost = topmost.parent;
  }
  const upper = topmost === window ? window : standIn(outer);
  alias("top", () => standIn(topmost));
  alias("parent", () => upper);
  define(window, "parent", { get: () => upper, set(value) { define(window, "parent", { value, writable: true }); } });
  for (const constructor of [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement]) {
    adjust(constructor, "contentWindow", { read: standIn });
  }
  replace(window, "postMessage", (native, self, args) => post(window, args));
  const dataOf = Object.getOwnPropertyDescriptor(MessageEvent.prototype, "data").get;
  const sourceOf = Object.getOwnPropertyDescriptor(MessageEvent.prototype, "source").get;
  const messageOf = (event) => attempt(() => dataOf.call(event).mnemon === "message" && dataOf.call(event)) || null;
  adjust(MessageEvent, "data", { read: (data, event) => (messageOf(event) || { data }).data });
  adjust(MessageEvent, "origin", { read: (origin, event) => (messageOf(event) || { origin }).origin });
  adjust(MessageEvent, "source", { read: (source) => (source instanceof MessagePort ? source : standIn(source)) });

  window.addEventListener("message", (event) => {
    const message = messageOf(event);
    const isForOther = message && message.target !== "*" && message.target !== place.origin;
    const isQuestion = !message && isOutermost && sourceOf.call(event) === outer;
    if (isForOther || isQuestion) {
      event.stopImmediatePropagation();
    }
    if (isQuestion) {
      report();
    }
  }, true);
}

const tag = document.currentScript;
if (tag && tag.dataset.url && !Object.prototype.hasOwnProperty.call(window, "__mnemon_location")) {
  const { url, time, prefix } = tag.dataset;
  const script = tag.outerHTML;
  replayDocument({ url, time, prefix, archive: new URL(tag.src).origin }, script);
  tag.remove(); // the page's own scripts are the first that it finds
}
})();
