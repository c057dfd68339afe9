// One address is one view: forms and links become queries, the server answers with HTML, parts of the page are replaced.
(() => {
  "use strict";
  const board = document.getElementById("board");
  const main = () => document.getElementById("main");
  let asked = null;
  let timer = null;

  async function show(query, { part = false, push = true } = {}) {
    asked?.abort();
    asked = new AbortController();
    let text;
    try {
      const answer = await fetch("board/view" + query, { signal: asked.signal });
      if (!answer.ok) throw new Error(answer.statusText);
      text = await answer.text();
    } catch (error) {
      // Who aborted this one asks anew; any other failure may pass.
      if (error.name === "AbortError") return;
      document.getElementById("count")?.replaceChildren("The server does not answer.");
      refreshLater();
      return;
    }
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const next = fresh.getElementById("main");
    const focused = document.activeElement?.id;
    const left = document.querySelector("#results .scroll")?.scrollLeft ?? 0;
    if (part && next.dataset.page === main().dataset.page) {
      const [shown, results] = [document.getElementById("results"), fresh.getElementById("results")];
      // What is the same stays: a log that somebody reads would jump.
      if (shown && results && !shown.isEqualNode(results)) shown.replaceWith(results);
      Object.assign(main().dataset, next.dataset);
      if (left) document.querySelector("#results .scroll")?.scrollTo(left, 0);
    } else {
      board.replaceChildren(...fresh.body.childNodes);
      if (push) window.scrollTo(0, 0);
    }
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
    else if (!part) main().focus({ preventScroll: true });
    document.title = main().dataset.title;
    const now = main().dataset.query;
    if (push) history[part ? "replaceState" : "pushState"](null, "", now === "?" ? location.pathname : now);
    if (window.parent !== window) window.parent.postMessage({ queryString: now.slice(1) }, "https://huggingface.co");
    refreshLater();
  }

  function refreshLater() {
    clearTimeout(timer);
    const wait = Number(document.querySelector("[data-refresh]")?.dataset.refresh);
    if (wait) timer = setTimeout(() => (document.hidden ? refreshLater() : show(main().dataset.query, { part: true })), wait);
  }

  function queryOf(form) {
    const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
    return "?" + new URLSearchParams(pairs);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-go], a[data-part]");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    show(link.getAttribute("href"), { part: "part" in link.dataset });
  });
  let typing = null;
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.("#filters");
    if (!form) return;
    clearTimeout(typing);
    const ask = () => show(queryOf(form), { part: !("full" in event.target.dataset) });
    typing = setTimeout(ask, event.target.type === "search" ? 60 : 0);
  });
  document.addEventListener("submit", (event) => {
    if (!board.contains(event.target)) return;
    event.preventDefault();
    show(queryOf(event.target), { part: event.target.id === "filters" });
  });
  window.addEventListener("popstate", () => show(location.search || "?", { push: false }));
  refreshLater();
})();
