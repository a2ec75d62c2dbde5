// -- start -----------------------------------------------------------------------------------

for (const copy of document.querySelectorAll(".copy")) {
  copy.addEventListener("click", async () => {
    const text = copy.parentElement.querySelector("code").textContent;
    try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; } catch {
      window.getSelection().selectAllChildren(copy.parentElement.querySelector("code"));
      copy.textContent = "Selected";
    }
  });
}
// Paper cannot be unfolded.
window.addEventListener("beforeprint", () => {
  for (const box of document.querySelectorAll("details.part, details.folded")) box.open = true;
  unfoldCharts(document);
  document.querySelectorAll(".multiple").forEach(drawIn);
});
async function followRun(address) {
  const box = byId("progress");
  let done = false;
  // The version that this page shows; what came since then is worth a reload.
  let seen = new URL(address, location.href).searchParams.get("page");
  for (;;) {
    try {
      const found = await (await fetch(address, { cache: "no-store" })).json();
      if (seen !== null && found.version !== seen) { location.reload(); return; }
      seen = found.version;
      box.replaceChildren();
      if (found.text) box.append(made("span", found.text + " "));
      if (known(found.share)) { const bar = made("progress"); bar.max = 1; bar.value = found.share; bar.setAttribute("aria-label", "progress"); box.append(bar); }
      done = found.done;
    } catch { box.textContent = "The server has stopped; this is what it showed last."; return; }
    await new Promise((next) => setTimeout(next, done ? 10000 : 1500));
  }
}
readyTables();
readyThreshold();
readyExplore();
readyCharts();
readyBrowser();
followHash();
if (document.body.dataset.live) followRun(document.body.dataset.live);
