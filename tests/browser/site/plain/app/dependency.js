export const dependency = "dependency";
