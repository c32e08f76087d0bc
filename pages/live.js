// A page that is written anew while a run goes on: it loads itself again, and then looks as it did.
//
//   heddle.kept            what the reader has chosen, an object of this page and tab: set its fields
//   heddle.live({written, every}) -> element   written: seconds since 1970; every: seconds to the next
//   heddle.restoreView()   once all is drawn: scrolls to where the reader was
"use strict";
(() => {
  const kSeconds = 15, kStaleSeconds = 1800;
  const key = "heddle-view " + location.pathname;
  let again = null;  // {scroll, focus} of the page that loaded itself

  heddle.kept = {};
  try { heddle.kept = JSON.parse(sessionStorage.getItem(key)) || {}; } catch (error) { /* nothing is kept */ }
  again = heddle.kept.again || null;
  delete heddle.kept.again;
  const keep = () => {
    try { sessionStorage.setItem(key, JSON.stringify(heddle.kept)); } catch (error) { /* nothing is kept */ }
  };
  window.addEventListener("pagehide", keep);

  const stops = () => [...document.querySelectorAll("button, input, summary, [tabindex]")];
  heddle.restoreView = () => {
    if (!again) return;
    if (again.focus >= 0 && stops()[again.focus]) stops()[again.focus].focus({preventScroll: true});
    window.scrollTo(...again.scroll);
  };
  heddle.reload = () => {
    heddle.kept.again = {scroll: [window.scrollX, window.scrollY], focus: stops().indexOf(document.activeElement)};
    keep();
    location.reload();
  };

  const ago = (seconds) => (seconds < 5 ? "just now" : seconds < 90 ? `${Math.round(seconds)} s ago`
    : seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${(seconds / 3600).toFixed(1)} h ago`);

  heddle.live = ({written, every}) => {
    const status = heddle.el("span", {id: "live"}), opened = Date.now();
    const age = () => Math.max(0, Date.now() / 1000 - written);
    const isStale = () => age() > Math.max(kStaleSeconds, 5 * every);
    const button = heddle.el("button", {type: "button", onclick: () => {
      heddle.kept.paused = !heddle.kept.paused;
      keep();
      tick();
    }});
    let isHeld = false;  // while the reader drags, loading again would take the page out of the hand
    window.addEventListener("pointerdown", () => { isHeld = true; });
    window.addEventListener("pointerup", () => { isHeld = false; });
    window.addEventListener("pointercancel", () => { isHeld = false; });
    const isReading = () => isHeld || document.hidden || !document.getElementById("tooltip").hidden ||
      String(window.getSelection()) !== "";
    const tick = () => {
      const seconds = kSeconds - (Date.now() - opened) / 1000;
      button.textContent = heddle.kept.paused ? "Follow" : "Pause";
      button.title = heddle.kept.paused ? `load this page again every ${kSeconds} seconds` : "stop loading this page again";
      button.hidden = isStale();
      status.textContent = isStale() ? `Nothing new since this was written, ${ago(age())}: the run seems to have been stopped.`
        : `The run goes on. Written ${ago(age())}` + (heddle.kept.paused ? "; paused." : `; loaded again every ${kSeconds} s.`);
      if (isStale() || heddle.kept.paused || seconds > 0 || isReading()) return;
      clearInterval(timer);
      heddle.reload();
    };
    const timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
    tick();
    return heddle.el("div", {class: "row live"}, heddle.el("span", {class: "pulse", "aria-hidden": "true"}), status, button);
  };
})();
