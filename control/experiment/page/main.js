// Fills the figures: chart (where the library is there), table, data to take away.
"use strict";
(function () {
  function csvText(rows) {
    return rows.map(function (row) {
      return row.map(function (cell) {
        var t = cell === null || (typeof cell === "number" && isNaN(cell)) ? "" : String(cell);
        return /[",\n]/.test(t) ? '"' + t.replace(/"/g, '""') + '"' : t;
      }).join(",");
    }).join("\n") + "\n";
  }
  function table(rows) {
    var details = document.createElement("details");
    details.innerHTML = "<summary>Figures</summary><div class=\"scroll\"><table class=\"small\">" +
        "<thead></thead><tbody></tbody></table></div>";
    rows.forEach(function (row, i) {
      var tr = document.createElement("tr");
      row.forEach(function (cell, k) {
        var td = document.createElement(i === 0 || k === 0 ? "th" : "td");
        td.scope = i === 0 ? "col" : "row";
        if (k !== 0) td.className = "n";
        td.textContent = cell;
        tr.appendChild(td);
      });
      details.querySelector(i === 0 ? "thead" : "tbody").appendChild(tr);
    });
    return details;
  }

  Array.prototype.forEach.call(document.querySelectorAll("figure[data-chart]"), function (figure) {
    var chart = Charts[figure.getAttribute("data-chart")];
    var box = figure.querySelector(".chart");
    var foot = figure.querySelector(".foot");
    var data = chart.data(figure);
    if (data.empty) {
      box.textContent = data.empty;
      return;
    }
    if (window.d3) {
      chart.draw(box, data, figure);
    } else {
      box.parentNode.removeChild(box);
    }
    if (data.csv) Page.link(foot, "data (CSV)", "text/csv", figure.id + ".csv", csvText(data.csv));
    if (data.table) {
      var details = table(data.table);
      details.open = !window.d3;
      foot.appendChild(details);
    }
  });
  Array.prototype.forEach.call(document.querySelectorAll(".command code"), Page.copyButton);

  var name = Model.results.experiment.replace(/[^A-Za-z0-9_.-]/g, "_");
  var downloads = document.getElementById("downloads");
  Page.link(downloads, "the results file (JSON)", "application/json", name + ".results.json", Page.text);
  downloads.appendChild(document.createTextNode(" "));
  Page.link(downloads, "the experiment file (TOML)", "text/plain", name + ".toml",
      Model.results.configuration);
  document.documentElement.setAttribute("data-drawn", "yes");
})();
