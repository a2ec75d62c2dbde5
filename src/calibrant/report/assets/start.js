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
readyTables();
readyThreshold();
readyExplore();
readyCharts();
readyBrowser();
followHash();
