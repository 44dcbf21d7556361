// What every page of results needs: the results inside it, numbers in words, links and buttons.
"use strict";
var Page = (function () {
  var text = document.getElementById("results").textContent.trim() + "\n";

  // Numbers as people read them: four significant digits, a unit that fits the largest.
  function digits(value, n) {
    if (value === null || isNaN(value)) return "-";
    if (value === 0) return "0";
    var size = Math.abs(value);
    if (size >= Math.pow(10, n)) return value.toFixed(0);
    return String(Number(value.toPrecision(n)));
  }
  var scales = {
    bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]],
    us: [[1e6, "s"], [1e3, "ms"], [1, "us"]],
  };
  function unit(kind, largest) {
    var steps = scales[kind];
    for (var i = 0; i < steps.length; ++i) {
      if (largest >= steps[i][0]) return { by: steps[i][0], name: steps[i][1] };
    }
    return { by: steps[steps.length - 1][0], name: steps[steps.length - 1][1] };
  }
  function quantity(value, kind, n) {
    var u = unit(kind, Math.abs(value));
    return digits(value / u.by, n || 3) + " " + u.name;
  }

  function amount(value, kind) {
    if (kind === "bytes") return quantity(value, "bytes");
    return digits(value, 3) + (kind ? " " + kind : "");
  }

  function link(parent, words, type, name, content) {
    var a = document.createElement("a");
    a.textContent = words;
    a.download = name;
    a.href = "data:" + type + ";charset=utf-8," + encodeURIComponent(content);
    a.className = "data";
    parent.appendChild(a);
  }
  function copyButton(code) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", function () {
      var range = document.createRange();
      range.selectNodeContents(code);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      document.execCommand("copy");
      button.textContent = "copied";
      setTimeout(function () { button.textContent = "copy"; }, 1500);
    });
    code.parentNode.appendChild(button);
  }

  return {
    text: text, results: JSON.parse(text), scales: scales, digits: digits, unit: unit,
    quantity: quantity, amount: amount, link: link, copyButton: copyButton,
  };
})();
