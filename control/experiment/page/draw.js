// Drawing with D3 (version 3): axes, legends, a reading line. Colours and fonts are those of the
// style sheet, by class; `arm-N` is the colour of arm N.
"use strict";
var Draw = (function () {
  var letter = 6.4;  // width of a character at the size of labels

  function canvas(box, width, height, label) {
    var svg = d3.select(box).append("svg")
        .attr("viewBox", "0 0 " + width + " " + height).attr("role", "img")
        .attr("aria-label", label).style("max-width", width + "px");
    svg.append("title").text(label);
    return svg;
  }
  function text(g, x, y, words, name, anchor) {
    return g.append("text").attr("x", x).attr("y", y).attr("class", name || "")
        .style("text-anchor", anchor || "start").text(words);
  }

  // Tick values of a logarithmic axis: powers of ten, with 2 and 5 between where they are few.
  function logTicks(from, to, most) {
    var decades = Math.log(to / from) / Math.LN10;
    var steps = decades > 3 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
    var values = [];
    for (var e = Math.floor(Math.log(from) / Math.LN10) - 1; e <= Math.log(to) / Math.LN10; ++e) {
      steps.forEach(function (s) {
        var v = Number((s * Math.pow(10, e)).toPrecision(6));
        if (v >= from * 0.9999 && v <= to * 1.0001) values.push(v);
      });
    }
    while (values.length > (most || 9)) values = values.filter(function (v, i) { return i % 2 === 0; });
    return values;
  }

  // A scale over [from, to]; logarithmic unless the range is so narrow that ticks would be odd.
  function scale(log, from, to, range) {
    var s = log ? d3.scale.log() : d3.scale.linear();
    s.domain([from, to]).range(range);
    s.isLog = log;
    s.tickValues = log ? logTicks(from, to) : s.ticks(6);
    return s;
  }

  // Grid, tick labels and titles of a panel whose plot spans the ranges of x and y.
  function axes(g, x, y, options) {
    var left = x.range()[0], right = x.range()[1], bottom = y.range()[0], top = y.range()[1];
    var free = -Infinity;  // labels that would touch the one before are left out
    (options.xTicks || x.tickValues).slice().sort(d3.ascending).forEach(function (v) {
      g.append("line").attr("class", "grid")
          .attr("x1", x(v)).attr("x2", x(v)).attr("y1", top).attr("y2", bottom);
      if (!options.xFormat) return;
      var words = options.xFormat(v), half = words.length * letter / 2;
      if (x(v) - half < free) return;
      free = x(v) + half + 6;
      text(g, x(v), bottom + 15, words, "tick", "middle");
    });
    (options.yTicks || y.tickValues).forEach(function (v) {
      g.append("line").attr("class", "grid")
          .attr("x1", left).attr("x2", right).attr("y1", y(v)).attr("y2", y(v));
      if (options.yFormat) text(g, left - 6, y(v) + 4, options.yFormat(v), "tick", "end");
    });
    g.append("path").attr("class", "axis")
        .attr("d", "M" + left + "," + top + "V" + bottom + "H" + right);
    if (options.xTitle) {
      text(g, (left + right) / 2, bottom + 32, options.xTitle, "axis-title", "middle");
    }
    if (options.title) text(g, left, top - 8, options.title, "panel-title");
  }

  function legend(g, x, y, items) {
    items.forEach(function (item) {
      g.append("line").attr("class", "line " + item.name).attr("x1", x).attr("x2", x + 18)
          .attr("y1", y - 4).attr("y2", y - 4);
      text(g, x + 23, y, item.text, "legend");
      x += 23 + item.text.length * letter + 16;
    });
  }

  // Words at a place along x that is read with the mouse or, once the chart has the focus, with the
  // arrow keys. read(position) gives the line of text; positions are those of the scale.
  function reader(svg, x, top, bottom, steps, read) {
    var line = svg.append("line").attr("class", "reading").attr("y1", top).attr("y2", bottom)
        .style("display", "none");
    var words = text(svg, x.range()[1], 12, "", "reading-text", "end");
    var at = -1;
    function show(i) {
      at = Math.max(0, Math.min(steps.length - 1, i));
      line.style("display", null).attr("x1", x(steps[at])).attr("x2", x(steps[at]));
      words.text(read(steps[at]));
    }
    function hide() {
      line.style("display", "none");
      words.text("");
    }
    svg.append("rect").attr("class", "catch").attr("x", x.range()[0]).attr("y", top)
        .attr("width", x.range()[1] - x.range()[0]).attr("height", bottom - top)
        .on("mousemove", function () {
          show(d3.bisect(steps, x.invert(d3.mouse(this)[0])));
        })
        .on("mouseleave", hide);
    svg.attr("tabindex", 0).on("keydown", function () {
      var step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[d3.event.key];
      if (d3.event.key === "Escape") hide();
      if (!step) return;
      d3.event.preventDefault();
      show(at + step);
    }).on("blur", hide);
  }

  return { canvas: canvas, text: text, scale: scale, axes: axes, legend: legend, reader: reader,
           logTicks: logTicks, letter: letter };
})();
