import { late } from "./late.js";
window.addedModule = late;
