for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement;
    const column = [...head.parentElement.children].indexOf(head);
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.children) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = head.closest("table").tBodies[0];
    const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const compare = (a, b) => (isNaN(a) || isNaN(b) || a === "" || b === "" ? a.localeCompare(b) : a - b);
    const rows = [...body.rows].map((row, place) => [key(row), place, row]);
    rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]) || a[1] - b[1]);
    for (const [, , row] of rows) body.append(row);
  });
}
