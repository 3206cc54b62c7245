// Says below each page whether the library is open now.
import { isOpen, describe } from "./hours.mjs";

const place = document.getElementById("open");
const answer = await fetch(place.dataset.hours);
const hours = await answer.json();
const now = new Date();
place.textContent = describe(hours, now);
place.classList.toggle("yes", isOpen(hours, now));
