/*
 * node --experimental-vm-modules rewrite-check.mjs parse DIR   of each script X in DIR that parses, X.out must too:
 *                                                              prints how many there were, and those that do not
 * node --experimental-vm-modules rewrite-check.mjs run DIR     runs each X and X.out: prints what both gave
 *
 * Files that end in .mjs are modules, others classic scripts.
 */
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [mode, directory] = process.argv.slice(2);
const isModule = (name) => name.endsWith(".mjs");
const names = fs.readdirSync(directory).filter((name) => !name.endsWith(".out"));
const read = (name) => fs.readFileSync(path.join(directory, name), "utf8");

function failure(name, text) {
  try {
    isModule(name) ? new vm.SourceTextModule(text) : new vm.Script(text);
    return null;
  } catch (error) {
    return error.message;
  }
}

function parse() {
  const report = { parsed: 0, changed: 0, broken: [] };
  for (const name of names) {
    const [before, after] = [read(name), read(name + ".out")];
    if (failure(name, before) !== null) continue;
    report.parsed += 1;
    report.changed += before === after ? 0 : 1;
    const message = failure(name, after);
    if (message !== null) report.broken.push([name, message]);
  }
  return report;
}

/* What web/replay.js must do for rewritten scripts, in its shortest form. */
const PRELUDE = `
for (const name of ["location", "top", "parent"]) {
  Object.defineProperty(globalThis, "__mnemon_" + name, {
    get: () => globalThis[name], set: (value) => { globalThis[name] = value; } });
  Object.defineProperty(Object.prototype, "__mnemon_" + name, {
    get() { return this[name]; }, set(value) { this[name] = value; } });
}`;

function globals() {
  const location = { href: "http://h/", toString: () => "http://h/" };
  const context = vm.createContext({ location, result: undefined });
  vm.runInContext("var window = globalThis, self = globalThis, top = {location: 'above'}, parent = {document: 1};", context);
  return context;
}

async function outcome(name, text, isAfter) {
  const context = globals();
  if (isAfter) vm.runInContext(PRELUDE, context);
  try {
    if (!isModule(name)) {
      return JSON.stringify(vm.runInContext(text, context)) ?? "undefined";
    }
    const module = new vm.SourceTextModule(text, { context });
    await module.link((specifier) => {
      const other = new vm.SyntheticModule(["location", "default"], function () {
        this.setExport("location", "of " + specifier);
        this.setExport("default", "default of " + specifier);
      }, { context });
      return other;
    });
    await module.evaluate();
    const entries = Object.entries(module.namespace).filter(([key]) => !key.startsWith("__mnemon"));
    return JSON.stringify(entries) + JSON.stringify(context.result);
  } catch (error) {
    return "failed: " + error.message;
  }
}

async function run() {
  const report = [];
  for (const name of names) {
    report.push([name, await outcome(name, read(name), false), await outcome(name, read(name + ".out"), true)]);
  }
  return report;
}

console.log(JSON.stringify(mode === "parse" ? parse() : await run()));
