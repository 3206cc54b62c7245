import { dependency } from "./dependency.js";
const answer = await fetch("/app/data.json");
postMessage([dependency, (await answer.json()).word, location.pathname].join(" "));
