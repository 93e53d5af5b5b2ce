// What speedscope makes of a text: its own importer, taken out of the program that the npm package
// "speedscope" has for browsers. node import-speedscope.mjs BUNDLE TEXT prints threads, how long
// each was seen, and the names of functions.
import fs from "fs";
import vm from "vm";

function nothing() {
  return new Proxy(function () {}, {
    get: (target, key) => key === Symbol.toPrimitive ? () => ""
      : key === Symbol.iterator ? function* () {} : nothing(),
    apply: nothing, construct: nothing, set: () => true,
  });
}

function find(text, pattern, what) {
  const found = pattern.exec(text);
  if (!found) {
    console.error(`this build of speedscope has no ${what}`);
    process.exit(77);
  }
  return found;
}

let program = fs.readFileSync(process.argv[2], "utf8");
const importer = find(program, /let \w+=(\w+)\(\w+\);if\(\w+\)return console\.log\("Importing from linux perf/,
  "importer of perf's text")[1];
const own = program.slice(program.indexOf(`function ${importer}(`));
const init = find(own, /;?var (\w+)=\w+\(\(\)=>\{"use strict";/, "beginning")[1];
const start = find(program, /\w+\(\w+\(\w+,null,\w+\(\w+,null\)\),document\.body,[^;]*;/, "start")[0];
program = program.replace(start, `globalThis.take=${importer};globalThis.init=${init};`);

const page = {
  console: { ...console, log() {} }, document: nothing(), localStorage: nothing(),
  navigator: { platform: "Linux", userAgent: "" }, TextDecoder, TextEncoder, URL, performance,
  location: { hash: "", protocol: "file:", href: "file:///" }, setTimeout, clearTimeout,
  matchMedia: nothing, addEventListener() {}, requestAnimationFrame() {}, getComputedStyle: nothing,
  fetch: async () => nothing(), devicePixelRatio: 1,
};
for (const name of ["FontFace", "Worker", "HTMLElement", "Element", "Node", "Blob", "FileReader",
  "XMLHttpRequest", "MutationObserver"])
  page[name] = nothing();
page.window = page.self = page.top = page;
vm.createContext(page);
vm.runInContext(program, page);
page.init();

const text = fs.readFileSync(process.argv[3], "utf8");
const group = page.take({ splitLines: () => text.split("\n") });
for (const profile of group.profiles) {
  const names = new Set();
  profile.forEachFrame((frame) => names.add(frame.name));
  console.log(JSON.stringify({ thread: profile.getName(), seconds: profile.getTotalWeight(),
    names: [...names].sort() }));
}
