document.querySelectorAll("table.sortable").forEach(function (table) {
  table.querySelectorAll("thead th").forEach(function (head, column) {
    function sort() {
      var body = table.tBodies[0], down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("thead th").forEach(function (one) { one.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      Array.from(body.rows).map(function (row) {
        var cell = row.cells[column], text = cell ? cell.textContent.trim() : "";
        var key = cell && cell.dataset.sort !== undefined ? parseFloat(cell.dataset.sort) : NaN;
        return { row: row, key: key, text: text };
      }).sort(function (a, b) {
        var na = isNaN(a.key), nb = isNaN(b.key);
        if (na !== nb) { return na ? 1 : -1; }
        var order = na ? a.text.localeCompare(b.text) : a.key - b.key;
        return down ? -order : order;
      }).forEach(function (one) { body.appendChild(one.row); });
    }
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", function (event) { if (event.key === "Enter") { sort(); } });
  });
});
