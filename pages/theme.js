// Light or dark before anything is drawn: the reader's choice, else the system's.
"use strict";
const heddle = {};
(() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = new Set();
  let chosen = null;
  try { chosen = localStorage.getItem("heddle-theme"); } catch (error) { chosen = null; }

  const show = () => {
    const theme = chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
    for (const listener of listeners) listener(theme);
  };
  system.addEventListener("change", show);

  // Changes from light to dark and back, and remembers it where the browser lets a file do so.
  heddle.switchTheme = () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("heddle-theme", chosen); } catch (error) { /* not remembered */ }
    show();
  };
  // listener() is called after each change: canvases have to be drawn again. -> what ends that
  heddle.onTheme = (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  show();
})();
