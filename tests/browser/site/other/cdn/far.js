import { tool } from "/cdn/tool.js";
export const far = "far-" + tool;
