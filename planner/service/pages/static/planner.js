// Everything works without this file; with it, an answer arrives without the page jumping.
"use strict";

let shown = location.pathname + location.search;

for (const form of document.querySelectorAll("form[data-answer]")) {
  const place = document.getElementById(form.dataset.answer);
  let last = 0;
  form.addEventListener("submit", async (event) => {
    const fields = [...new FormData(form)].filter(([, value]) => String(value).trim() !== "");
    const address = form.action.split("?")[0] + "?" + new URLSearchParams(fields);
    event.preventDefault();
    const mine = ++last;
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== last) return;
      const found = page.getElementById(place.id);
      const fields = page.querySelector("form[data-answer]");
      if (!found || !fields) throw new Error("not the page that was asked for");
      const at = document.activeElement && document.activeElement.id;
      place.replaceChildren(...found.childNodes);
      form.replaceChildren(...fields.childNodes);
      document.title = page.title;
      history.pushState(null, "", address);
      shown = location.pathname + location.search;
      const wrong = form.querySelector("[aria-invalid]");
      if (wrong) wrong.focus();
      else if (at && document.getElementById(at)) document.getElementById(at).focus();
      else form.querySelector("button[type=submit]").focus({ preventScroll: true });
      if (!wrong) place.scrollIntoView({ block: "nearest" });
    } catch {
      location.assign(address);
    } finally {
      if (mine === last) place.removeAttribute("aria-busy");
    }
  });
}

// Back and forward show the answers that were asked for; a jump within the page is none.
addEventListener("popstate", () => {
  if (location.pathname + location.search !== shown) location.reload();
});

// A page that waits for a job says so with data-refresh; it looks again as often as that says, in seconds.
const waiting = document.querySelector("[data-refresh]");
if (waiting) {
  const again = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.querySelector("[data-refresh]");
      if (!answer.ok || !found) return location.reload();
      waiting.replaceChildren(...found.childNodes);
    } catch {
      // The service is away for a moment; ask again.
    }
    setTimeout(again, 1000 * Number(waiting.dataset.refresh));
  };
  setTimeout(again, 1000 * Number(waiting.dataset.refresh));
}

// A message about a line takes the caret there.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-line]");
  const area = link && document.querySelector(link.getAttribute("href"));
  if (!area) return;
  event.preventDefault();
  const before = area.value.split("\n").slice(0, Number(link.dataset.line) - 1).join("\n");
  const start = before.length + (before ? 1 : 0);
  const end = area.value.indexOf("\n", start);
  area.focus();
  area.setSelectionRange(start, end < 0 ? area.value.length : end);
  area.scrollTop = (before.split("\n").length - 3) * parseFloat(getComputedStyle(area).lineHeight);
});
