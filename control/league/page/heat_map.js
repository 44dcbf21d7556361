// The heat map: a table of buttons, one a cell. Colour says how far a value is from the best of its
// column; the number is always there, so nothing is said by colour alone.
"use strict";
var HeatMap = (function () {
  var L = League, results = L.results;
  // Times as bad as the best of the column: the end of the scale. Shares differ little, queues much.
  function farthest() {
    var unit = L.measures[measure].unit;
    if (unit === "bytes" || unit === "us" || unit === "packets") return 16;
    return L.measures[measure].better === "higher" ? 2 : 4;
  }
  var listeners = [], buttons = [], rows = [];
  var at = [0, 0];
  var measure = "efficiency";

  function mean(cell) {
    return cell.status === "ok" ? cell.measures[measure].mean : null;
  }
  // 0: the best of the column, 1: the end of the scale.
  function distance(cell, scenario) {
    var spec = L.measures[measure], own = mean(cell);
    var all = results.entries.map(function (e) { return mean(L.cell(scenario, e.name)); })
        .filter(function (v) { return v !== null; });
    if (own === null || all.length < 2) return null;
    var higher = spec.better === "higher";
    var best = (higher ? Math.max : Math.min).apply(null, all);
    var worst = (higher ? Math.min : Math.max).apply(null, all);
    if (own === best) return 0;
    if (best <= 0 || own <= 0) return Math.abs(own - best) / Math.abs(worst - best);
    return Math.min(1, Math.abs(Math.log(own / best)) / Math.log(farthest()));
  }
  function rgb(name) {
    var hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    return [1, 3, 5].map(function (i) { return parseInt(hex.substr(i, 2), 16); });
  }
  function colour(t) {
    var from = rgb(t < 0.5 ? "--best" : "--middle"), to = rgb(t < 0.5 ? "--middle" : "--worst");
    var share = t < 0.5 ? 2 * t : 2 * t - 1;
    return "rgb(" + from.map(function (c, i) { return Math.round(c + (to[i] - c) * share); }).join(",") + ")";
  }

  function sentence(cell) {
    var spec = L.measures[measure], summary = cell.measures[measure];
    var out = cell.entry + " in " + cell.scenario + ": ";
    if (cell.status !== "ok") return out + cell.status + ": " + cell.reason;
    out += spec.label + " " + L.words(summary.mean, spec.unit) + " " + L.interval(summary, spec.unit);
    out += cell.rank === 0 ? "; not ranked." : "; rank " + cell.rank +
        (cell.rank === 1 ? ", undominated." : ", dominated by " + cell.dominated_by.join(", ") + ".");
    return out;
  }
  function read(cell) { document.getElementById("reading").textContent = sentence(cell); }

  function paint() {
    var plain = document.getElementById("plain").checked;
    document.getElementById("map").classList.toggle("plain", plain);
    document.getElementById("measure-meaning").textContent = L.measures[measure].meaning + ". " +
        (L.measures[measure].better === "higher" ? "Higher is better." : "Lower is better.");
    document.getElementById("scale-end").textContent = farthest() + " times as bad, or worse";
    buttons.forEach(function (row) {
      row.forEach(function (item) {
        var value = mean(item.cell), t = distance(item.cell, item.cell.scenario);
        item.node.textContent = item.cell.status !== "ok" ? "\u00d7" : L.words(value, L.measures[measure].unit);
        item.node.title = sentence(item.cell);
        item.node.setAttribute("aria-label", sentence(item.cell));
        item.node.className = (item.cell.rank === 1 ? "front" : "") + (value === null ? " none" : "");
        item.node.style.background = plain || t === null ? "" : colour(t);
      });
    });
  }
  function move(row, column) {
    buttons[at[0]][at[1]].node.tabIndex = -1;
    at = [Math.max(0, Math.min(buttons.length - 1, row)),
          Math.max(0, Math.min(buttons[0].length - 1, column))];
    var node = buttons[at[0]][at[1]].node;
    node.tabIndex = 0;
    node.focus();
  }
  function choose(cell, follow) {
    buttons.forEach(function (row) {
      row.forEach(function (item) { item.node.setAttribute("aria-pressed", String(item.cell === cell)); });
    });
    listeners.forEach(function (tell) { tell(cell, follow); });
  }

  function build() {
    var table = document.createElement("table");
    table.className = "heat";
    table.innerHTML = "<caption class=\"skip\">Entries by scenarios</caption><thead><tr><td></td></tr></thead><tbody></tbody>";
    results.scenarios.forEach(function (s, i) {
      var th = document.createElement("th"), a = document.createElement("a");
      th.scope = "col";
      a.href = "#scenario-" + i;
      a.textContent = s.name;
      a.title = s.about;
      th.appendChild(a);
      table.querySelector("thead tr").appendChild(th);
    });
    ["edge", "switch"].forEach(function (kind) {
      var entries = results.entries.filter(function (e) { return e.needs === kind; });
      if (entries.length === 0) return;
      var head = document.createElement("tr");
      head.className = "kind";
      head.innerHTML = "<th scope=\"rowgroup\"></th>";
      head.firstChild.textContent = kind === "edge" ? "hosts alone" : "with help of switches";
      table.querySelector("tbody").appendChild(head);
      entries.forEach(function (entry) {
        var tr = document.createElement("tr"), th = document.createElement("th"), row = [];
        th.scope = "row";
        th.textContent = entry.name;
        th.title = entry.effort;
        tr.appendChild(th);
        results.scenarios.forEach(function (s, column) {
          var td = document.createElement("td"), node = document.createElement("button");
          var item = { node: node, cell: L.cell(s.name, entry.name) };
          var own = buttons.length;
          node.type = "button";
          node.tabIndex = -1;
          node.addEventListener("focus", function () { read(item.cell); at = [own, column]; });
          node.addEventListener("mouseenter", function () { read(item.cell); });
          node.addEventListener("click", function () { choose(item.cell, true); });
          node.addEventListener("keydown", function (event) {
            var step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
            if (!step) return;
            event.preventDefault();
            move(at[0] + step[0], at[1] + step[1]);
          });
          td.appendChild(node);
          tr.appendChild(td);
          row.push(item);
        });
        buttons.push(row);
        table.querySelector("tbody").appendChild(tr);
      });
    });
    document.getElementById("heat-box").appendChild(table);
    buttons[0][0].node.tabIndex = 0;
  }

  L.options(document.getElementById("measure"), results.measures.map(function (m) {
    return { value: m.name, text: m.label };
  }), measure);
  document.getElementById("measure").addEventListener("change", function () {
    measure = this.value;
    paint();
  });
  document.getElementById("plain").addEventListener("change", paint);
  if (window.matchMedia) {
    var dark = window.matchMedia("(prefers-color-scheme: dark)");
    if (dark.addEventListener) dark.addEventListener("change", paint);
  }
  build();
  paint();
  return { onChoose: function (tell) { listeners.push(tell); } };
})();
