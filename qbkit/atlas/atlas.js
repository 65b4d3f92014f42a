// The first page's table: search, filters and order, all of them in the address. Copy buttons on every page.
"use strict";
const form = document.querySelector("form.filters");
if (form) {
  const table = document.querySelector("#implementations");
  const [body] = table.tBodies;
  const rows = [...body.rows];
  const buttons = [...table.querySelectorAll("[data-sort]")];
  const plain = (text) => text.toLowerCase().replace(/['’]s\b/g, "").split(/[^a-z0-9.]+/).filter(Boolean);
  const words = new Map(rows.map((row) => [row, plain(`${row.dataset.name} ${row.dataset.family} ${row.cells[1].textContent}`)]));
  const causes = new Map(rows.map((row) => [row, plain(row.querySelector(".why").textContent)]));
  const has = (of, row, token) => of.get(row).some((word) => word.startsWith(token));
  const known = (of, typed) => typed.filter((token) => rows.some((row) => has(of, row, token)));
  const usual = { sort: "verdict", order: "up" };
  const order = { ...usual };

  const key = (row) => {
    const text = row.dataset[order.sort];
    return text === "" ? null : order.sort === "name" ? text : Number(text);
  };
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return (x === null) - (y === null); // unknown ones last
    return (x < y ? -1 : x > y ? 1 : 0) * (order.order === "up" ? 1 : -1);
  };

  function show() {
    // Words that no row has ("what does … do?") do not count. Causes are searched where no name,
    // family or verdict has any of them ("pacing").
    const typed = plain(form.q.value);
    const where = known(words, typed).length ? words : causes;
    const tokens = known(where, typed);
    const nothing = form.q.value.trim() && !tokens.length;
    for (const row of rows) {
      const { family, kind, also } = row.dataset;
      const found = tokens.every((token) => has(where, row, token));
      row.hidden = nothing || !found || (form.family.value && family !== form.family.value) || (form.verdict.value && ![kind, also].includes(form.verdict.value));
    }
    body.append(...[...rows].sort(compare));
    for (const button of buttons) {
      const mine = button.dataset.sort === order.sort;
      const head = button.closest("th");
      if (mine) head.setAttribute("aria-sort", order.order === "up" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const count = rows.filter((row) => !row.hidden).length;
    form.querySelector(".count").textContent = `${count} of ${rows.length}`;
    document.querySelector("p.none").hidden = count > 0;
    const given = Object.entries({ q: form.q.value, family: form.family.value, verdict: form.verdict.value, ...order });
    const query = new URLSearchParams(given.filter(([name, value]) => value && value !== usual[name])).toString();
    history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
  }

  // As the page writes it: an address that was typed may say "bbr".
  const written = (name, text) => [...(form[name].options ?? [])].map((option) => option.value).find((value) => value.toLowerCase() === text.toLowerCase()) ?? text;
  const asked = new URLSearchParams(location.search);
  for (const name of ["q", "family", "verdict"]) if (asked.has(name)) form[name].value = written(name, asked.get(name));
  for (const name of ["sort", "order"]) if (asked.has(name)) order[name] = asked.get(name);
  if (!buttons.some((button) => button.dataset.sort === order.sort)) Object.assign(order, usual);
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const shown = [...body.rows].filter((row) => !row.hidden);
    if (shown.length === 1) shown[0].querySelector("a").click();
  });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const again = order.sort === button.dataset.sort;
      Object.assign(order, { sort: button.dataset.sort, order: again && order.order === "up" ? "down" : "up" });
      show();
    });
  }
  document.querySelector(".reset").addEventListener("click", () => { form.reset(); show(); });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!event.target.closest("a, button") && !String(getSelection())) row.querySelector("a").click();
  });
  show();
}

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // without permission: ready for Ctrl+C
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// A link to a folded section opens it.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

// Charts look at the page's ground again when an attribute of the page changes.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (now) => {
  document.documentElement.dataset.dark = now.matches;
});
