// Where a script believes to be.
results.href = location.href;
results.windowHref = window.location.href;
results.documentHref = document.location.href;
results.parts = [location.protocol, location.host, location.pathname, location.origin, document.domain, document.URL].join(" ");
results.baseURI = document.baseURI;
results.isTop = top === self && window.top === window && parent === window;
results.currentScript = document.currentScript.src;
results.referrer = document.referrer;
function moved(location) { return location.href; }
results.argument = moved({ href: "mine" });
results.member = { location: "here" }.location;
