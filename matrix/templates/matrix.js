"use strict";
(() => {
  const root = document.documentElement;
  const dialog = document.querySelector("dialog");
  const body = dialog.querySelector(".dialog-body");
  if (!dialog.showModal) return;
  root.classList.add("js");

  let shown = "";

  const wanted = () => {
    try { return document.getElementById(decodeURIComponent(location.hash.slice(1))); }
    catch { return null; }
  };

  function show() {
    const section = wanted();
    if (section?.matches("details")) section.open = true;
    if (!section || !section.matches(".evidence > section")) return dialog.open && dialog.close();
    shown = section.id;
    body.replaceChildren(...[...section.children].map((node) => node.cloneNode(true)));
    const heading = body.querySelector("h3");
    heading.id = "dialog-title";
    heading.tabIndex = -1;
    if (!dialog.open) dialog.showModal();
    body.scrollTop = 0;
    heading.focus({ preventScroll: true });
  }

  function leave() {
    if (dialog.open) return;  // another cell was opened meanwhile
    if (wanted()?.id === shown) history.pushState(null, "", location.pathname + location.search);
    document.querySelector(`[data-cell="${CSS.escape(shown)}"]`)?.focus();
  }

  async function copy(button) {
    const line = button.parentElement.querySelector("code");
    try { await navigator.clipboard.writeText(line.textContent); }
    catch {
      getSelection().selectAllChildren(line);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  const input = document.querySelector("#filter");
  const status = document.querySelector(".filter [role=status]");
  const rows = [...document.querySelectorAll("tr[data-connector]")];

  // A row stays if its connector is named so and it has a cell of each verdict that is asked for.
  function sift() {
    const text = input.value.trim().toLowerCase();
    const wanted = [...document.querySelectorAll(".only[aria-pressed=true]")].map((b) => b.dataset.verdict);
    for (const row of rows)
      row.hidden = !row.dataset.connector.includes(text)
        || !wanted.every((verdict) => row.querySelector(`.cell.v-${verdict}`));
    for (const body of document.querySelectorAll(".grid tbody"))
      body.hidden = !body.querySelector("tr[data-connector]:not([hidden])");
    const left = rows.filter((row) => !row.hidden).length;
    status.textContent = left < rows.length ? `${left} of ${rows.length}` : "";
  }
  input.addEventListener("input", sift);

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.matches(".cell")) {
      history.pushState(null, "", "#" + button.dataset.cell);  // unlike a jump, keeps the focus
      show();
    } else if (button?.matches(".only")) {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      sift();
    } else if (button?.matches(".copy")) copy(button);
    else if (button?.matches(".close") || event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", leave);
  addEventListener("popstate", show);  // back, forward, and an edited address
  sift();  // browsers keep what was typed across a reload
  show();
})();
