// Put at the end of a copy of a page by tests/pages/browser.h: does what a reader does, by real events,
// and leaves what it saw in a script element "driven".
"use strict";
const reader = {failures: [], checks: 0};

// Fails the test unless the condition holds.
reader.check = (condition, what) => {
  ++reader.checks;
  if (!condition) reader.failures.push(what);
};
reader.equal = (seen, wanted, what) =>
  reader.check(JSON.stringify(seen) === JSON.stringify(wanted),
    `${what}: saw ${JSON.stringify(seen)}, wanted ${JSON.stringify(wanted)}`);

reader.find = (selector) => {
  const element = typeof selector === "string" ? document.querySelector(selector) : selector;
  if (!element) throw new Error(`the page has no ${selector}`);
  return element;
};
// The button of a text, or whose text begins with it.
reader.button = (text, inside = document) =>
  [...inside.querySelectorAll("button")].find((b) => b.textContent === text) ||
  [...inside.querySelectorAll("button")].find((b) => b.textContent.startsWith(text)) ||
  reader.find(`button "${text}"`);
reader.picker = (label) => reader.find(`[role="radiogroup"][aria-label="${label}"]`);
// Lets timers and frames run.
reader.wait = (milliseconds = 60) => new Promise((done) => setTimeout(done, milliseconds));
// Waits for what the page does in time of its own: reading a file, decoding an image. The browser's clock jumps from timer to
// timer while those are at work, and stands still while the network is: so this asks for the page itself, again and again.
reader.until = async (isSo, what) => {
  for (let i = 0; i < 2000 && !isSo(); ++i) {
    await new Promise((done) => {
      const request = new XMLHttpRequest();
      request.addEventListener("loadend", done);
      request.open("GET", location.href.split("#")[0]);
      request.send();
    });
  }
  if (!isSo()) throw new Error(`waited in vain for ${what}`);
};
reader.click = async (selector) => {
  reader.find(selector).dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  await reader.wait();
};
// Moves the pointer to a place in the element: fractions of its width and height, or pixels {x, y} from its corner.
reader.hover = async (selector, x = 0.5, y = 0.5, isPixels = false) => {
  const element = reader.find(selector), box = element.getBoundingClientRect();
  const clientX = box.left + (isPixels ? x : x * box.width), clientY = box.top + (isPixels ? y : y * box.height);
  for (const type of ["pointerover", "pointerenter", "pointermove"]) {
    element.dispatchEvent(new PointerEvent(type, {clientX, clientY, bubbles: type !== "pointerenter", pointerType: "mouse"}));
  }
  await reader.wait();
};
reader.leave = async (selector) => {
  reader.find(selector).dispatchEvent(new PointerEvent("pointerleave", {pointerType: "mouse"}));
  await reader.wait();
};
reader.key = async (selector, key) => {
  const element = reader.find(selector);
  element.focus({preventScroll: true});
  element.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  await reader.wait();
};
// The text of the tooltip, "" if it is not shown.
reader.tip = () => {
  const tooltip = document.getElementById("tooltip");
  return tooltip.hidden ? "" : tooltip.textContent;
};
// How many different colours a canvas shows: 1 if nothing was drawn.
reader.colors = (selector) => {
  const canvas = reader.find(selector), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < pixels.length; i += 4) seen.add(pixels[i] << 24 | pixels[i + 1] << 16 | pixels[i + 2] << 8 | pixels[i + 3]);
  return seen.size;
};
// What a button that saves would save: {name, text}.
reader.saved = async (selector) => {
  const keep = heddle.save;
  let seen = null;
  heddle.save = (name, type, text) => { seen = {name, type, text}; };
  await reader.click(selector);
  heddle.save = keep;
  return seen;
};
// Fails for all that layoutProblems() (tests/pages/layout.js) finds in what is shown; `state` names it.
reader.layout = async (state = "as it opens") => {
  while (ResizeObserver.deliver()) await reader.wait(20);
  const problems = layoutProblems();
  for (const problem of problems.slice(0, 25)) reader.failures.push(`${state}: ${problem}`);
  reader.check(problems.length <= 25, `${state}: and ${problems.length - 25} more`);
};
// Whether the page is wider than the window: it then scrolls sideways, which no page may.
reader.tooWide = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;

reader.run = async (steps) => {
  try {
    await reader.wait(200);
    await steps();
  } catch (error) {
    reader.failures.push(`stopped: ${error.message}`);
  }
  const out = document.createElement("script");
  out.type = "application/json";
  out.id = "driven";
  out.textContent = JSON.stringify({failures: reader.failures, checks: reader.checks, errors: window.driveErrors})
    .replace(/</g, "\\u003c");
  document.body.append(out);
};
