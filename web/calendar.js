// The lists of the calendar's days close when one looks elsewhere: another day, a click beside them, Escape.
"use strict";

const days = Array.from(document.querySelectorAll("details.days"));

function closeAllBut(kept) {
  for (const day of days) {
    if (day !== kept) day.open = false;
  }
}

for (const day of days) {
  day.addEventListener("toggle", () => {
    if (day.open) closeAllBut(day);
  });
}
document.addEventListener("click", (event) => closeAllBut(event.target.closest("details.days")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = days.find((day) => day.open);
  closeAllBut(null);
  if (open) open.firstElementChild.focus();
});
