importScripts("/app/worker-part.js", "{{other}}/cdn/worker-far.js");
fetch("data.json").then((answer) => answer.json()).then(
  (data) => postMessage([part, far, data.word, self.location.href].join(" ")),
  (error) => postMessage("failed: " + error)
);
