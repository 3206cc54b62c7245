import { dependency } from "./dependency.js";
import { name } from "library";
import { tool } from "cdn/tool.js";
import { far } from "{{other}}/cdn/far.js";

results.modules = [dependency, name, tool, far].join(" ");
results.metaUrl = import.meta.url;
const which = ["./late", "js"].join(".");
wait("dynamicImport", async () => (await import(which)).late);
wait("dynamicBare", async () => (await import("library")).name);
wait("dynamicAbsolute", async () => (await import("/app/late.js")).late);
wait("moduleWorker", () => new Promise((resolve, reject) => {
  const worker = new Worker(new URL("./module-worker.js", import.meta.url), { type: "module" });
  worker.onmessage = (event) => resolve(event.data);
  worker.onerror = (event) => reject(new Error(event.message));
}));
window.isModuleDone = true;
