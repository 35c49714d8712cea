(function () {
  "use strict";
  var root = document.getElementById("order"), player = document.querySelector(".player");
  if (!root || !player) return;
  var words = JSON.parse(document.getElementById("turns").textContent);
  var last = words.length - 1, at = last, timer = 0;
  var slider = player.querySelector("input"), output = player.querySelector("output");
  var play = player.querySelector("[data-do=play]");

  /* Every shape with the turns at which it is visited, or the one at which it appears. */
  var shapes = Array.prototype.map.call(root.querySelectorAll("[data-turns], [data-turn]"), function (shape) {
    var text = shape.getAttribute("data-turns") || shape.getAttribute("data-turn");
    var turns = text.split(" ").map(Number), label = shape.nextElementSibling;
    return {shape: shape, turns: turns, seen: new Set(turns), first: turns[0],
            label: shape.tagName === "circle" && label && label.tagName === "text" ? label : null};
  });

  function show(turn) {
    at = Math.max(0, Math.min(last, turn));
    root.classList.add("playing");
    shapes.forEach(function (one) {
      one.shape.classList.toggle("todo", one.first > at);
      one.shape.classList.toggle("now", one.seen.has(at) && one.shape.tagName !== "path");
      if (one.label) one.label.classList.toggle("todo", one.first > at);
    });
    slider.value = at;
    output.textContent = (at + 1) + " of " + (last + 1) + "   " + words[at];
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }

  function start() {
    if (at >= last) show(0);
    play.textContent = "Pause";
    timer = setInterval(function () {
      if (at >= last) stop(); else show(at + 1);
    }, Math.max(60, Math.min(450, 24000 / (last + 1))));
  }

  var acts = {
    first: function () { stop(); show(0); },
    back: function () { stop(); show(at - 1); },
    next: function () { stop(); show(at + 1); },
    play: function () { if (timer) stop(); else start(); }
  };
  player.addEventListener("click", function (event) {
    var act = acts[event.target.getAttribute("data-do")];
    if (act) act();
  });
  slider.addEventListener("input", function () { stop(); show(Number(slider.value)); });
  slider.max = last;
  slider.value = last;
  output.textContent = (last + 1) + " turns";
  player.hidden = false;
  document.documentElement.classList.add("scripted");
})();
