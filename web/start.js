// Suggestions below the search field of the start page: hosts and addresses that begin as what is typed.
"use strict";

const field = document.getElementById("question");
const list = document.getElementById("suggestions");
let chosen = -1;
let asked = 0;
let timer = 0;

field.setAttribute("role", "combobox");
field.setAttribute("aria-autocomplete", "list");
field.setAttribute("aria-controls", list.id);

function close() {
  list.hidden = true;
  list.replaceChildren();
  chosen = -1;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

function choose(index) {
  const items = list.children;
  if (items[chosen]) items[chosen].setAttribute("aria-selected", "false");
  chosen = (index + items.length + 1) % (items.length + 1); // one more: nothing is chosen
  const item = items[chosen];
  if (!item) {
    chosen = -1;
    field.removeAttribute("aria-activedescendant");
    return;
  }
  item.setAttribute("aria-selected", "true");
  item.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", item.id);
}

function take(item) {
  field.value = item.dataset.text;
  close();
  field.form.requestSubmit();
}

function show(suggestions) {
  close();
  suggestions.forEach((suggestion, index) => {
    const item = document.createElement("li");
    const text = document.createElement("span");
    const note = document.createElement("span");
    const isHost = suggestion.kind === "host";
    item.id = "suggestion-" + index;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.dataset.text = isHost ? suggestion.text + "/*" : suggestion.text;
    text.textContent = suggestion.text;
    note.className = "quiet";
    note.textContent = isHost ? suggestion.captures.toLocaleString("en") + " captures" : "address";
    item.append(text, note);
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      take(item);
    });
    list.append(item);
  });
  list.hidden = suggestions.length === 0;
  field.setAttribute("aria-expanded", String(!list.hidden));
}

async function ask() {
  const number = ++asked;
  const text = field.value.trim();
  if (text.length < 2) {
    close();
    return;
  }
  try {
    const response = await fetch("/api/v1/suggest?q=" + encodeURIComponent(text));
    const answer = response.ok ? await response.json() : { suggestions: [] };
    if (number === asked && document.activeElement === field) show(answer.suggestions);
  } catch {
    close(); // the field works without
  }
}

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(ask, 120);
});
field.addEventListener("blur", close);
field.addEventListener("keydown", (event) => {
  if (list.hidden) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Escape") {
    event.preventDefault();
    asked++;
    close();
  } else if (event.key === "Enter" && chosen >= 0) {
    event.preventDefault();
    take(list.children[chosen]);
  }
});
close();
